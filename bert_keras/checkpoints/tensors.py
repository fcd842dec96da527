"""Files of weights: names -> arrays, from whichever files a folder holds."""

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy
import tensorflow as tf

from bert_keras.checkpoints.torch_pickle import read_torch
from bert_keras.files import read_json

SAFETENSORS = "model.safetensors"
TORCH = "pytorch_model.bin"
INDEX = ".index.json"
WEIGHTS = (SAFETENSORS, SAFETENSORS + INDEX, TORCH, TORCH + INDEX)
"""Where weights may be, in the order in which they are looked for."""

DTYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": tf.bfloat16.as_numpy_dtype,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": np.bool_,
}


def read_weights(folder: str | os.PathLike) -> dict[str, np.ndarray]:
    """Returns the tensors of a Hugging Face folder: one file, or shards with an index.

    Raises:
        FileNotFoundError: the folder holds no weights.
        ValueError: naming a file that is damaged or cut off, or an index that does not
            say where the tensors are.
    """
    folder = Path(folder)
    for name in WEIGHTS:
        if (folder / name).exists():
            is_index = name.endswith(INDEX)
            return (_read_shards if is_index else _read_file)(folder / name)
    raise FileNotFoundError(
        f"{os.fspath(folder)} holds no weights. Allowed: {', '.join(WEIGHTS)}."
    )


def write_safetensors(tensors: Mapping[str, np.ndarray], path: Path) -> None:
    """Writes a safetensors file as Hugging Face does; float16 becomes float32."""
    arrays = {
        name: np.ascontiguousarray(
            array, np.float32 if array.dtype.itemsize < 4 else array.dtype
        )
        for name, array in tensors.items()
    }
    safetensors.numpy.save_file(arrays, path, metadata={"format": "pt"})


def _read_file(path: Path) -> dict[str, np.ndarray]:
    return (read_torch if path.suffix == ".bin" else _read_safetensors)(path)


def _read_safetensors(path: Path) -> dict[str, np.ndarray]:
    try:
        # Not safetensors.numpy, whose early versions do not know bfloat16.
        found = safetensors.deserialize(path.read_bytes())
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is no whole safetensors file: {error}") from error
    unknown = {tensor["dtype"] for _, tensor in found} - DTYPES.keys()
    if unknown:
        raise ValueError(
            f"{path} holds tensors of another type. Received: "
            f"{', '.join(sorted(unknown))}; allowed: {', '.join(DTYPES)}."
        )
    return {
        name: np.frombuffer(tensor["data"], DTYPES[tensor["dtype"]]).reshape(
            tensor["shape"]
        )
        for name, tensor in found
    }


def _read_shards(index: Path) -> dict[str, np.ndarray]:
    described = read_json(index)
    places = described.get("weight_map") if isinstance(described, dict) else None
    if not isinstance(places, dict) or not places:
        raise ValueError(f"{index} lacks weight_map, which says where the tensors are.")
    tensors: dict[str, np.ndarray] = {}
    for name in sorted(set(map(str, places.values()))):
        if Path(name).name != name:
            raise ValueError(
                f"{index} names a file elsewhere. Received: {name!r}; allowed: files "
                "beside it."
            )
        tensors.update(_read_file(index.with_name(name)))
    missing = [name for name in places if name not in tensors]
    if missing:
        raise ValueError(
            f"{index} names tensors that its files do not hold: {', '.join(missing)}."
        )
    return tensors

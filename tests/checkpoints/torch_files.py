"""Writes files as `torch.save` does, in both formats, without torch."""

import contextlib
import io
import pickle
import struct
import sys
import types
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np

STORAGES = {
    "DoubleStorage": np.float64,
    "FloatStorage": np.float32,
    "HalfStorage": np.float16,
    "BFloat16Storage": ml_dtypes.bfloat16,
    "LongStorage": np.int64,
    "IntStorage": np.int32,
    "ShortStorage": np.int16,
    "CharStorage": np.int8,
    "ByteStorage": np.uint8,
    "BoolStorage": np.bool_,
}


class Storage:
    """Memory under a key, of which tensors are views."""

    def __init__(self, key: str, values: np.ndarray):
        self.key = key
        self.values = values


class Tensor:
    """A view of a storage: sizes and strides in elements."""

    def __init__(self, storage: Storage, start: int, shape: tuple, strides: tuple):
        self.parts = (storage, start, shape, strides, False, OrderedDict())

    def __reduce__(self):
        return sys.modules["torch._utils"]._rebuild_tensor_v2, self.parts


class Parameter:
    """A tensor that is trained."""

    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    def __reduce__(self):
        rebuild = sys.modules["torch._utils"]._rebuild_parameter
        return rebuild, (self.tensor, True, OrderedDict())


def state_of(arrays: dict[str, np.ndarray]) -> OrderedDict:
    """Returns what `model.state_dict()` holds."""
    state = OrderedDict(
        (
            name,
            Tensor(
                Storage(str(number), np.ascontiguousarray(array).ravel()),
                0,
                array.shape,
                tuple(step // array.itemsize for step in array.strides),
            ),
        )
        for number, (name, array) in enumerate(arrays.items())
    )
    state._metadata = OrderedDict([("", {"version": 1})])
    return state


def write_zip(state, path: Path, protocol: int = 2) -> None:
    """Writes the format of torch 1.6 and later."""
    pickled, storages = _pickled(state, protocol)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/byteorder", "little")
        for key, values in storages.items():
            archive.writestr(f"archive/data/{key}", values.tobytes())
        archive.writestr("archive/version", "3\n")


def write_legacy(state, path: Path, protocol: int = 2) -> None:
    """Writes the format before torch 1.6."""
    pickled, storages = _pickled(state, protocol, (None,))  # a view of nothing
    machine = {
        "protocol_version": 1001,
        "little_endian": True,
        "type_sizes": {"int": 4},
    }
    parts = [
        pickle.dumps(0x1950A86A20F9469CFC6C, protocol),
        pickle.dumps(1001, protocol),
        pickle.dumps(machine, protocol),
        pickled,
        pickle.dumps(sorted(storages), protocol),
    ]
    for key in sorted(storages):
        values = storages[key]
        parts += [struct.pack("<q", values.size), values.tobytes()]
    path.write_bytes(b"".join(parts))


WRITERS = {"zip": write_zip, "legacy": write_legacy}


def _pickled(
    state, protocol: int, ends: tuple = ()
) -> tuple[bytes, dict[str, np.ndarray]]:
    storages: dict[str, np.ndarray] = {}
    with _names_of_torch() as kinds:

        class Pickler(pickle.Pickler):
            def persistent_id(self, value):
                if not isinstance(value, Storage):
                    return None
                storages[value.key] = value.values
                kind = kinds[value.values.dtype]
                size = value.values.size
                return ("storage", kind, value.key, "cpu", size, *ends)

        file = io.BytesIO()
        Pickler(file, protocol).dump(state)
    return file.getvalue(), storages


@contextlib.contextmanager
def _names_of_torch() -> Iterator[dict]:
    """Modules that have torch's names in them: pickle looks them up to write them."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for name in ("_rebuild_tensor_v2", "_rebuild_parameter"):
        function = types.FunctionType((lambda: None).__code__, {}, name)
        function.__module__, function.__qualname__ = "torch._utils", name
        setattr(utils, name, function)
    kinds = {}
    for name, dtype in STORAGES.items():
        kinds[np.dtype(dtype)] = type(name, (), {"__module__": "torch"})
        setattr(torch, name, kinds[np.dtype(dtype)])
    before = {name: sys.modules.get(name) for name in ("torch", "torch._utils")}
    sys.modules.update({"torch": torch, "torch._utils": utils})
    try:
        yield kinds
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module

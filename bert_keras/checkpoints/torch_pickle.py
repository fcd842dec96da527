"""Reads what `torch.save` wrote, without torch and without running anything.

A tensor is a view of a *storage*, a piece of memory that several tensors may share.
There are two formats. Since torch 1.6 the file is a zip file: a pickle of the object,
and a file for each storage. Before, five pickles stood one behind the other, and then
the storages:

1. the magic number,
2. the version of the format, 1001,
3. facts about the machine: the byte order, the sizes of C's integers,
4. the object,
5. the list of keys, in the order in which the storages follow,
6. for each key: the number of elements, eight bytes, and the elements.
"""

import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import BinaryIO

import numpy as np
import tensorflow as tf

from bert_keras.checkpoints.pickled import Name, PickleReader

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
VERSION = 1001

STORAGES = {
    "torch.DoubleStorage": np.dtype("<f8"),
    "torch.FloatStorage": np.dtype("<f4"),
    "torch.HalfStorage": np.dtype("<f2"),
    "torch.BFloat16Storage": np.dtype(tf.bfloat16.as_numpy_dtype),
    "torch.LongStorage": np.dtype("<i8"),
    "torch.IntStorage": np.dtype("<i4"),
    "torch.ShortStorage": np.dtype("<i2"),
    "torch.CharStorage": np.dtype("i1"),
    "torch.ByteStorage": np.dtype("u1"),
    "torch.BoolStorage": np.dtype("?"),
}

# What reading a damaged file may raise.
_FAULTS = (
    *(ValueError, KeyError, IndexError, TypeError, OverflowError, RecursionError),
    *(EOFError, OSError, MemoryError, RuntimeError, NotImplementedError),
    *(struct.error, zlib.error, zipfile.BadZipFile),
)


def read_torch(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Returns the tensors of a `pytorch_model.bin` by their names.

    Args:
        path: a file of either format, whose object is a dictionary of tensors.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: naming the file: it is neither format, is cut off or damaged, or
            holds something else than tensors; a name of something else is given.
    """
    with open(path, "rb") as file:
        try:
            is_zip = file.read(2) == b"PK"
            file.seek(0)
            return _tensors_only((_read_zip if is_zip else _read_legacy)(file))
        except _FAULTS as error:
            raise ValueError(
                f"{os.fspath(path)} is no whole file of PyTorch weights: {error}"
            ) from error


def _read_zip(file: BinaryIO):
    with zipfile.ZipFile(file) as archive:
        pickles = [n for n in archive.namelist() if n.endswith("data.pkl")]
        _check("number of pickles", len(pickles), 1)
        (pickled,) = pickles
        root = pickled.removesuffix("data.pkl")
        if f"{root}byteorder" in archive.namelist():
            _check("byte order", archive.read(f"{root}byteorder"), b"little")

        def storage(key: str, dtype: np.dtype, size: int) -> np.ndarray:
            entry = archive.getinfo(f"{root}data/{key}")
            _check("compression", entry.compress_type, zipfile.ZIP_STORED)
            _check("size of a storage", entry.file_size, size * dtype.itemsize)
            return np.frombuffer(archive.read(entry), dtype)

        with archive.open(pickled) as instructions:
            return _Storages(storage).read(instructions)


def _read_legacy(file: BinaryIO):
    """The object comes before its storages, which are filled once they are there."""
    total = os.fstat(file.fileno()).st_size

    def storage(key: str, dtype: np.dtype, size: int) -> np.ndarray:
        if size * dtype.itemsize > total:
            raise ValueError(f"A storage of {size} elements is larger than the file.")
        return np.zeros(size, dtype)

    storages = _Storages(storage)
    _check("start", storages.read(file), MAGIC_NUMBER)
    _check("version of the format", storages.read(file), VERSION)
    _check("little_endian", storages.read(file)["little_endian"], True)
    found, keys = storages.read(file), storages.read(file)
    _check("list of storages", sorted(keys), sorted(storages.by_key))
    for key in keys:
        filled = storages.by_key[key]
        (size,) = struct.unpack("<q", file.read(8))
        _check("size of a storage", size, filled.size)
        content = file.read(filled.nbytes)
        _check("number of bytes", len(content), filled.nbytes)
        filled[:] = np.frombuffer(content, filled.dtype)
    _check("end", file.read(1), b"")
    return found


class _Storages:
    """Reads pickles whose persistent ids are storages, each of which is made once."""

    def __init__(self, make: Callable[[str, np.dtype, int], np.ndarray]):
        self._make = make
        self.by_key: dict[str, np.ndarray] = {}

    def read(self, file: BinaryIO):
        return PickleReader(_CALLS, STORAGES, self._storage).read(file)

    def _storage(self, reference) -> np.ndarray:
        match reference:
            case ("storage", Name(full), str(key), _, int(size), *views) if (
                full in STORAGES and views in ([], [None])
            ):
                dtype = STORAGES[full]
            case _:
                raise ValueError(f"Unknown reference. Received: {reference!r}.")
        if key not in self.by_key:
            self.by_key[key] = self._make(key, dtype, size)
        made = self.by_key[key]
        _check("storage", (dtype, size), (made.dtype, made.size))
        return made


def _dictionary(pairs=()) -> dict:
    return dict(pairs)


def _tensor(storage, start, shape, strides, *unused) -> np.ndarray:
    """Stands for `_rebuild_tensor_v2`, which counts strides in elements."""
    sizes = (start, *shape, *strides)
    if not isinstance(storage, np.ndarray) or any(type(n) is not int for n in sizes):
        raise ValueError("A tensor is no part of a storage.")
    steps = list(zip(shape, strides, strict=True))
    last = start + sum((count - 1) * stride for count, stride in steps)
    if min(sizes) < 0 or (0 not in shape and last >= storage.size):
        raise ValueError(
            f"A tensor lies outside its storage. Received: elements {start} to {last}; "
            f"allowed: 0 to {storage.size - 1}."
        )
    if 0 in shape:
        return np.zeros(shape, storage.dtype)
    steps = [stride * storage.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(
        storage[start:], shape, steps, writeable=False
    )


def _parameter(tensor, *unused) -> np.ndarray:
    return tensor


_CALLS = {
    "collections.OrderedDict": _dictionary,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_parameter": _parameter,
}


def _tensors_only(found) -> dict[str, np.ndarray]:
    strangers = [found]
    if isinstance(found, dict):
        strangers = [
            value
            for name, value in found.items()
            if not isinstance(name, str) or not isinstance(value, np.ndarray)
        ]
    if strangers:
        raise ValueError(
            f"It holds something else. Received: a {type(strangers[0]).__name__}; "
            "allowed: a dictionary of tensors."
        )
    return found


def _check(what: str, received, expected) -> None:
    if received != expected:
        raise ValueError(
            f"Unknown {what}. Received: {received!r}; allowed: {expected!r}."
        )

"""Reads what `torch.save` wrote before torch 1.6, without torch.

Such a file is no zip, as later ones are, but five pickles, one behind the other, and
then bytes:

1. the magic number,
2. the version of the format, 1001,
3. facts about the machine: the byte order, the sizes of C's integers,
4. the object, in which each tensor is a call of `_rebuild_tensor_v2` on a part of a
   *storage*, and each storage a "persistent id": ("storage", class, key, device, number
   of elements, None or what it is a view of),
5. the list of keys, in the order in which the storages follow,
6. for each key: the number of elements, eight bytes, and the elements.

A pickle may call any function of any module. This reader knows four names, builds
arrays and ordered dictionaries with them, and refuses every other name.
"""

import collections
import pickle
import struct
from pathlib import Path

import numpy as np

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
VERSION = 1001


def read_tensors(path: Path):
    """Returns the object in the file, with arrays in the place of tensors.

    Raises:
        pickle.UnpicklingError: another format, or a name that is not known here.
    """
    with open(path, "rb") as file:
        for expected in (MAGIC_NUMBER, VERSION):
            _check(_Unpickler(file).load(), expected, "start of the file")
        machine = _Unpickler(file).load()
        _check(machine["little_endian"], True, "little_endian")
        unpickler = _Unpickler(file)
        tensors = unpickler.load()
        keys = _Unpickler(file).load()
        _check(sorted(keys), sorted(unpickler.storages), "list of storages")
        for key in keys:
            # The arrays are views of their storage, and so are filled with it.
            storage = unpickler.storages[key]
            (size,) = struct.unpack("<q", file.read(8))
            _check(size, storage.size, "size of a storage")
            storage[:] = np.frombuffer(file.read(storage.nbytes), storage.dtype)
        _check(file.read(), b"", "end of the file")
    return tensors


def _check(received, expected, what: str) -> None:
    if received != expected:
        raise pickle.UnpicklingError(
            f"Unknown {what}. Received: {received!r}; allowed: {expected!r}."
        )


def _array(storage, start, shape, strides, *unused) -> np.ndarray:
    """Stands for `_rebuild_tensor_v2`, which counts strides in elements."""
    steps = zip(shape, strides, strict=True)
    last = start + sum((count - 1) * stride for count, stride in steps)
    if not (0 <= start and min(strides, default=0) >= 0 and last < storage.size):
        raise pickle.UnpicklingError(
            f"A tensor outside its storage. Received: elements {start} to {last}; "
            f"allowed: 0 to {storage.size - 1}."
        )
    steps = [stride * storage.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(storage[start:], shape, steps)


KNOWN = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _array,
    ("torch", "FloatStorage"): np.dtype("<f4"),
    ("torch", "LongStorage"): np.dtype("<i8"),
}


class _Unpickler(pickle.Unpickler):
    """Makes an empty array of each storage, and views of it of the tensors."""

    def __init__(self, file):
        super().__init__(file)
        self.storages: dict[str, np.ndarray] = {}

    def find_class(self, module, name):
        if (module, name) not in KNOWN:
            raise pickle.UnpicklingError(
                f"A name that is not known here. Received: {module}.{name}; allowed: "
                f"{', '.join('.'.join(names) for names in KNOWN)}."
            )
        return KNOWN[module, name]

    def persistent_load(self, reference):
        match reference:
            case ("storage", np.dtype() as dtype, str(key), _, int(size), None):
                return self.storages.setdefault(key, np.zeros(size, dtype))
        raise pickle.UnpicklingError(
            f"Unknown reference. Received: {reference!r}; allowed: a storage's."
        )

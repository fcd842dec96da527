"""Files of `torch.save`: read exactly, and never run."""

import os
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
from checkpoints.torch_files import (
    STORAGES,
    WRITERS,
    Parameter,
    Storage,
    Tensor,
    state_of,
)

from bert_keras.checkpoints.torch_pickle import read_torch

FORMATS = sorted(WRITERS)


@pytest.fixture
def written(tmp_path):
    """Returns a function that writes an object in a format and returns the path."""

    def write(state, form="zip", protocol=2):
        WRITERS[form](state, tmp_path / "pytorch_model.bin", protocol)
        return tmp_path / "pytorch_model.bin"

    return write


def with_pickle(path, pickled: bytes):
    """Puts a pickle of our own in the place of that of a zip file."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
    return path


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("protocol", [2, 4])
def test_every_dtype_and_shape(written, random, form, protocol):
    arrays = {
        name: random.integers(0, 2, shape).astype(dtype)
        for name, dtype in STORAGES.items()
        for shape in [(2, 3)]
    }
    arrays |= {"scalar": np.float32(3).reshape(()), "none": np.zeros((0, 4), "float32")}
    found = read_torch(written(state_of(arrays), form, protocol))
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype, name
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("form", FORMATS)
def test_views_of_one_storage(written, form):
    values = np.arange(24, dtype=np.float32)
    storage = Storage("0", values)
    state = {
        "whole": Tensor(storage, 0, (4, 6), (6, 1)),
        "transposed": Tensor(storage, 0, (6, 4), (1, 6)),
        "behind": Tensor(storage, 10, (2, 3), (6, 2)),
        "repeated": Parameter(Tensor(storage, 5, (3,), (0,))),
    }
    found = read_torch(written(state, form))
    np.testing.assert_array_equal(found["whole"], values.reshape(4, 6))
    np.testing.assert_array_equal(found["transposed"], values.reshape(4, 6).T)
    np.testing.assert_array_equal(found["behind"], [[10, 12, 14], [16, 18, 20]])
    np.testing.assert_array_equal(found["repeated"], [5, 5, 5])


class Runs:
    """What calls a function as soon as it is unpickled."""

    def __init__(self, function, *arguments):
        self.called = (function, arguments)

    def __reduce__(self):
        return self.called


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("function", [os.system, eval, getattr, pickle.loads])
def test_no_other_name_is_called(written, form, protocol, function, tmp_path):
    victim = tmp_path / "was_run"
    command = f"open({os.fspath(victim)!r}, 'w')"
    state = OrderedDict(weight=Runs(function, command))
    path = written(state, form, protocol)
    name = rf"\w+\.{function.__name__}"
    with pytest.raises(ValueError, match=f"{path}.*Received: {name}; allowed: coll"):
        read_torch(path)
    assert not victim.exists()


def test_no_call_inside_a_call(written, tmp_path):
    inner = Runs(os.mkdir, os.fspath(tmp_path / "made"))
    state = {"weight": Tensor(Storage("0", np.zeros(2, "f4")), 0, (2,), inner)}
    with pytest.raises(ValueError, match=r"Received: \w+\.mkdir; allowed"):
        read_torch(written(state))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("pickled", "message"),
    [
        (b"(i__builtin__\neval\n.", "the instruction INST"),
        (b"(c__builtin__\neval\nX\x01\x00\x00\x001o.", "names what is not data"),
        (b"(ccollections\nOrderedDict\no.", "the instruction OBJ"),
        (b"ccollections\nOrderedDict\n)\x81.", "the instruction NEWOBJ"),
        (b"\x82\x01.", "the instruction EXT1"),
        (b"Pname\n.", "the instruction PERSID"),
        (b"ccollections\nOrderedDict\n}b.", "Received: a Name; allowed: a dict"),
        (b"]}b.", "Received: a list; allowed: a dict"),
        (b"ctorch\nFloatStorage\n)R.", "calls what is not called"),
        (b"K\x01)R.", "Received: a int; allowed: a name"),
        (b"(K\x01K\x02tK\x03a.", "Received: a tuple; allowed: a list"),
        (b"X\x01\x00\x00\x00aQ.", "Unknown reference"),
        (b"K\x01.", "Received: a int; allowed: a dictionary of tensors"),
        (b"}X\x01\x00\x00\x00aK\x01s.", "Received: a int; allowed: a dictionary"),
        (b"}K\x01", "exhausted before seeing STOP"),
        (b"s.", "values are missing"),
        (b"t.", "is no whole file"),
        (b"h\x07.", "is no whole file"),
        (b"", "is no whole file"),
        (b"ccollections\nOrderedDict\n]]\x85R.", "is no whole file"),
    ],
)
def test_instructions_that_are_refused(tmp_path, pickled, message):
    path = with_pickle(tmp_path / "pytorch_model.bin", pickled)
    with pytest.raises(ValueError, match=message) as caught:
        read_torch(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("start", "shape", "strides"),
    [(1, (6,), (1,)), (0, (2, 3), (4, 1)), (-1, (2,), (1,)), (5, (2,), (-1,))],
)
def test_a_tensor_outside_its_storage(written, form, start, shape, strides):
    storage = Storage("0", np.zeros(6, "float32"))
    path = written({"weight": Tensor(storage, start, shape, strides)}, form)
    with pytest.raises(ValueError, match="lies outside its storage. Received: elem"):
        read_torch(path)


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_cut_off_anywhere(written, form):
    path = written(state_of({"a": np.ones((3, 2), "f4"), "b": np.ones(2, "i8")}), form)
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match="pytorch_model.bin is no whole file"):
            read_torch(path)


def test_a_damaged_zip_file(written):
    path = written(state_of({"a": np.full((64,), 3, "float32")}))
    values = np.full(64, 3, "float32").tobytes()
    content = path.read_bytes()
    assert values in content
    path.write_bytes(content.replace(values, values[:-1] + b"x"))
    with pytest.raises(ValueError, match="Bad CRC-32"):
        read_torch(path)


def test_a_storage_that_would_not_fit_in_memory(written):
    class Huge(np.ndarray):
        size = 1 << 60

    storage = Storage("0", np.zeros(2, "float32").view(Huge))
    with pytest.raises(ValueError, match="is larger than the file"):
        read_torch(written({"a": Tensor(storage, 0, (2,), (1,))}, "legacy"))


def test_there_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_torch(tmp_path / "pytorch_model.bin")

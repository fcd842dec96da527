"""Files of weights: one or several, whole or not."""

import json

import ml_dtypes
import numpy as np
import pytest
from checkpoints.torch_files import WRITERS, state_of
from safetensors.numpy import load_file, save_file

from bert_keras.checkpoints.tensors import read_weights, write_safetensors

ARRAYS = {"a": np.arange(6, dtype="float32").reshape(2, 3), "b": np.ones(2, "int64")}


def check_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def write_index(folder, name, weight_map):
    (folder / name).write_text(json.dumps({"weight_map": weight_map}), "utf-8")


def test_safetensors(tmp_path):
    save_file(ARRAYS, tmp_path / "model.safetensors")
    check_equal(read_weights(tmp_path), ARRAYS)


def test_safetensors_of_bfloat16(tmp_path):
    values = np.array([1, -2.5, 3e38], ml_dtypes.bfloat16)
    header = {"a": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}
    head = json.dumps(header).encode()
    content = len(head).to_bytes(8, "little") + head + values.tobytes()
    (tmp_path / "model.safetensors").write_bytes(content)
    check_equal(read_weights(tmp_path), {"a": values})


def test_safetensors_of_a_type_that_is_no_weight(tmp_path):
    save_file({"a": np.ones(2, "uint64")}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"model\.safetensors .*Received: U64; allow"):
        read_weights(tmp_path)


def test_what_is_written_says_that_it_is_for_torch(tmp_path):
    path = tmp_path / "model.safetensors"
    half = {"c": np.array([1.5, 2], ml_dtypes.bfloat16)}
    write_safetensors({"a": ARRAYS["a"].T, **half}, path)
    size = int.from_bytes(path.read_bytes()[:8], "little")
    header = json.loads(path.read_bytes()[8 : 8 + size])
    assert header["__metadata__"] == {"format": "pt"}
    found = load_file(path)
    np.testing.assert_array_equal(found["a"], ARRAYS["a"].T)
    np.testing.assert_array_equal(found["c"], np.array([1.5, 2], "float32"))


def test_sharded_safetensors(tmp_path):
    for name, array in ARRAYS.items():
        save_file({name: array}, tmp_path / f"model-{name}.safetensors")
    places = {name: f"model-{name}.safetensors" for name in ARRAYS}
    write_index(tmp_path, "model.safetensors.index.json", places)
    check_equal(read_weights(tmp_path), ARRAYS)


@pytest.mark.parametrize("form", sorted(WRITERS))
def test_sharded_torch(tmp_path, form):
    for name, array in ARRAYS.items():
        WRITERS[form](state_of({name: array}), tmp_path / f"part-{name}.bin")
    places = {name: f"part-{name}.bin" for name in ARRAYS}
    write_index(tmp_path, "pytorch_model.bin.index.json", places)
    check_equal(read_weights(tmp_path), ARRAYS)


def test_the_index_names_a_file_elsewhere(tmp_path):
    write_index(tmp_path, "model.safetensors.index.json", {"a": "../a.safetensors"})
    with pytest.raises(ValueError, match=r"Received: '\.\./a\.safetensors'; allowed"):
        read_weights(tmp_path)


def test_the_index_names_a_file_that_is_not_there(tmp_path):
    write_index(tmp_path, "model.safetensors.index.json", {"a": "a.safetensors"})
    with pytest.raises(FileNotFoundError, match=r"a\.safetensors"):
        read_weights(tmp_path)


def test_the_index_names_tensors_that_no_file_holds(tmp_path):
    save_file(ARRAYS, tmp_path / "a.safetensors")
    places = dict.fromkeys([*ARRAYS, "c", "d"], "a.safetensors")
    write_index(tmp_path, "model.safetensors.index.json", places)
    with pytest.raises(ValueError, match=r"index\.json names tensors .* hold: c, d\."):
        read_weights(tmp_path)


@pytest.mark.parametrize("content", ["[]", "{}", '{"weight_map": []}', "{"])
def test_an_index_that_is_none(tmp_path, content):
    (tmp_path / "model.safetensors.index.json").write_text(content, "utf-8")
    with pytest.raises(ValueError, match=r"model\.safetensors\.index\.json"):
        read_weights(tmp_path)


def test_safetensors_cut_off_anywhere(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file(ARRAYS, path)
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"safetensors is no whole safetensors"):
            read_weights(tmp_path)


def test_a_folder_without_weights(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no weights. Allowed: model.saf"):
        read_weights(tmp_path)

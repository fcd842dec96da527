"""Files that are always whole."""

import json

import keras
import pytest

from bert_keras.files import read_json, write_json
from bert_keras.training.checkpoint import Checkpoints, save_model


@pytest.fixture
def model():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.build((None, 1))
    return model


@pytest.fixture
def fails(monkeypatch):
    """Returns a function behind whose call no model can be saved."""

    def save(self, filepath):
        filepath.write_bytes(b"half of it")
        raise OSError("no space left")

    return lambda: monkeypatch.setattr(keras.Sequential, "save", save)


def test_a_model_is_replaced_or_left_alone(tmp_path, model, fails):
    path = tmp_path / "m.keras"
    save_model(model, path)
    before = path.read_bytes()
    fails()
    with pytest.raises(OSError, match="no space"):
        save_model(model, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.keras"]


def test_json_is_whole(tmp_path):
    write_json({"a": 1.5}, tmp_path / "x.json")
    with pytest.raises(TypeError):
        write_json({"a": object()}, tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": 1.5}
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(ValueError, match="x.json is not JSON"):
        read_json(tmp_path / "x.json")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_last_checkpoints_stay(tmp_path, model):
    checkpoints = Checkpoints(tmp_path / "c", keep=2)
    assert checkpoints.newest() is None
    for step in (5, 10, 15):
        checkpoints.save(model, step, {"place": step})
    assert names(tmp_path / "c") == ["step-00000010", "step-00000015"]
    newest = checkpoints.newest()
    assert (newest.step, newest.state) == (15, {"place": 15})
    keras.saving.load_model(newest.path)


def test_a_checkpoint_is_whole_or_not_there(tmp_path, model, fails):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(model, 5, {})
    fails()
    with pytest.raises(OSError, match="no space"):
        checkpoints.save(model, 6, {})
    assert names(tmp_path) == ["step-00000005"]


def spoil_model(place):
    data = bytearray((place / "model.keras").read_bytes())
    data[len(data) // 2] ^= 1
    (place / "model.keras").write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (spoil_model, "its SHA-256 is"),
        (lambda place: (place / "model.keras").write_bytes(b""), "its SHA-256 is"),
        (lambda place: (place / "model.keras").unlink(), "No such file"),
        (lambda place: (place / "state.json").unlink(), "No such file"),
        (lambda place: (place / "state.json").write_text('{"st'), "is not JSON"),
        (lambda place: (place / "state.json").write_text("{}"), "sha256"),
    ],
)
def test_one_that_is_not_whole_is_skipped_with_a_message(tmp_path, model, spoil, said):
    messages = []
    checkpoints = Checkpoints(tmp_path, say=messages.append)
    checkpoints.save(model, 5, {"a": 1})
    checkpoints.save(model, 6, {"a": 2})
    spoil(tmp_path / "step-00000006")
    assert checkpoints.newest().step == 5
    (message,) = messages
    assert "step-00000006 is not whole and is skipped" in message
    assert said in message
    checkpoints.save(model, 6, {"a": 3})  # trained anew, it takes the place
    assert checkpoints.newest().state == {"a": 3}

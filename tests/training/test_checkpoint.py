"""Files that are always whole."""

import json

import keras
import pytest

from bert_keras.training.checkpoint import save_model, write_json


def test_a_model_is_replaced_or_left_alone(tmp_path, monkeypatch):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.build((None, 1))
    path = tmp_path / "m.keras"
    save_model(model, path)
    before = path.read_bytes()

    def fails(self, filepath):
        filepath.write_bytes(b"half of it")
        raise OSError("no space left")

    monkeypatch.setattr(keras.Sequential, "save", fails)
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

"""Saving a model so that a file is always whole, and saving it as training goes on."""

import json
import os

import keras

from bert_keras.files import replacing


def save_model(model: keras.Model, path: str | os.PathLike) -> None:
    """Saves a `.keras` file beside `path`, then renames it: never half a file there."""
    with replacing(path) as temporary:
        model.save(temporary)


def write_json(value, path: str | os.PathLike) -> None:
    """Writes JSON beside `path`, then renames it."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


class SaveEvery(keras.callbacks.Callback):
    """Saves the model, optimizer included, every so many steps and at the end.

    Args:
        path: the `.keras` file, written anew each time.
        steps: optimizer steps between two saves.
    """

    def __init__(self, path: str | os.PathLike, steps: int):
        super().__init__()
        self.path = path
        self.steps = steps

    def on_train_batch_end(self, batch, logs=None):
        if int(self.model.optimizer.iterations) % self.steps == 0:
            save_model(self.model, self.path)

    def on_train_end(self, logs=None):
        save_model(self.model, self.path)

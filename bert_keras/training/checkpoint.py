"""Checkpoints: a model saved as training goes on, always whole, the last few kept."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import keras

from bert_keras.files import read_json, replacing, write_json

MODEL_FILE = "model.keras"
STATE_FILE = "state.json"
_NAME = "step-"


class Checkpoint(NamedTuple):
    """A model that was saved, and what it does not hold itself.

    Attributes:
        path: of the `.keras` file.
        step: optimizer steps that were taken.
        state: what was saved with it, as JSON values.
    """

    path: Path
    step: int
    state: dict


def save_model(model: keras.Model, path: str | os.PathLike) -> None:
    """Saves a `.keras` file beside `path`, then renames it: never half a file there."""
    with replacing(path) as temporary:
        model.save(temporary)


class Checkpoints:
    """The checkpoints in a folder, each a folder `step-00000500`.

    Args:
        folder: made when the first one is saved.
        keep: how many of the last ones stay.
        say: told why a checkpoint was passed over.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        keep: int = 3,
        say: Callable[[str], None] = lambda message: None,
    ):
        self.folder = Path(folder)
        self.keep = keep
        self._say = say

    def save(self, model: keras.Model, step: int, state: dict) -> None:
        """Writes a checkpoint beside its place, renames it, and removes the oldest."""
        self.folder.mkdir(parents=True, exist_ok=True)
        place = self.folder / f"{_NAME}{step:08d}"
        if place.exists():  # it was passed over, or it would have been gone on from
            shutil.rmtree(place)
        with replacing(place) as temporary:
            temporary.mkdir()
            model.save(temporary / MODEL_FILE)
            about = {
                "step": step,
                "sha256": _hash(temporary / MODEL_FILE),
                "state": state,
            }
            write_json(about, temporary / STATE_FILE)
        for old in list(self._newest_first())[self.keep :]:
            shutil.rmtree(old)

    def newest(self) -> Checkpoint | None:
        """Returns the newest checkpoint that is whole; says which ones are not."""
        for place in self._newest_first():
            try:
                about = read_json(place / STATE_FILE)
                found, wanted = _hash(place / MODEL_FILE), about["sha256"]
                if found != wanted:
                    raise ValueError(f"its SHA-256 is {found}, and should be {wanted}")
                return Checkpoint(place / MODEL_FILE, about["step"], about["state"])
            except (OSError, ValueError, KeyError, TypeError) as error:
                self._say(f"checkpoint {place} is not whole and is skipped: {error}")
        return None

    def _newest_first(self) -> Iterator[Path]:
        return iter(sorted(self.folder.glob(f"{_NAME}*"), reverse=True))


class SaveEvery(keras.callbacks.Callback):
    """Saves a checkpoint every so many steps and at the end.

    Args:
        checkpoints: where.
        steps: optimizer steps between two.
        first_step: optimizer steps taken before.
        state: step -> what to save with it.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        steps: int,
        first_step: int,
        state: Callable[[int], dict],
    ):
        super().__init__()
        self.checkpoints, self.steps, self.state = checkpoints, steps, state
        self._first = self._done = self._saved = first_step

    def on_train_batch_end(self, batch, logs=None):
        self._done = self._first + batch + 1
        if self._done // self.steps > self._saved // self.steps:
            self._save()

    def on_train_end(self, logs=None):
        if self._saved < self._done:
            self._save()

    def _save(self) -> None:
        self.checkpoints.save(self.model, self._done, self.state(self._done))
        self._saved = self._done


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()

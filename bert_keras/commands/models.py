"""Any MODEL of the command line, told apart by content."""

import os
from pathlib import Path

import keras

from bert_keras.checkpoints.load import is_checkpoint, load_checkpoint
from bert_keras.export.artefacts import (
    Artefact,
    KerasArtefact,
    load_keras,
    open_artefact,
)


def open_model(path: str | os.PathLike) -> Artefact:
    """Opens a model to be asked: a `.keras` file, a checkpoint folder, or an export.

    Raises:
        FileNotFoundError: nothing is there.
        ValueError: it is none of these, or not whole.
    """
    if is_checkpoint(path):
        return KerasArtefact(load_checkpoint(path))
    return open_artefact(path)


def load_model(path: str | os.PathLike, rules: str | None = None) -> keras.Model:
    """Loads a model to go on with: a `.keras` file or a folder of a checkpoint.

    Args:
        rules: the rule set of a checkpoint's tokenizer, in place of its origin's.

    Raises:
        FileNotFoundError: nothing is there.
        ValueError: it is neither, or not whole.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no model {path}")
    if is_checkpoint(path):
        return load_checkpoint(path, rules=rules)
    if rules is not None:
        raise ValueError(
            f"{path} holds its rules. Received: rules={rules!r}; allowed: none for a "
            ".keras file."
        )
    return load_keras(path)

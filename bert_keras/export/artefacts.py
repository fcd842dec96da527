"""Any artefact, told apart by content, as one thing: texts in, arrays out."""

import json
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import keras
import numpy as np
import onnxruntime
import tensorflow as tf

from bert_keras.export import onnx as onnx_export
from bert_keras.export.parts import ServedModel, preprocessor_from, task_from
from bert_keras.export.saved_model import (
    IDS_SIGNATURE,
    METADATA_FILE,
    TEXT_SIGNATURE,
    TEXTS,
)
from bert_keras.features import ENCODER_INPUTS, TOKEN_IDS, Task
from bert_keras.tokens.preprocessor import BertPreprocessor, features_of

Text = str | tuple[str, str]
Outputs = dict[str, np.ndarray]


class Artefact(Protocol):
    """What can be asked of every artefact.

    Attributes:
        kind: what it is, for tables.
        preprocessor: text -> features, as the artefact does it.
        task: what it is for.
        is_quantized: whether its weights are int8.
    """

    kind: str
    is_quantized: bool
    preprocessor: BertPreprocessor
    task: Task

    def run(self, texts: Sequence[Text]) -> Outputs:
        """Returns the outputs, and `token_ids`, for texts or for text pairs."""


class KerasArtefact:
    """A `.keras` file, or a model in memory."""

    kind = "Keras"
    is_quantized = False

    def __init__(self, model: keras.Model):
        self._served = ServedModel.of(model)
        self.preprocessor = self._served.preprocessor
        self.task = model.task

    def run(self, texts: Sequence[Text]) -> Outputs:
        features = features_of(self.preprocessor, texts)
        outputs = self._served.from_features(features)
        return _arrays({TOKEN_IDS: features[TOKEN_IDS], **outputs})


class SavedModelArtefact:
    """A SavedModel folder.

    A pair that its text signature does not read goes through the one for ids.
    """

    kind = "SavedModel"
    is_quantized = False

    def __init__(self, path: Path):
        metadata = json.loads((path / METADATA_FILE).read_text(encoding="utf-8"))
        self.preprocessor = preprocessor_from(metadata)
        self.task = task_from(metadata)
        self._loaded = tf.saved_model.load(os.fspath(path))

    def run(self, texts: Sequence[Text]) -> Outputs:
        if _are_pairs(texts) != self.task.text_pairs:
            features = features_of(self.preprocessor, texts)
            outputs = self._loaded.signatures[IDS_SIGNATURE](**features)
            return _arrays({TOKEN_IDS: features[TOKEN_IDS], **outputs})
        named = {
            name: tf.constant(list(column), tf.string)
            for name, column in zip(TEXTS, _columns(texts), strict=False)
        }
        return _arrays(self._loaded.signatures[TEXT_SIGNATURE](**named))


class TextOnnxArtefact:
    """An ONNX file that reads text."""

    kind = "ONNX from text"

    def __init__(self, session: onnxruntime.InferenceSession, metadata: dict):
        self.preprocessor = preprocessor_from(metadata)
        self.task = task_from(metadata)
        self.is_quantized = metadata["is_quantized"]
        self._session = session

    def run(self, texts: Sequence[Text]) -> Outputs:
        if _are_pairs(texts) != self.task.text_pairs:
            reads = "pairs of texts" if self.task.text_pairs else "single texts"
            raise ValueError(
                f"This text-in ONNX file reads {reads}. Received: others; allowed: "
                f"{reads}, or the ids-in file beside it."
            )
        feeds = {
            name: codepoints_of(column)
            for name, column in zip(
                onnx_export.TEXT_INPUTS, _columns(texts), strict=False
            )
        }
        return _run(self._session, feeds)


class IdsOnnxArtefact:
    """An ONNX file that reads ids, which the tokenizer in Python makes."""

    kind = "ONNX from ids"

    def __init__(self, session: onnxruntime.InferenceSession, metadata: dict):
        self.preprocessor = preprocessor_from(metadata)
        self.task = task_from(metadata)
        self.is_quantized = metadata["is_quantized"]
        self._session = session
        self._renamed = _names_of(session)
        self._originals = metadata[onnx_export.OUTPUTS]

    def run(self, texts: Sequence[Text]) -> Outputs:
        features = features_of(self.preprocessor, texts)
        types = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
        feeds = {
            node.name: features[name].numpy().astype(types[node.type])
            for node in self._session.get_inputs()
            for name in ENCODER_INPUTS
            if self._renamed.get(name, name) == node.name
        }
        answered = _run(self._session, feeds)
        outputs = {self._originals[name]: value for name, value in answered.items()}
        return {TOKEN_IDS: features[TOKEN_IDS].numpy(), **outputs}


def open_artefact(path: str | os.PathLike) -> Artefact:
    """Opens a `.keras` file, a SavedModel folder or an `.onnx` file, by its content.

    Raises:
        FileNotFoundError: nothing is there.
        ValueError: it is none of these, or was not made by this package.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no model {path}")
    if (path / "saved_model.pb").exists():
        if not (path / METADATA_FILE).exists():
            raise ValueError(f"{path} is a SavedModel, but lacks {METADATA_FILE}")
        return SavedModelArtefact(path)
    if path.is_file() and zipfile.is_zipfile(path):
        return KerasArtefact(load_keras(path))
    if path.is_file() and path.suffix == ".onnx":
        return _open_onnx(path)
    raise ValueError(
        f"{path} is no model. Allowed: a .keras file, a SavedModel folder, or an .onnx "
        "file."
    )


def load_keras(path: Path) -> keras.Model:
    """Loads a `.keras` file; a `ValueError` in one line says why it cannot be."""
    try:
        return keras.saving.load_model(path, compile=False)
    except Exception as error:  # Keras raises whatever its parts raise
        reason = str(error).strip().split("\n", 1)[0]
        raise ValueError(f"{path} is not a model of bert_keras: {reason}") from error


def _open_onnx(path: Path) -> Artefact:
    try:
        session = onnx_export.session(os.fspath(path))
    except Exception as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise ValueError(f"{path} is not a whole ONNX file: {reason}") from error
    properties = session.get_modelmeta().custom_metadata_map
    if onnx_export.METADATA_KEY not in properties:
        raise ValueError(f"{path} was not made by bert_keras: it holds no vocabulary.")
    metadata = json.loads(properties[onnx_export.METADATA_KEY])
    reads_text = session.get_inputs()[0].name in onnx_export.TEXT_INPUTS
    return (TextOnnxArtefact if reads_text else IdsOnnxArtefact)(session, metadata)


def codepoints_of(texts: Sequence[str]) -> np.ndarray:
    """Returns int32 `[batch, length]`: the codepoints of each text, padded with 0."""
    length = max(map(len, texts), default=0)
    codepoints = np.zeros((len(texts), length), np.int32)
    for row, text in zip(codepoints, texts, strict=True):
        row[: len(text)] = [ord(character) for character in text]
    return codepoints


def _are_pairs(texts: Sequence[Text]) -> bool:
    return any(not isinstance(text, str) for text in texts)


def _columns(texts: Sequence[Text]) -> list[Sequence[str]]:
    """Returns the texts, or the first ones of pairs and the second ones."""
    return list(zip(*texts, strict=True)) if _are_pairs(texts) else [texts]


def _names_of(session: onnxruntime.InferenceSession) -> dict[str, str]:
    inputs = {node.name for node in session.get_inputs()}
    for renamed in onnx_export.NAMES.values():
        if inputs <= {renamed.get(name, name) for name in ENCODER_INPUTS}:
            return renamed
    raise ValueError(f"The ONNX file has inputs of unknown names: {sorted(inputs)}")


def _run(session: onnxruntime.InferenceSession, feeds: dict) -> Outputs:
    names = [node.name for node in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def _arrays(outputs: dict) -> Outputs:
    return {name: value.numpy() for name, value in outputs.items()}

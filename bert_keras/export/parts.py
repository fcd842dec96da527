"""What every export is made of: a model that reads text, as plain functions."""

from typing import NamedTuple

import keras
import tensorflow as tf

from bert_keras.features import TOKEN_IDS, Task
from bert_keras.text.tokenizer import WordPieceTokenizer
from bert_keras.text.vocabulary import Vocabulary
from bert_keras.tokens.preprocessor import BertPreprocessor


class ServedModel(NamedTuple):
    """A Keras model and the preprocessor that makes its features.

    Attributes:
        keras_model: computes in float32, whatever it was trained in, and has a method
            `encode(features) -> outputs`.
        preprocessor: pads to the longest row of a batch, so that both dimensions of
            every input are free.
    """

    keras_model: keras.Model
    preprocessor: BertPreprocessor

    @classmethod
    def of(cls, model: keras.Model) -> "ServedModel":
        """Takes a model that carries its preprocessor, or says what it lacks."""
        preprocessor = getattr(model, "preprocessor", None)
        if preprocessor is None or not hasattr(model, "encode"):
            raise ValueError(
                "Only a model that carries its preprocessor can read text. Received: "
                f"{type(model).__name__} with preprocessor={preprocessor!r}; allowed: "
                "a BertPretrainer or a model of a task, with a BertPreprocessor."
            )
        free = BertPreprocessor(
            preprocessor.tokenizer.copy(engine="stock"),
            preprocessor.sequence_length,
            pad_to_longest=True,
        )
        return cls(model.in_float32(), free)

    def from_features(self, features: dict) -> dict:
        """Feature dictionary -> outputs."""
        return named(self.keras_model.encode(features))

    def from_text(self, text, second=None) -> dict:
        """Strings `[batch]`, or codepoints `[batch, length]` -> outputs and ids."""
        features = self.preprocessor(text, second)
        outputs = self.keras_model.encode(features)
        return named({TOKEN_IDS: features[TOKEN_IDS], **outputs})


def named(outputs: dict) -> dict:
    """Gives each tensor the name of its key: converters name outputs after tensors."""
    return {name: tf.identity(value, name=name) for name, value in outputs.items()}


def metadata_of(model: ServedModel) -> dict:
    """Returns what a reader of the artefact needs beside the graph, as JSON values."""
    tokenizer = model.preprocessor.tokenizer
    return {
        "vocabulary": list(tokenizer.vocabulary),
        "tokenizer": tokenizer.settings(),
        "sequence_length": model.preprocessor.sequence_length,
        "is_quantized": False,
        "task": model.keras_model.task._asdict(),
    }


def task_from(metadata: dict) -> Task:
    """Makes the task again from `metadata_of`."""
    stored = metadata["task"]
    return Task(**{**stored, "labels": tuple(stored["labels"])})


def preprocessor_from(metadata: dict) -> BertPreprocessor:
    """Makes the preprocessor again from `metadata_of`."""
    options = metadata["tokenizer"]
    vocabulary = Vocabulary(metadata["vocabulary"], options["special_tokens"])
    tokenizer = WordPieceTokenizer(vocabulary, **options)
    length = metadata["sequence_length"]
    return BertPreprocessor(tokenizer, length, pad_to_longest=True)

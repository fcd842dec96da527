"""SavedModel: a folder that TF Serving takes, of stock TensorFlow ops only."""

import json
import os
from pathlib import Path

import keras
import tensorflow as tf

from bert_keras.export.parts import ServedModel, metadata_of
from bert_keras.features import ENCODER_INPUTS

TEXT_SIGNATURE = "serving_default"
IDS_SIGNATURE = "encode"
TEXTS = ("text", "second")
METADATA_FILE = "assets.extra/bert_keras.json"


def write_saved_model(model: ServedModel, path: str | os.PathLike) -> None:
    """Writes a SavedModel with two signatures.

    - `serving_default`: `text`, string `[batch]`, to the outputs and `token_ids`; of a
      model for pairs `text` and `second`;
    - `encode`: `token_ids`, `segment_ids`, `padding_mask`, int32 `[batch, sequence]`,
      to the outputs.

    The vocabulary and the tokenizer's options lie in `assets.extra/bert_keras.json`.

    Args:
        model: the model, with its preprocessor.
        path: the folder to make.
    """
    archive = keras.export.ExportArchive()
    archive.track(model.keras_model)
    texts = [tf.TensorSpec([None], tf.string, name=name) for name in TEXTS]
    texts = texts[: 1 + model.keras_model.task.text_pairs]
    archive.add_endpoint(TEXT_SIGNATURE, model.from_text, input_signature=texts)

    def encode(token_ids, segment_ids, padding_mask):
        values = (token_ids, segment_ids, padding_mask)
        return model.from_features(dict(zip(ENCODER_INPUTS, values, strict=True)))

    ids = [tf.TensorSpec([None, None], tf.int32, name=name) for name in ENCODER_INPUTS]
    archive.add_endpoint(IDS_SIGNATURE, encode, input_signature=ids)
    archive.write_out(os.fspath(path), verbose=False)
    metadata = Path(path) / METADATA_FILE
    metadata.parent.mkdir()
    metadata.write_text(json.dumps(metadata_of(model)), encoding="utf-8")

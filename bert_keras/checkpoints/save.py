"""A model of this package as a folder that others load."""

import os
from pathlib import Path

import keras

from bert_keras.checkpoints.huggingface import write_huggingface
from bert_keras.checkpoints.kerashub import write_kerashub
from bert_keras.files import replacing
from bert_keras.tasks.embedder import BertEmbedder
from bert_keras.tasks.pooling import POOLER
from bert_keras.training.encoder_model import EncoderModel

_FORMATS = {"huggingface": write_huggingface, "kerashub": write_kerashub}


def save_checkpoint(
    model: keras.Model, path: str | os.PathLike, to: str = "huggingface"
) -> None:
    """Writes a model as a Hugging Face folder or a KerasHub preset folder.

    `"huggingface"`: `model.safetensors`, `config.json` and, if the model carries its
    preprocessor, `vocab.txt`, `tokenizer.json` and `tokenizer_config.json`; of a
    `BertEmbedder` also what sentence-transformers reads. `transformers` gives the same
    answers. `"kerashub"`: its `BertBackbone`, and `BertTokenizer`, and of a
    `BertClassifier` its `BertTextClassifier`. Neither needs this package.

    Args:
        model: a `BertPretrainer` or a task model.
        path: the folder, which must not be there yet, or be empty.
        to: `"huggingface"` or `"kerashub"`.

    Raises:
        ValueError: an unknown format, a model that is not of this package, a folder
            that is not empty, or an option that the format does not have, naming it;
            nothing is left.
    """
    path = Path(path)
    if to not in _FORMATS:
        raise ValueError(
            f"Unknown format. Received: to={to!r}; allowed: "
            f"{', '.join(map(repr, _FORMATS))}."
        )
    if not isinstance(model, EncoderModel):
        raise ValueError(
            f"Only models of this package can be written. Received: "
            f"{type(model).__name__}; allowed: BertPretrainer and the task models."
        )
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ValueError(
            f"There is something already. Received: {os.fspath(path)}; allowed: a new "
            "or an empty folder."
        )
    pooling = model.arguments.get("pooling", POOLER)
    if pooling != POOLER and not isinstance(model, BertEmbedder):
        raise ValueError(
            f"Their {type(model).__name__} has a pooler. Received: pooling="
            f"{pooling!r}; allowed: {POOLER!r}."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.mkdir()
        _FORMATS[to](model, temporary)
        if path.exists():
            path.rmdir()  # it is empty

"""Any checkpoint, told apart by content, as a model that carries its preprocessor."""

import os
from collections.abc import Iterable
from pathlib import Path

import keras

from bert_keras.checkpoints import google, kerashub
from bert_keras.checkpoints.google import load_google
from bert_keras.checkpoints.huggingface import load_huggingface
from bert_keras.checkpoints.huggingface_config import CONFIG
from bert_keras.checkpoints.kerashub import load_kerashub
from bert_keras.checkpoints.sentences import MODULES
from bert_keras.files import read_json
from bert_keras.tokens.preprocessor import BertPreprocessor

_ORIGINS = {
    "google": load_google,
    "huggingface": load_huggingface,
    "kerashub": load_kerashub,
}


def load_checkpoint(
    path: str | os.PathLike,
    *,
    allow: Iterable[str] = (),
    rules: str | None = None,
) -> keras.Model:
    """Loads a Hugging Face folder, a checkpoint of 2018 or a KerasHub preset folder.

    Nothing in a file is run. Every tensor must be used and every variable filled, but
    for a pooler that no output depends on, and `position_ids`, which hold nothing.

    Args:
        path: the folder.
        allow: names of tensors that may be unused, or missing, or patterns such as
            `"cls.*"`.
        rules: the rule set of the tokenizer, in place of its origin's: a checkpoint of
            2018 has those of `"google"`, which can go out only as `"huggingface"`.

    Returns:
        By the heads in the weights a `BertPretrainer`, `BertClassifier`,
        `BertRegressor`, `BertTagger` or `BertSpanFinder`, and of an encoder alone a
        `BertEmbedder`. It carries its preprocessor, if the folder holds a vocabulary,
        with the casing it was trained with; rows are cut where the weights, or the
        tokenizer, have their limit. A masked-LM model recognises [MASK] in a text.

    Raises:
        FileNotFoundError: nothing is there, or no weights.
        ValueError: naming the file: it is none of these, damaged, of a model that
            cannot be built here, or does not fit.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no checkpoint {os.fspath(path)}")
    origin = _origin(path)
    if origin is None:
        raise ValueError(
            f"{os.fspath(path)} is no checkpoint. Allowed: a folder with {CONFIG} and "
            f"weights of Hugging Face or KerasHub, or with {google.CONFIG} and a "
            "TensorFlow checkpoint."
        )
    allow = (allow,) if isinstance(allow, str) else tuple(allow)
    try:
        model = _ORIGINS[origin](path, allow)
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(
            f"{os.fspath(path)} holds a malformed file: {error!r}"
        ) from error
    if rules is not None and model.preprocessor is not None:
        model.preprocessor = _with_rules(model.preprocessor, rules)
    return model


def _with_rules(preprocessor: BertPreprocessor, rules: str) -> BertPreprocessor:
    """Returns a preprocessor with a rule set, and that one's own limit of a word."""
    tokenizer = preprocessor.tokenizer.copy(rules=rules, max_characters_per_word=None)
    return BertPreprocessor(
        tokenizer,
        preprocessor.sequence_length,
        pad_to_longest=preprocessor.pad_to_longest,
    )


def is_checkpoint(path: str | os.PathLike) -> bool:
    """Whether `load_checkpoint` is meant for a path; it may still be damaged."""
    return _origin(Path(path)) is not None


def _origin(path: Path) -> str | None:
    if (path / google.CONFIG).exists():
        return "google"
    if (path / CONFIG).exists():
        try:
            config = read_json(path / CONFIG)
        except ValueError:  # said by who reads it next
            config = {}
        is_preset = isinstance(config, dict) and kerashub.REGISTERED in config
        return "kerashub" if is_preset else "huggingface"
    return "huggingface" if (path / MODULES).exists() else None

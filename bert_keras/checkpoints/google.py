"""Google's checkpoints of 2018: `bert_config.json`, `vocab.txt`, `bert_model.ckpt`."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from bert_keras.checkpoints.huggingface_config import backbone_of, read_config
from bert_keras.checkpoints.mapping import fill
from bert_keras.checkpoints.names import GOOGLE, GOOGLE_IGNORED
from bert_keras.checkpoints.vocabularies import looks_lowercase
from bert_keras.encoder.backbone import BertBackbone
from bert_keras.pretraining.model import BertPretrainer
from bert_keras.tasks.classifier import BertClassifier
from bert_keras.tasks.embedder import BertEmbedder
from bert_keras.tasks.span_finder import BertSpanFinder
from bert_keras.text.tokenizer import VOCABULARY_FILE, WordPieceTokenizer
from bert_keras.text.vocabulary import Vocabulary
from bert_keras.tokens.preprocessor import BertPreprocessor

CONFIG = "bert_config.json"
_INDEX = ".index"
_CLASSES = "output_weights"
_SPANS = "cls/squad/output_weights"
_NEXT_SENTENCE = "cls/seq_relationship/output_weights"


def load_google(folder: Path, allow: Iterable[str] = ()) -> keras.Model:
    """Loads a folder of a checkpoint of 2018; see `load_checkpoint`.

    The text is lower-cased if `bert_config.json` says so. It seldom does; then the
    vocabulary tells.
    """
    config = read_config(folder / CONFIG)
    prefix = _prefix(folder)
    tensors = _read_tensors(prefix)
    backbone = backbone_of(config)
    is_masked_lm = any(name.startswith("cls/predictions/") for name in tensors)
    preprocessor = _preprocessor(folder, config, backbone, is_masked_lm)
    if is_masked_lm:
        has_pairs = _NEXT_SENTENCE in tensors
        model = BertPretrainer(backbone, preprocessor, next_sentence=has_pairs)
    elif _SPANS in tensors:
        model = BertSpanFinder(backbone, preprocessor)
    elif _CLASSES in tensors:
        labels = [f"LABEL_{number}" for number in range(len(tensors[_CLASSES]))]
        model = BertClassifier(backbone, labels, preprocessor)
    else:
        model = BertEmbedder(backbone, preprocessor)
    fill(model, tensors, GOOGLE, str(prefix), allow=allow)
    return model


def _prefix(folder: Path) -> Path:
    """Returns the path of the checkpoint without the ends of its files' names."""
    found = sorted(path.with_suffix("") for path in folder.glob(f"*{_INDEX}"))
    if len(found) > 1:
        latest = tf.train.latest_checkpoint(folder)
        found = [Path(latest)] if latest else found
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise ValueError(
            f"{folder} must hold one checkpoint. Received: {names}; allowed: one, or a "
            "file named checkpoint that says which is the latest."
        )
    return found[0]


def _read_tensors(prefix: Path) -> dict[str, np.ndarray]:
    """Reads all variables but those of the optimizer."""
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        return {
            name: reader.get_tensor(name)
            for name in reader.get_variable_to_shape_map()
            if not any(fnmatchcase(name, pattern) for pattern in GOOGLE_IGNORED)
        }
    except (tf.errors.OpError, ValueError, RuntimeError, IndexError) as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise ValueError(f"{prefix} is no whole checkpoint: {reason}") from error


def _preprocessor(
    folder: Path, config: dict, backbone: BertBackbone, is_masked_lm: bool
) -> BertPreprocessor | None:
    path = folder / VOCABULARY_FILE
    if not path.exists():
        return None
    vocabulary = Vocabulary.read(path, duplicates="last")
    lowercase = config.get("do_lower_case")
    if lowercase is None:
        lowercase = looks_lowercase(vocabulary)
    mask = vocabulary.special_tokens.mask
    tokenizer = WordPieceTokenizer(
        vocabulary,
        rules="google",
        lowercase=lowercase,
        special_tokens_in_text=[mask] if is_masked_lm else False,
    )
    length = backbone.max_sequence_length
    return BertPreprocessor(tokenizer, length, pad_to_longest=True)

"""Ids -> text, as well as it can be had back: case and spacing are gone for good."""

import functools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_keras.text.vocabulary import Vocabulary, split_token

# The ideographs that the rules set apart (google-research/bert, `_is_chinese_char`).
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


class _Pieces(NamedTuple):
    texts: np.ndarray  # bytes [tokens]: without "##"
    continues: np.ndarray  # bool [tokens]: is part of the word before it
    is_ideograph: np.ndarray  # bool [tokens]
    is_special: np.ndarray  # bool [tokens]


def detokenize(
    ids: tf.Tensor, vocabulary: Vocabulary, skip_special_tokens: bool
) -> tf.Tensor:
    """Joins the pieces of each row.

    A space stands between words; none before a "##" piece, nor between ideographs.

    Args:
        ids: int32 `[batch, sequence]`, dense or ragged.
        vocabulary: names the pieces.
        skip_special_tokens: leave the five special tokens out.

    Returns:
        strings `[batch]`.

    Raises:
        tf.errors.InvalidArgumentError: an id outside the vocabulary (on a CPU).
    """
    pieces = _pieces(vocabulary)
    rows = ids if isinstance(ids, tf.RaggedTensor) else tf.RaggedTensor.from_tensor(ids)
    rows = tf.cast(rows, tf.int32)
    if skip_special_tokens:
        kept = tf.ragged.map_flat_values(
            lambda i: ~tf.gather(pieces.is_special, i), rows
        )
        rows = tf.ragged.boolean_mask(rows, kept)
    flat = rows.flat_values
    ideograph = tf.gather(pieces.is_ideograph, flat)
    after_ideograph = tf.concat([[False], ideograph[:-1]], axis=0)
    joins = tf.gather(pieces.continues, flat) | (ideograph & after_ideograph)
    texts = tf.where(joins, "", " ") + tf.gather(pieces.texts, flat)
    return tf.strings.strip(
        tf.strings.reduce_join(rows.with_flat_values(texts), axis=-1)
    )


@functools.lru_cache(maxsize=8)
def _pieces(vocabulary: Vocabulary) -> _Pieces:
    continues, texts = zip(*map(split_token, vocabulary), strict=True)
    return _Pieces(
        texts=np.array([text.encode() for text in texts], object),
        continues=np.array(continues),
        is_ideograph=np.array([_is_ideograph(token) for token in vocabulary]),
        is_special=np.isin(np.arange(len(vocabulary)), vocabulary.special_ids),
    )


def _is_ideograph(token: str) -> bool:
    return len(token) == 1 and any(
        first <= ord(token) <= last for first, last in _IDEOGRAPHS
    )

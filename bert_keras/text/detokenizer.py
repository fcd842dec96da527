"""Ids -> text, as well as it can be had back: case and spacing are gone for good."""

import functools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_keras.text.rules import IDEOGRAPH, normalization
from bert_keras.text.vocabulary import Vocabulary, split_token


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
        is_ideograph=_are_ideographs(vocabulary),
        is_special=np.isin(np.arange(len(vocabulary)), vocabulary.special_ids),
    )


def _are_ideographs(tokens: Iterable[str]) -> np.ndarray:
    kinds = normalization("google", lowercase=False, strip_accents=False).kinds
    return np.array([len(t) == 1 and kinds[ord(t)] == IDEOGRAPH for t in tokens])

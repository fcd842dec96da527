"""NFC in tensor operations: decompose, order the marks, compose (Unicode 3.11).

Most text is in that form already: a batch without a mark, or a character that NFC never
keeps, goes through untouched.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_keras.text.paged import PagedTable, look_up, paged
from bert_keras.text.rules import CODEPOINTS, Composition
from bert_keras.text.tensors import indices, put

_PARTS = 4  # the most codepoints that one is made of
_ROUNDS = _PARTS - 1
_CLASSES = 256


class ComposerTables(NamedTuple):
    """`Composition`, compiled.

    Attributes:
        changes: for each codepoint 1 if it, or what stands before it, may change.
        rows: for each codepoint its row in `parts`, or 0.
        parts: int32 `[rows, 4]`: what it is made of, then -1; row 0 is not read.
        classes: for each codepoint its combining class.
        firsts, seconds: for each codepoint its number as the first or the second of a
            pair, or 0.
        composed: int32 `[firsts, seconds]`: what they make, or 0.
    """

    changes: PagedTable
    rows: PagedTable
    parts: np.ndarray
    classes: PagedTable
    firsts: PagedTable
    seconds: PagedTable
    composed: np.ndarray


class Composed(NamedTuple):
    """A text in NFC, flat.

    Attributes:
        codepoints: int32 `[composed]`.
        row_splits: int32 `[batch + 1]`.
        starts: int32 `[composed]`: index of the codepoint at which each began.
        ends: int32 `[composed]`: one past the last codepoint that it came from.
    """

    codepoints: tf.Tensor
    row_splits: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


def compile_composer(known: Composition) -> ComposerTables:
    """Compiles the tables."""
    rows = np.zeros(CODEPOINTS, np.int32)
    parts = [[-1] * _PARTS]
    for codepoint, decomposed in known.decompositions.items():
        rows[codepoint] = len(parts)
        parts.append(decomposed + [-1] * (_PARTS - len(decomposed)))
    first, second, made = known.pairs.T
    firsts, seconds = _numbered(first), _numbered(second)
    composed = np.zeros((firsts.max() + 1, seconds.max() + 1), np.int32)
    composed[firsts[first], seconds[second]] = made
    changes = (known.classes > 0) | (seconds > 0) | (rows > 0)
    changes[made] = False  # it stays as it is, unless a mark follows
    return ComposerTables(
        changes=paged(changes.astype(np.int32)),
        rows=paged(rows),
        parts=np.array(parts, np.int32),
        classes=paged(known.classes.astype(np.int32)),
        firsts=paged(firsts),
        seconds=paged(seconds),
        composed=composed,
    )


def _numbered(codepoints: np.ndarray) -> np.ndarray:
    numbers = np.zeros(CODEPOINTS, np.int32)
    distinct = np.unique(codepoints)
    numbers[distinct] = np.arange(1, len(distinct) + 1)
    return numbers


def compose(
    codepoints: tf.Tensor, row_splits: tf.Tensor, tables: ComposerTables
) -> Composed:
    """Brings a batch of texts into NFC.

    Args:
        codepoints: int32 `[codepoints]`, every row with a space behind it.
        row_splits: int32 `[batch + 1]`.
        tables: of `compile_composer`.
    """
    number = tf.range(tf.size(codepoints))

    def change():
        parts, starts = _decompose(codepoints, tables)
        parts, classes = _order(parts, tables)
        for _ in range(_ROUNDS):
            parts, classes, starts = _compose_once(parts, classes, starts, tables)
        return parts, starts

    changes = tf.reduce_max(look_up(tables.changes, codepoints)) > 0
    composed, starts = tf.cond(changes, change, lambda: (codepoints, number))
    is_row_end = put(tf.zeros_like(codepoints), row_splits[1:] - 1, 1)
    row_ends = indices(tf.gather(is_row_end, starts) > 0)
    ends = tf.concat([starts[1:], tf.size(codepoints)[None]], axis=0)
    return Composed(
        codepoints=composed,
        row_splits=tf.concat([[0], row_ends + 1], axis=0),
        starts=starts,
        # Two marks that came from one codepoint, both, take its place.
        ends=tf.maximum(ends, starts + 1),
    )


def _decompose(codepoints, tables: ComposerTables):
    """Returns what the codepoints are made of, and where each part came from."""
    row = look_up(tables.rows, codepoints)
    several = tf.gather(tables.parts, row)
    one = tf.pad(codepoints[:, None], [[0, 0], [0, _PARTS - 1]], constant_values=-1)
    parts = tf.reshape(tf.where(row[:, None] > 0, several, one), [-1])
    kept = indices(parts >= 0)
    return tf.gather(parts, kept), kept // _PARTS


def _order(parts, tables: ComposerTables):
    """Sorts the marks behind each starter by their class, those of a class as before.

    Their places stay in order, so that offsets do.
    """
    classes = look_up(tables.classes, parts)
    run = tf.cumsum(tf.cast(classes == 0, tf.int32))
    key = tf.cast(run, tf.int64) * _CLASSES + tf.cast(classes, tf.int64)
    key = key * tf.size(parts, tf.int64) + tf.range(tf.size(parts, tf.int64))
    order = tf.argsort(key)
    return tf.gather(parts, order), tf.gather(classes, order)


def _compose_once(parts, classes, starts, tables: ComposerTables):
    """Composes each starter with the first that it can be composed with."""
    is_starter = classes == 0
    starter = indices(is_starter)
    number = tf.range(tf.size(parts))
    # Of a mark the starter before it; of a starter the one before that.
    which = tf.cumsum(tf.cast(is_starter, tf.int32)) - 1 - tf.cast(is_starter, tf.int32)
    base = tf.gather(starter, tf.maximum(which, 0))
    class_before = tf.concat([[_CLASSES], classes[:-1]], axis=0)
    is_open = tf.where(is_starter, base == number - 1, class_before < classes)
    pair = (
        look_up(tables.firsts, tf.gather(parts, base)),
        look_up(tables.seconds, parts),
    )
    made = tf.gather_nd(tables.composed, tf.stack(pair, axis=1))
    can = indices(is_open & (which >= 0) & (made > 0))
    can_base = tf.gather(base, can)
    is_first = tf.concat([[-1], can_base[:-1]], axis=0) != can_base
    chosen, base = tf.boolean_mask(can, is_first), tf.boolean_mask(can_base, is_first)
    parts = tf.tensor_scatter_nd_update(parts, base[:, None], tf.gather(made, chosen))
    kept = indices(put(tf.zeros_like(parts), chosen, 1) == 0)
    return (
        tf.gather(parts, kept),
        tf.gather(classes, kept),
        tf.gather(starts, kept),
    )

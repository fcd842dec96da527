"""NFC, or NFD, in tensor operations: decompose, order the marks, compose.

Source: Unicode 3.11.

Most text is in that form already: a batch without a mark, or a character that NFC never
keeps, goes through untouched.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_keras.text.characters import Characters, row_splits_after
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
        form: "NFC" or "NFD".
    """

    changes: PagedTable
    rows: PagedTable
    parts: np.ndarray
    classes: PagedTable
    firsts: PagedTable
    seconds: PagedTable
    composed: np.ndarray
    form: str


def compile_composer(known: Composition, form: str) -> ComposerTables:
    """Compiles the tables.

    NFD is part of the rules, behind the step that removes characters; so what it
    removes does not keep marks apart. NFC comes before the rules.
    """
    if form == "NFD":
        classes = np.where(known.removed, np.uint8(_CLASSES - 1), known.classes)
        known = known._replace(classes=classes)
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
    if form == "NFC":
        changes[made] = False  # it stays as it is, unless a mark follows
    return ComposerTables(
        changes=paged(changes.astype(np.int32)),
        rows=paged(rows),
        parts=np.array(parts, np.int32),
        classes=paged(known.classes.astype(np.int32)),
        firsts=paged(firsts),
        seconds=paged(seconds),
        composed=composed,
        form=form,
    )


def _numbered(codepoints: np.ndarray) -> np.ndarray:
    numbers = np.zeros(CODEPOINTS, np.int32)
    distinct = np.unique(codepoints)
    numbers[distinct] = np.arange(1, len(distinct) + 1)
    return numbers


def compose(
    codepoints: tf.Tensor, row_splits: tf.Tensor, tables: ComposerTables
) -> Characters:
    """Brings a batch of texts into NFC or NFD.

    Args:
        codepoints: int32 `[codepoints]`, every row with a space behind it.
        row_splits: int32 `[batch + 1]`.
        tables: of `compile_composer`.
    """
    # Once in the graph, not once for each time that they are read.
    arrays = tf.nest.map_structure(tf.constant, tables[:-1])
    tables = ComposerTables(*arrays, form=tables.form)
    end = tf.size(codepoints)
    number = tf.range(end)

    def change():
        parts = _order(*_decompose(codepoints, tables), tables)
        for _ in range(_ROUNDS if tables.form == "NFC" else 0):
            parts = _compose_once(parts, tables)
        splits = row_splits_after(parts.starts, codepoints, row_splits)
        return parts.codepoints, splits, *_spans(parts, splits, end)

    changes = tf.reduce_max(look_up(tables.changes, codepoints)) > 0
    as_it_is = (codepoints, row_splits, number, number + 1)
    return Characters(*tf.cond(changes, change, lambda: as_it_is))


class _Parts(NamedTuple):
    codepoints: tf.Tensor
    classes: tf.Tensor  # combining classes
    starts: tf.Tensor  # index of the codepoint that each is a part of
    ends: tf.Tensor  # one past the last codepoint that it holds a part of
    is_moved: tf.Tensor  # bool: whether it is out of its place, or holds such a one


def _decompose(codepoints, tables: ComposerTables) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns what the codepoints are made of, and where each part came from."""
    row = look_up(tables.rows, codepoints)
    several = tf.gather(tables.parts, row)
    one = tf.pad(codepoints[:, None], [[0, 0], [0, _PARTS - 1]], constant_values=-1)
    parts = tf.reshape(tf.where(row[:, None] > 0, several, one), [-1])
    kept = indices(parts >= 0)
    return tf.gather(parts, kept), kept // _PARTS


def _order(codepoints, starts, tables: ComposerTables) -> _Parts:
    """Sorts the marks behind each starter by their class, those of a class as before.

    Their places stay in order, so that offsets do.
    """
    classes = look_up(tables.classes, codepoints)
    run = tf.cumsum(tf.cast(classes == 0, tf.int32))
    number = tf.range(tf.size(run))
    key = tf.cast(run, tf.int64) * _CLASSES + tf.cast(classes, tf.int64)
    key = key * tf.size(run, tf.int64) + tf.cast(number, tf.int64)
    order = tf.argsort(key)
    codepoints, classes = tf.gather(codepoints, order), tf.gather(classes, order)
    return _Parts(codepoints, classes, starts, starts + 1, is_moved=order != number)


def _compose_once(parts: _Parts, tables: ComposerTables) -> _Parts:
    """Composes each starter with the first part that it can be composed with."""
    codepoints, classes, starts, ends, is_moved = parts
    is_starter = classes == 0
    starter = indices(is_starter)
    number = tf.range(tf.size(classes))
    # Of a mark the starter before it; of a starter the one before that.
    which = tf.cumsum(tf.cast(is_starter, tf.int32)) - 1 - tf.cast(is_starter, tf.int32)
    base = tf.gather(starter, tf.maximum(which, 0))
    class_before = tf.concat([[_CLASSES], classes[:-1]], axis=0)
    is_open = tf.where(is_starter, base == number - 1, class_before < classes)
    first = look_up(tables.firsts, tf.gather(codepoints, base))
    second = look_up(tables.seconds, codepoints)
    made = tf.gather_nd(tables.composed, tf.stack([first, second], axis=1))
    can = indices(is_open & (which >= 0) & (made > 0))
    can_base = tf.gather(base, can)
    is_first = tf.concat([[-1], can_base[:-1]], axis=0) != can_base
    chosen, base = tf.boolean_mask(can, is_first), tf.boolean_mask(can_base, is_first)

    made = tf.gather(made, chosen)
    codepoints = tf.tensor_scatter_nd_update(codepoints, base[:, None], made)
    last = tf.gather(ends, chosen)
    ends = tf.tensor_scatter_nd_update(ends, base[:, None], last)
    moved = (chosen != base + 1) | tf.gather(is_moved, chosen)
    is_moved = put(is_moved, tf.boolean_mask(base, moved), True)
    kept = indices(put(tf.zeros_like(classes), chosen, 1) == 0)
    parts = _Parts(codepoints, classes, starts, ends, is_moved)
    return _Parts(*(tf.gather(values, kept) for values in parts))


def _spans(parts: _Parts, row_splits, end) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns where each part begins and ends in the text.

    Where parts were moved past one another, a starter and all marks behind it have one
    span: none of them has one of its own.
    """
    # The space at the end of a row has none of the marks with which the next begins.
    begins = put(parts.classes == 0, row_splits[:-1], True)
    run = tf.cumsum(tf.cast(begins, tf.int32)) - 1
    run_starts = tf.gather(parts.starts, indices(begins))
    run_ends = tf.concat([run_starts[1:], end[None]], axis=0)
    moved = put(tf.zeros_like(run_starts), tf.boolean_mask(run, parts.is_moved), 1)
    is_moved = tf.gather(moved, run) > 0
    return (
        tf.where(is_moved, tf.gather(run_starts, run), parts.starts),
        tf.where(is_moved, tf.gather(run_ends, run), parts.ends),
    )

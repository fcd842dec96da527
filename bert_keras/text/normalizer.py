"""Codepoints -> symbols: the rules and the vocabulary's alphabet, in one look-up.

Everything is one flat array for the whole batch. Look-ups are what costs time here, so
the ways that most text goes make few of them.
"""

from typing import NamedTuple

import tensorflow as tf

from bert_keras.text.characters import Characters
from bert_keras.text.composer import compose
from bert_keras.text.names import put_names
from bert_keras.text.paged import look_up
from bert_keras.text.rules import CASED, IGNORED
from bert_keras.text.tables import DROPPED, WordPieceTables
from bert_keras.text.tensors import indices, put

_CAPITAL_SIGMA = ord("Σ")


class Symbols(NamedTuple):
    """What stands in the places of the codepoints, each int32 `[symbols]`.

    Attributes:
        values: symbols; each row ends with `tables.row_end`.
        starts: index of the codepoint that each came from.
        ends: one past the last codepoint that it came from.
    """

    values: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


def normalize(
    codepoints: tf.Tensor, row_splits: tf.Tensor, tables: WordPieceTables
) -> Symbols:
    """Turns codepoints into symbols.

    Args:
        codepoints: int32 `[codepoints]`, every row with a space behind it.
        row_splits: int32 `[batch + 1]`.
        tables: of `compile_tables`.
    """
    text = None
    if tables.names is not None:
        text = put_names(codepoints, row_splits, tables.names)
        codepoints, row_splits = text.codepoints, text.row_splits
    for composer in tables.composers:
        text = _behind(text, compose(codepoints, row_splits, composer))
        codepoints, row_splits = text.codepoints, text.row_splits
    symbols = look_up(tables.symbols, codepoints)
    if tables.sigmas is not None:
        symbols = _lower_sigmas(codepoints, symbols, tables)
    symbols = put(symbols, row_splits[1:] - 1, tables.row_end)
    values, starts = _expand(symbols, tables)
    if text is None:
        return Symbols(values, starts, starts + 1)
    return Symbols(values, tf.gather(text.starts, starts), tf.gather(text.ends, starts))


def _behind(before: Characters | None, after: Characters) -> Characters:
    """Says of characters where they came from before the step before."""
    if before is None:
        return after
    return after._replace(
        starts=tf.gather(before.starts, after.starts),
        ends=tf.gather(before.ends, after.ends - 1),
    )


def _expand(symbols: tf.Tensor, tables: WordPieceTables) -> tuple[tf.Tensor, tf.Tensor]:
    """Removes the dropped and expands the rest; returns the codepoint of each, too."""
    number = tf.range(tf.size(symbols))
    width = tables.expanded.shape[1]

    def keep():
        kept = indices(symbols != DROPPED)
        return tf.gather(symbols, kept), kept

    def expand():
        row = symbols - tables.expanded_from
        several = tf.cast(tf.gather(tables.expanded, tf.maximum(row, 0)), tf.int32)
        one = tf.pad(symbols[:, None], [[0, 0], [0, width - 1]])
        rows = tf.reshape(tf.where(row[:, None] >= 0, several, one), [-1])
        kept = indices(rows != DROPPED)
        return tf.gather(rows, kept), tf.gather(tf.repeat(number, width), kept)

    is_whole = tf.reduce_min(symbols) > DROPPED
    if not len(tables.expanded):
        return tf.cond(is_whole, lambda: (symbols, number), keep)
    is_single = tf.reduce_max(symbols) < tables.expanded_from
    return tf.cond(
        is_whole & is_single,
        lambda: (symbols, number),
        lambda: tf.cond(is_single, keep, expand),
    )


def _lower_sigmas(codepoints, symbols, tables: WordPieceTables) -> tf.Tensor:
    """Makes a capital sigma final behind a cased letter and not before one."""

    def lower():
        kinds = look_up(tables.sigmas, codepoints)
        solid = indices(kinds != IGNORED)
        is_cased = tf.gather(kinds, solid) == CASED
        is_sigma = tf.gather(codepoints, solid) == _CAPITAL_SIGMA
        before = tf.concat([[False], is_cased[:-1]], axis=0)
        after = tf.concat([is_cased[1:], [False]], axis=0)
        final = tf.boolean_mask(solid, is_sigma & before & ~after)
        return put(symbols, final, tables.final_sigma)

    has_sigma = tf.reduce_any(codepoints == _CAPITAL_SIGMA)
    return tf.cond(has_sigma, lower, lambda: symbols)

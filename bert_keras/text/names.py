"""Words that are one token as they are written, found inside text.

At each place the longest that is there is found, and of two that overlap the one that
begins first. A word that begins or ends with a letter is not found beside another
letter, as a part of a longer word.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_keras.text.characters import Characters, row_splits_after
from bert_keras.text.paged import PagedTable, look_up, paged
from bert_keras.text.rules import CODEPOINTS
from bert_keras.text.tensors import indices, put
from bert_keras.text.trie import WORD_ROOT, Trie, build_trie


class NameTables(NamedTuple):
    """Words, compiled.

    Attributes:
        symbols: for each codepoint its symbol in the trie, or 0.
        letters: for each codepoint whether it is a letter.
        trie: the words over symbols; their ids are their numbers, and a number stands
            in the place of a word, behind the last codepoint.
    """

    symbols: PagedTable
    letters: PagedTable
    trie: Trie


def compile_names(names: tuple[str, ...], letters: np.ndarray) -> NameTables:
    """Compiles words; word n becomes the number `CODEPOINTS + n`.

    Args:
        names: the words.
        letters: bool `[CODEPOINTS]`.
    """
    alphabet = sorted({ord(character) for name in names for character in name})
    symbols = np.zeros(CODEPOINTS, np.int32)
    symbols[alphabet] = np.arange(1, len(alphabet) + 1)
    paths = [tuple(symbols[[ord(c) for c in name]].tolist()) for name in names]
    pieces = [(False, path, number) for number, path in enumerate(paths)]
    trie = build_trie(pieces, len(alphabet) + 1)
    return NameTables(paged(symbols), paged(letters.astype(np.int32)), trie)


def put_names(
    codepoints: tf.Tensor, row_splits: tf.Tensor, tables: NameTables
) -> Characters:
    """Puts one number in the place of every name.

    Args:
        codepoints: int32 `[codepoints]`, every row with a space behind it.
        row_splits: int32 `[batch + 1]`.
        tables: of `compile_names`.
    """
    found = _without_overlaps(_longest(codepoints, tables), tf.size(codepoints))
    widths = put(tf.ones_like(codepoints), _inside(found), 0)
    places = found.starts[:, None]
    widths = tf.tensor_scatter_nd_update(widths, places, found.lengths)
    numbers = CODEPOINTS + found.numbers
    named = tf.tensor_scatter_nd_update(codepoints, places, numbers)
    kept = indices(widths > 0)
    return Characters(
        codepoints=tf.gather(named, kept),
        row_splits=row_splits_after(kept, codepoints, row_splits),
        starts=kept,
        ends=kept + tf.gather(widths, kept),
    )


class _Found(NamedTuple):
    starts: tf.Tensor  # [found]: ascending
    lengths: tf.Tensor  # [found]: in codepoints
    numbers: tf.Tensor  # [found]: which name


def _longest(codepoints, tables: NameTables) -> _Found:
    """Returns the longest name at each place at which there is one."""
    trie = tables.trie
    edges, pieces = tf.constant(trie.edges), tf.constant(trie.pieces)
    padding = tf.zeros([trie.depth + 1], tf.int32)
    symbols = tf.concat([look_up(tables.symbols, codepoints), padding], axis=0)
    letters = tf.concat([look_up(tables.letters, codepoints), padding], axis=0) > 0
    # Between a letter and the next one no word begins or ends.
    within = tf.concat([[False], letters[:-1] & letters[1:]], axis=0)
    root_base = int(trie.edges[WORD_ROOT, 1])  # known when the graph is made
    first = tf.gather(edges[:, 0], root_base + symbols) == WORD_ROOT
    start = indices(first & ~within)

    node = tf.fill(tf.shape(start), WORD_ROOT)
    base = tf.fill(tf.shape(start), root_base)
    lengths, numbers = tf.zeros_like(start), tf.zeros_like(start)
    for step in range(trie.depth):
        slot = base + tf.gather(symbols, start + step)
        edge = tf.gather(edges, slot)
        is_child = edge[:, 0] == node
        node = tf.where(is_child, slot, node)
        base = tf.where(is_child, edge[:, 1], trie.leaf_base)
        name = tf.gather(pieces, node)
        ends_here = is_child & (name[:, 1] == step + 1)
        ends_here &= ~tf.gather(within, start + step + 1)
        lengths = tf.where(ends_here, step + 1, lengths)
        numbers = tf.where(ends_here, name[:, 0], numbers)
    is_name = lengths > 0
    return _Found(*(tf.boolean_mask(v, is_name) for v in (start, lengths, numbers)))


def _without_overlaps(found: _Found, size: tf.Tensor) -> _Found:
    """Keeps of names that overlap the one that begins first."""

    def covers(starts, lengths):
        """Returns how many names cover each of `size` places."""
        one = tf.ones_like(starts)
        places = tf.concat([starts, starts + lengths], axis=0)[:, None]
        edges = tf.zeros([size + 1], tf.int32)
        edges = tf.tensor_scatter_nd_add(edges, places, tf.concat([one, -one], axis=0))
        return tf.cumsum(edges)

    def any_overlaps(starts, lengths, numbers):
        return tf.reduce_any(covers(starts, lengths) > 1)

    def drop(*found):
        starts, lengths, _ = found
        is_clear = tf.gather(covers(starts, lengths), starts) == 1
        clear = (tf.boolean_mask(values, is_clear) for values in (starts, lengths))
        is_kept = is_clear | (tf.gather(covers(*clear), starts) == 0)
        return tuple(tf.boolean_mask(values, is_kept) for values in found)

    shapes = (tf.TensorShape([None]),) * 3
    return _Found(
        *tf.while_loop(any_overlaps, drop, tuple(found), shape_invariants=shapes)
    )


def _inside(found: _Found) -> tf.Tensor:
    """Returns the places of the names that are not their first."""
    ends = tf.cumsum(found.lengths)
    first = ends - found.lengths
    marks = put(tf.zeros([tf.reduce_sum(found.lengths)], tf.int32), first, 1)
    name = tf.cumsum(marks) - 1
    place = tf.range(tf.size(name)) + tf.gather(found.starts - first, name)
    return tf.boolean_mask(place, marks == 0)

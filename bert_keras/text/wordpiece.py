"""WordPiece: codepoints -> token ids and offsets, in integer tensor operations only.

The same function runs in tf.data, inside a SavedModel with no custom op to register
and, converted, in ONNX Runtime with nothing but standard `ai.onnx` ops. It works on one
flat array for the whole batch, in four steps:

1. *normalise*: each codepoint becomes up to three symbols, by a two-stage table;
2. *match*: from the start of every word at once, walk the trie as far as it goes. Most
   words are one piece. In those that are not, walk from every other symbol too. That
   gives the longest piece that starts at each symbol;
3. *chain*: greedy segmentation is p -> p + length(p) from each word's start. Mark the
   symbols it reaches by pointer doubling. A word whose chain meets a symbol with no
   match, or that is too long, becomes one [UNK];
4. *compact*: keep the marked symbols.

The rule is "greedy longest match first" of google-research/bert, `WordpieceTokenizer`.

All constants are NumPy arrays that become tensors inside the traced function: a
captured eager tensor would become an *input* of the converted ONNX graph.
"""

from typing import NamedTuple

import tensorflow as tf

from bert_keras.text.tables import DROPPED, PAGE, WordPieceTables
from bert_keras.text.trie import SUFFIX_ROOT, WORD_ROOT, Trie


class WordPieces(NamedTuple):
    """The tokens of a batch, flat.

    Attributes:
        ids: int32 `[tokens]`.
        row_splits: int32 `[batch + 1]`: row r holds tokens `row_splits[r:r + 2]`.
        starts: int32 `[tokens]`: flat index of the token's first codepoint.
        ends: int32 `[tokens]`: one past the flat index of its last codepoint.
    """

    ids: tf.Tensor
    row_splits: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


def wordpiece(
    codepoints: tf.Tensor, row_splits: tf.Tensor, tables: WordPieceTables
) -> WordPieces:
    """Cuts a batch of texts into word pieces.

    Args:
        codepoints: int32 `[codepoints]`: the rows behind one another. Every row must
            end in a space, so that no word runs from one row into the next.
        row_splits: int32 `[batch + 1]`: row r is `codepoints[row_splits[r:r + 2]]`.
        tables: of `compile_tables`.
    """
    trie = Trie(*map(tf.constant, tables.trie[:-1]), depths=tables.trie.depths)
    # One more space: no array below is ever empty, which some runtimes refuse.
    codepoints = tf.concat([codepoints, [ord(" ")]], axis=0)
    symbols = _normalize(codepoints, tables)
    words = _words(symbols.values)
    nodes, lengths, reached = _segment(words, trie, tables.word_limit)
    bad_words = _words_without_pieces(
        words, reached & (lengths == 0), tables.word_limit
    )

    is_bad = tf.gather(bad_words, words.number)
    is_token = (reached & ~is_bad) | (words.is_start & is_bad)
    first = _indices(is_token)
    bad = tf.gather(is_bad, first)
    ids = tf.gather(trie.piece_ids, tf.gather(nodes, first))
    word_end = tf.gather(words.ends, tf.gather(words.number, first))
    last = tf.where(bad, word_end, first + tf.gather(lengths, first)) - 1
    return WordPieces(
        ids=tf.where(bad, tables.unk_id, ids),
        row_splits=_move_splits(row_splits, symbols.counts, is_token),
        starts=tf.gather(symbols.starts, first),
        ends=tf.gather(symbols.ends, last),
    )


class _Symbols(NamedTuple):
    values: tf.Tensor  # [symbols]
    starts: tf.Tensor  # [symbols]: index of the codepoint that each came from
    ends: tf.Tensor  # [symbols]: one past it
    counts: tf.Tensor  # [codepoints]: symbols that each codepoint became


def _normalize(codepoints: tf.Tensor, tables: WordPieceTables) -> _Symbols:
    block = codepoints // PAGE
    page = tf.cast(tf.gather(tables.pages, block), tf.int32)
    code = tf.gather(tables.codes, codepoints + (page - block) * PAGE)
    symbols = tf.cast(tf.gather(tables.symbols, tf.cast(code, tf.int32)), tf.int32)
    widths = tf.ones_like(codepoints)
    for name, symbol in tables.specials:
        symbols, widths = _put_special(codepoints, symbols, widths, name, symbol)
    is_kept = symbols != DROPPED
    kept = _indices(tf.reshape(is_kept, [-1]))
    starts = kept // tables.symbols.shape[1]
    return _Symbols(
        values=tf.gather(tf.reshape(symbols, [-1]), kept),
        starts=starts,
        ends=starts + tf.gather(widths, starts),
        counts=tf.reduce_sum(tf.cast(is_kept, tf.int32), axis=1),
    )


def _put_special(codepoints, symbols, widths, name, symbol):
    """Replaces the symbols of every occurrence of `name` by the one symbol."""
    size = tf.size(codepoints)
    padded = tf.concat([codepoints, [-1] * len(name)], axis=0)
    found = tf.reduce_all(
        [padded[k : k + size] == codepoint for k, codepoint in enumerate(name)], axis=0
    )
    none = tf.zeros([len(name)], tf.int32)
    found_padded = tf.concat([none, tf.cast(found, tf.int32)], axis=0)
    covered = tf.reduce_max(
        [found_padded[k + 1 : k + 1 + size] for k in range(len(name))], axis=0
    )
    row = tf.where(found, symbol, DROPPED)[:, None]
    row = tf.concat([row, tf.zeros_like(symbols[:, 1:])], axis=1)
    return tf.where(covered[:, None] > 0, row, symbols), tf.where(
        found, len(name), widths
    )


class _Words(NamedTuple):
    characters: tf.Tensor  # [symbols]; 0 is a space
    inner: tf.Tensor  # [symbols]: the same, with 0 where a word starts
    is_start: tf.Tensor  # bool [symbols]
    number: tf.Tensor  # [symbols]: the word a symbol is in (of a space: no matter)
    starts: tf.Tensor  # [words + 1]: first symbol; a 0 at the end, never to be empty
    ends: tf.Tensor  # [words + 1]: one past the last symbol


def _words(symbols: tf.Tensor) -> _Words:
    characters = symbols // 2
    is_space = characters == 0
    is_alone = symbols - 2 * characters > 0
    after_break = tf.concat([[True], (is_space | is_alone)[:-1]], axis=0)
    is_start = ~is_space & (is_alone | after_break)
    inner = tf.where(is_start, 0, characters)
    is_last = ~is_space & (tf.concat([inner[1:], [0]], axis=0) == 0)
    return _Words(
        characters=characters,
        inner=inner,
        is_start=is_start,
        number=tf.maximum(tf.cumsum(tf.cast(is_start, tf.int32)) - 1, 0),
        starts=tf.concat([_indices(is_start), [0]], axis=0),
        ends=tf.concat([_indices(is_last) + 1, [0]], axis=0),
    )


def _segment(
    words: _Words, trie: Trie, word_limit: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Cuts every word, each `[symbols]`.

    Returns:
        The deepest trie node on the path from each symbol (a root where nobody asked),
        the length of the longest piece there, and whether greedy matching starts one.
    """
    following = tf.concat([words.inner, [0] * max(trie.depths)], axis=0)
    nodes = tf.zeros_like(words.characters)
    starts = words.starts[:-1]
    nodes = _walk(nodes, starts, WORD_ROOT, words.characters, following, trie)
    first_lengths = tf.gather(trie.piece_lengths, tf.gather(nodes, starts))
    is_whole = first_lengths == words.ends[:-1] - starts
    is_whole = tf.concat([is_whole, [True]], axis=0)

    is_open = ~tf.gather(is_whole, words.number) & (words.characters > 0)
    suffixes = _indices(is_open & ~words.is_start)
    nodes = _walk(nodes, suffixes, SUFFIX_ROOT, words.characters, following, trie)
    lengths = tf.gather(trie.piece_lengths, nodes)

    # A word's symbols stand together here as there, so p + length(p) means the same.
    inside = _indices(is_open)
    is_start, inner = tf.gather(words.is_start, inside), tf.gather(words.inner, inside)
    chained = _chain(is_start, inner, tf.gather(lengths, inside), word_limit)
    chained = tf.gather(inside, _indices(chained))
    reached = tf.tensor_scatter_nd_update(
        words.is_start, chained[:, None], tf.ones_like(chained, tf.bool)
    )
    return nodes, lengths, reached


def _walk(nodes, position, root, characters, following, trie: Trie) -> tf.Tensor:
    """Walks from each position and writes the last node it comes to into `nodes`."""
    node = tf.fill(tf.shape(position), root)
    character = tf.gather(characters, position)
    for step in range(trie.depths[root]):
        slot = tf.gather(trie.base, node) + character
        alive = _indices(tf.gather(trie.check, slot) == node)
        position, node = tf.gather(position, alive), tf.gather(slot, alive)
        nodes = tf.tensor_scatter_nd_update(nodes, position[:, None], node)
        character = tf.gather(following, position + (step + 1))
    return nodes


def _chain(is_start, inner, lengths, word_limit: int) -> tf.Tensor:
    """Returns the symbols at which greedy segmentation starts a piece, bool."""
    size = tf.size(lengths)
    target = tf.range(size) + lengths
    in_word = tf.gather(tf.concat([inner, [0]], axis=0), target) > 0
    jump = tf.where(in_word & (lengths > 0), target, size)
    jump = tf.concat([jump, size[None]], axis=0)  # the slot past the end: nowhere
    reached = tf.concat([tf.cast(is_start, tf.int32), [0]], axis=0)
    # After k rounds every chain is marked up to its 2^k-th piece.
    for _ in range(max(word_limit - 1, 0).bit_length()):
        target = tf.gather(jump, _indices(reached > 0))
        reached = tf.tensor_scatter_nd_update(
            reached, target[:, None], tf.ones_like(target)
        )
        jump = tf.gather(jump, jump)
    return reached[:-1] > 0


def _words_without_pieces(
    words: _Words, is_stuck: tf.Tensor, word_limit: int
) -> tf.Tensor:
    """Returns which words become [UNK], bool `[words + 1]`."""
    stuck = tf.gather(words.number, _indices(is_stuck))
    bad = tf.cast(words.ends - words.starts > word_limit, tf.int32)
    return tf.tensor_scatter_nd_update(bad, stuck[:, None], tf.ones_like(stuck)) > 0


def _move_splits(
    row_splits: tf.Tensor, symbol_counts: tf.Tensor, is_token: tf.Tensor
) -> tf.Tensor:
    """Turns row splits over codepoints into row splits over tokens."""
    for counts in (symbol_counts, tf.cast(is_token, tf.int32)):
        before = tf.concat([[0], tf.cumsum(counts)], axis=0)
        row_splits = tf.gather(before, row_splits)
    return row_splits


def _indices(condition: tf.Tensor) -> tf.Tensor:
    """Returns the indices at which a bool vector is true, int32."""
    return tf.cast(tf.where(condition)[:, 0], tf.int32)

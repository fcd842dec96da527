"""WordPiece: codepoints -> token ids and offsets, in integer tensor operations only.

The same function runs in tf.data, inside a SavedModel with no custom op to register
and, converted, in ONNX Runtime with nothing but standard `ai.onnx` ops. It works on one
flat array for the whole batch, in four steps:

1. *normalise*: each codepoint becomes a symbol or several (`normalizer.py`);
2. *match words*: from the start of every word at once, walk the trie as far as it goes.
   Most words are one piece;
3. *cut up the others*: walk from every one of their symbols, which gives the longest
   piece that starts there; then follow p -> p + length(p) from each word's start. A
   word whose chain meets a symbol with no match, or that is too long, is one [UNK];
4. *merge* the tokens of both. The end of a row is a word of its own until then: where
   those end up says where the rows do.

The rule is "greedy longest match first" of google-research/bert, `WordpieceTokenizer`.

All constants are NumPy arrays that become tensors inside the traced function: a
captured eager tensor would become an *input* of the converted ONNX graph.
"""

from typing import NamedTuple

import tensorflow as tf

from bert_keras.text.normalizer import Symbols, normalize
from bert_keras.text.tables import ROW_END_ID, SPACE_SYMBOL, WordPieceTables
from bert_keras.text.tensors import indices, put
from bert_keras.text.trie import SUFFIX_ROOT, WORD_ROOT, Trie

_STRIDE = 3  # steps that a walk goes before it leaves those behind who have arrived


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
    trie = tables.trie._replace(
        edges=tf.constant(tables.trie.edges), pieces=tf.constant(tables.trie.pieces)
    )
    symbols = normalize(codepoints, row_splits, tables)
    words = _words(symbols.values, tables)
    matched = _match_words(words, trie, tables)
    inner = _cut_up(words, matched.is_open, trie, tables)
    return _merge(symbols, words, matched.pieces, inner, tables.unk_id)


class _Words(NamedTuple):
    symbols: tf.Tensor  # [symbols]
    following: tf.Tensor  # [symbols]: the same, with a space where a word starts
    is_start: tf.Tensor  # bool [symbols]
    starts: tf.Tensor  # [words]: first symbol
    lengths: tf.Tensor  # [words]: in symbols


def _words(symbols: tf.Tensor, tables: WordPieceTables) -> _Words:
    is_space = symbols == SPACE_SYMBOL
    is_alone = symbols >= tables.alone_from
    after_break = tf.concat([[True], (is_space | is_alone)[:-1]], axis=0)
    is_start = ~is_space & (is_alone | after_break)
    following = tf.where(is_start, SPACE_SYMBOL, symbols)
    next_is_space = tf.concat([following[1:] == SPACE_SYMBOL, [True]], axis=0)
    starts = indices(is_start)
    lengths = indices(~is_space & next_is_space) + 1 - starts
    return _Words(symbols, following, is_start, starts, lengths)


class _Matched(NamedTuple):
    pieces: tf.Tensor  # [words, 2]: id and length of each word's first piece
    is_open: tf.Tensor  # bool [words]: whether the word has more of them


def _match_words(words: _Words, trie: Trie, tables: WordPieceTables) -> _Matched:
    """Walks from the start of each word; one that is too long is [UNK]."""
    nodes = _walk(
        words.starts,
        tf.fill(tf.shape(words.starts), WORD_ROOT),
        tf.gather(words.symbols, words.starts),
        words.following,
        trie,
    )
    pieces = _pieces_at(nodes, trie, tables)
    is_long = words.lengths > tables.options.max_characters_per_word
    unknown = tf.stack([tf.fill(tf.shape(nodes), tables.unk_id), words.lengths], axis=1)
    return _Matched(
        pieces=tf.where(is_long[:, None], unknown, pieces),
        is_open=(pieces[:, 1] < words.lengths) & ~is_long,
    )


def _pieces_at(nodes, trie: Trie, tables: WordPieceTables) -> tf.Tensor:
    """Returns id and length of the longest piece on the path to each node."""
    pieces = tf.gather(trie.pieces, nodes)
    if tables.options.split_unknown_characters:
        unknown = tf.constant([[tables.unk_id, 1]])
        pieces = tf.where(pieces[:, 1:] == 0, unknown, pieces)
    return pieces


def _walk(place, node, symbol, following, trie: Trie) -> tf.Tensor:
    """Returns the last node on each path: as far as the trie knows it.

    Args:
        place: `[walkers]`: the symbol at which each starts.
        node: its root.
        symbol: the symbol there.
        following: `[symbols]`: the symbols after it, a space where the word has ended.
        trie: the trie.
    """
    padding = tf.fill([trie.depth + 2 * _STRIDE], SPACE_SYMBOL)
    following = tf.concat([following, padding], axis=0)

    def go_on(node, base, symbol, place, steps_left):
        for _ in range(_STRIDE):
            slot = base + symbol
            edge = tf.gather(trie.edges, slot)
            is_child = edge[:, 0] == node
            node = tf.where(is_child, slot, node)
            base = tf.where(is_child, edge[:, 1], trie.leaf_base)
            place += 1
            symbol = tf.gather(following, place)
        if steps_left > _STRIDE:
            walking = indices(base != trie.leaf_base)
            state = (tf.gather(v, walking) for v in (node, base, symbol, place))
            further = go_on(*state, steps_left - _STRIDE)
            node = tf.tensor_scatter_nd_update(node, walking[:, None], further)
        return node

    roots = trie.edges[: SUFFIX_ROOT + 1, 1]
    return go_on(node, tf.gather(roots, node), symbol, place, trie.depth)


class _Inner(NamedTuple):
    starts: tf.Tensor  # [pieces]: first symbol of every piece but the first of a word
    pieces: tf.Tensor  # [pieces, 2]: id and length
    stuck: tf.Tensor  # [some]: words in which no piece matched somewhere


def _cut_up(
    words: _Words, is_open: tf.Tensor, trie: Trie, tables: WordPieceTables
) -> _Inner:
    """Cuts up the words that are more than one piece."""
    open_words = indices(is_open)
    lengths = tf.gather(words.lengths, open_words)
    first = tf.cumsum(lengths) - lengths
    # From here on, the symbols of these words alone, behind one another.
    none = tf.zeros([tf.reduce_sum(lengths)], tf.int32)
    is_first = put(none, first, 1)
    word = tf.cumsum(is_first) - 1
    shift = tf.gather(words.starts, open_words) - first
    local = tf.range(tf.size(word))
    place = local + tf.gather(shift, word)
    symbols = tf.gather(words.symbols, place)
    following = tf.where(is_first > 0, SPACE_SYMBOL, symbols)
    root = tf.where(is_first > 0, WORD_ROOT, SUFFIX_ROOT)
    nodes = _walk(local, root, symbols, following, trie)
    pieces = _pieces_at(nodes, trie, tables)
    reached = _chain(first, pieces[:, 1], following)
    stuck = indices(reached & (pieces[:, 1] == 0))
    stuck_word = tf.gather(word, stuck)
    is_stuck = put(tf.zeros_like(lengths), stuck_word, 1)
    inner = indices(reached & (is_first == 0))
    is_kept = tf.gather(is_stuck, tf.gather(word, inner)) == 0
    inner = tf.boolean_mask(inner, is_kept)
    return _Inner(
        starts=tf.gather(place, inner),
        pieces=tf.gather(pieces, inner),
        stuck=tf.gather(open_words, stuck_word),
    )


def _chain(first, lengths, following) -> tf.Tensor:
    """Returns the symbols at which greedy segmentation starts a piece, bool."""
    following = tf.concat([following, [SPACE_SYMBOL]], axis=0)

    def go_on(at, reached):
        reached = put(reached, at, 1)
        length = tf.gather(lengths, at)
        at += length
        is_inside = (length > 0) & (tf.gather(following, at) != SPACE_SYMBOL)
        return tf.boolean_mask(at, is_inside), reached

    _, reached = tf.while_loop(
        lambda at, reached: tf.size(at) > 0,
        go_on,
        (first, tf.zeros_like(lengths)),
        shape_invariants=(tf.TensorShape([None]), tf.TensorShape([None])),
    )
    return reached > 0


def _merge(
    symbols: Symbols, words: _Words, first: tf.Tensor, inner: _Inner, unk_id: int
) -> WordPieces:
    """Puts the first pieces of words and the inner ones in the order of the text."""
    unknown = tf.gather(words.lengths, inner.stuck)
    unknown = tf.stack([tf.fill(tf.shape(unknown), unk_id), unknown], axis=1)
    first = tf.tensor_scatter_nd_update(first, inner.stuck[:, None], unknown)
    is_token = tf.tensor_scatter_nd_update(
        words.is_start, inner.starts[:, None], tf.ones_like(inner.starts, tf.bool)
    )
    start = indices(is_token)
    is_first = tf.gather(words.is_start, start)
    word = tf.cumsum(tf.cast(is_first, tf.int32)) - 1
    after_words = tf.range(tf.size(start)) - word - 1 + tf.size(words.starts)
    pieces = tf.concat([first, inner.pieces], axis=0)
    pieces = tf.gather(pieces, tf.where(is_first, word, after_words))

    row_ends = indices(pieces[:, 0] == ROW_END_ID)
    tokens = indices(pieces[:, 0] != ROW_END_ID)
    pieces, start = tf.gather(pieces, tokens), tf.gather(start, tokens)
    row_ends -= tf.range(tf.size(row_ends))  # each row end before it is gone
    return WordPieces(
        ids=pieces[:, 0],
        row_splits=tf.concat([[0], row_ends], axis=0),
        starts=tf.gather(symbols.starts, start),
        ends=tf.gather(symbols.ends, start + pieces[:, 1] - 1),
    )

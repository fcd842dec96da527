"""The double-array trie against a plain search for the longest prefix."""

import numpy as np

from bert_keras.text.trie import SUFFIX_ROOT, WORD_ROOT, build_trie

ALPHABET = 9


def walk(trie, root, characters):
    """Follows the trie as the tensor code does; returns the piece and its length."""
    node = root
    for character in characters:
        slot = trie.edges[node, 1] + character
        if trie.edges[slot, 0] != node:
            break
        node = slot
    piece_id, length = trie.pieces[node].tolist()
    return (piece_id, length) if length else None


def longest(pieces, continues, characters):
    """Returns the same, by looking at every piece."""
    found = [
        (piece_id, len(piece))
        for is_suffix, piece, piece_id in pieces
        if is_suffix == continues and characters[: len(piece)] == piece
    ]
    return max(found, key=lambda pair: pair[1], default=None)


def test_every_walk_finds_the_longest_piece(random):
    seen = {}
    for _ in range(400):
        piece = tuple(random.integers(1, ALPHABET, random.integers(1, 7)).tolist())
        seen.setdefault((bool(random.integers(2)), piece), len(seen))
    pieces = [(continues, piece, n) for (continues, piece), n in seen.items()]
    trie = build_trie(pieces, ALPHABET)
    assert trie.depth == max(len(piece) for _, piece, _ in pieces)
    matched = 0
    for _ in range(2000):
        text = tuple(random.integers(0, ALPHABET, 8).tolist())
        for root, continues in ((WORD_ROOT, False), (SUFFIX_ROOT, True)):
            expected = longest(pieces, continues, text)
            assert walk(trie, root, text) == expected
            matched += expected is not None
    assert matched > 1000


def test_no_step_reads_past_the_end():
    trie = build_trie([(False, (8, 8), 0), (True, (1,), 1)], ALPHABET)
    assert int(trie.edges[:, 1].max()) + ALPHABET <= len(trie.edges)
    assert len(trie.pieces) == len(trie.edges)
    assert np.all(trie.edges[:, 1] >= 0)


def test_a_leaf_has_no_children():
    trie = build_trie([(False, (2, 8), 0), (True, (1,), 1)], ALPHABET)
    assert np.all(trie.edges[trie.leaf_base :, 0] == -1)
    assert len(trie.edges) == trie.leaf_base + ALPHABET

"""The vocabulary as a double-array trie: one look-up and one comparison a step.

A *node* is a slot number. The child of a node along symbol `s` is `slot = base + s`,
with the node's `base`, and it exists if and only if the `parent` stored at that slot is
the node. There are two roots: `WORD_ROOT` for pieces that begin a word and
`SUFFIX_ROOT` for pieces that continue one ("##" removed).

A walk that has read the longest path it could, ends in some node; the piece that greedy
matching wants is the *last complete piece on the way there*. It is stored with every
node (`pieces`), so a walk need not remember anything but its node.

Source of the structure: J. Aoe, "An efficient digital search algorithm by using a
double-array structure", 1989.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

WORD_ROOT, SUFFIX_ROOT = 0, 1


class Trie(NamedTuple):
    """The arrays. What a step reads together stands together: look-ups are dear.

    Attributes:
        edges: int32 `[slots, 2]`: the parent of the node at a slot, or -1 where there
            is none; and the node's own base, `leaf_base` where it has no children.
        pieces: int32 `[slots, 2]`: id and length in symbols of the longest piece that
            is a prefix of the node's path; length 0 where there is none.
        depth: symbols in the longest piece.
        leaf_base: a base under which no slot has a parent.
    """

    edges: np.ndarray
    pieces: np.ndarray
    depth: int
    leaf_base: int


class _Node:
    __slots__ = ("children", "piece_id")

    def __init__(self):
        self.children: dict[int, _Node] = {}
        self.piece_id: int | None = None


def build_trie(
    pieces: Iterable[tuple[bool, tuple[int, ...], int]], symbols: int
) -> Trie:
    """Builds the trie.

    Args:
        pieces: for each piece whether it continues a word, its symbols, and its id.
        symbols: one more than the greatest symbol that a walk may ask for.
    """
    roots = (_Node(), _Node())
    depth = 1
    for continues, path, piece_id in pieces:
        node = roots[continues]
        for symbol in path:
            child = node.children.get(symbol)
            if child is None:
                child = node.children[symbol] = _Node()
            node = child
        node.piece_id = piece_id
        depth = max(depth, len(path))
    return _lay_out(roots, depth, symbols)


def _lay_out(roots: tuple[_Node, _Node], depth: int, symbols: int) -> Trie:
    """Gives every node a slot, level by level, those with most children first."""
    slots = _Slots()
    level = [(WORD_ROOT, roots[0], (0, 0)), (SUFFIX_ROOT, roots[1], (0, 0))]
    length = 0
    while level:
        length += 1
        below = []
        level.sort(key=lambda entry: -len(entry[1].children))
        for slot, node, longest in level:
            slots.longest[slot] = longest
            if not node.children:
                continue
            base = slots.place(slot, sorted(node.children))
            for symbol, child in node.children.items():
                own = longest if child.piece_id is None else (child.piece_id, length)
                below.append((base + symbol, child, own))
        level = below
    return slots.finish(symbols, depth)


class _Slots:
    """Slots given out so far."""

    def __init__(self):
        self.used = bytearray(1 << 20)
        self.used[WORD_ROOT] = self.used[SUFFIX_ROOT] = 1
        self.base: dict[int, int] = {}
        self.parent: dict[int, int] = {}
        self.longest: dict[int, tuple[int, int]] = {}
        self._search_from: dict[int, int] = {}

    def place(self, parent: int, symbols: list[int]) -> int:
        """Finds the first base under which every child's slot is free, and takes it."""
        base = self.base[parent] = self._first_fit(symbols)
        for symbol in symbols:
            self.used[base + symbol] = 1
            self.parent[base + symbol] = parent
        return base

    def _first_fit(self, symbols: list[int]) -> int:
        first, others = symbols[0], symbols[1:]
        used, fan_out = self.used, len(symbols)
        slot = max(self._search_from.get(fan_out, 0), first)
        while True:
            slot = used.find(0, slot)
            if slot < 0 or slot + symbols[-1] >= len(used):
                used.extend(bytes(len(used)))
                slot = max(slot, first)
                continue
            base = slot - first
            if not any(used[base + symbol] for symbol in others):
                # Nodes of the same fan-out start where this one fitted: below it, most
                # slots are taken, and looking there again would cost quadratic time.
                self._search_from[fan_out] = slot
                return base
            slot += 1

    def finish(self, symbols: int, depth: int) -> Trie:
        """Returns the arrays, long enough that no step can read past their end."""
        leaf_base = max((WORD_ROOT, SUFFIX_ROOT, *self.parent)) + 1
        leaf_base = max(leaf_base, *self.base.values(), 0)
        size = leaf_base + symbols
        edges = np.tile(np.array([-1, leaf_base], np.int32), (size, 1))
        edges[list(self.parent), 0] = list(self.parent.values())
        edges[list(self.base), 1] = list(self.base.values())
        pieces = np.zeros((size, 2), np.int32)
        pieces[list(self.longest)] = list(self.longest.values())
        return Trie(edges, pieces, depth, leaf_base)

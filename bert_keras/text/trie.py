"""The vocabulary as a double-array trie: one gather and one comparison a step.

A *node* is a slot number. The child of `node` along character `c` is
`slot = base[node] + c`, and it exists if and only if `check[slot] == node`. There are
two roots: `WORD_ROOT` for pieces that begin a word and `SUFFIX_ROOT` for pieces that
continue one ("##" removed).

A walk that has read the longest path it could, ends in some node; the piece that greedy
matching wants is the *last complete piece on the way there*. It is stored with every
node (`piece_ids`, `piece_lengths`), so a walk need not remember anything but its node.

Source of the structure: J. Aoe, "An efficient digital search algorithm by using a
double-array structure", 1989.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

WORD_ROOT, SUFFIX_ROOT = 0, 1


class Trie(NamedTuple):
    """The arrays; all are int32 `[slots]`.

    Attributes:
        base: where a node's children are counted from.
        check: the node that owns a slot, or -1.
        piece_ids: id of the longest piece that is a prefix of the node's path.
        piece_lengths: its length in characters; 0 where there is none.
        depths: characters in the longest piece under `WORD_ROOT` and `SUFFIX_ROOT`.
    """

    base: np.ndarray
    check: np.ndarray
    piece_ids: np.ndarray
    piece_lengths: np.ndarray
    depths: tuple[int, int]


class _Node:
    __slots__ = ("children", "piece_id")

    def __init__(self):
        self.children: dict[int, _Node] = {}
        self.piece_id = -1


def build_trie(
    pieces: Iterable[tuple[bool, tuple[int, ...], int]], alphabet_size: int
) -> Trie:
    """Builds the trie.

    Args:
        pieces: for each piece whether it continues a word, its characters as positive
            integers, and its id.
        alphabet_size: one more than the greatest character that a walk may ask for.
    """
    roots = (_Node(), _Node())
    depths = [1, 1]
    for continues, characters, piece_id in pieces:
        node = roots[continues]
        for character in characters:
            child = node.children.get(character)
            if child is None:
                child = node.children[character] = _Node()
            node = child
        node.piece_id = piece_id
        depths[continues] = max(depths[continues], len(characters))
    return _lay_out(roots, tuple(depths), alphabet_size)


def _lay_out(
    roots: tuple[_Node, _Node], depths: tuple[int, int], alphabet_size: int
) -> Trie:
    """Gives every node a slot, level by level, those with most children first."""
    slots = _Slots()
    level = [(WORD_ROOT, roots[0], (-1, 0)), (SUFFIX_ROOT, roots[1], (-1, 0))]
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
            for character, child in node.children.items():
                own = (child.piece_id, length) if child.piece_id >= 0 else longest
                below.append((base + character, child, own))
        level = below
    return slots.finish(alphabet_size, depths)


class _Slots:
    """Slots given out so far."""

    def __init__(self):
        self.used = bytearray(1 << 20)
        self.used[WORD_ROOT] = self.used[SUFFIX_ROOT] = 1
        self.base: dict[int, int] = {}
        self.check: dict[int, int] = {}
        self.longest: dict[int, tuple[int, int]] = {}
        self._search_from: dict[int, int] = {}

    def place(self, parent: int, characters: list[int]) -> int:
        """Finds the first base under which every child's slot is free, and takes it."""
        base = self.base[parent] = self._first_fit(characters)
        for character in characters:
            self.used[base + character] = 1
            self.check[base + character] = parent
        return base

    def _first_fit(self, characters: list[int]) -> int:
        first, others = characters[0], characters[1:]
        used, fan_out = self.used, len(characters)
        slot = max(self._search_from.get(fan_out, 0), first)
        while True:
            slot = used.find(0, slot)
            if slot < 0 or slot + characters[-1] >= len(used):
                used.extend(bytes(len(used)))
                slot = max(slot, first)
                continue
            base = slot - first
            if not any(used[base + character] for character in others):
                # Nodes of the same fan-out start where this one fitted: below it, most
                # slots are taken, and looking there again would cost quadratic time.
                self._search_from[fan_out] = slot
                return base
            slot += 1

    def finish(self, alphabet_size: int, depths: tuple[int, int]) -> Trie:
        """Returns the arrays, long enough that no step can read past their end."""
        size = max(self.base.values(), default=0) + alphabet_size
        arrays = np.zeros((4, size), np.int32)
        arrays[1] = -1
        for row, values in ((0, self.base), (1, self.check)):
            arrays[row, list(values)] = list(values.values())
        arrays[2:, list(self.longest)] = np.array(list(self.longest.values())).T
        return Trie(*arrays, depths=depths)

"""A long text in overlapping windows, each short enough for the encoder.

A window is a piece of the *text*, cut where a word begins, so that any reader of texts
gives it the tokens it has in the whole.
"""

import weakref
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_keras.features import TOKEN_IDS
from bert_keras.text.layout import COUNTS, OFFSETS
from bert_keras.text.tokenizer import WordPieceTokenizer
from bert_keras.text.vocabulary import split_token


class Window(NamedTuple):
    """A part of a text.

    Attributes:
        text: the part.
        offsets: int `[tokens, 2]`: where its tokens stand in the whole text, in
            characters.
        is_best: bool `[tokens]`: no other window gives the token more context, which
            is the lesser of what is before and behind it. True in one window alone.
    """

    text: str
    offsets: np.ndarray
    is_best: np.ndarray


class Size(NamedTuple):
    """How large windows are.

    Attributes:
        most: tokens in a window.
        overlap: tokens that a window shares with the next; fewer than `most`.
    """

    most: int
    overlap: int

    def check(self) -> "Size":
        """Returns itself; a `ValueError` says what cannot be."""
        if not 0 <= self.overlap < self.most:
            raise ValueError(
                f"Windows cannot overlap so. Received: {self.overlap} of {self.most} "
                f"tokens; allowed: 0 to {self.most - 1}."
            )
        return self


class Windows:
    """Cuts texts up.

    Args:
        tokenizer: of the model that will read the windows.
    """

    def __init__(self, tokenizer: WordPieceTokenizer):
        self._tokenizer = tokenizer.copy(
            offsets=True, ragged=False, sequence_length=None, special_tokens_mask=False
        )
        first = self._tokenizer.options.id_offset
        self._continues = np.zeros(self._tokenizer.ids_end, bool)
        for number, token in enumerate(self._tokenizer.vocabulary):
            self._continues[first + number] = split_token(token)[0]

    @classmethod
    def by(cls, tokenizer: WordPieceTokenizer) -> "Windows":
        """Returns the one for a tokenizer; to make it takes a moment."""
        if tokenizer not in _MADE:
            _MADE[tokenizer] = cls(tokenizer)
        return _MADE[tokenizer]

    def of(self, texts: Sequence[str], sizes: Sequence[Size]) -> list[list[Window]]:
        """Returns the windows of each text; one at least, which may be empty.

        Args:
            sizes: of the windows of each text.
        """
        if not texts:
            return []
        found = {name: v.numpy() for name, v in self._tokenizer(list(texts)).items()}
        return [
            self._cut(text, ids[:count], offsets[:count], size.check())
            for text, ids, offsets, count, size in zip(
                texts,
                *(found[name] for name in (TOKEN_IDS, OFFSETS, COUNTS)),
                sizes,
                strict=True,
            )
        ]

    def _cut(
        self, text: str, ids: np.ndarray, offsets: np.ndarray, size: Size
    ) -> list[Window]:
        edges = _edges(~self._continues[ids], size)
        best = _best_of(edges, len(ids))
        return [
            Window(
                text=text[_at(offsets, start) : _at(offsets, end, len(text))],
                offsets=offsets[start:end],
                is_best=best[start:end] == number,
            )
            for number, (start, end) in enumerate(edges)
        ]


_MADE: weakref.WeakKeyDictionary[WordPieceTokenizer, Windows] = (
    weakref.WeakKeyDictionary()
)


def _edges(begins: np.ndarray, size: Size) -> list[tuple[int, int]]:
    """Returns the first token of each window, and the one behind its last."""
    length, edges, start = len(begins), [], 0
    while True:
        end = min(start + size.most, length)
        if end < length:
            end = _word_before(begins, end, start)
        edges.append((start, end))
        if end == length:
            return edges
        start = _next_start(begins, start, end, size.overlap)


def _next_start(begins: np.ndarray, start: int, end: int, overlap: int) -> int:
    position = max(end - overlap, start + 1)
    found = _word_before(begins, position, start)
    behind = np.flatnonzero(begins[position : end + 1])
    if begins[found] or not len(behind):
        return found
    return position + int(behind[0])


def _word_before(begins: np.ndarray, position: int, start: int) -> int:
    """Returns the nearest word start up to a position, if one is behind `start`.

    A word that fills a window alone is cut at the position itself.
    """
    before = np.flatnonzero(begins[start + 1 : position + 1])
    return start + 1 + int(before[-1]) if len(before) else position


def _best_of(edges: list[tuple[int, int]], length: int) -> np.ndarray:
    """Returns for each token the number of the window with most context around it."""
    best, context = np.zeros(length, int), np.full(length, -1)
    for number, (start, end) in enumerate(edges):
        places = np.arange(end - start)
        # The ends of the text itself cut nothing off.
        before = places if start else np.full_like(places, length)
        behind = places[::-1] if end < length else np.full_like(places, length)
        found = np.minimum(before, behind)
        is_better = found > context[start:end]
        best[start:end][is_better] = number
        context[start:end][is_better] = found[is_better]
    return best


def _at(offsets: np.ndarray, token: int, end: int = 0) -> int:
    """Returns where a token begins; `end` for the one behind the last."""
    return int(offsets[token, 0]) if token < len(offsets) else end

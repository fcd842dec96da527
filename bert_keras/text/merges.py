"""Words as pieces, and the best pair of neighbouring pieces joined, again and again.

A heap holds a bound for each pair, which its score does not exceed. Bounds that fall
are left there, and corrected when they come up; those that rise are put in again. So a
join costs about as much as the words that it changes.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise

from bert_keras.text.vocabulary import SUFFIX_PREFIX

Pair = tuple[str, str]

SLACK = 64
"""A bound is a little looser than the score: by up to a part in so many for each piece.
The more, the fewer pairs pass for the best, and the more often bounds are renewed."""


class MostFrequentPairs:
    """Joins the most frequent pair; of equally good ones, the smaller as text.

    Args:
        words: the pieces of each word; changed in place.
        counts: how often each word stands in the corpus.
        min_count: a pair that is less frequent is not joined.
    """

    def __init__(self, words: list[list[str]], counts: list[int], min_count: int = 1):
        self._words, self._word_counts, self._min_count = words, counts, min_count
        self._counts: defaultdict[Pair, int] = defaultdict(int)
        # A place may be out of date; one that is missing there is none.
        self._places: defaultdict[Pair, set[int]] = defaultdict(set)
        for number, word in enumerate(words):
            for pair in pairwise(word):
                self._counts[pair] += counts[number]
                self._places[pair].add(number)
        self._heap: list[tuple[float, Pair]] = []
        self._push(self._counts)

    def join_best(self) -> str | None:
        """Joins the best pair everywhere and returns the new piece; None without one.

        A piece comes twice where two pairs make it: "a" + "##bc", "ab" + "##c".
        """
        best, passed = None, set()
        while self._heap and (best is None or self._heap[0] < best):
            negative, pair = heapq.heappop(self._heap)
            if self._counts.get(pair, 0) < self._min_count:
                continue
            if -negative == self._bound(pair):
                ranked = -self._score(pair), pair
                best = ranked if best is None else min(best, ranked)
                passed.add(pair)
            elif -negative > self._bound(pair):
                self._push([pair])
        if best is None:
            return None
        self._push(passed - {best[1]})
        return self._join(best[1])

    def _score(self, pair: Pair) -> float:
        return self._counts[pair]

    def _bound(self, pair: Pair) -> float:
        """Returns a number that the score is not above until the pair has risen."""
        return self._score(pair)

    def _risen(
        self, pair: Pair, piece: str, joins: int, changes: dict[Pair, int]
    ) -> Iterable[Pair]:
        """Returns the pairs whose bound has risen when `pair` became `piece`."""
        return [one for one, change in changes.items() if change > 0]

    def _push(self, pairs: Iterable[Pair]) -> None:
        for pair in pairs:
            if self._counts.get(pair, 0) >= self._min_count:
                heapq.heappush(self._heap, (-self._bound(pair), pair))

    def _join(self, pair: Pair) -> str:
        piece = pair[0] + pair[1].removeprefix(SUFFIX_PREFIX)
        changes: defaultdict[Pair, int] = defaultdict(int)
        joins = 0
        for number in self._places.pop(pair):
            joins += self._join_in(number, pair, piece, changes)
        del self._counts[pair]
        changes.pop(pair, None)  # of two equal pieces: counted, and gone as well
        for one, change in changes.items():
            self._counts[one] += change
            if not self._counts[one]:
                del self._counts[one]
                self._places.pop(one, None)
        self._push(self._risen(pair, piece, joins, changes))
        return piece

    def _join_in(
        self, number: int, pair: Pair, piece: str, changes: dict[Pair, int]
    ) -> int:
        """Joins a pair in one word, from left to right, and adds to the changes.

        Returns:
            how often, times the count of the word.
        """
        left, right = pair
        word, count = self._words[number], self._word_counts[number]
        last, position, joins = len(word) - 1, 0, 0
        while position < last:
            if word[position] == left and word[position + 1] == right:
                if position:
                    before = word[position - 1]
                    changes[before, left] -= count
                    changes[before, piece] += count
                    self._places[before, piece].add(number)
                if position + 1 < last:
                    behind = word[position + 2]
                    changes[right, behind] -= count
                    changes[piece, behind] += count
                    self._places[piece, behind].add(number)
                word[position : position + 2] = [piece]
                last -= 1
                joins += count
            position += 1
        return joins


class LikeliestPairs(MostFrequentPairs):
    """Joins the pair of the highest count(xy) / (count(x) count(y)).

    Joining it raises the likelihood of the corpus under a unigram model of its pieces
    most for each time that it stands there; so WordPiece chose (Schuster and Nakajima
    2012). Counts are those in the words as they are cut at the time. Scores are exact
    fractions of integers, rounded to double precision; those equal then are ties.
    """

    def __init__(self, words: list[list[str]], counts: list[int], min_count: int = 1):
        self._piece_counts: Counter[str] = Counter()
        self._pairs_of: defaultdict[str, set[Pair]] = defaultdict(set)
        for word, count in zip(words, counts, strict=True):
            for piece in word:
                self._piece_counts[piece] += count
        self._floors = {n: _floor(count) for n, count in self._piece_counts.items()}
        super().__init__(words, counts, min_count)
        for pair in self._counts:
            for piece in pair:
                self._pairs_of[piece].add(pair)

    def _score(self, pair: Pair) -> float:
        left, right = pair
        parts = self._piece_counts[left] * self._piece_counts[right]
        return self._counts[pair] / parts

    def _bound(self, pair: Pair) -> float:
        left, right = pair
        return self._counts[pair] / (self._floors[left] * self._floors[right])

    def _risen(self, pair, piece, joins, changes):
        self._piece_counts[piece] += joins
        for part in pair:
            self._piece_counts[part] -= joins
            self._pairs_of[part].discard(pair)
        for one in changes:
            for part in one:
                if one in self._counts:
                    self._pairs_of[part].add(one)
                else:
                    self._pairs_of[part].discard(one)
        risen = set(super()._risen(pair, piece, joins, changes))
        self._floors.setdefault(piece, _floor(self._piece_counts[piece]))
        for part in pair:  # with fewer of its parts left, a pair is worth more
            if self._piece_counts[part] < self._floors[part]:
                self._floors[part] = _floor(self._piece_counts[part])
                risen |= self._pairs_of[part]
        return risen


def _floor(count: int) -> int:
    """Returns a count that a piece will not go below for some time, if it is large.

    Only when it does are the bounds of all its pairs put in anew.
    """
    return count - count // SLACK

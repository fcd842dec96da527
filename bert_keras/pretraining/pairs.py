"""Documents -> sentence pairs, half of them real neighbours (Devlin et al. 2018, 3.1).

A walk over a document gathers sentences until they fill a row. The gathered ones are
cut in two at a random place: A, and B. In half of the cases B is replaced by sentences
of *another* document, and those that B gave up are gathered again.
"""

import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

TokenizedDocument = list[np.ndarray]  # int32 ids of each sentence


class Pair(NamedTuple):
    """Two stretches of text, as int32 ids, and whether B followed A."""

    first: np.ndarray
    second: np.ndarray
    is_next: bool


def sentence_pairs(
    documents: Sequence[TokenizedDocument],
    places: int,
    random: np.random.Generator,
    *,
    short_probability: float = 0.1,
) -> Iterator[Pair]:
    """Yields pairs from each document in turn; none crosses from one into the next.

    With one document only there is no other to draw from: real neighbours are yielded
    alone, with a warning.

    Args:
        documents: sentences as ids; none empty.
        places: tokens of text in a row.
        random: where all chance comes from.
        short_probability: how often a row aims at a shorter length, between 2 and
            `places`, so that the model meets short rows too.
    """
    if len(documents) == 1:
        warnings.warn(
            "The corpus has one document. A random second sentence must come from "
            "another one, and so every pair is a real one; separate documents by blank "
            "lines.",
            stacklevel=2,
        )
    for number in range(len(documents)):
        yield from _pairs_of(documents, number, places, random, short_probability)


def _pairs_of(documents, number, places, random, short_probability) -> Iterator[Pair]:
    document = documents[number]
    gathered: TokenizedDocument = []
    target = _target(places, random, short_probability)
    position = 0
    while position < len(document):
        gathered.append(document[position])
        position += 1
        is_full = sum(map(len, gathered)) >= target
        # Without another document to draw from, a pair takes two of this one.
        is_full &= len(gathered) > 1 or len(documents) > 1
        if not is_full and position < len(document):
            continue
        cut = int(random.integers(1, len(gathered))) if len(gathered) > 1 else 1
        first, rest = np.concatenate(gathered[:cut]), gathered[cut:]
        if len(documents) > 1 and (not rest or random.random() < 0.5):
            second = _elsewhere(documents, number, target - len(first), random)
            yield Pair(first, second, is_next=False)
            position -= len(rest)
        elif rest:
            yield Pair(first, np.concatenate(rest), is_next=True)
        gathered = []
        target = _target(places, random, short_probability)


def _target(places: int, random: np.random.Generator, short_probability: float) -> int:
    if random.random() < short_probability:
        return int(random.integers(2, places + 1))
    return places


def _elsewhere(documents, number, wanted, random) -> np.ndarray:
    """Returns at least `wanted` tokens, if there are any, of another document."""
    other = int(random.integers(len(documents) - 1))
    document = documents[other + (other >= number)]
    start = int(random.integers(len(document)))
    taken = [document[start]]
    for sentence in document[start + 1 :]:
        if sum(map(len, taken)) >= wanted:
            break
        taken.append(sentence)
    return np.concatenate(taken)

"""Documents -> rows of text: one text, or two, for each of the objectives.

| objective        | a row                                        | label             |
|------------------|----------------------------------------------|-------------------|
| `next_sentence`  | A, and B or another document's text           | does B follow A?  |
| `sentence_order` | A and B, or B and A                          | are they in order?|
| `masked_lm`      | as many tokens of one document as fit        | none              |

Next sentence is that of Devlin et al. 2018 (3.1): a walk over a document gathers
sentences until they fill a row; they are cut in two at a random place, A and B. In half
of the cases B is replaced by sentences of *another* document, and those that B gave up
are gathered again. Sentence order is that of Lan et al. 2019 ("ALBERT", 3.1), masked LM
alone that of Liu et al. 2019 ("RoBERTa", 4.2, doc-sentences). No row crosses the end of
a document.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bert_keras.pretraining.shards import TokenizedStretch


class Pair(NamedTuple):
    """One or two texts, as int32 ids, and whether they are in order.

    Attributes:
        first: text A.
        second: text B, or None where there is one text.
        is_next: B follows A in the document.
    """

    first: np.ndarray
    second: np.ndarray | None
    is_next: bool


def next_sentence_pairs(
    stretches: Sequence[TokenizedStretch],
    places: int,
    random: np.random.Generator,
    short_probability: float = 0.1,
) -> Iterator[Pair]:
    """Yields pairs, half of them real neighbours.

    A lone sentence at the end of a document has none, and gets another document's; to
    keep the halves, one of the next pairs to be drawn so is made a real one instead.
    Where all is one document there is no other to draw from: all pairs are real.

    Args:
        stretches: of documents; none empty.
        places: tokens of text in a row.
        random: where all chance comes from.
        short_probability: how often a row aims at a shorter length, between 2 and
            `places`, so that the model meets short rows too.
    """
    documents = np.array([stretch.document for stretch in stretches])
    has_others = len(set(documents.tolist())) > 1

    def elsewhere(number: int, wanted: int) -> np.ndarray:
        """Returns at least `wanted` tokens, if there are any, of another document."""
        other = number
        while documents[other] == documents[number]:
            other = int(random.integers(len(documents)))
        sentences = stretches[other].sentences
        start = end = int(random.integers(len(sentences)))
        size = 0
        while end < len(sentences) and (size < wanted or end == start):
            size += len(sentences[end])
            end += 1
        return np.concatenate(sentences[start:end])

    owed = 0  # real pairs in place of those that could be none
    for number, (_, sentences) in enumerate(stretches):
        position = 0
        while position < len(sentences):
            target = _target(places, random, short_probability)
            is_next = not has_others or bool(random.random() < 0.5)
            if owed and not is_next:
                is_next, owed = True, owed - 1
            end = _end(sentences, position, target, least=1 + is_next)
            cut = position + int(random.integers(1, max(end - position, 2)))
            first = np.concatenate(sentences[position:cut])
            if cut < end and is_next:
                yield Pair(first, np.concatenate(sentences[cut:end]), True)
                position = end
                continue
            owed += is_next
            if has_others:
                yield Pair(first, elsewhere(number, target - len(first)), False)
            position = cut


def sentence_order_pairs(
    stretches: Sequence[TokenizedStretch],
    places: int,
    random: np.random.Generator,
    short_probability: float = 0.1,
) -> Iterator[Pair]:
    """Yields neighbours, half of them the wrong way round; arguments as above.

    A sentence with no other beside it is left out.
    """
    for _, sentences in stretches:
        position = 0
        while position < len(sentences):
            target = _target(places, random, short_probability)
            end = _end(sentences, position, target, least=2)
            if end - position > 1:
                cut = position + int(random.integers(1, end - position))
                first = np.concatenate(sentences[position:cut])[:places]
                second = np.concatenate(sentences[cut:end])[:places]
                if random.random() < 0.5:
                    yield Pair(first, second, True)
                else:
                    yield Pair(second, first, False)
            position = end


def full_rows(
    stretches: Sequence[TokenizedStretch],
    places: int,
    random: np.random.Generator,
    short_probability: float = 0.1,
) -> Iterator[Pair]:
    """Yields each stretch cut into rows; arguments as above.

    The first row of each is of a random length, so that no two epochs cut alike.
    """
    for _, sentences in stretches:
        tokens = np.concatenate(sentences)
        end = int(random.integers(1, places + 1)) if len(tokens) > places else 0
        if end:
            yield Pair(tokens[:end], None, True)
        while end < len(tokens):
            start, end = end, end + _target(places, random, short_probability)
            yield Pair(tokens[start:end], None, True)


OBJECTIVES: dict[str, Callable[..., Iterator[Pair]]] = {
    "next_sentence": next_sentence_pairs,
    "sentence_order": sentence_order_pairs,
    "masked_lm": full_rows,
}


def texts_in_a_row(objective: str) -> int:
    """Returns 1 or 2; a `ValueError` names the objectives there are."""
    if objective not in OBJECTIVES:
        raise ValueError(
            f"Received: objective={objective!r}; allowed: {', '.join(OBJECTIVES)}."
        )
    return 1 if objective == "masked_lm" else 2


def _target(places: int, random: np.random.Generator, short_probability: float) -> int:
    if random.random() < short_probability:
        return int(random.integers(2, places + 1))
    return places


def _end(sentences: list, start: int, target: int, least: int) -> int:
    """Returns where as many sentences end as hold `target` tokens, if there are."""
    end, size = start, 0
    while end < len(sentences) and (size < target or end - start < least):
        size += len(sentences[end])
        end += 1
    return end

"""Tags of words: where the words stand in a text, and how they meet their pieces."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_keras.features import TAG_LOGITS
from bert_keras.tasks.answers import Reader, check_task, in_batches
from bert_keras.tasks.tagged import entities_of
from bert_keras.tasks.windows import Size, Window, Windows

OUTSIDE = "O"
_OVERLAP = 0.25  # of a window

# A word: what stands between spaces, without the punctuation around it, each mark of
# which is a word of its own. What is inside stays: "don't", "3.14", "U.S".
_WORD = re.compile(r"\w(?:\S*\w)?|[^\w\s]")


class Word(NamedTuple):
    """A word, its tag, and where it stands: characters of the text, the end excluded.

    A word that has no pieces (of control characters alone) has the tag "O", and a
    probability of 0.
    """

    text: str
    tag: str
    start: int
    end: int
    probability: float


class TextEntity(NamedTuple):
    """What adjacent words name together, and where it stands in the text."""

    text: str
    label: str
    start: int
    end: int


class Tagged(NamedTuple):
    """The words of a text and the entities among them."""

    words: list[Word]
    entities: list[TextEntity]


class Spaced(NamedTuple):
    """A text and where its words stand in it."""

    text: str
    places: list[tuple[int, int]]

    @classmethod
    def of(cls, text: str | Sequence[str]) -> "Spaced":
        """Finds the words of a text, or puts a space between words."""
        if isinstance(text, str):
            return cls(text, [match.span() for match in _WORD.finditer(text)])
        ends = np.cumsum([len(word) + 1 for word in text], dtype=int) - 1
        places = [(int(e) - len(w), int(e)) for w, e in zip(text, ends, strict=True)]
        return cls(" ".join(text), places)


def tag_windows(reader: Reader, texts: Sequence[str]) -> list[list[Window]]:
    """Returns the windows of each text that a tagger reads."""
    most = reader.preprocessor.sequence_length - 2  # [CLS] and [SEP]
    sizes = [Size(most, int(most * _OVERLAP))] * len(texts)
    return Windows.by(reader.preprocessor.tokenizer).of(texts, sizes)


def first_pieces(spaced: Spaced, window: Window) -> list[tuple[int, int]]:
    """Returns pairs of a word and of the token in the window that speaks for it.

    That is the word's first piece, in the window that gives it most context.
    """
    starts = window.offsets[:, 0]
    found = []
    for number, (start, end) in enumerate(spaced.places):
        token = int(np.searchsorted(starts, start))
        if token < len(starts) and starts[token] < end and window.is_best[token]:
            found.append((number, token))
    return found


def tag(reader: Reader, texts: Sequence[str | Sequence[str]]) -> list[Tagged]:
    """Returns the tags of the words of each text, and its entities.

    Texts of any length are read in overlapping windows.

    Args:
        texts: strings, or lists of words; of these, positions are those in the words
            with one space between two.
    """
    check_task(reader, "tag")
    spaced = [Spaced.of(text) for text in texts]
    windows = tag_windows(reader, [text for text, _ in spaced])
    flat = [window for found in windows for window in found]
    logits = iter(in_batches(reader, [w.text for w in flat], lambda o: o[TAG_LOGITS]))
    answers = []
    for text, found in zip(spaced, windows, strict=True):
        tags = [(OUTSIDE, 0.0)] * len(text.places)
        for window, scores in zip(found, logits, strict=False):
            for word, token in first_pieces(text, window):
                tags[word] = _most_probable(scores[1 + token], reader.task.labels)
        answers.append(_tagged(text, tags))
    return answers


def _most_probable(scores: np.ndarray, labels: Sequence[str]) -> tuple[str, float]:
    exponents = np.exp(scores.astype(float) - scores.max())
    best = int(scores.argmax())
    return labels[best], float(exponents[best] / exponents.sum())


def _tagged(spaced: Spaced, tags: list[tuple[str, float]]) -> Tagged:
    text = spaced.text
    words = [
        Word(text[start:end], name, start, end, probability)
        for (start, end), (name, probability) in zip(spaced.places, tags, strict=True)
    ]
    entities = []
    for entity in entities_of([word.tag for word in words]):
        start = words[entity.first_word].start
        end = words[entity.end_word - 1].end
        entities.append(TextEntity(text[start:end], entity.label, start, end))
    return Tagged(words, entities)

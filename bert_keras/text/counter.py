"""Text -> words and their counts, under the tokenizer's rules, in plain Python.

A text is cut at its spaces into *chunks*, and equal chunks are counted together; each
then goes through the rules once. This file imports neither TensorFlow nor anything that
does: a process that only counts has to start fast.
"""

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from bert_keras.text.lines import Span, read_blocks
from bert_keras.text.options import TokenizerOptions
from bert_keras.text.rules import (
    CASED,
    IGNORED,
    Normalization,
    normalization,
    translation,
)

MOST_CHUNKS = 1 << 17
"""So many distinct chunks wait for the rules at most, and as many as words so far."""

LONG_CHUNK = 30
"""In scripts without spaces a chunk is a sentence, and hardly one is like another."""


class Strings(NamedTuple):
    """Some strings of a corpus, joined by line ends, and how many they are."""

    text: str
    number: int


class WordCounter:
    """Counts words.

    Args:
        options: of the tokenizer.
        names: what is left out where it stands in the text as it is written.

    Attributes:
        words: word -> count; complete after `finish`.
    """

    def __init__(self, options: TokenizerOptions, names: tuple[str, ...]):
        rules = _rules(
            options.rules,
            options.lowercase,
            options.strip_accents,
            options.split_on_cjk,
        )
        self.words: Counter[str] = Counter()
        self._chunks: Counter[str] = Counter()
        self._form = options.normalization
        self._most_characters = options.max_characters_per_word
        self._translation, self._sigma = rules.translation, rules.final_sigma
        self._names = _names_pattern(names, rules.table) if names else None

    def work(self, part: Span | Strings) -> int:
        """Counts a part of a corpus, as `read`; returns how much it was."""
        return sum(self.read(part))

    def result(self) -> dict[str, int]:
        """Returns word -> count."""
        self.finish()
        return dict(self.words)

    def read(self, part: Span | Strings) -> Iterator[int]:
        """Counts a part of a corpus; yields bytes of a file, or strings, that are done.

        Raises:
            As `read_lines`.
        """
        if isinstance(part, Strings):
            self.add(part.text)
            yield part.number
        else:
            for text, size in read_blocks(part):
                self.add(text)
                yield size

    def add(self, text: str) -> None:
        """Counts the words of a text that ends where a word ends."""
        # Cut at plain spaces alone: what else ends a word, the table knows.
        chunks = text.replace("\n", " ").split(" ")
        if len(text) > LONG_CHUNK * len(chunks):
            self.add_counts({text: 1})
            return
        self._chunks.update(chunks)
        if len(self._chunks) > MOST_CHUNKS + len(self.words):
            self.finish()

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Counts the words of texts that stand in the corpus several times."""
        words, translation = self.words, self._translation
        for text, count in counts.items():
            for part in self._between_names(text):
                for word in part.translate(translation).split(" "):
                    if 0 < len(word) <= self._most_characters:
                        words[word] += count

    def finish(self) -> None:
        """Brings all that was added into `words`."""
        chunks, self._chunks = self._chunks, Counter()
        self.add_counts(chunks)

    def _between_names(self, text: str) -> Iterator[str]:
        """Yields what stands between names, composed, with final sigmas lowered."""
        for part in self._names.split(text) if self._names else (text,):
            if self._form:
                part = unicodedata.normalize(self._form, part)
            if self._sigma and "Σ" in part:
                part = self._sigma.sub(r"\1ς", part)
            yield part


class _Translation(dict):
    """For `str.translate`: a character that is not there costs no exception twice."""

    def __missing__(self, codepoint: int) -> int:
        self[codepoint] = codepoint
        return codepoint


class _Rules(NamedTuple):
    """A table of the tokenizer, as plain Python uses it."""

    table: Normalization
    translation: _Translation
    final_sigma: re.Pattern | None


@functools.lru_cache(maxsize=4)
def _rules(*switches) -> _Rules:
    table = normalization(*switches)
    sigma = _final_sigma_pattern(table) if table.sigmas.any() else None
    return _Rules(table, _Translation(translation(table)), sigma)


def _names_pattern(names: tuple[str, ...], table: Normalization) -> re.Pattern:
    """Finds names, the longest first; a letter of a name is not next to another one."""
    letter = _one_of(table.letters)
    found = []
    for name in sorted(set(names), key=lambda name: (-len(name), name)):
        before = f"(?<!{letter})" if table.letters[ord(name[0])] else ""
        behind = f"(?!{letter})" if table.letters[ord(name[-1])] else ""
        found.append(before + re.escape(name) + behind)
    return re.compile("|".join(found))


def _final_sigma_pattern(table: Normalization) -> re.Pattern:
    """Finds a capital sigma behind a cased letter and not before one (Unicode 3.13)."""
    cased = _one_of(table.sigmas == CASED)
    ignored = _one_of(table.sigmas == IGNORED)
    return re.compile(f"({cased}{ignored}*)Σ(?!{ignored}*{cased})")


def _one_of(is_member: np.ndarray) -> str:
    """Returns a regular expression for one of the codepoints that are true."""
    edges = np.flatnonzero(np.diff(is_member, prepend=False, append=False))
    ranges = (f"\\U{a:08x}-\\U{b - 1:08x}" for a, b in edges.reshape(-1, 2).tolist())
    return f"[{''.join(ranges)}]"

"""How well a vocabulary fits a text, best one that it was not learned from."""

import sys
from collections.abc import Mapping
from typing import NamedTuple

from bert_keras.text.options import DECIDE_WORDS
from bert_keras.text.vocabulary import Vocabulary, split_token
from bert_keras.text.word_counts import WordCounts, check_counts


class VocabularyReport(NamedTuple):
    """What becomes of the words of a text. Shares are of what stands in the text.

    Attributes:
        words: how many there are.
        distinct_words: how many different ones.
        characters_covered: the share of their characters that are pieces: at the start
            of a word as they are, inside it with "##".
        pieces_per_word: tokens for each word; [UNK] is one.
        unknown_words: the share of words that become [UNK].
        unknown_tokens: the share of [UNK] among all tokens.
    """

    words: int
    distinct_words: int
    characters_covered: float
    pieces_per_word: float
    unknown_words: float
    unknown_tokens: float


def vocabulary_report(
    vocabulary: Vocabulary, words: Mapping[str, int]
) -> VocabularyReport:
    """Cuts words into the pieces of a vocabulary and reports what comes of it.

    The rule is that of 2018: the longest piece first, and one [UNK] for a word that
    cannot be cut up. (`count_words` leaves out what is too long for the tokenizer.)

    Args:
        vocabulary: the pieces.
        words: word -> count, as `count_words` returns them under the same options.

    Raises:
        ValueError: no words, or words that were cut under other options.
    """
    _refuse_other_options(vocabulary, words)
    words = check_counts(words)
    if not words:
        raise ValueError("The text has no words to report on.")
    pieces = _Pieces(vocabulary)
    total = sum(words.values())
    characters = covered = tokens = unknown = 0
    for word, count in words.items():
        characters += count * len(word)
        covered += count * pieces.covered(word)
        number = pieces.number(word)
        tokens += count * (number or 1)
        unknown += 0 if number else count
    return VocabularyReport(
        words=total,
        distinct_words=len(words),
        characters_covered=covered / characters,
        pieces_per_word=tokens / total,
        unknown_words=unknown / total,
        unknown_tokens=unknown / tokens,
    )


class _Pieces:
    """The pieces of a vocabulary: those that begin words, and those that go on."""

    def __init__(self, vocabulary: Vocabulary):
        tokens = [split_token(token) for token in vocabulary if token]
        self._first = {text for continues, text in tokens if not continues}
        self._inner = {text for continues, text in tokens if continues}
        self._longest = max(len(text) for _, text in tokens)
        self._word_limit = sys.maxsize
        if vocabulary.options:
            self._word_limit = vocabulary.options.max_characters_per_word

    def covered(self, word: str) -> int:
        """Returns how many characters of a word are pieces."""
        return (word[0] in self._first) + sum(c in self._inner for c in word[1:])

    def number(self, word: str) -> int:
        """Returns how many pieces a word is cut into; 0 if it cannot be."""
        if len(word) > self._word_limit:
            return 0
        start, number, known = 0, 0, self._first
        while start < len(word):
            end = min(len(word), start + self._longest)
            while end > start and word[start:end] not in known:
                end -= 1
            if end == start:
                return 0
            start, number, known = end, number + 1, self._inner
        return number


def _refuse_other_options(vocabulary: Vocabulary, words: Mapping[str, int]) -> None:
    if not isinstance(words, WordCounts) or vocabulary.options is None:
        return
    for name in (*DECIDE_WORDS, "never_split"):
        value, known = getattr(words.options, name), getattr(vocabulary.options, name)
        if value != known:
            raise ValueError(
                "The words were cut under other options than the vocabulary's. "
                f"Received: {name}={value!r}; allowed: {name}={known!r}."
            )

"""Corpus -> vocabulary: the pieces are learned before the network sees any text.

Words start out as characters; the most frequent pair of neighbouring pieces is joined
into one, again and again, until the vocabulary has the size asked for. So frequent
words end up whole, and rare ones as several pieces (Sennrich et al. 2016, with
WordPiece's "##" for pieces inside a word).

The result depends on nothing but the words and their counts: not on the order of the
text, nor on the run. Ties go to the pair that is smaller as text.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import pairwise

from bert_keras.features import SpecialTokens
from bert_keras.text.options import tokenizer_options
from bert_keras.text.rules import normalization, translation
from bert_keras.text.tables import SUFFIX_PREFIX
from bert_keras.text.vocabulary import Vocabulary


def count_words(
    lines: Iterable[str],
    *,
    lowercase: bool | None = None,
    strip_accents: bool | None = None,
    rules: str | None = None,
    special_tokens: SpecialTokens = SpecialTokens(),
) -> Counter[str]:
    """Counts the words of a text, cut as the tokenizer cuts them.

    Special tokens found in the text are left out, and words too long for the tokenizer.

    Args:
        lines: any pieces of text; memory grows with the distinct words only.
        lowercase, strip_accents, rules: as `WordPieceTokenizer`.
        special_tokens: names that are not counted.
    """
    if isinstance(lines, str):
        raise ValueError(
            f"Text comes in pieces. Received: the string {lines[:40]!r}; allowed: a "
            "list or another iterable of strings."
        )
    chunks: Counter[str] = Counter()
    for line in lines:
        # Split at plain spaces alone: what else ends a word, the table knows.
        chunks.update(line.replace("\n", " ").split(" "))
    options = tokenizer_options(
        {"lowercase": lowercase, "strip_accents": strip_accents, "rules": rules}
    )
    table = translation(
        normalization(options.rules, options.lowercase, options.strip_accents)
    )
    words: Counter[str] = Counter()
    for chunk, count in chunks.items():
        for name in special_tokens:
            chunk = chunk.replace(name, " ")
        for word in chunk.translate(table).split(" "):
            if 0 < len(word) <= options.max_characters_per_word:
                words[word] += count
    return words


def learn_vocabulary(
    words: dict[str, int],
    size: int,
    *,
    special_tokens: SpecialTokens = SpecialTokens(),
    alphabet_size: int = 1000,
    progress: Callable[[int], None] = lambda pieces: None,
) -> Vocabulary:
    """Learns a vocabulary from word counts.

    Args:
        words: word -> count, as `count_words` returns them; counts of any size.
        size: most tokens of the vocabulary. It has fewer only if the words run out of
            pairs.
        special_tokens: the first tokens of the vocabulary.
        alphabet_size: most characters to keep, the most frequent first; a word with
            any other is left out, as the tokenizer would make it [UNK].
        progress: called with the number of tokens so far.

    Returns:
        The vocabulary: special tokens, characters that begin words, characters inside
        words, each sorted, then the joined pieces, most frequent first.

    Raises:
        ValueError: no words, or a size below special tokens and characters; the
            message names the least size.
    """
    words = _within_alphabet(words, alphabet_size)
    if not words:
        raise ValueError("The corpus has no words to learn a vocabulary from.")
    pieces = [_characters(word) for word in words]
    first = sorted({word[0] for word in pieces})
    inner = sorted({character for word in pieces for character in word[1:]})
    tokens = dict.fromkeys([*special_tokens, *first, *inner])
    if len(tokens) > size:
        raise ValueError(
            f"The vocabulary cannot be that small. Received: size={size}; allowed: at "
            f"least {len(tokens)}, for {len(special_tokens)} special tokens and "
            f"{len(tokens) - len(special_tokens)} characters."
        )
    merges = _Merges(pieces, list(words.values()))
    while len(tokens) < size:
        piece = merges.join_most_frequent()
        if piece is None:
            break
        tokens[piece] = None  # two pairs may make the same piece
        progress(len(tokens))
    return Vocabulary(tokens, special_tokens)


def _characters(word: str) -> list[str]:
    return [word[0], *(SUFFIX_PREFIX + character for character in word[1:])]


def _within_alphabet(words: dict[str, int], alphabet_size: int) -> dict[str, int]:
    """Keeps the words that are made of the most frequent characters, sorted."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    alphabet = set(ranked[:alphabet_size])
    return {word: words[word] for word in sorted(words) if alphabet.issuperset(word)}


class _Merges:
    """Counts of neighbouring pieces, kept up to date while pairs are joined."""

    def __init__(self, words: list[list[str]], counts: list[int]):
        self._words, self._word_counts = words, counts
        self._counts: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._places: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        for number, word in enumerate(words):
            for pair in pairwise(word):
                self._counts[pair] += counts[number]
                self._places[pair].add(number)
        # Entries go stale when a count changes; a changed pair gets a new entry.
        self._heap = [(-count, pair) for pair, count in self._counts.items()]
        heapq.heapify(self._heap)

    def join_most_frequent(self) -> str | None:
        """Joins the pair everywhere and returns the new piece; None if none is left."""
        while self._heap:
            negative, pair = heapq.heappop(self._heap)
            if -negative == self._counts.get(pair, 0) > 0:
                return self._join(pair)
        return None

    def _join(self, pair: tuple[str, str]) -> str:
        piece = pair[0] + pair[1].removeprefix(SUFFIX_PREFIX)
        changed = set()
        for number in self._places.pop(pair):
            count = self._word_counts[number]
            old = self._words[number]
            new = _joined(old, pair, piece)
            for neighbours in pairwise(old):
                self._counts[neighbours] -= count
                changed.add(neighbours)
            for neighbours in pairwise(new):
                self._counts[neighbours] += count
                self._places[neighbours].add(number)
                changed.add(neighbours)
            self._words[number] = new
        for neighbours in changed:
            count = self._counts[neighbours]
            if count > 0:
                heapq.heappush(self._heap, (-count, neighbours))
            else:
                del self._counts[neighbours]
                self._places.pop(neighbours, None)
        return piece


def _joined(word: list[str], pair: tuple[str, str], piece: str) -> list[str]:
    """Returns the word with the pair joined, from left to right."""
    joined, position = [], 0
    while position < len(word):
        if tuple(word[position : position + 2]) == pair:
            joined.append(piece)
            position += 2
        else:
            joined.append(word[position])
            position += 1
    return joined

"""Word counts -> vocabulary: its pieces are learned before the network sees any text.

Words start out as characters; the best pair of neighbouring pieces is joined into one,
again and again, until the vocabulary has the size asked for. So frequent words end up
whole, and rare ones as several pieces (Sennrich et al. 2016, with WordPiece's "##" for
pieces inside a word).

The result depends on nothing but the words and their counts: not on the order of the
text, nor on the run. Ties go to the pair that is smaller as text.
"""

import sys
from collections import Counter
from collections.abc import Callable, Mapping

from bert_keras.features import SpecialTokens
from bert_keras.text.merges import LikeliestPairs, MostFrequentPairs
from bert_keras.text.options import check_integer
from bert_keras.text.vocabulary import (
    SUFFIX_PREFIX,
    Vocabulary,
    refuse_other_names,
)
from bert_keras.text.word_counts import WordCounts, check_counts

OBJECTIVES = {"count": MostFrequentPairs, "likelihood": LikeliestPairs}
"""What makes a pair the best one."""


def learn_vocabulary(
    words: Mapping[str, int],
    size: int,
    *,
    objective: str = "count",
    min_count: int = 1,
    alphabet_size: int = 1000,
    special_tokens: SpecialTokens | None = None,
    progress: Callable[[int], None] = lambda pieces: None,
) -> Vocabulary:
    """Learns a vocabulary from word counts.

    Args:
        words: word -> count, as `count_words` returns them; counts of any size.
        size: most tokens of the vocabulary. It has fewer only if the words run out of
            pairs.
        objective: join the pair of the highest `"count"`, as today's trainers do, or of
            the highest `"likelihood"`, count(xy) / (count(x) count(y)), as WordPiece
            did. The latter takes to rare pieces that always stand together: give it a
            `min_count`.
        min_count: a pair that is less frequent is not joined.
        alphabet_size: most characters to keep, the most frequent first; a word with
            any other is left out, as the tokenizer would make it [UNK].
        special_tokens: the first tokens of the vocabulary; those of `WordCounts` are
            known.
        progress: called with the number of tokens so far.

    Returns:
        The vocabulary: special tokens, words that are never split, characters that
        begin words, characters inside words, both sorted, then the joined pieces in the
        order in which they were. With `WordCounts`, it has their options.

    Raises:
        ValueError: no words, a size below special tokens, words that are never split
            and characters (the message names the least size), an argument that is not
            allowed, other special tokens than those of `WordCounts`.
    """
    for name, value in (
        ("size", size),
        ("min_count", min_count),
        ("alphabet_size", alphabet_size),
    ):
        check_integer(name, value, least=1)
    if objective not in OBJECTIVES:
        raise ValueError(
            f"Received: objective={objective!r}; allowed: "
            f"{', '.join(map(repr, OBJECTIVES))}."
        )
    special_tokens, options = _names_and_options(words, special_tokens)
    _refuse_what_is_no_word(words)
    words = _within_alphabet(check_counts(words), alphabet_size)
    if not words:
        raise ValueError("The corpus has no words to learn a vocabulary from.")
    names = [*special_tokens, *(options.never_split if options else ())]
    pieces = [_characters(word) for word in words]
    tokens = _first_tokens(names, pieces)
    if len(tokens) > size:
        raise ValueError(
            f"The vocabulary cannot be that small. Received: size={size}; allowed: at "
            f"least {len(tokens)}, for {len(set(names))} special tokens and words that "
            f"are never split, and {len(tokens) - len(set(names))} characters."
        )
    pairs = OBJECTIVES[objective](pieces, list(words.values()), min_count)
    while len(tokens) < size and (piece := pairs.join_best()) is not None:
        if piece not in tokens:  # two pairs may make the same piece
            tokens[piece] = None
            progress(len(tokens))
    return Vocabulary(tokens, special_tokens, options=options)


def _names_and_options(words: Mapping[str, int], special_tokens: SpecialTokens | None):
    if special_tokens is not None:
        special_tokens = SpecialTokens(*special_tokens)
    if not isinstance(words, WordCounts):
        return special_tokens or SpecialTokens(), None
    if special_tokens is not None:
        refuse_other_names(special_tokens, words.special_tokens)
    return words.special_tokens, words.options


def _refuse_what_is_no_word(words: Mapping[str, int]) -> None:
    if isinstance(words, WordCounts):
        return
    for word in words:
        if isinstance(word, str) and len(word.split()) > 1:
            raise ValueError(
                f"A table of word counts is malformed. Received: {word!r}; allowed: "
                "words, without spaces. (count_words cuts texts up.)"
            )


def _characters(word: str) -> list[str]:
    # Interned: one string for each character, and not for each time that it stands.
    inner = (sys.intern(SUFFIX_PREFIX + character) for character in word[1:])
    return [sys.intern(word[0]), *inner]


def _first_tokens(names: list[str], pieces: list[list[str]]) -> dict[str, None]:
    """Returns what the vocabulary holds before any pair is joined."""
    first = sorted({word[0] for word in pieces})
    inner = sorted({character for word in pieces for character in word[1:]})
    return dict.fromkeys([*names, *first, *inner])


def _within_alphabet(words: Mapping[str, int], alphabet_size: int) -> dict[str, int]:
    """Keeps the words that are made of the most frequent characters, sorted."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    alphabet = set(ranked[:alphabet_size])
    return {word: words[word] for word in sorted(words) if alphabet.issuperset(word)}

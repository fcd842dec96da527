"""Corpus -> how often each word stands in it: what a vocabulary is learned from.

Words are cut as the tokenizer cuts them, under the same options; what it recognises
inside text as it is written (words that are never split, special tokens) is not
counted. Memory grows with the distinct words, not with the text.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path

from bert_keras.features import SpecialTokens
from bert_keras.files import replacing
from bert_keras.text.counter import Strings, WordCounter
from bert_keras.text.lines import Span, read_lines, spans
from bert_keras.text.options import (
    TokenizerOptions,
    check_integer,
    check_names,
    tokenizer_options,
)
from bert_keras.text.processes import in_processes

PART = 1 << 22
"""Bytes of a file, or about as many characters, that one process counts at a time."""


class WordCounts(Counter):
    """How often each word stands in a corpus; what is not there has 0.

    Args:
        counts: word -> count.
        options: the tokenizer's options that the words were cut with.
        special_tokens: the names that were not counted.
    """

    def __init__(
        self,
        counts: Mapping[str, int] | None = None,
        options: TokenizerOptions | None = None,
        special_tokens: SpecialTokens | None = None,
    ):
        super().__init__(counts)
        if isinstance(counts, WordCounts):
            options = options or counts.options
            special_tokens = special_tokens or counts.special_tokens
        self.options = options or tokenizer_options()
        self.special_tokens = special_tokens or SpecialTokens()

    def __add__(self, other):
        return WordCounts(super().__add__(other), self.options, self.special_tokens)

    def __reduce__(self):
        return type(self), (dict(self), self.options, self.special_tokens)


def count_words(
    corpus: Mapping[str, int] | Iterable[str | os.PathLike] | os.PathLike,
    *,
    lowercase: bool | None = None,
    strip_accents: bool | None = None,
    rules: str | None = None,
    split_on_cjk: bool | None = None,
    normalization: str | None = None,
    never_split: Sequence[str] | None = None,
    special_tokens: SpecialTokens = SpecialTokens(),
    processes: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> WordCounts:
    """Counts the words of a corpus.

    Words too long for the tokenizer are left out, as it would make them [UNK].

    Args:
        corpus: strings, each a text of its own, or paths of files: UTF-8, plain or
            gzipped (".gz"). A `str` is a text and a `Path` is a file. Or a table word
            -> count, such as `read_word_counts` returns; its words are cut as text is.
        lowercase, strip_accents, rules, split_on_cjk, normalization, never_split: as
            `WordPieceTokenizer`.
        special_tokens: names that are not counted where they stand in the text; found
            as the tokenizer finds words that are never split.
        processes: how many count at once. The counts are the same for any number.
        progress: called with how much is done so far: bytes of files, as they are
            stored, or strings.

    Raises:
        ValueError: a corpus of another type, an option that is not allowed, or as
            `read_lines`, also from another process.
        FileNotFoundError: there is no such file.
    """
    options = tokenizer_options(
        {
            "lowercase": lowercase,
            "strip_accents": strip_accents,
            "rules": rules,
            "split_on_cjk": split_on_cjk,
            "normalization": normalization,
            "never_split": never_split,
        }
    )
    special_tokens = SpecialTokens(*special_tokens)
    check_integer("processes", processes, 1)
    names = _names(special_tokens, options)
    if isinstance(corpus, Mapping):
        counter = WordCounter(options, names)
        counter.add_counts(check_counts(corpus))
        return WordCounts(counter.words, options, special_tokens)
    total = 0

    def done(size: int) -> None:
        nonlocal total
        total += size
        progress(total)

    if processes > 1:
        words = WordCounts({}, options, special_tokens)
        parts = _parts(corpus)
        for found in in_processes(
            WordCounter, (options, names), parts, processes, done
        ):
            words.update(found)
        return words
    counter = WordCounter(options, names)
    for part in _parts(corpus):
        for size in counter.read(part):
            done(size)
    counter.finish()
    return WordCounts(counter.words, options, special_tokens)


def write_word_counts(words: Mapping[str, int], path: str | os.PathLike) -> None:
    """Writes a word-count table: UTF-8 lines word, tab, count.

    The most frequent word is first, and of equally frequent ones the smaller as text.

    Raises:
        ValueError: a word that is empty or has a tab or line end, and so would be lost.
    """
    for word in words:
        if not word or word.endswith("\r") or set("\n\t").intersection(word):
            raise ValueError(
                f"A word cannot stand in a table. Received: {word!r}; allowed: words "
                "without tabs and line ends, and not empty."
            )
    ranked = sorted(words, key=lambda word: (-words[word], word))
    text = "".join(f"{word}\t{words[word]}\n" for word in ranked)
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


def read_word_counts(path: str | os.PathLike) -> Counter[str]:
    """Reads a word-count table: lines word, tab, count, in any order.

    A word that stands on several lines has the sum. `count_words` brings the words
    under the options of a tokenizer.

    Raises:
        ValueError: another line, naming it, or as `read_lines`.
        FileNotFoundError: there is no such file.
    """
    words: Counter[str] = Counter()
    for number, line in enumerate(read_lines(path), 1):
        if number == 1:
            line = line.removeprefix("\ufeff")  # a byte order mark
        word, tab, count = line.rpartition("\t")
        if not (word and tab and count.isascii() and count.isdigit()):
            raise ValueError(
                f"{os.fspath(path)} is no table of word counts. Received: {line!r} on "
                f"line {number}; allowed: a word, a tab and its count."
            )
        words[word] += int(count)
    return words


def _names(special_tokens: SpecialTokens, options: TokenizerOptions) -> tuple[str, ...]:
    names = (*special_tokens, *options.never_split)
    check_names(names)
    return names


def check_counts(counts: Mapping[str, int]) -> Mapping[str, int]:
    """Returns the counts above 0; a `ValueError` names one that is no count."""
    for word, count in counts.items():
        if not isinstance(word, str) or not isinstance(count, Integral) or count < 0:
            raise ValueError(
                f"A table of word counts is malformed. Received: {word!r}: {count!r}; "
                "allowed: strings, each with an integer of at least 0."
            )
    return {word: count for word, count in counts.items() if word and count}


def _parts(
    corpus: Iterable[str | os.PathLike] | os.PathLike,
) -> Iterator[Span | Strings]:
    """Cuts a corpus into parts that can be counted one by one."""
    if isinstance(corpus, str | bytes):
        raise ValueError(
            f"A corpus comes in pieces. Received: the string {corpus[:40]!r}; allowed: "
            "a list or another iterable of strings, or of paths of files."
        )
    strings: list[str] = []
    characters = 0
    for item in [corpus] if isinstance(corpus, os.PathLike) else corpus:
        if isinstance(item, os.PathLike):
            yield from spans(Path(item), PART)
        elif isinstance(item, str):
            strings.append(item)
            characters += 1 + len(item)
            if characters >= PART:
                yield Strings("\n".join(strings), len(strings))
                strings, characters = [], 0
        else:
            raise ValueError(
                f"A corpus is made of texts or files. Received: {item!r}; allowed: "
                "strings, and paths such as pathlib.Path."
            )
    if strings:
        yield Strings("\n".join(strings), len(strings))

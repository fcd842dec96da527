"""Corpus files -> documents: lists of sentences.

A corpus is UTF-8 text, plain or gzipped. A blank line ends a document; the lines in
between are joined and cut into sentences. A sentence ends at ".", "!" or "?" (and any
closing quote or bracket) before a space and a capital, a digit or an opening mark.
"""

import itertools
import os
import re
from collections.abc import Iterable, Iterator

from bert_keras.text.lines import read_lines

Document = list[str]

_SENTENCE_END = re.compile(
    r"""([.!?؟।]["'”’)\]]*)\s+(?=["'“‘(\[]*(.))|([。！？][”’」』）]*)\s*"""
)


def documents_of(lines: Iterable[str]) -> Iterator[Document]:
    """Yields the documents of a text; those without a sentence are left out."""
    paragraph: list[str] = []
    for line in itertools.chain(lines, [""]):
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            sentences = split_sentences(" ".join(paragraph))
            paragraph = []
            if sentences:
                yield sentences


def read_documents(paths: Iterable[str | os.PathLike]) -> Iterator[Document]:
    """Yields the documents of several files, one file behind the other."""
    for path in paths:
        yield from documents_of(read_lines(path))


def split_sentences(text: str) -> Document:
    """Cuts a text into sentences, and makes every space in them a plain one.

    >>> split_sentences('He said "no." She left.')
    ['He said "no."', 'She left.']
    """
    text = " ".join(text.split())
    sentences, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        following = end.group(2)
        if following is None or not following.islower():
            sentences.append(text[start : end.end()].strip())
            start = end.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]

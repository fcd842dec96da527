"""Corpus files -> documents: lists of sentences, a little of the text at a time.

A corpus is UTF-8 text, plain or gzipped, in one of three formats:

| format      | a document                                    | a sentence           |
|-------------|-----------------------------------------------|----------------------|
| `prose`     | ends at a blank line (or at several in a row) | as `split_sentences` |
| `sentences` | ends at a blank line (or at several in a row) | a line, as in 2018   |
| `jsonl`     | a line: a JSON object with the text in it     | as `split_sentences` |

No document goes on in the next file. A long one comes in *stretches*, so that memory
does not grow with it.
"""

import errno
import glob
import itertools
import json
import mmap
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bert_keras.pretraining.sentences import cut_long, split_sentences
from bert_keras.text.lines import Span, read_pieces, spans
from bert_keras.text.options import check_integer

FORMATS = ("prose", "sentences", "jsonl")
Document = list[str]
STRETCH = 1 << 16  # characters, about


class Stretch(NamedTuple):
    """Sentences of one document that follow one another.

    Attributes:
        sentences: at least one.
        begins: the document begins here; else it goes on from the stretch before.
    """

    sentences: Document
    begins: bool


class CorpusFormat(NamedTuple):
    """How documents stand in files.

    Attributes:
        name: one of `FORMATS`; by default `jsonl` for files that are called so
            (".jsonl", ".jsonl.gz"), and else `prose`.
        blank_lines: so many in a row end a document. Books have one between paragraphs
            and several between chapters.
        text_field: where the text of a JSON object stands.
    """

    name: str | None = None
    blank_lines: int = 1
    text_field: str = "text"

    def of(self, path: Path) -> str:
        """Returns the format of a file, by its name if no other is given."""
        is_jsonl = path.name.endswith((".jsonl", ".jsonl.gz"))
        return self.name or ("jsonl" if is_jsonl else "prose")

    def check(self) -> "CorpusFormat":
        """Returns itself; a `ValueError` names what is not allowed."""
        if self.name not in (None, *FORMATS):
            raise ValueError(
                f"Received: format {self.name!r}; allowed: {', '.join(FORMATS)}."
            )
        check_integer("blank_lines", self.blank_lines, 1)
        return self


def corpus_files(paths: Iterable[str | os.PathLike]) -> list[Path]:
    """Returns the files that paths, folders and patterns such as "news/*.gz" stand for.

    Each once, in the order given; of a folder, all that are not hidden, by name.

    Raises:
        FileNotFoundError: there is no such file, or no file in a folder or pattern.
    """
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        files = [path]
        if path.is_dir():
            inside = (file.relative_to(path) for file in path.rglob("*"))
            shown = (f for f in inside if not any(p.startswith(".") for p in f.parts))
            files = sorted(path / file for file in shown if (path / file).is_file())
        elif not path.exists() and glob.has_magic(str(path)):
            matching = map(Path, glob.glob(str(path), recursive=True))
            files = sorted(file for file in matching if file.is_file())
        elif not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        if not files:
            raise FileNotFoundError(errno.ENOENT, "There are no files", str(path))
        found.update(dict.fromkeys(files))
    return list(found)


def cut_at_documents(path: Path, size: int, corpus: CorpusFormat) -> list[Span]:
    """Cuts a file into spans of about `size` bytes that end where a document ends.

    Raises:
        As `read_lines`, but for what only reading shows.
    """
    whole = spans(path, 1 << 62)
    if not whole or path.suffix == ".gz":
        return whole
    end = whole[0].end
    between = rb"\n"
    if corpus.of(path) != "jsonl":
        between += rb"(?:[ \t\r]*\n){%d}" % corpus.blank_lines
    edges = [0]
    with (
        open(path, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text,
    ):
        while edges[-1] + size < end:
            found = re.compile(between).search(text, edges[-1] + size)
            if found is None:
                break
            edges.append(found.end())
    edges += [end] if edges[-1] < end else []
    return [Span(path, *edge) for edge in itertools.pairwise(edges)]


def read_stretches(span: Span, corpus: CorpusFormat) -> Iterator[Stretch]:
    """Yields the documents of a span, long ones in several stretches.

    Raises:
        ValueError: as `read_lines`; a line that is no JSON object with a text, naming
            file and line.
    """
    kind = corpus.of(span.path)
    if kind == "jsonl":
        yield from _json_documents(span, corpus.text_field)
        return
    split = _paragraphs if kind == "prose" else _lines
    waiting, size, blanks, begins = [], 0, 0, True
    for text, ends_line in read_pieces(span):
        waiting.append(text + "\n" if ends_line else text)
        size += len(text)
        is_blank = ends_line and not text.strip()
        blanks = blanks + 1 if is_blank else 0
        ends = blanks == corpus.blank_lines
        if not ends and size < STRETCH:
            continue
        sentences = split("".join(waiting))
        # The last sentence may go on; a stretch ends before it.
        rest = sentences.pop() if sentences and not ends else ""
        if sentences:
            yield Stretch(sentences, begins)
        begins = ends or (begins and not sentences)
        between = "\n" if ends_line else " " * text[-1:].isspace()
        waiting = [rest + between] if rest else []
        size = 0
    sentences = split("".join(waiting))
    if sentences:
        yield Stretch(sentences, begins)


def read_documents(
    paths: Iterable[str | os.PathLike], corpus: CorpusFormat = CorpusFormat()
) -> Iterator[Document]:
    """Yields the whole documents of several files, one file behind the other."""
    for path in corpus_files(paths):
        document: Document = []
        for span in spans(path, 1 << 62):
            for stretch in read_stretches(span, corpus):
                if stretch.begins and document:
                    yield document
                    document = []
                document += stretch.sentences
        if document:
            yield document


def _paragraphs(text: str) -> Document:
    paragraphs = re.split(r"\n\s*\n", text)
    return [s for paragraph in paragraphs for s in split_sentences(paragraph)]


def _lines(text: str) -> Document:
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return [part for line in lines if line for part in cut_long(line)]


def _json_documents(span: Span, field: str) -> Iterator[Stretch]:
    parts: list[str] = []
    number = 0
    for piece, ends_line in itertools.chain(read_pieces(span), [("", True)]):
        parts.append(piece)
        if not ends_line:
            continue
        number += 1
        line, parts = "".join(parts), []
        if line.strip():
            try:
                text = json.loads(line)[field]
                if not isinstance(text, str):
                    raise TypeError
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"{span.path} is not JSON lines with a text. Received: "
                    f"{line.strip()[:60]!r} on line {number + _lines_before(span)}; "
                    f'allowed: an object such as {{"{field}": "..."}}.'
                ) from error
            if sentences := split_sentences(text):
                yield Stretch(sentences, begins=True)


def _lines_before(span: Span) -> int:
    with open(span.path, "rb") as file:
        return file.read(span.start).count(b"\n")

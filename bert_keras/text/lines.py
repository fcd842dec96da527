"""Text files -> text, a little at a time: UTF-8, plain or gzipped (".gz").

A line ends at "\\n" and nowhere else, as in the vocabulary file.
"""

import contextlib
import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

BLOCK = 1 << 20
_PEEK = 1 << 12


class Span(NamedTuple):
    """The words of a file that begin at the bytes `start` to `end`.

    Attributes:
        path: of the file.
        start, end: in the file as it is stored. A gzipped file has one span: all of it.
    """

    path: Path
    start: int
    end: int


def read_lines(path: str | os.PathLike) -> Iterator[str]:
    """Yields the lines of one file, split on "\\n" only.

    Raises:
        ValueError: not UTF-8 (naming the file and line), not really gzipped, a folder.
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    number = 0
    try:
        with _opened(path) as (file, _):
            for line in file:
                number += 1
                yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8. Received: byte {error.object[error.start]:#04x} on "
            f"line {number}; a corpus must be UTF-8."
        ) from error


def spans(path: str | os.PathLike, size: int) -> list[Span]:
    """Cuts a file into spans of about `size` bytes, together all of its words.

    Raises:
        As `read_lines`, but for what only reading shows.
    """
    path = Path(path)
    with _opened(path):
        end = path.stat().st_size
    step = end if path.suffix == ".gz" else size
    starts = range(0, end, max(step, 1))
    return [Span(path, start, min(start + step, end)) for start in starts]


def read_blocks(span: Span) -> Iterator[tuple[str, int]]:
    """Yields the text of a span in blocks that end at a space or the end of a line.

    Yields:
        the text, and how many bytes of the stored file were read for it.

    Raises:
        As `read_lines`, and naming the same line.
    """
    try:
        with _opened(span.path) as (file, stored):
            left = None
            if file is stored:
                end = _word_start(file, span.end)
                left = end - file.seek(_word_start(file, span.start))
            rest, place = b"", stored.tell()
            while data := file.read(BLOCK if left is None else min(left, BLOCK)):
                left = left and left - len(data)
                data = rest + data
                cut = 1 + max(data.rfind(b"\n"), data.rfind(b" "))
                rest, before, place = data[cut:], place, stored.tell()
                yield data[:cut].decode("utf-8"), place - before
            yield rest.decode("utf-8"), 0
    except UnicodeDecodeError:
        for _ in read_lines(span.path):  # which knows the number of the line
            pass
        raise


def read_pieces(span: Span) -> Iterator[tuple[str, bool]]:
    """Yields the lines of a span; one of more than `BLOCK` bytes in several pieces.

    Yields:
        the text without its line end, and whether the line ends there. Pieces of a line
        end at a space, if there is one.

    Raises:
        As `read_lines`, and naming the same line.
    """
    try:
        with _opened(span.path) as (file, stored):
            left = 1 << 62
            if file is stored:
                file.seek(span.start)
                left = span.end - span.start
            rest, place = b"", span.start
            while data := file.readline(min(left, BLOCK)):
                left -= len(data)
                data = rest + data
                ends_line = data.endswith(b"\n")
                cut = len(data) if ends_line else _last_cut(data)
                rest, data = data[cut:], data[:cut].removesuffix(b"\n")
                text = data.removesuffix(b"\r").decode("utf-8")
                yield text if place else text.removeprefix("\ufeff"), ends_line
                place += cut
            if rest:
                yield rest.decode("utf-8"), False
    except UnicodeDecodeError:
        for _ in read_lines(span.path):  # which knows the number of the line
            pass
        raise


def _last_cut(data: bytes) -> int:
    """Returns where a long line may be cut: behind a space, else behind a character."""
    cut = 1 + data.rfind(b" ")
    if not cut:
        cut = len(data) - 1
        while cut > 0 and data[cut] & 0xC0 == 0x80:
            cut -= 1
    return cut


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Opens a file; yields its text and, the same for a plain file, what is stored."""
    if path.exists() and not path.is_file():
        kind = "folder" if path.is_dir() else "device or pipe"
        raise ValueError(f"A corpus must be made of files. Received: the {kind} {path}")
    with open(path, "rb") as stored:
        if path.suffix != ".gz":
            yield stored, stored
            return
        try:
            with gzip.open(stored) as file:
                yield file, stored
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is not a whole gzip file: {error}") from error


def _word_start(file: BinaryIO, place: int) -> int:
    """Returns the first place from `place` on that is behind a space or a line end."""
    if not place:
        return 0
    place = file.seek(place - 1)
    while data := file.read(_PEEK):
        found = [data.find(separator) for separator in (b"\n", b" ")]
        found = [number for number in found if number >= 0]
        if found:
            return place + min(found) + 1
        place += len(data)
    return place

"""Files of examples to classify or regress: a text or two, and its label.

| format     | an example                                   | its columns       |
|------------|----------------------------------------------|-------------------|
| `tsv`      | a line, cut at tabs; a quote is a letter     | by name or number |
| `csv`      | a row of RFC 4180: quoted fields stay whole  | by name or number |
| `jsonl`    | a line: a JSON object                        | by name           |
| `labelled` | a line: the label, a space, the text         | are these         |

`labelled` is how SST-2 and TREC are handed on. A file may be gzipped (".gz"). Lines end
at "\\n" or "\\r\\n"; a byte order mark is no part of the text.
"""

import contextlib
import csv
import gzip
import json
import math
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bert_keras.text.options import check_integer

FORMATS = ("tsv", "csv", "jsonl", "labelled")
_SHOWN = 60  # characters of a wrong line


class Example(NamedTuple):
    """A text or a pair of texts, and what is to be learned of it.

    Attributes:
        text: may be empty.
        second: of a pair.
        label: the name of a class, or a number; None if it is not known.
    """

    text: str
    second: str | None = None
    label: str | float | None = None


class _Columns(NamedTuple):
    text: str | int
    second: str | int | None
    label: str | int | None


class _Found(NamedTuple):
    line: int
    text: str
    second: str | None
    label: str | None


def read_records(
    path: str | os.PathLike,
    *,
    text: str | int = "text",
    second: str | int | None = None,
    label: str | int | None = "label",
    header: bool | None = None,
    format: str | None = None,
    number: bool = False,
    encoding: str = "utf-8",
) -> list[Example]:
    """Reads the examples of a file.

    Args:
        path: of the file.
        text, second, label: columns: names in a header or of JSON fields, or numbers
            from 0. In a table without a header the default `text` is column 0 and the
            default `label` is the last one. `label=None` reads no labels.
        header: the first row of a table holds names. By default it does if, and only
            if, a wanted name stands in it: then all must. Columns that are all given
            by number therefore mean that there is none.
        format: one of `FORMATS`; by default what the file is called.
        number: labels are finite numbers; else they are the names of classes, without
            the spaces around them.
        encoding: of the file, as Python names it.

    Returns:
        the examples in the order of the file. Blank lines are none where labels are
        read; in a table without labels they are empty texts.

    Raises:
        ValueError: an argument that is not allowed; naming file and line, a row without
            a column, a label that is empty or no number, or what is not of the format;
            no example in the file; as `decoded_lines`.
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    format = _format_of(path, format)
    columns = _Columns(text, second, label)
    _check_columns(columns, format)
    lines = decoded_lines(path, encoding)
    if format == "jsonl":
        found = _from_json(path, lines, columns)
    elif format == "labelled":
        found = _from_labelled(path, lines, columns)
    else:
        rows = enumerate((line.split("\t") for line in lines), 1)
        rows = _csv_rows(path, lines) if format == "csv" else rows
        found = _from_table(path, rows, columns, header)
    examples = [
        Example(row.text, row.second, _label_of(path, row, number)) for row in found
    ]
    if not examples:
        raise ValueError(f"{path} is empty. Received: no examples; allowed: some.")
    return examples


def decoded_lines(path: str | os.PathLike, encoding: str = "utf-8") -> Iterator[str]:
    """Yields the lines of a file, without their ends and a byte order mark.

    Raises:
        ValueError: bytes that are not of the encoding (naming file, line and byte), not
            really gzipped, an encoding that is not known or not cut at line feeds.
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    _check_encoding(encoding)
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            for number, line in enumerate(file, 1):
                line = line.removesuffix(b"\n").removesuffix(b"\r").decode(encoding)
                yield line.removeprefix("\ufeff") if number == 1 else line
    except UnicodeDecodeError as error:
        received = f"byte {error.object[error.start]:#04x}"
        what = f"is not {encoding.upper()}"
        allowed = "text in this encoding; others, such as latin-1, by encoding="
        raise misread(path, number, what, received, allowed) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file: {error}") from error


def misread(
    path: Path, line: int, what: str, received: str, allowed: str
) -> ValueError:
    """Returns an error that says what is wrong with a line of a file."""
    return ValueError(
        f"{path} {what}. Received: {received} on line {line}; allowed: {allowed}."
    )


def whole_characters(text: str) -> str:
    """Replaces halves of surrogate pairs, which JSON can hold and UTF-8 cannot.

    No other character moves.
    """
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def _format_of(path: Path, format: str | None) -> str:
    suffix = Path(path.name.removesuffix(".gz")).suffix
    found = format or suffix.removeprefix(".")
    if found not in FORMATS:
        raise ValueError(
            f"The format of {path} is not known. Received: suffix {suffix!r} and "
            f"format={format!r}; allowed: {', '.join(FORMATS)}."
        )
    return found


def _check_encoding(encoding: str) -> None:
    try:
        is_cut_at_line_feeds = "\n".encode(encoding) == b"\n"
    except LookupError:
        is_cut_at_line_feeds = False
    if not is_cut_at_line_feeds:
        raise ValueError(
            f"The encoding is not allowed. Received: encoding={encoding!r}; allowed: "
            "one of Python's that ends a line with the byte 0x0a, such as utf-8."
        )


def _check_columns(columns: _Columns, format: str) -> None:
    for name, column in columns._asdict().items():
        if isinstance(column, str) or (column is None and name != "text"):
            continue
        if format in ("tsv", "csv"):
            check_integer(name, column, 0)
        elif format == "jsonl":
            raise ValueError(
                f"JSON fields have names. Received: {name}={column!r}; allowed: a name."
            )
    if format == "labelled" and columns.second is not None:
        raise ValueError(
            "A labelled file has one text a line. Received: "
            f"second={columns.second!r}; allowed: None, or another format."
        )


def _csv_rows(path: Path, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader((line + "\n" for line in lines), strict=True)
    number = 1
    try:
        for row in reader:
            yield number, row or [""]
            number = reader.line_num + 1  # a row may go on over several lines
    except csv.Error as error:
        allowed = 'RFC 4180, fields with commas or quotes like "one, ""two"""'
        received = f"{error}, in the row that begins"
        raise misread(path, number, "is not CSV", received, allowed) from error


def _from_table(
    path: Path,
    rows: Iterable[tuple[int, list[str]]],
    wanted: _Columns,
    header: bool | None,
) -> Iterator[_Found]:
    columns = None
    for number, row in rows:
        if row == [""] and wanted.label is not None:
            continue
        if columns is None:
            columns, is_header = _find_columns(path, number, row, wanted, header)
            width = 1 + max(column for column in columns if column is not None)
            # Where the label is the last column, a text with a tab would move it.
            is_exact = not is_header and wanted.label == "label"
            if is_header:
                continue
        if len(row) < width or (is_exact and len(row) > width):
            allowed = f"{'' if is_exact else 'at least '}{width}"
            what = "has a wrong number of columns"
            raise misread(path, number, what, f"{len(row)}", allowed)
        values = (None if column is None else row[column] for column in columns)
        yield _Found(number, *values)


def _find_columns(
    path: Path, number: int, row: list[str], wanted: _Columns, header: bool | None
) -> tuple[_Columns, bool]:
    """Returns the columns as numbers, and whether the first row holds their names."""
    names = [column for column in wanted if isinstance(column, str)]
    if header is None:
        header = any(name in row for name in names)
    if header:
        known = {name: row.index(name) for name in names if row.count(name) == 1}
    else:
        texts = [0 if column == "text" else column for column in wanted[:2]]
        first_free = 1 + max((c for c in texts if isinstance(c, int)), default=0)
        known = {"text": 0, "label": max(len(row) - 1, first_free)}
    for name in names:
        if name not in known:
            received = ", ".join(map(repr, row))[:_SHOWN]
            allowed = "a name that stands there once, a number, or header=False"
            raise misread(path, number, f"has no column {name!r}", received, allowed)
    return _Columns(*(known.get(column, column) for column in wanted)), header


def _from_json(path: Path, lines: Iterable[str], wanted: _Columns) -> Iterator[_Found]:
    names = [name for name in wanted if name is not None]
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            row = {name: row[name] for name in names}
            if isinstance(row.get(wanted.label), int | float):
                row[wanted.label] = json.dumps(row[wanted.label])
            row = {name: whole_characters(value) for name, value in row.items()}
        except (ValueError, KeyError, TypeError) as error:
            received = repr(line.strip()[:_SHOWN])
            allowed = f"an object such as {json.dumps(dict.fromkeys(names, '...'))}"
            what = "is not JSON lines of examples"
            raise misread(path, number, what, received, allowed) from error
        yield _Found(number, *(name and row[name] for name in wanted))


def _from_labelled(
    path: Path, lines: Iterable[str], wanted: _Columns
) -> Iterator[_Found]:
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        label, space, text = line.partition(" ")
        if not space:
            received, allowed = repr(line[:_SHOWN]), "a label, a space and a text"
            raise misread(path, number, "lacks a label or text", received, allowed)
        yield _Found(number, text, None, None if wanted.label is None else label)


def _label_of(path: Path, row: _Found, is_number: bool) -> str | float | None:
    if row.label is None:
        return None
    label = row.label.strip()
    if label and not is_number:
        return label
    with contextlib.suppress(ValueError):  # of what is no number
        if math.isfinite(float(label)):
            return float(label)
    received = repr(row.label[:_SHOWN])
    allowed = "a finite number" if is_number else "the name of a class"
    raise misread(path, row.line, "has a wrong label", received, allowed)

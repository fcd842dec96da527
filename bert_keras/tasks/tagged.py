"""Files of sentences with a tag for each word, and the entities that tags stand for."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bert_keras.tasks.records import decoded_lines, misread, whole_characters
from bert_keras.text.options import check_integer

_DOCUMENT = "-DOCSTART-"
_NAMED_VALUE = re.compile(r"# \S+ = ")  # a comment such as "# sent_id = 1"
_NO_WORD = re.compile(r"\d+[-.]\d+")  # numbers of several words, or of a word left out
_UNIVERSAL = 10  # columns of CoNLL-U
_SHOWN = 60  # characters of a wrong line
_MOST = 1 << 10

# B, I, O; E and S of BIOES; L and U, which are E and S in BILOU; M, which is I in BMES.
_BEGIN = frozenset("BSU")
_END = frozenset("ESLU")
_OPEN = frozenset("BIM")
_INSIDE = _OPEN | _BEGIN | _END


class TaggedSentence(NamedTuple):
    """The words of a sentence, at least one, and as many tags; none is empty."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


class Entity(NamedTuple):
    """Words that together are one thing.

    Attributes:
        label: what follows the hyphen of their tags; empty if there is none.
        first_word, end_word: their numbers; the word `end_word` is behind them.
    """

    label: str
    first_word: int
    end_word: int


def read_tagged(
    path: str | os.PathLike, *, word: int = 0, tag: int = -1, encoding: str = "utf-8"
) -> list[TaggedSentence]:
    """Reads the sentences of a file in columns, or of JSON lines (".jsonl").

    In columns, as in the shared tasks of CoNLL, a line is a word. Columns stand between
    tabs, or between spaces where the first word's line has no tab. A blank line ends a
    sentence, and so does a line that begins with "-DOCSTART-".

    Before a sentence there may be comments as in CoNLL-U: lines that begin with "# "
    and hold no tab in a file with tabs, or that read "# name = value" in one with
    spaces. A word may be "#" or begin with it. In a file with the ten columns of
    CoNLL-U, lines that number several words, or a word left out, are no words.

    A JSON line is a sentence: `{"words": ["A", "b"], "tags": ["O", "B-x"]}`.

    Args:
        path: of the file, which may be gzipped (".gz").
        word, tag: columns, counted from 0, or from the end with -1.
        encoding: of the file, as Python names it.

    Raises:
        ValueError: naming file and line, rows of different widths, no such column, an
            empty word or tag, or no such JSON; no sentence; as `decoded_lines`.
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    check_integer("word", word, -_MOST, _MOST)
    check_integer("tag", tag, -_MOST, _MOST)
    lines = list(decoded_lines(path, encoding))
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        sentences = list(_from_json(path, lines))
    else:
        sentences = list(_from_columns(path, lines, word, tag))
    if not sentences:
        raise ValueError(f"{path} is empty. Received: no sentences; allowed: some.")
    return sentences


def entities_of(tags: Iterable[str]) -> list[Entity]:
    """Returns the entities of a sentence, in order; a word is in one at most.

    The rule is that of `conlleval` (Tjong Kim Sang, CoNLL-2000), which takes IOB1, IOB2
    and BIOES as they come. A word is in an entity if its tag is B, I, E or S, alone or
    with a hyphen and a label behind it. The entity is a new one if

    - the tag is B or S, or
    - the word before is in none, or its tag is E or S, or its label is another one.

    As an I behind an O begins an entity, no sequence of tags is wrong. `conlleval` does
    not know S, for which the rule is that of `seqeval`. Tags that are not of the
    scheme, such as parts of speech, are outside.
    """
    entities: list[Entity] = []
    before, label_before = "O", ""
    for number, tag in enumerate(tags):
        prefix, _, label = tag.partition("-")
        if prefix in _INSIDE:
            goes_on = before in _OPEN and prefix not in _BEGIN
            if goes_on and label == label_before:
                entities[-1] = entities[-1]._replace(end_word=number + 1)
            else:
                entities.append(Entity(label, number, number + 1))
        before, label_before = prefix, label
    return entities


def _from_columns(
    path: Path, lines: list[str], word: int, tag: int
) -> Iterator[TaggedSentence]:
    has_tabs = _has_tabs(lines)
    rows: list[tuple[str, str]] = []
    width = None
    for number, line in enumerate([*lines, ""], 1):
        if not line.strip() or line.startswith(_DOCUMENT):
            if rows:
                yield TaggedSentence(*zip(*rows, strict=True))
            rows = []
            continue
        if not rows and _is_comment(line, has_tabs):
            continue
        fields = _fields_of(line, has_tabs)
        if len(fields) == _UNIVERSAL and word and _NO_WORD.fullmatch(fields[0]):
            continue
        width = width or len(fields)
        _check_width(path, number, len(fields), width, word, tag)
        if not fields[word] or not fields[tag]:
            received, allowed = repr(line[:_SHOWN]), "both, or a blank line"
            raise misread(path, number, "lacks a word or tag", received, allowed)
        rows.append((fields[word], fields[tag]))


def _has_tabs(lines: list[str]) -> bool:
    """Says whether columns stand between tabs, as the first word's line has it."""
    passed_over = ("# ", _DOCUMENT)
    words = (
        line for line in lines if line.strip() and not line.startswith(passed_over)
    )
    return "\t" in next(words, "")


def _fields_of(line: str, has_tabs: bool) -> list[str]:
    # No other spaces are cut at: a word may hold one that does not break.
    if has_tabs:
        return [field.strip(" ") for field in line.split("\t")]
    return [field for field in line.split(" ") if field]


def _is_comment(line: str, has_tabs: bool) -> bool:
    if has_tabs:
        return line.startswith("# ") and "\t" not in line
    return _NAMED_VALUE.match(line) is not None


def _check_width(
    path: Path, number: int, found: int, width: int, word: int, tag: int
) -> None:
    if found != width:
        what, allowed = "has a wrong number of columns", f"{width}, as above"
        raise misread(path, number, what, f"{found}", allowed)
    is_there = all(-width <= column < width for column in (word, tag))
    if not is_there or word % width == tag % width:
        received = f"word={word}, tag={tag}"
        allowed = f"two columns from {-width} to {width - 1}"
        raise misread(path, number, "lacks a column", received, allowed)


def _from_json(path: Path, lines: list[str]) -> Iterator[TaggedSentence]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            words, tags = (tuple(map(_item, row[name])) for name in ("words", "tags"))
            if not words or len(words) != len(tags):
                raise ValueError(f"{len(words)} words and {len(tags)} tags")
        except (ValueError, KeyError, TypeError) as error:
            received = f"{line.strip()[:_SHOWN]!r} ({error})"
            allowed = 'an object such as {"words": ["A", "b"], "tags": ["O", "B-x"]}'
            what = "is not JSON lines of tagged words"
            raise misread(path, number, what, received, allowed) from error
        yield TaggedSentence(words, tags)


def _item(value) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is no word or tag")
    return whole_characters(value)

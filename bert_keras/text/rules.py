"""The published normalisation rules, as one table over all codepoints.

BERT cleans text in five steps: drop control characters, make every space a plain one,
set ideographs apart, strip accents (NFD, then category Mn removed) and lower-case; and
then it sets punctuation apart. Each step looks at one codepoint alone, so the whole of
it is a table: codepoint -> kind, and at most three codepoints in its place. (But for
one thing: NFD puts marks in order. That shows only in a vocabulary that holds two marks
of other categories than Mn and of two combining classes, such as U+302E and U+1D165;
`tables.py` sees to those.)

The table is *data*, made once by asking the reference about every codepoint
(`tools/make_rules.py`). Python's own `unicodedata` follows the Python version and would
give other ids on another machine.

There are two rule sets; these are all their differences:

| | `huggingface` | `google` | example |
|---|---|---|---|
| reference | `tokenizers` | tokenization.py, 2018 | |
| longest word | 100 characters | 200 characters | "a" 101 times: [UNK], or cut up |
| private use | removed | part of a word | U+E000 |
| capital sigma | always \u03c3 | \u03c2 at the end of a word | \u039f\u03a3 |
| ideographs | not U+2B820 to U+2B91F | all of Extension E | U+2B820 |
| Unicode | several, old and new | 14.0 (Python 3.11) | U+2E5D is a dash since 14.0 |

(Of Unicode's versions: 107 signs are punctuation, 13 are removed and 384 are accents in
14.0 only; 55 capitals have a small letter, and U+166D and U+111C9 are punctuation, in
the library's only; U+11938 has an accent in 14.0 only.)
"""

import functools
from importlib import resources
from typing import NamedTuple

import numpy as np

CODEPOINTS = 0x110000
"""The number of codepoints, U+0000 to U+10FFFF."""

DROP, SPACE, WORD, PUNCTUATION, IDEOGRAPH = range(5)
"""Kinds: removed; ends a word; part of a word; the last two: a word of its own."""

CASED, IGNORED = 1, 2
"""What a codepoint can be to a capital sigma beside it, if it is not simply 0."""

WIDTH = 3
"""The most codepoints that replace one (a Hangul syllable becomes three jamo)."""


class Normalization(NamedTuple):
    """What becomes of each codepoint.

    Attributes:
        kinds: uint8 `[CODEPOINTS]`: `DROP`, `SPACE`, `WORD`, `PUNCTUATION` or
            `IDEOGRAPH`; the last only where ideographs are words of their own.
        outputs: int32 `[CODEPOINTS, WIDTH]`: the codepoints in its place, then -1.
            Read only where the kind is neither `DROP` nor `SPACE`.
        sigmas: uint8 `[CODEPOINTS]`: `CASED`, `IGNORED` or 0. All 0 where the case of
            sigma does not depend on what is beside it.
        letters: bool `[CODEPOINTS]`: letters, digits and marks, unless they are words
            of their own: what makes a word beside it a longer one.
    """

    kinds: np.ndarray
    outputs: np.ndarray
    sigmas: np.ndarray
    letters: np.ndarray


def normalization(
    rules: str = "huggingface",
    lowercase: bool = True,
    strip_accents: bool = True,
    split_on_cjk: bool = True,
) -> Normalization:
    """Returns the table of a rule set with its switches; see `WordPieceTokenizer`."""
    return _normalization(rules, lowercase, strip_accents, split_on_cjk)


@functools.lru_cache(maxsize=4)
def _normalization(rules, lowercase, strip_accents, split_on_cjk) -> Normalization:
    data = load_rules(rules)
    kinds = _spread(data, "kind")
    if not split_on_cjk:
        kinds[kinds == IDEOGRAPH] = WORD
    sigmas = _spread(data, "sigma")
    if not lowercase:
        sigmas[:] = 0
    outputs = np.full((CODEPOINTS, WIDTH), -1, np.int32)
    outputs[:, 0] = np.arange(CODEPOINTS)
    # 2018 lowered first, but of no codepoint does that make another.
    for name, is_on in (("strip", strip_accents), ("lower", lowercase)):
        if is_on:
            replaced = data[f"{name}_codepoints"], data[f"{name}_outputs"]
            outputs = _substitute(outputs, *replaced)
    # "≠" is no punctuation, but without its accent it is "=", which is.
    first = outputs[:, 0]
    becomes = (kinds == WORD) & (first >= 0) & (kinds[first] == PUNCTUATION)
    kinds[becomes] = PUNCTUATION
    kinds[(kinds == WORD) & (first < 0)] = DROP
    letters = (_spread(data, "letter") > 0) & (kinds <= WORD)
    table = Normalization(kinds, outputs, sigmas, letters)
    for array in table:
        array.flags.writeable = False
    return table


def _spread(data: dict[str, np.ndarray], name: str) -> np.ndarray:
    starts = data[f"{name}_starts"]
    return np.repeat(data[f"{name}_values"], np.diff(starts, append=CODEPOINTS))


class Composition(NamedTuple):
    """What the normalization form NFC needs to know (Unicode 3.11).

    Attributes:
        decompositions: codepoint -> the codepoints that it is made of, four at most.
        classes: uint8 `[CODEPOINTS]`: the canonical combining class; 0 for a starter.
        pairs: int32 `[pairs, 3]`: a first and a second codepoint, and what they make.
        removed: bool `[CODEPOINTS]`: what the rules remove before anything else.
    """

    decompositions: dict[int, list[int]]
    classes: np.ndarray
    pairs: np.ndarray
    removed: np.ndarray


def composition(rules: str) -> Composition:
    """Returns what NFC needs, as the reference of a rule set knows it."""
    data = load_rules(rules)
    rows = [[c for c in row if c >= 0] for row in data["nfd_outputs"].tolist()]
    decompositions = dict(zip(data["nfd_codepoints"].tolist(), rows, strict=True))
    removed = _spread(data, "kind") == DROP
    classes = _spread(data, "combining")
    return Composition(decompositions, classes, data["pairs"], removed)


def translation(table: Normalization) -> dict[int, str | None]:
    """Returns the table as a map for `str.translate`, for Python-side counting.

    After it, words stand between plain spaces: `" "` is written for `SPACE` and put
    on both sides of a word of its own. Sigma is lowered as anywhere in a word.
    """
    mapping: dict[int, str | None] = {}
    codepoints = np.arange(CODEPOINTS)
    unchanged = (table.kinds == WORD) & (table.outputs[:, 0] == codepoints)
    unchanged &= table.outputs[:, 1] < 0
    for codepoint in np.flatnonzero(~unchanged).tolist():
        kind = table.kinds[codepoint]
        if kind == DROP:
            mapping[codepoint] = None
        elif kind == SPACE:
            mapping[codepoint] = " "
        else:
            text = "".join(chr(c) for c in table.outputs[codepoint].tolist() if c >= 0)
            mapping[codepoint] = text if kind == WORD else f" {text} "
    return mapping


def load_rules(rules: str) -> dict[str, np.ndarray]:
    """Returns the stored arrays of a rule set, as `tools/make_rules.py` wrote them."""
    file = resources.files(__package__).joinpath(f"rules_{rules}.npz")
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _substitute(
    outputs: np.ndarray, codepoints: np.ndarray, replacements: np.ndarray
) -> np.ndarray:
    """Replaces codepoints inside `outputs`, each by some or none; packs the rows."""
    rows = np.full(CODEPOINTS, -1, np.int32)
    rows[codepoints] = np.arange(len(codepoints))
    found = (outputs >= 0) & (rows[outputs] >= 0)
    for codepoint in np.flatnonzero(found.any(axis=1)).tolist():
        packed = []
        for output in outputs[codepoint].tolist():
            row = rows[output] if output >= 0 else -1
            new = [output] if row < 0 else replacements[row].tolist()
            packed += [c for c in new if c >= 0]
        if len(packed) > WIDTH:
            raise AssertionError(f"U+{codepoint:04X} needs {len(packed)} columns")
        outputs[codepoint] = packed + [-1] * (WIDTH - len(packed))
    return outputs

"""The published normalisation rules, as one table over all codepoints.

BERT cleans text in five steps: drop control characters, make every space a plain one,
set ideographs apart, strip accents (NFD, then category Mn removed) and lower-case; and
then it sets punctuation apart. Each step looks at one codepoint alone, so the whole of
it is a table: codepoint -> kind, and at most three codepoints in its place.

The table is *data*, made once by asking the reference library about every codepoint
(`tools/make_rules.py`). Python's own `unicodedata` follows the Python version and would
give other ids on another machine.
"""

import functools
from importlib import resources
from typing import NamedTuple

import numpy as np

CODEPOINTS = 0x110000
"""The number of codepoints, U+0000 to U+10FFFF."""

DROP, SPACE, WORD, ALONE = range(4)
"""Kinds: removed; ends a word; part of a word; a word of its own."""

WIDTH = 3
"""The most codepoints that replace one (a Hangul syllable becomes three jamo)."""

WORD_LIMITS = {"huggingface": 100}
"""The rule sets, and the longest word, in characters, that each still cuts up."""


class Normalization(NamedTuple):
    """What becomes of each codepoint.

    Attributes:
        kinds: uint8 `[CODEPOINTS]`: `DROP`, `SPACE`, `WORD` or `ALONE`.
        outputs: int32 `[CODEPOINTS, WIDTH]`: the codepoints in its place, then -1.
            Read only where the kind is `WORD` or `ALONE`.
    """

    kinds: np.ndarray
    outputs: np.ndarray


@functools.lru_cache(maxsize=4)
def normalization(
    rules: str = "huggingface", lowercase: bool = True, strip_accents: bool = True
) -> Normalization:
    """Returns the table of a rule set with its two switches.

    Args:
        rules: `"huggingface"`, the rule of today's checkpoints (BertNormalizer and
            BertPreTokenizer of the `tokenizers` library).
        lowercase: map each codepoint to its lower case.
        strip_accents: NFD, then remove category Mn. In scripts whose vowel signs are
            Mn (Hindi, Thai) or whose voicing marks are (Japanese) this loses meaning.

    Raises:
        ValueError: an unknown rule set.
    """
    if rules not in WORD_LIMITS:
        raise ValueError(
            f"Unknown normalisation rules. Received: rules={rules!r}; allowed: "
            f"{', '.join(map(repr, WORD_LIMITS))}."
        )
    data = load_rules(rules)
    kinds = np.repeat(data["kinds"], np.diff(data["kind_starts"], append=CODEPOINTS))
    outputs = np.full((CODEPOINTS, WIDTH), -1, np.int32)
    outputs[:, 0] = np.arange(CODEPOINTS)
    if strip_accents:
        outputs[data["strip_codepoints"]] = data["strip_outputs"]
    if lowercase:
        outputs = _substitute(outputs, data["lower_codepoints"], data["lower_outputs"])
    # "≠" is no punctuation, but without its accent it is "=", which is.
    first = outputs[:, 0]
    becomes_alone = (kinds == WORD) & (first >= 0) & (kinds[first] == ALONE)
    kinds = np.where(becomes_alone, np.uint8(ALONE), kinds)
    kinds[(kinds == WORD) & (first < 0)] = DROP
    kinds.flags.writeable = outputs.flags.writeable = False
    return Normalization(kinds, outputs)


def translation(table: Normalization) -> dict[int, str | None]:
    """Returns the table as a map for `str.translate`, for Python-side counting.

    After it, words stand between plain spaces: `" "` is written for `SPACE` and put
    on both sides of `ALONE`.
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
            mapping[codepoint] = f" {text} " if kind == ALONE else text
    return mapping


def load_rules(rules: str) -> dict[str, np.ndarray]:
    """Returns the stored arrays of a rule set, as `tools/make_rules.py` wrote them."""
    file = resources.files(__package__).joinpath(f"rules_{rules}.npz")
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _substitute(
    outputs: np.ndarray, codepoints: np.ndarray, replacements: np.ndarray
) -> np.ndarray:
    """Replaces codepoints inside `outputs`, each by one or more, and packs the rows."""
    rows = np.full(CODEPOINTS, -1, np.int32)
    rows[codepoints] = np.arange(len(codepoints))
    for column in reversed(range(WIDTH)):  # right to left: an insertion moves the rest
        row = np.where(outputs[:, column] >= 0, rows[outputs[:, column]], -1)
        for codepoint in np.flatnonzero(row >= 0).tolist():
            new = replacements[row[codepoint]]
            old = outputs[codepoint].tolist()
            packed = old[:column] + new[new >= 0].tolist() + old[column + 1 :]
            packed = [c for c in packed if c >= 0]
            if len(packed) > WIDTH:
                raise AssertionError(f"U+{codepoint:04X} needs {len(packed)} columns")
            outputs[codepoint] = packed + [-1] * (WIDTH - len(packed))
    return outputs

"""The rule of 2018 in plain Python: what google-research/bert's tokenization.py does.

Written from its behaviour, as an oracle for `rules="google"`. It asks `unicodedata`, so
it is that rule under the Unicode version of this Python.
"""

import unicodedata
from collections.abc import Iterable

import pytest

from bert_keras.text.rules import load_rules

IDEOGRAPHS = [
    range(0x4E00, 0x9FFF + 1),
    range(0x3400, 0x4DBF + 1),
    range(0x20000, 0x2A6DF + 1),
    range(0x2A700, 0x2B73F + 1),
    range(0x2B740, 0x2B81F + 1),
    range(0x2B820, 0x2CEAF + 1),
    range(0xF900, 0xFAFF + 1),
    range(0x2F800, 0x2FA1F + 1),
]
_STORED = str(load_rules("google")["origin"]).rsplit(" ", 1)[1]
needs_its_unicode = pytest.mark.skipif(
    unicodedata.unidata_version != _STORED,
    reason=f"needs Python with Unicode {_STORED}, not {unicodedata.unidata_version}",
)


def google_ids(
    text: str | bytes,
    ids: dict[str, int],
    lowercase: bool = True,
    strip_accents: bool | None = None,
    split_on_cjk: bool = True,
    limit: int = 200,
) -> list[int]:
    """Returns the ids of a text."""
    strip_accents = lowercase if strip_accents is None else strip_accents
    if isinstance(text, bytes):
        text = text.decode("utf-8", "ignore")
    found = []
    for word in _words(text, lowercase, strip_accents, split_on_cjk):
        found += _pieces(word, ids, limit)
    return found


def _words(text, lowercase, strip_accents, split_on_cjk) -> Iterable[str]:
    cleaned = ""
    for character in text:
        if character in "\t\n\r" or unicodedata.category(character) == "Zs":
            cleaned += " "
        elif character in "\0\ufffd" or unicodedata.category(character) in ("Cc", "Cf"):
            continue
        elif split_on_cjk and any(ord(character) in block for block in IDEOGRAPHS):
            cleaned += f" {character} "
        else:
            cleaned += character
    for chunk in cleaned.split():
        if lowercase:
            chunk = chunk.lower()
        if strip_accents:
            parts = unicodedata.normalize("NFD", chunk)
            chunk = "".join(c for c in parts if unicodedata.category(c) != "Mn")
        spaced = (f" {c} " if _is_punctuation(c) else c for c in chunk)
        yield from "".join(spaced).split()


def _is_punctuation(character: str) -> bool:
    is_ascii_sign = "!" <= character <= "~" and not character.isalnum()
    return is_ascii_sign or unicodedata.category(character).startswith("P")


def _pieces(word: str, ids: dict[str, int], limit: int) -> list[int]:
    if len(word) > limit:
        return [ids["[UNK]"]]
    found, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            if prefix + word[start:end] in ids:
                found.append(ids[prefix + word[start:end]])
                start = end
                break
        else:
            return [ids["[UNK]"]]
    return found

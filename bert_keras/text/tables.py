"""Rules and vocabulary, compiled to the arrays that `wordpiece` gathers from."""

import functools
from typing import NamedTuple

import numpy as np

from bert_keras.text.rules import (
    ALONE,
    DROP,
    SPACE,
    WORD,
    Normalization,
    normalization,
)
from bert_keras.text.trie import Trie, build_trie
from bert_keras.text.vocabulary import Vocabulary

# A symbol is 2 * character + alone. Character 0 never matches anything.
DROPPED, SPACE_SYMBOL = 0, 1
_UNKNOWN = 1  # the character that stands for all that the vocabulary never uses
PAGE = 64
SUFFIX_PREFIX = "##"


class WordPieceTables(NamedTuple):
    """Rules and vocabulary, compiled.

    Attributes:
        pages: integer `[codepoints / 64]`: which page of `codes` a codepoint is on.
        codes: integer `[pages, 64]` flattened: row of `symbols` for each codepoint.
        symbols: integer `[rows, width]`: the symbols in a codepoint's place.
        trie: the vocabulary's pieces over characters.
        specials: codepoints of each special token that is recognised inside text,
            beside its symbol.
        unk_id: id of the unknown token.
        word_limit: most characters of a word that is still cut up.
    """

    pages: np.ndarray
    codes: np.ndarray
    symbols: np.ndarray
    trie: Trie
    specials: tuple[tuple[tuple[int, ...], int], ...]
    unk_id: int
    word_limit: int


@functools.lru_cache(maxsize=8)
def compile_tables(
    vocabulary: Vocabulary,
    *,
    rules: str,
    lowercase: bool,
    strip_accents: bool,
    word_limit: int,
    special_tokens_in_text: tuple[str, ...],
) -> WordPieceTables:
    """Compiles normalisation rules and a vocabulary for `wordpiece`."""
    table = normalization(rules, lowercase, strip_accents)
    counts: dict[str, int] = {}
    for token in vocabulary:
        for character in token:
            counts[character] = counts.get(character, 0) + 1
    # Frequent characters get small numbers: the trie packs better.
    alphabet = sorted(counts, key=lambda character: (-counts[character], character))
    characters = {c: number for number, c in enumerate(alphabet, _UNKNOWN + 1)}
    pieces, specials = [], []
    for piece_id, token in enumerate(vocabulary):
        continues = token.startswith(SUFFIX_PREFIX) and len(token) > len(SUFFIX_PREFIX)
        text = token[len(SUFFIX_PREFIX) :] if continues else token
        if text:
            path = tuple(characters[character] for character in text)
            pieces.append((continues, path, piece_id))
    _refuse_overlaps(special_tokens_in_text)
    for number, name in enumerate(special_tokens_in_text):
        character = _UNKNOWN + 1 + len(alphabet) + number
        pieces.append((False, (character,), vocabulary.id(name)))
        specials.append((tuple(map(ord, name)), 2 * character + 1))
    return WordPieceTables(
        *_symbol_pages(table, characters),
        trie=build_trie(pieces, _UNKNOWN + 1 + len(alphabet) + len(specials)),
        specials=tuple(specials),
        unk_id=vocabulary.special_ids.unk,
        word_limit=word_limit,
    )


def _refuse_overlaps(names: tuple[str, ...]) -> None:
    for one in names:
        for other in names:
            for size in range(1, len(one) + (one != other)):
                if other.startswith(one[-size:]) or one[-size:].startswith(other):
                    raise ValueError(
                        "Special tokens that overlap cannot be told apart inside text. "
                        f"Received: {one!r} and {other!r}; allowed: names of which "
                        "none ends as another begins."
                    )


def _symbol_pages(
    table: Normalization, characters: dict[str, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns `pages`, `codes` and `symbols`: equal pages and equal rows are shared."""
    character_of = np.full(len(table.kinds) + 1, _UNKNOWN, np.int32)
    codepoints = [ord(character) for character in characters]
    character_of[codepoints] = list(characters.values())
    character_of[-1] = 0  # outputs hold -1 where there is no codepoint
    rows = 2 * character_of[table.outputs]
    rows[(table.kinds == ALONE)[:, None] & (rows > 0)] += 1
    rows[(table.kinds == DROP) | (table.kinds == SPACE)] = DROPPED
    rows[table.kinds == SPACE, 0] = SPACE_SYMBOL
    assert ((table.kinds == WORD) <= (rows[:, 0] > 0)).all()
    width = max(1, int((rows != DROPPED).any(axis=0).sum()))
    keys = rows.astype(np.int64) @ (1 << 21) ** np.arange(len(rows[0]))  # one a row
    _, first, codes = np.unique(keys, return_index=True, return_inverse=True)
    page_numbers: dict[bytes, int] = {}
    pages = [
        page_numbers.setdefault(page.tobytes(), len(page_numbers))
        for page in codes.reshape(-1, PAGE)
    ]
    codes = np.frombuffer(b"".join(page_numbers), codes.dtype)
    return tuple(map(_narrow, (np.array(pages), codes, rows[first, :width])))


def _narrow(array: np.ndarray) -> np.ndarray:
    """Stores numbers below 65,536 in two bytes: the exported files halve."""
    return array.astype(np.uint16 if array.max(initial=0) < 1 << 16 else np.int32)

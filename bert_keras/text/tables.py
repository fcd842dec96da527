"""Rules and vocabulary, compiled to the arrays that the tokenizer looks things up in.

A *symbol* stands for a character in the tensors: `SPACE_SYMBOL`, "a character that the
vocabulary never uses", then one for each character that it does. What is a word of its
own (the end of a row, punctuation, an ideograph) has another symbol than the same
character inside a word; all of those come last, from `alone_from` on.
"""

import functools
import warnings
from typing import NamedTuple

import numpy as np

from bert_keras.text.composer import ComposerTables, compile_composer
from bert_keras.text.names import NameTables, compile_names
from bert_keras.text.options import TokenizerOptions, check_names
from bert_keras.text.paged import PagedTable, narrow, paged
from bert_keras.text.rules import (
    CODEPOINTS,
    DROP,
    SPACE,
    WORD,
    Normalization,
    composition,
    normalization,
)
from bert_keras.text.trie import Trie, build_trie
from bert_keras.text.vocabulary import Vocabulary, split_token

DROPPED, SPACE_SYMBOL, _UNKNOWN = range(3)
ROW_END_ID = -1
_MOST_CAPITALS = 0.01


class WordPieceTables(NamedTuple):
    """Rules and vocabulary, compiled.

    Attributes:
        symbols: for each codepoint the symbol in its place, or `expanded_from` + row.
        expanded: integer `[rows, 3]`: the symbols of codepoints that become several.
        expanded_from: one more than the greatest symbol.
        alone_from: from this symbol on, each is a word of its own.
        row_end: the symbol of the end of a row; its piece has the id `ROW_END_ID`.
        sigmas: what a codepoint is to a capital sigma; None where that doesn't matter.
        final_sigma: the symbol of a capital sigma at the end of a word.
        composers: for NFC, and for the order of marks, where these matter.
        names: what is recognised inside text; None without any.
        trie: the vocabulary's pieces over symbols.
        unk_id: id of the unknown token.
        options: of the tokenizer.
    """

    symbols: PagedTable
    expanded: np.ndarray
    expanded_from: int
    alone_from: int
    row_end: int
    sigmas: PagedTable | None
    final_sigma: int
    composers: tuple[ComposerTables, ...]
    names: NameTables | None
    trie: Trie
    unk_id: int
    options: TokenizerOptions


def check_vocabulary(vocabulary: Vocabulary, options: TokenizerOptions) -> None:
    """Refuses names that the vocabulary lacks, and warns of capitals never to match."""
    names = options.names_in_text(vocabulary.special_tokens)
    specials = options.special_tokens_in_text
    strangers = () if isinstance(specials, bool) else specials
    strangers = [name for name in strangers if name not in vocabulary.special_tokens]
    if strangers:
        raise ValueError(
            f"Received: special_tokens_in_text={list(specials)}; allowed: a bool, or "
            f"some of {', '.join(vocabulary.special_tokens)}."
        )
    missing = [name for name in names if name not in vocabulary]
    if missing:
        raise ValueError(
            f"Words that are never split must be tokens. Missing in the vocabulary: "
            f"{', '.join(missing)}."
        )
    check_names(names)
    if vocabulary.options is not None:  # they were learned, or used, with these
        return
    names = {*names, *vocabulary.special_tokens}
    capitals = [t for t in vocabulary if _has_capitals(t) and t not in names]
    if options.lowercase and len(capitals) > _MOST_CAPITALS * len(vocabulary):
        warnings.warn(
            f"The vocabulary looks cased, and the text is lower-cased: "
            f"{len(capitals)} of {len(vocabulary)} tokens hold capital letters, such "
            f"as {capitals[0]!r}, and can never match. Is lowercase=False meant?",
            stacklevel=4,
        )


def _has_capitals(token: str) -> bool:
    is_name = token[0] + token[-1] in ("[]", "<>") if token else True
    return token != token.lower() and not is_name


@functools.lru_cache(maxsize=8)
def compile_tables(vocabulary: Vocabulary) -> WordPieceTables:
    """Compiles a vocabulary that has options."""
    options = vocabulary.options
    table = normalization(
        options.rules, options.lowercase, options.strip_accents, options.split_on_cjk
    )
    alphabet = _Alphabet(vocabulary, table)
    names = options.names_in_text(vocabulary.special_tokens)
    name_symbols = {name: alphabet.end + n for n, name in enumerate(names)}
    pieces = [
        *_pieces(vocabulary, alphabet),
        (False, (alphabet.row_end,), ROW_END_ID),
        *((False, (s,), vocabulary.id(name)) for name, s in name_symbols.items()),
    ]
    end = alphabet.end + len(names)
    symbols, expanded = _symbols(table, alphabet, list(name_symbols.values()), end)
    return WordPieceTables(
        symbols=symbols,
        expanded=expanded,
        expanded_from=end,
        alone_from=alphabet.alone_from,
        row_end=alphabet.row_end,
        sigmas=paged(table.sigmas) if table.sigmas.any() else None,
        final_sigma=alphabet.inside.get(ord("ς"), _UNKNOWN),
        composers=_composers(options, alphabet),
        names=compile_names(names, table.letters) if names else None,
        trie=build_trie(pieces, end),
        unk_id=vocabulary.special_ids.unk,
        options=options,
    )


def _composers(
    options: TokenizerOptions, alphabet: "_Alphabet"
) -> tuple[ComposerTables, ...]:
    """Returns NFC, if that is asked for, and NFD, if its order of marks matters."""
    forms = ["NFC"] if options.normalization == "NFC" else []
    known = composition(options.rules)
    # Marks of one class keep their order, and of unknown ones it doesn't matter.
    classes = {known.classes[codepoint] for codepoint in alphabet.inside} - {0}
    if options.strip_accents and len(classes) > 1:
        forms.append("NFD")
    return tuple(compile_composer(known, form) for form in forms)


class _Alphabet:
    """The symbols of the characters that stand in the vocabulary and can in a text.

    Attributes:
        inside: codepoint -> symbol, inside a word.
        alone: codepoint -> symbol, as a word of its own.
        row_end, unknown_alone: what no character is, and what no token holds.
        alone_from, end: the first symbol of those alone, and one more than the last.
    """

    def __init__(self, vocabulary: Vocabulary, table: Normalization):
        counts: dict[int, int] = {}
        for token in vocabulary:
            for character in token:
                counts[ord(character)] = counts.get(ord(character), 0) + 1
        # Frequent characters get small numbers: the trie packs better.
        ranked = sorted(counts, key=lambda c: (-counts[c], c))
        made = table.outputs[table.kinds == WORD]
        inside = np.isin(ranked, made)
        alone = np.isin(ranked, table.outputs[table.kinds > WORD])
        ranked = np.array(ranked)
        first = _UNKNOWN + 1
        self.inside = {c: n for n, c in enumerate(ranked[inside].tolist(), first)}
        self.alone_from = self.row_end = first + len(self.inside)
        self.unknown_alone = self.row_end + 1
        first = self.unknown_alone + 1
        self.alone = {c: n for n, c in enumerate(ranked[alone].tolist(), first)}
        self.end = first + len(self.alone)


def _pieces(vocabulary: Vocabulary, alphabet: _Alphabet):
    """Yields the pieces that some text can hold, for `build_trie`."""
    for piece_id, token in enumerate(vocabulary):
        continues, text = split_token(token)
        path = [alphabet.inside.get(ord(character)) for character in text]
        if path and None not in path:
            yield continues, tuple(path), piece_id
        if len(text) == 1 and not continues and ord(text) in alphabet.alone:
            yield False, (alphabet.alone[ord(text)],), piece_id


def _symbols(
    table: Normalization,
    alphabet: _Alphabet,
    name_symbols: list[int],
    expanded_from: int,
) -> tuple[PagedTable, np.ndarray]:
    """Returns each codepoint's symbol, and those of codepoints that have several."""
    rows = np.zeros((CODEPOINTS, table.outputs.shape[1]), np.int32)
    for kinds, symbols, unknown in (
        (table.kinds == WORD, alphabet.inside, _UNKNOWN),
        (table.kinds > WORD, alphabet.alone, alphabet.unknown_alone),
    ):
        symbol_of = np.full(CODEPOINTS + 1, unknown, np.int32)
        symbol_of[list(symbols)] = list(symbols.values())
        symbol_of[-1] = DROPPED  # outputs hold -1 where there is no codepoint
        rows[kinds] = symbol_of[table.outputs[kinds]]
    rows[table.kinds == DROP] = DROPPED
    rows[table.kinds == SPACE, 0] = SPACE_SYMBOL
    is_expanded = rows[:, 1] != DROPPED
    expanded, numbers = np.unique(rows[is_expanded], axis=0, return_inverse=True)
    single = rows[:, 0].copy()
    single[is_expanded] = expanded_from + numbers.reshape(-1)
    return paged(np.append(single, name_symbols)), narrow(expanded)

"""The vocabulary file: one token a line, and a token's id is its line number.

The rule is that of the 2018 release (google-research/bert, `load_vocab`): UTF-8, lines
end at "\\n" and nowhere else. Published vocabularies hold lines that *are* U+2028, so a
Unicode-aware line splitter would move every later id by one.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from bert_keras.features import SpecialTokens
from bert_keras.files import replacing
from bert_keras.text.options import TokenizerOptions, tokenizer_options

SUFFIX_PREFIX = "##"
_UNUSED = re.compile(r"\[unused\d+\]")


class Vocabulary(Sequence):
    """An ordered, checked list of tokens.

    A blank token keeps its number but can never match; blank tokens at the end are
    dropped. The five special tokens must be there.

    Args:
        tokens: the tokens in the order of their ids.
        special_tokens: names of the five special tokens.
        source: where the tokens came from, for error messages.
        duplicates: `"refuse"` a token that stands twice, or let the `"last"` one have
            it, as the script of 2018 did; the earlier line then counts as blank.
        options: the tokenizer's options that the tokens were learned with, if known.

    Raises:
        ValueError: a token stands twice (naming it and both lines, counted from 1), a
            token cannot stand on a line of UTF-8, or special tokens are missing (naming
            all of them).
    """

    def __init__(
        self,
        tokens: Iterable[str],
        special_tokens: SpecialTokens = SpecialTokens(),
        source: str = "the vocabulary",
        duplicates: str = "refuse",
        options: TokenizerOptions | None = None,
    ):
        if duplicates not in ("refuse", "last"):
            raise ValueError(
                f"Received: duplicates={duplicates!r}; allowed: 'refuse', 'last'."
            )
        tokens = _without_trailing_blanks(list(tokens))
        if duplicates == "last":
            last = {token: number for number, token in enumerate(tokens)}
            tokens = [t if last[t] == number else "" for number, t in enumerate(tokens)]
        self.tokens = tuple(tokens)
        self.special_tokens = SpecialTokens(*special_tokens)
        self.options = options
        self._ids: dict[str, int] = {}
        for number, token in enumerate(self.tokens):
            if "\n" in token or token.endswith("\r") or not _is_utf8(token):
                raise ValueError(
                    f"{source} holds a token that cannot stand on a line of its own. "
                    f"Received: {token!r} on line {number + 1}; allowed: UTF-8 without "
                    "line ends."
                )
            if token and self._ids.setdefault(token, number) != number:
                raise ValueError(
                    f"{source} holds a token twice. Received: {token!r} on lines "
                    f"{self._ids[token] + 1} and {number + 1}; each token may stand "
                    "on one line only."
                )
        missing = [name for name in self.special_tokens if name not in self._ids]
        if missing:
            raise ValueError(
                f"{source} lacks special tokens. Missing: {', '.join(missing)}; "
                f"needed: {', '.join(self.special_tokens)}."
            )

    @classmethod
    def read(
        cls,
        path: str | os.PathLike,
        special_tokens: SpecialTokens | None = None,
        duplicates: str = "refuse",
    ) -> "Vocabulary":
        """Reads a `vocab.txt`: UTF-8 whatever the locale; BOM and CRLF are accepted.

        The tokenizer's options and the names of the special tokens are read from
        `vocab.options.json`, where that file stands beside it.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is not UTF-8 (naming the line), the options are
                malformed or name other special tokens, or as the constructor.
        """
        lines = Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
        tokens = []
        for number, line in enumerate(lines, 1):
            try:
                tokens.append(line.removesuffix(b"\r").decode("utf-8"))
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{os.fspath(path)} is not UTF-8. Received: {line!r} on line "
                    f"{number}; a vocabulary file must be UTF-8."
                ) from error
        options, stored_names = _read_options(path)
        if None not in (special_tokens, stored_names):
            refuse_other_names(SpecialTokens(*special_tokens), stored_names)
        special_tokens = special_tokens or stored_names or SpecialTokens()
        return cls(tokens, special_tokens, os.fspath(path), duplicates, options)

    def extend(self, tokens: Iterable[str], into_unused: bool = False) -> "Vocabulary":
        """Returns a vocabulary with more tokens; no id that was there changes.

        Args:
            tokens: the new tokens, none of which is there yet.
            into_unused: put them in the place of `[unused0]`, `[unused1]`, ... first,
                so that the token table need not grow.

        Raises:
            ValueError: a token that is there already, or twice among the new ones.
        """
        extended, new = list(self.tokens), list(tokens)
        for number, token in enumerate(new):
            if not token or token in self or token in new[:number]:
                raise ValueError(
                    f"A new token must be new. Received: {token!r}; allowed: tokens "
                    "that are not in the vocabulary, each once."
                )
        in_use = self.options.never_split if self.options else ()
        slots = [
            number
            for number, token in enumerate(extended)
            if _UNUSED.fullmatch(token) and token not in in_use
        ]
        for number in slots[: len(new)] if into_unused else ():
            extended[number] = new.pop(0)
        return Vocabulary([*extended, *new], self.special_tokens, options=self.options)

    def with_options(self, options: TokenizerOptions | None) -> "Vocabulary":
        """Returns the same tokens with other options, or with none."""
        return Vocabulary(self.tokens, self.special_tokens, options=options)

    def write(self, path: str | os.PathLike) -> None:
        """Writes the tokens, one a line, and the options, if known, beside them.

        Both are written beside their places first and then renamed.
        """
        text = "".join(token + "\n" for token in self.tokens)
        with contextlib.ExitStack() as stack:
            tokens_file = stack.enter_context(replacing(path))
            tokens_file.write_bytes(text.encode("utf-8"))
            if self.options is not None:
                stored = self.options.as_json()
                stored["special_tokens"] = list(self.special_tokens)
                options_file = stack.enter_context(replacing(options_path(path)))
                options_file.write_text(
                    json.dumps(stored, indent=2) + "\n", encoding="utf-8"
                )
        if self.options is None:  # those of another must not be taken for this one's
            options_path(path).unlink(missing_ok=True)

    def id(self, token: str) -> int:
        """Returns the id of a token; a `KeyError` names a token that is not there."""
        return self._ids[token]

    @property
    def special_ids(self) -> SpecialTokens:
        """The ids of the special tokens, under the same field names."""
        return SpecialTokens(*(self._ids[name] for name in self.special_tokens))

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, number):
        return self.tokens[number]

    def __contains__(self, token) -> bool:
        return token in self._ids

    def __eq__(self, other) -> bool:
        return (
            isinstance(other, Vocabulary)
            and self.tokens == other.tokens
            and self.special_tokens == other.special_tokens
            and self.options == other.options
        )

    def __hash__(self) -> int:
        return hash((self.tokens, self.special_tokens, self.options))


def as_vocabulary(
    vocabulary: "Vocabulary | str | os.PathLike | Iterable[str]",
    special_tokens: SpecialTokens | None = None,
) -> Vocabulary:
    """Turns a path, a list of tokens or a `Vocabulary` into a `Vocabulary`.

    Raises:
        ValueError: it has other special tokens than those asked for.
    """
    if isinstance(vocabulary, Vocabulary):
        if special_tokens is not None:
            refuse_other_names(special_tokens, vocabulary.special_tokens)
        return vocabulary
    if isinstance(vocabulary, str | os.PathLike):
        return Vocabulary.read(vocabulary, special_tokens)
    return Vocabulary(vocabulary, special_tokens or SpecialTokens())


def split_token(token: str) -> tuple[bool, str]:
    """Returns whether a token continues a word, and its text without "##"."""
    continues = token.startswith(SUFFIX_PREFIX) and token != SUFFIX_PREFIX
    return continues, token.removeprefix(SUFFIX_PREFIX) if continues else token


def options_path(path: str | os.PathLike) -> Path:
    """Returns where the options of the vocabulary file `path` stand."""
    path = Path(path)
    return path.with_name(path.name.removesuffix(".txt") + ".options.json")


def refuse_other_names(asked: SpecialTokens, known: SpecialTokens) -> None:
    """Raises a `ValueError` if two sets of special tokens differ."""
    if asked != known:
        raise ValueError(
            f"The vocabulary has other special tokens. Received: {', '.join(asked)}; "
            f"allowed: {', '.join(known)}, which are stored with it."
        )


def _read_options(
    path: str | os.PathLike,
) -> tuple[TokenizerOptions | None, SpecialTokens | None]:
    beside = options_path(path)
    if not beside.exists():
        return None, None
    try:
        stored = json.loads(beside.read_text(encoding="utf-8"))
        names = SpecialTokens(*stored.pop("special_tokens"))
        return tokenizer_options(stored), names
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(
            f"{beside} does not hold the options of a tokenizer: {error}"
        ) from error


def _without_trailing_blanks(tokens: list[str]) -> list[str]:
    while tokens and not tokens[-1]:
        tokens.pop()
    return tokens


def _is_utf8(token: str) -> bool:
    """False for halves of surrogate pairs, which a string can hold and UTF-8 cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in token)

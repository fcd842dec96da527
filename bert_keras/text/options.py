"""The options that decide ids: one place for their names, defaults and checks.

They belong to a vocabulary as much as its tokens do: with others, the same text gets
other ids, or [UNK]. So they are stored beside it.
"""

import numbers
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bert_keras.features import SpecialTokens

WORD_LIMITS = {"huggingface": 100, "google": 200}
"""The rule sets, and the longest word, in characters, that each still cuts up."""

MOST = (1 << 31) - 1
"""The greatest int32."""

NAMES = 1 << 16
"""How many words may be recognised inside text."""

NORMALIZATIONS = (None, "NFC")


class TokenizerOptions(NamedTuple):
    """What decides the ids of a text beside the tokens; see `WordPieceTokenizer`.

    Made by `tokenizer_options`, which checks the values and knows the defaults.
    """

    rules: str
    lowercase: bool
    strip_accents: bool
    split_on_cjk: bool
    normalization: str | None
    never_split: tuple[str, ...]
    special_tokens_in_text: bool | tuple[str, ...]
    max_characters_per_word: int
    split_unknown_characters: bool
    id_offset: int

    def as_json(self) -> dict:
        """Returns the options as JSON values."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self._asdict().items()
        }

    def names_in_text(self, special_tokens: SpecialTokens) -> tuple[str, ...]:
        """Returns what is recognised inside text as it is written, each once."""
        names = self.special_tokens_in_text
        if isinstance(names, bool):
            names = tuple(special_tokens) if names else ()
        return tuple(dict.fromkeys((*names, *self.never_split)))


# With others of these, most words of a text are other words.
DECIDE_WORDS = ("rules", "lowercase", "strip_accents", "split_on_cjk", "normalization")


def tokenizer_options(
    given: Mapping | None = None, stored: TokenizerOptions | None = None
) -> TokenizerOptions:
    """Completes options with those stored with a vocabulary, or with the defaults.

    Args:
        given: values by name; None, or no value, is "as stored".
        stored: of the vocabulary, if they are known.

    Raises:
        ValueError: an unknown name, a value that is not allowed, or one under which the
            words would not be those that the vocabulary was learned from.
    """
    given = {name: value for name, value in (given or {}).items() if value is not None}
    unknown = [name for name in given if name not in TokenizerOptions._fields]
    if unknown:
        raise ValueError(
            f"Unknown tokenizer options. Received: {', '.join(map(repr, unknown))}; "
            f"allowed: {', '.join(TokenizerOptions._fields)}."
        )
    if stored is None:
        lowercase = given.get("lowercase", True)
        rules = given.get("rules", "huggingface")
        _check_choice("rules", rules, tuple(WORD_LIMITS))
        stored = TokenizerOptions(
            rules=rules,
            lowercase=lowercase,
            strip_accents=lowercase,
            split_on_cjk=True,
            normalization=None,
            never_split=(),
            special_tokens_in_text=False,
            max_characters_per_word=WORD_LIMITS[rules],
            split_unknown_characters=False,
            id_offset=0,
        )
    else:
        _refuse_other_words(given, stored)
    for name in ("never_split", "special_tokens_in_text"):
        if isinstance(given.get(name), Sequence) and not isinstance(given[name], str):
            given[name] = tuple(given[name])
    options = stored._replace(**given)
    _check(options)
    return options


def _refuse_other_words(given: dict, stored: TokenizerOptions) -> None:
    for name in DECIDE_WORDS:
        if name in given and given[name] != getattr(stored, name):
            raise ValueError(
                f"The vocabulary was made with another {name}. Received: {name}="
                f"{given[name]!r}; stored with the vocabulary: {name}="
                f"{getattr(stored, name)!r}. Leave the option out to use what is "
                "stored, or give the bare tokens, which have no options."
            )


def check_names(names: tuple[str, ...]) -> None:
    """Raises a `ValueError` for words that cannot be recognised inside text."""
    _check_words("never_split", names)
    if len(names) > NAMES:
        raise ValueError(
            f"Too many words are never split. Received: {len(names)}, special tokens "
            f"included; allowed: at most {NAMES}."
        )


def _check(options: TokenizerOptions) -> None:
    _check_choice("normalization", options.normalization, NORMALIZATIONS)
    for name in (
        "lowercase",
        "strip_accents",
        "split_on_cjk",
        "split_unknown_characters",
    ):
        _check_choice(name, getattr(options, name), (True, False))
    longest = options.max_characters_per_word
    check_integer("max_characters_per_word", longest, 1, MOST - 1)
    check_integer("id_offset", options.id_offset, 0, 1 << 30)
    _check_words("never_split", options.never_split)
    if not isinstance(options.special_tokens_in_text, bool):
        names = options.special_tokens_in_text
        _check_words("special_tokens_in_text", names, "True, False, or ")


def check_integer(name: str, value, least: int, most: int = MOST) -> None:
    """Raises a `ValueError` for anything but an integer from `least` to `most`."""
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or not least <= value <= most:
        raise ValueError(
            f"{name} is not allowed. Received: {name}={value!r}; allowed: an integer "
            f"of at least {least}{'' if most == MOST else f' and at most {most}'}."
        )


def _check_choice(name: str, value, allowed: tuple) -> None:
    if not any(value is one or value == one for one in allowed):
        raise ValueError(
            f"{name} is not allowed. Received: {name}={value!r}; allowed: "
            f"{', '.join(map(repr, allowed))}."
        )


def _check_words(name: str, words, otherwise: str = "") -> None:
    is_list = isinstance(words, tuple)
    for word in words if is_list else ():
        if not isinstance(word, str) or word.split() != [word]:
            raise ValueError(
                f"{name} is not allowed. Received: {word!r}; allowed: words without "
                "spaces."
            )
    if not is_list:
        raise ValueError(
            f"{name} is not allowed. Received: {name}={words!r}; allowed: "
            f"{otherwise}a list of words."
        )

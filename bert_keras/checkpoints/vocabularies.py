"""What a vocabulary tells where its files do not."""

import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

_MOST_CAPITALS = 0.01


def looks_lowercase(tokens: Sequence[str]) -> bool:
    """Whether a vocabulary was learned from lower-cased text.

    It then holds no capital letters, but for names such as `[CLS]` and `<S>` and the
    odd token that was added later.
    """
    pieces = [t for t in tokens if t and t[0] + t[-1] not in ("[]", "<>")]
    capitals = sum(piece != piece.lower() for piece in pieces)
    return capitals <= _MOST_CAPITALS * len(pieces)


def tokens_by_id(ids: Mapping[str, int], source: Path) -> list[str]:
    """Returns tokens in the order of their ids, blank where no token has an id.

    Raises:
        ValueError: naming the file: an id is no number, or two tokens have it.
    """
    numbers = list(ids.values())
    are_ids = all(type(number) is int and 0 <= number < 1 << 24 for number in numbers)
    if not are_ids or len(set(numbers)) < len(numbers):
        raise ValueError(f"{source} does not give every token an id of its own.")
    tokens = [""] * (max(numbers) + 1)
    for token, number in ids.items():
        tokens[number] = token
    return tokens


def holds_accents(tokens: Sequence[str]) -> bool:
    """Whether any token holds what `strip_accents` removes."""
    decomposed = unicodedata.normalize("NFD", "\n".join(tokens))
    return any(unicodedata.category(character) == "Mn" for character in decomposed)

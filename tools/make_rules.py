"""Makes `bert_keras/text/rules_*.npz` by asking each rule set's reference.

    python tools/make_rules.py [--out FOLDER]

`huggingface`: every codepoint c is put in "x" + c + "y"; what `BertNormalizer` and
`BertPreTokenizer` make of it is the rule. `google`: tokenization.py of 2018 asks
`unicodedata`, and so the rule depends on the Unicode version of Python; Python 3.11 has
14.0, which is stored. Surrogates cannot stand in a text; they are dropped, as the
decoder would have replaced them by U+FFFD, which both rules drop.
"""

import argparse
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tokenizers
from tokenizers import normalizers, pre_tokenizers

from bert_keras.text.rules import (
    CODEPOINTS,
    DROP,
    IDEOGRAPH,
    PUNCTUATION,
    SPACE,
    WIDTH,
    WORD,
)

SURROGATES = range(0xD800, 0xE000)
TEXT = [c for c in range(CODEPOINTS) if c not in SURROGATES]
IDEOGRAPHS = (  # google-research/bert, `_is_chinese_char`
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
ASCII_PUNCTUATION = {*range(33, 48), *range(58, 65), *range(91, 97), *range(123, 127)}


def words(codepoint: int, **switches) -> list[str]:
    """Returns the words that `tokenizers` makes of "x" + codepoint + "y"."""
    options = {"lowercase": False, "strip_accents": False, "handle_chinese_chars": True}
    normalizer = normalizers.BertNormalizer(**{**options, **switches})
    text = normalizer.normalize_str("x" + chr(codepoint) + "y")
    pieces = pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text)
    return [word for word, _ in pieces]


def huggingface_kind(codepoint: int) -> int:
    """Returns what the codepoint is when it is neither lowered nor stripped."""
    middle = chr(codepoint)
    kinds = {("xy",): DROP, ("x", "y"): SPACE, ("x", middle, "y"): PUNCTUATION}
    kinds["x" + middle + "y",] = WORD
    kind = kinds[tuple(words(codepoint))]
    if kind == PUNCTUATION:
        is_joined = len(words(codepoint, handle_chinese_chars=False)) == 1
        return IDEOGRAPH if is_joined else PUNCTUATION
    return kind


def google_kind(codepoint: int) -> int:
    """Returns the same under the rule of 2018."""
    character, category = chr(codepoint), unicodedata.category(chr(codepoint))
    is_control = category in ("Cc", "Cf") and character not in "\t\n\r"
    if codepoint in (0, 0xFFFD) or is_control:
        return DROP
    if character.isspace():  # Zs, tab, line ends, and what else str.split splits at
        return SPACE
    if any(first <= codepoint <= last for first, last in IDEOGRAPHS):
        return IDEOGRAPH
    if codepoint in ASCII_PUNCTUATION or category.startswith("P"):
        return PUNCTUATION
    return WORD


def sigma_kind(codepoint: int) -> int:
    """Returns what the codepoint is to a capital sigma: 1 cased, 2 ignored, 0 neither.

    Sigma is final behind a cased letter and not before one (Unicode 3.13, Final_Sigma);
    `str.lower` is asked.
    """
    character = chr(codepoint)
    if (character + "Σ").lower().endswith("ς"):
        return 1
    return 2 if ("a" + character + "Σ").lower().endswith("ς") else 0


def is_letter_of_words() -> Callable[[int], bool]:
    """Returns the function that says whether a codepoint beside a word extends it.

    The library is asked whether it finds an added token, a single word, beside it.
    """
    model = tokenizers.models.WordLevel({"?": 0}, unk_token="?")
    tokenizer = tokenizers.Tokenizer(model)
    word = tokenizers.AddedToken("x", single_word=True, normalized=False)
    tokenizer.add_tokens([word])
    return lambda c: "x" not in tokenizer.encode("x" + chr(c).replace("x", "y")).tokens


def replacements(
    kinds: np.ndarray, replaced: Callable[[str], str]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the codepoints that a switch changes, and what it makes of them."""
    changed, outputs = [], []
    for codepoint in np.flatnonzero((kinds != DROP) & (kinds != SPACE)).tolist():
        text = replaced(chr(codepoint))
        if text != chr(codepoint):
            changed.append(codepoint)
            row = [ord(character) for character in text]
            outputs.append(row + [-1] * (WIDTH - len(row)))
    return np.array(changed, np.int32), np.array(outputs, np.int32)


def composition(
    nfd: Callable[[str], str], nfc: Callable[[str], str]
) -> dict[str, np.ndarray]:
    """Returns what NFC needs: decompositions, combining classes, and pairs."""
    decomposed = {c: nfd(chr(c)) for c in TEXT}
    changed = [c for c in TEXT if decomposed[c] != chr(c)]
    classes = np.zeros(CODEPOINTS, np.uint8)
    for c in TEXT:
        # U+0345 has the greatest class: a mark goes before it, if it is known as one.
        moves = nfd("\u0345" + chr(c)) != "\u0345" + chr(c) or c == 0x345
        if decomposed[c] == chr(c) and moves:
            classes[c] = unicodedata.combining(chr(c))
    composed = [c for c in changed if nfc(decomposed[c]) == chr(c)]
    pairs = [
        (ord(nfc(decomposed[c][:-1])), ord(decomposed[c][-1]), c) for c in composed
    ]
    assert not {first for first, _, _ in pairs} & {second for _, second, _ in pairs}
    rows = [[ord(part) for part in decomposed[c]] for c in changed]
    return {
        "nfd_codepoints": np.array(changed, np.int32),
        "nfd_outputs": np.array([r + [-1] * (4 - len(r)) for r in rows], np.int32),
        **runs("combining", classes),
        "pairs": np.array(pairs, np.int32),
    }


def make_rules(
    origin: str,
    kind: Callable[[int], int],
    strip: Callable[[str], str],
    lower: Callable[[str], str],
    sigma: Callable[[int], int],
    letter: Callable[[int], bool],
    nfd: Callable[[str], str],
    nfc: Callable[[str], str],
) -> dict[str, np.ndarray]:
    """Returns the arrays of a rule set.

    Args:
        origin: who was asked.
        kind: of a codepoint that is neither lowered nor stripped.
        strip, lower: what one character becomes by each switch alone.
        sigma: as `sigma_kind`.
        letter: whether a codepoint beside a word makes it a longer one.
        nfd, nfc: the normalization forms of a text.
    """
    kinds = np.full(CODEPOINTS, DROP, np.uint8)
    kinds[TEXT] = [kind(codepoint) for codepoint in TEXT]
    contexts = np.zeros(CODEPOINTS, np.uint8)
    contexts[TEXT] = [sigma(codepoint) for codepoint in TEXT]
    contexts[kinds == DROP] = 2 * contexts.any()  # gone before sigma is lowered
    letters = np.zeros(CODEPOINTS, np.uint8)
    letters[TEXT] = [letter(codepoint) for codepoint in TEXT]
    stripped, lowered = replacements(kinds, strip), replacements(kinds, lower)
    return {
        "origin": np.array(origin),
        **runs("kind", kinds),
        **runs("sigma", contexts),
        **runs("letter", letters),
        "strip_codepoints": stripped[0],
        "strip_outputs": stripped[1],
        "lower_codepoints": lowered[0],
        "lower_outputs": lowered[1],
        **composition(nfd, nfc),
    }


def runs(name: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """Returns where each run of equal values starts, and its value."""
    starts = np.flatnonzero(np.diff(values, prepend=255)).astype(np.int32)
    return {f"{name}_starts": starts, f"{name}_values": values[starts]}


def huggingface() -> dict[str, np.ndarray]:
    """Returns the rule of the `tokenizers` library."""
    return make_rules(
        origin="BertNormalizer and BertPreTokenizer, "
        f"tokenizers {tokenizers.__version__}",
        kind=huggingface_kind,
        strip=lambda c: "".join(words(ord(c), strip_accents=True))[1:-1],
        lower=lambda c: "".join(words(ord(c), lowercase=True))[1:-1],
        sigma=lambda codepoint: 0,  # it lowers each character alone
        letter=is_letter_of_words(),
        nfd=normalizers.NFD().normalize_str,
        nfc=normalizers.NFC().normalize_str,
    )


def google() -> dict[str, np.ndarray]:
    """Returns the rule of tokenization.py, 2018."""

    def strip(character: str) -> str:
        parts = unicodedata.normalize("NFD", character)
        return "".join(c for c in parts if unicodedata.category(c) != "Mn")

    return make_rules(
        origin=f"google-research/bert tokenization.py, Unicode "
        f"{unicodedata.unidata_version}",
        kind=google_kind,
        strip=strip,
        lower=str.lower,
        sigma=sigma_kind,
        letter=lambda codepoint: (
            unicodedata.category(chr(codepoint))[0] in "LM"
            or unicodedata.category(chr(codepoint)) in ("Nd", "Nl")
        ),
        nfd=lambda text: unicodedata.normalize("NFD", text),
        nfc=lambda text: unicodedata.normalize("NFC", text),
    )


def main() -> None:
    default = Path(__file__).parents[1] / "bert_keras/text"
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=default)
    folder = parser.parse_args().out
    for name, made in (("huggingface", huggingface()), ("google", google())):
        out = folder / f"rules_{name}.npz"
        np.savez_compressed(out, **made)
        print(f"{out}: {out.stat().st_size:,} bytes, {made['origin']}")


if __name__ == "__main__":
    main()

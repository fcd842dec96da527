"""Makes `bert_keras/text/rules_huggingface.npz` by asking the reference library.

    python tools/make_rules.py [--out FILE]

Every codepoint c is put in "x" + c + "y"; what `BertNormalizer` and `BertPreTokenizer`
make of it is the rule. Surrogates cannot stand in a string; they are dropped, as the
decoder would have replaced them by U+FFFD, which the library drops.
"""

import argparse
from pathlib import Path

import numpy as np
import tokenizers
from tokenizers import normalizers, pre_tokenizers

from bert_keras.text.rules import ALONE, CODEPOINTS, DROP, SPACE, WIDTH, WORD

SURROGATES = range(0xD800, 0xE000)


def words(codepoint: int, lowercase: bool, strip_accents: bool) -> list[str]:
    """Returns the words that the library makes of "x" + codepoint + "y"."""
    normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=True,
        strip_accents=strip_accents,
        lowercase=lowercase,
    )
    text = normalizer.normalize_str("x" + chr(codepoint) + "y")
    pieces = pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text)
    return [word for word, _ in pieces]


def kind_of(codepoint: int) -> int:
    """Returns what the codepoint is when it is neither lowered nor stripped."""
    if codepoint in SURROGATES:
        return DROP
    made = words(codepoint, lowercase=False, strip_accents=False)
    middle = chr(codepoint)
    kinds = {("xy",): DROP, ("x", "y"): SPACE, ("x", middle, "y"): ALONE}
    kinds["x" + middle + "y",] = WORD
    return kinds[tuple(made)]


def replacements(kinds: np.ndarray, **switches) -> tuple[np.ndarray, np.ndarray]:
    """Returns the codepoints that a switch changes, and what it makes of them."""
    changed, outputs = [], []
    for codepoint in np.flatnonzero((kinds == WORD) | (kinds == ALONE)).tolist():
        text = "".join(words(codepoint, **switches))[1:-1]
        if text != chr(codepoint):
            changed.append(codepoint)
            row = [ord(character) for character in text]
            outputs.append(row + [-1] * (WIDTH - len(row)))
    return np.array(changed, np.int32), np.array(outputs, np.int32)


def make_rules() -> dict[str, np.ndarray]:
    """Returns the arrays of the rule set."""
    kinds = np.array([kind_of(codepoint) for codepoint in range(CODEPOINTS)], np.uint8)
    starts = np.flatnonzero(np.diff(kinds, prepend=255)).astype(np.int32)
    strip = replacements(kinds, lowercase=False, strip_accents=True)
    lower = replacements(kinds, lowercase=True, strip_accents=False)
    origin = f"BertNormalizer and BertPreTokenizer, tokenizers {tokenizers.__version__}"
    return {
        "origin": np.array(origin),
        "kind_starts": starts,
        "kinds": kinds[starts],
        "strip_codepoints": strip[0],
        "strip_outputs": strip[1],
        "lower_codepoints": lower[0],
        "lower_outputs": lower[1],
    }


def main() -> None:
    default = Path(__file__).parents[1] / "bert_keras/text/rules_huggingface.npz"
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=default)
    out = parser.parse_args().out
    np.savez_compressed(out, **make_rules())
    print(f"{out}: {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

"""Random strings that tokenizers differ on."""

import random
from collections.abc import Iterator

_SCRIPTS = [
    range(0x20, 0x7F),
    range(0xA0, 0x180),
    range(0x370, 0x400),
    range(0x400, 0x530),
    range(0x590, 0x700),
    range(0x900, 0xD80),
    range(0xE00, 0xE80),
    range(0x1100, 0x1200),
    range(0x1E00, 0x2000),
    range(0x2000, 0x2070),
    range(0x3040, 0x3100),
    range(0x4E00, 0x4F00),
    range(0xAC00, 0xAD00),
    range(0xF900, 0xFB00),
    range(0xFE00, 0x10000),
    range(0x1D100, 0x1D200),
    range(0x1F300, 0x1F700),
    range(0x2B800, 0x2BA00),
]
_MARKS = [
    *range(0x300, 0x370),
    *range(0x5B0, 0x5C0),
    *range(0x64B, 0x656),
    0x94D,
    0xE38,
]
_ODD = [
    *range(0x20),
    *range(0x7F, 0xA1),
    *(0xAD, 0x200B, 0x200C, 0x200D, 0x200E, 0x2028, 0x2029, 0x3000, 0xFEFF, 0xFFFD),
    *(0xE000, 0xF8FF, 0xFE0E, 0xFE0F, 0x1F3FB, 0xE0001, 0xE0067, 0xFFFFE, 0x10FFFF),
    *(0x130, 0x131, 0x3A3, 0x3C2, 0x1E9E, 0xDF, 0x2160, 0x212A, 0x166D, 0x111C9),
    *(0x378, 0x2FE0, 0xAB70, 0x10D54, 0x1C89, 0x16EA5, 0x30000),
]
_SNIPPETS = [
    *(
        "the",
        "The",
        "unbelievable",
        "[MASK]",
        "[SEP]",
        "##ing",
        "it's",
        "U.S.A.",
        "ΟΔΟΣ",
    ),
    *("👩\u200d👩\u200d👧", "🇩🇪", "👍🏽", "e\u0301", "İstanbul", "ﬁ", "한국어", "中文"),
    *(
        "कु",
        "ไทย",
        "…",
        "http://x.y/z?q=1",
        "Σ",
        "Σ.Σ",
        "ΑΣ\u0301",
        " ",
        "  ",
        "\t",
        "\r\n",
    ),
]


def fuzzed(count: int, seed: int, limit: int) -> Iterator[str]:
    """Yields strings.

    Args:
        count: how many.
        seed: of the draw.
        limit: longest word in characters, around which some words are.
    """
    draw = random.Random(seed)
    for _ in range(count):
        if draw.random() < 0.02:
            letters = draw.choice(["a", "и", "é", "abc", "ß", "한"])
            size = limit + draw.randint(-2, 2)
            yield (letters * size)[:size] + draw.choice(
                ["", " x", "!", "\u200b", "\u0301"]
            )
            continue
        yield "".join(_part(draw) for _ in range(draw.randint(0, 10)))


def broken(count: int, seed: int) -> Iterator[bytes]:
    """Yields bytes that are mostly, but not all, UTF-8."""
    draw = random.Random(seed)
    for text in fuzzed(count, seed, 100):
        data = bytearray(text.encode())
        for _ in range(draw.randint(1, 3)):
            place = draw.randint(0, len(data))
            if draw.random() < 0.5:
                data[place:place] = draw.choice(
                    [
                        b"\xff",
                        b"\xc3",
                        b"\xe2\x28",
                        b"\xf0\x9f",
                        b"\x80",
                        b"\xed\xa0\x80",
                    ]
                )
            else:
                del data[place : place + 1]
        yield bytes(data)


def _part(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.35:
        return draw.choice(_SNIPPETS)
    if kind < 0.65:
        script = draw.choice(_SCRIPTS)
        size = draw.randint(1, 5)
        return "".join(chr(draw.choice(script)) for _ in range(size))
    if kind < 0.75:
        return chr(draw.choice(_MARKS))
    if kind < 0.87:
        return chr(draw.choice(_ODD))
    if kind < 0.92:
        codepoint = draw.randrange(0x110000 - 0x800)
        return chr(codepoint if codepoint < 0xD800 else codepoint + 0x800)
    return draw.choice([" ", "-", ".", ","])

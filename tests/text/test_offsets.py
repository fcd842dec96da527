"""Where in the original text each token stands."""

import numpy as np
import pytest
from fuzz import fuzzed
from oracles import SMALL, needs_data, reference_tokenizer

from bert_keras import WordPieceTokenizer
from bert_keras.export.artefacts import codepoints_of

TEXTS = ["The quick fox.", "", "brown quickz", "  \u200b", "the\x00 fox\tthe"]


def spans(answer):
    rows = zip(answer["offsets"].numpy(), answer["counts"].numpy(), strict=True)
    return [[tuple(pair) for pair in row[:count].tolist()] for row, count in rows]


@needs_data
def test_they_are_the_library_s(uncased):
    texts = ["Tōkyō nǚ, it's 中文 unbelievableness!", "caf\u0065\u0301 x", " \ta  b "]
    answer = WordPieceTokenizer(uncased, offsets=True)(texts)
    reference = reference_tokenizer(uncased)
    expected = reference.encode_batch(texts, add_special_tokens=False)
    assert spans(answer) == [encoding.offsets for encoding in expected]


def test_padding_is_zero_and_ragged_ones_agree(small_vocabulary):
    dense = WordPieceTokenizer(small_vocabulary, offsets=True)(TEXTS)["offsets"]
    ragged = WordPieceTokenizer(small_vocabulary, offsets=True, ragged=True)(TEXTS)
    assert dense[1].numpy().tolist() == [[0, 0]] * 5
    assert dense[4, :3].numpy().tolist() == [[0, 3], [5, 8], [9, 12]]
    assert ragged["offsets"].to_list()[4] == [[0, 3], [5, 8], [9, 12]]


def test_in_bytes_by_hand(small_vocabulary):
    """é is 2 bytes, 中 3 and 🚀 4; a byte that is no character is one."""
    tokenizer = WordPieceTokenizer(small_vocabulary, offsets="bytes")
    assert spans(tokenizer(["é the", "中fox🚀 .", "the"])) == [
        [(0, 2), (3, 6)],
        [(0, 3), (3, 10), (11, 12)],
        [(0, 3)],
    ]
    broken = tokenizer([b"the\xff fox", b"\xe2\x82 fox"])
    assert spans(broken) == [[(0, 3), (5, 8)], [(3, 6)]]


@pytest.mark.parametrize("form", [None, "NFC"])
@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.filterwarnings("ignore:The vocabulary looks cased")
def test_the_slice_normalised_is_the_pieces_joined(form, lowercase):
    """Pieces that share characters (of a Hangul syllable, say) are joined first."""
    texts = list(fuzzed(2000, seed=9, limit=12))
    characters = sorted({c for text in texts for c in text if not c.isspace()})
    tokens = dict.fromkeys([*SMALL, *characters, *("##" + c for c in characters)])
    options = {"lowercase": lowercase, "normalization": form}
    tokenizer = WordPieceTokenizer(tokens, offsets=True, **options)
    normalizer = reference_tokenizer(tokenizer.vocabulary, **options).normalizer
    answer = tokenizer(texts)
    rows = zip(texts, answer["token_ids"].numpy(), spans(answer), strict=True)
    compared = 0
    for text, ids, places in rows:
        groups = []
        for number, (start, end) in zip(ids, places, strict=False):
            assert 0 <= start < end <= len(text)
            piece = tokenizer.vocabulary[number].removeprefix("##")
            if groups and start < groups[-1][1]:
                start, _, before = groups.pop()
                piece = before + piece
            groups.append((start, end, piece))
        for start, end, piece in groups:
            if "[UNK]" not in piece:
                found = normalizer.normalize_str(text[start:end])
                assert "".join(found.split()) == piece
                compared += 1
    assert compared > 5000


@pytest.mark.parametrize("form", [None, "NFC"])
def test_bytes_and_characters_say_the_same(form, small_vocabulary):
    texts = list(fuzzed(1000, seed=10, limit=12))
    options = {"lowercase": False, "normalization": form}
    in_characters = WordPieceTokenizer(small_vocabulary, offsets=True, **options)
    in_bytes = in_characters.copy(offsets="bytes")
    by_character = spans(in_characters(texts))
    expected = [
        [tuple(len(text[:place].encode()) for place in pair) for pair in row]
        for text, row in zip(texts, by_character, strict=True)
    ]
    assert spans(in_bytes(texts)) == expected
    # From codepoints, as an exported ONNX file reads them, too.
    assert spans(in_bytes(np.array(codepoints_of(texts)))) == expected

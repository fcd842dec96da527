"""Long texts in windows: nothing is lost, and every token is best somewhere once."""

import gzip

import numpy as np
import pytest
from oracles import DATA, needs_data
from tasks.readers import preprocessor

from bert_keras import WordPieceTokenizer
from bert_keras.tasks.windows import Size, Windows


def cut(tokenizer, texts: list[str], most: int, overlap: int):
    return Windows(tokenizer).of(texts, [Size(most, overlap)] * len(texts))


def tokens(tokenizer, text: str) -> list[int]:
    return tokenizer([text])["token_ids"].numpy()[0].tolist()


def test_a_short_text_is_one_window():
    tokenizer = preprocessor().tokenizer
    (found,), (nothing,) = cut(tokenizer, ["the quick fox", ""], 4, 1)
    assert found.text == "the quick fox"
    assert found.offsets.tolist() == [[0, 3], [4, 6], [6, 9], [10, 13]]
    assert found.is_best.all()
    assert (nothing.text, len(nothing.offsets)) == ("", 0)


def test_windows_by_hand():
    """Seven words of a piece each, 4 tokens a window, 2 in common.

    Windows: 0-3, 2-5, 4-6. Token 2 has one token of context behind it in the first
    window, and none before it in the second; token 3 none behind it, and one before.
    """
    tokenizer = preprocessor().tokenizer
    found = cut(tokenizer, ["fox the fox the fox the fox"], 4, 2)[0]
    assert [w.text for w in found] == [
        "fox the fox the ",
        "fox the fox the ",
        "fox the fox",
    ]
    assert [w.is_best.tolist() for w in found] == [
        [True, True, True, False],
        [False, True, True, False],
        [False, True, True],
    ]
    assert found[1].offsets[0].tolist() == [8, 11]


def test_words_stay_whole():
    """A window ends and begins where a word does, if a word fits in."""
    tokenizer = preprocessor().tokenizer  # "quick" and "brown" are two pieces each
    found = cut(tokenizer, ["quick brown fox"], 3, 0)[0]
    assert [w.text for w in found] == ["quick ", "brown fox"]


def test_a_word_longer_than_a_window_is_cut():
    tokenizer = WordPieceTokenizer(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##a"]
    )
    found = cut(tokenizer, ["a" * 8], 3, 1)[0]
    covered = np.zeros(8, int)
    for window in found:
        assert 0 < len(window.offsets) <= 3
        covered[window.offsets[window.is_best][:, 0]] += 1
    assert covered.tolist() == [1] * 8


@needs_data
@pytest.mark.parametrize(("most", "overlap"), [(20, 5), (126, 31), (7, 6)])
def test_each_window_has_the_tokens_of_the_whole(uncased, most, overlap):
    prose = gzip.decompress((DATA / "prose" / "moby-dick.txt.gz").read_bytes())
    text = " ".join(prose.decode("utf-8").split("\n")[1000:1080])
    tokenizer = WordPieceTokenizer(uncased)
    whole = tokens(tokenizer, text)
    (found,) = cut(tokenizer, [text], most, overlap)
    starts = {start: number for number, (start, _) in enumerate(
        tokenizer.copy(offsets=True)([text])["offsets"].numpy()[0].tolist()
    )}  # fmt: skip
    best = np.zeros(len(whole), int)
    for window in found:
        first = starts[int(window.offsets[0, 0])]
        last = first + len(window.offsets)
        assert tokens(tokenizer, window.text) == whole[first:last]
        best[first:last] += window.is_best
    assert best.tolist() == [1] * len(whole)


def test_an_overlap_must_leave_something_new():
    with pytest.raises(ValueError, match="Received: 4 of 4 tokens; allowed: 0 to 3"):
        cut(preprocessor().tokenizer, ["fox"], 4, 4)


def test_a_tokenizer_is_compiled_once():
    tokenizer = preprocessor().tokenizer
    assert Windows.by(tokenizer) is Windows.by(tokenizer)
    assert Windows.by(tokenizer) is not Windows.by(preprocessor().tokenizer)

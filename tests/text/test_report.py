"""How well a vocabulary fits a text."""

import pytest

from bert_keras import SpecialTokens, Vocabulary, WordPieceTokenizer
from bert_keras.text.learner import learn_vocabulary
from bert_keras.text.report import vocabulary_report
from bert_keras.text.word_counts import count_words


def test_by_hand():
    """Pieces a, ab, ##b, ##c.

    | word | count | pieces     | characters | of them covered    |
    |------|-------|------------|------------|--------------------|
    | abc  | 3     | ab ##c     | 3          | 3: a, ##b, ##c     |
    | ab   | 2     | ab         | 2          | 2: a, ##b          |
    | bca  | 1     | [UNK]      | 3          | 1: ##c; no b, ##a  |
    | abd  | 4     | [UNK]      | 3          | 2: a, ##b; no ##d  |
    """
    vocabulary = Vocabulary([*SpecialTokens(), "a", "ab", "##b", "##c"])
    report = vocabulary_report(vocabulary, {"abc": 3, "ab": 2, "bca": 1, "abd": 4})
    assert report.words == 10
    assert report.distinct_words == 4
    assert report.characters_covered == (9 + 4 + 1 + 8) / (9 + 4 + 3 + 12)
    assert report.pieces_per_word == (6 + 2 + 1 + 4) / 10
    assert report.unknown_words == 5 / 10
    assert report.unknown_tokens == 5 / 13


def test_the_tokenizer_says_the_same():
    text = ["She sells sea shells by the sea shore, it's said; Ça va? 中文"]
    vocabulary = learn_vocabulary(count_words(text[0].split()[:6]), 17)
    words = count_words(text)
    report = vocabulary_report(vocabulary, words)
    tokenizer = WordPieceTokenizer(vocabulary)
    ids = tokenizer(text)["token_ids"].numpy()[0]
    unknown = (ids == tokenizer.special_ids.unk).sum()
    assert 0 < unknown < report.words < len(ids)
    assert report.pieces_per_word == len(ids) / report.words
    assert report.unknown_words == unknown / report.words
    assert report.unknown_tokens == unknown / len(ids)


def test_a_token_that_is_only_the_prefix_is_a_word():
    vocabulary = Vocabulary([*SpecialTokens(), "##", "a"])
    report = vocabulary_report(vocabulary, {"##": 1, "a": 1})
    assert (report.pieces_per_word, report.unknown_words) == (1, 0)


def test_what_cannot_be_compared_is_refused():
    vocabulary = learn_vocabulary(count_words(["Été"], lowercase=False), 20)
    with pytest.raises(ValueError, match="lowercase=True; allowed: lowercase=False"):
        vocabulary_report(vocabulary, count_words(["Été"]))
    with pytest.raises(ValueError, match="no words"):
        vocabulary_report(vocabulary, {})

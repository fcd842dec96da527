"""Corpus -> vocabulary. Ids in the names (T01 ...) are those of the public reports."""

import random as python_random

import pytest

from bert_keras import WordPieceTokenizer, count_words, learn_vocabulary

FRAGMENTS = "low lower lowest new newer newest wide wider widest show shower".split()


def test_the_worked_example():
    """By hand. Pairs of {aab: 3, ab: 2}: (a, ##a) 3, (##a, ##b) 3, (a, ##b) 2.

    The tie goes to ("##a", "##b"), smaller as text than ("a", "##a"): "#" < "a". Then
    (a, ##ab) has 3 and (a, ##b) 2.
    """
    vocabulary = learn_vocabulary({"aab": 3, "ab": 2}, 20)
    assert vocabulary[5:] == ("a", "##a", "##b", "##ab", "aab", "ab")


def test_t01_the_same_bytes_for_any_order():
    lines = [" ".join(FRAGMENTS[i : i + 3]) for i in range(9)] * 2
    expected = learn_vocabulary(count_words(lines), 60).tokens
    for seed in range(5):
        python_random.Random(seed).shuffle(lines)
        assert learn_vocabulary(count_words(lines), 60).tokens == expected


def test_t02_special_tokens_in_the_text_are_not_counted():
    words = count_words(["foo [SEP] bar [UNK] baz"] * 50)
    tokens = learn_vocabulary(words, 40).tokens
    assert tokens.count("[SEP]") == 1
    assert not {"sep", "unk", "[sep", "##sep", "[", "]"} & set(tokens)


def test_t04_the_size_is_never_exceeded_and_the_least_is_named():
    words = count_words(["abcdefghijklmnopqrstuvwxyz"] * 3)
    with pytest.raises(ValueError, match="size=20.*at least 31"):
        learn_vocabulary(words, 20)
    for size in (31, 32, 40):
        assert len(learn_vocabulary(words, size)) == size


def test_t05_counts_beyond_32_bits():
    vocabulary = learn_vocabulary({"the": 5_000_000_000, "cat": 10}, 13)
    assert "the" in vocabulary


def test_t07_t08_lower_case_may_keep_accents():
    words = count_words(["Möchte"] * 100, strip_accents=False)
    vocabulary = learn_vocabulary(words, 30)
    assert "möchte" in vocabulary
    assert "mochte" not in vocabulary
    tokenizer = WordPieceTokenizer(vocabulary, strip_accents=False)
    assert tokenizer("MÖCHTE")["counts"].numpy() == 1


def test_words_are_cut_as_the_tokenizer_cuts_them():
    words = count_words(["It's a\tTEST\x00s, 中文\u00a0naïve", "x" * 101])
    expected = {"it": 1, "'": 1, "s": 1, "a": 1, "tests": 1, ",": 1}
    assert words == {**expected, "中": 1, "文": 1, "naive": 1}


def test_two_pairs_that_make_one_piece_count_once():
    words = {"abc": 9, "xabc": 8, "ab": 7, "bc": 6, "xbc": 5}
    tokens = learn_vocabulary(words, 40).tokens
    assert len(set(tokens)) == len(tokens)
    assert set(words) <= set(tokens)


def test_rare_characters_leave_the_alphabet():
    words = {"aa": 10, "ab": 5, "az": 1}
    tokens = learn_vocabulary(words, 30, alphabet_size=2).tokens
    assert "##z" not in tokens
    assert "##b" in tokens


def test_a_corpus_without_words_is_refused():
    with pytest.raises(ValueError, match="no words"):
        learn_vocabulary(count_words(["", " \n "]), 100)
    with pytest.raises(ValueError, match="the string 'one text'"):
        count_words("one text")


def test_frequent_words_stay_whole_and_progress_is_told():
    seen = []
    words = {word: 10 - n // 2 for n, word in enumerate(FRAGMENTS)}
    vocabulary = learn_vocabulary(words, 40, progress=seen.append)
    assert seen == list(range(seen[0], len(vocabulary) + 1))
    assert {"low", "lower", "new"} <= set(vocabulary)

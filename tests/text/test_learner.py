"""Corpus -> vocabulary. Ids in the names (T01 ...) are those of the public reports."""

import hashlib
import random as python_random
from collections import Counter
from itertools import pairwise

import pytest

from bert_keras import (
    SpecialTokens,
    WordPieceTokenizer,
    count_words,
    learn_vocabulary,
)
from bert_keras.text import word_counts

FRAGMENTS = "low lower lowest new newer newest wide wider widest show shower".split()


def test_the_worked_example():
    """By hand. Pairs of {aab: 3, ab: 2}: (a, ##a) 3, (##a, ##b) 3, (a, ##b) 2.

    The tie goes to ("##a", "##b"), smaller as text than ("a", "##a"): "#" < "a". Then
    (a, ##ab) has 3 and (a, ##b) 2.
    """
    vocabulary = learn_vocabulary({"aab": 3, "ab": 2}, 20)
    assert vocabulary[5:] == ("a", "##a", "##b", "##ab", "aab", "ab")


def test_the_likelihood_by_hand():
    """Words {ab: 4, ac: 4, dc: 2}; pieces a 8, ##b 4, ##c 6, d 2.

    | pair    | count | score             |
    |---------|-------|-------------------|
    | a, ##b  | 4     | 4 / (8 * 4) = 1/8 |
    | a, ##c  | 4     | 4 / (8 * 6) = 1/12|
    | d, ##c  | 2     | 2 / (2 * 6) = 1/6 |

    So "dc" is first. Then ##c is left 4 times: (a, ##c) has 4 / (8 * 4), a tie, which
    goes to the smaller text. By count alone the order is ab, ac, dc.
    """
    words = {"ab": 4, "ac": 4, "dc": 2}
    assert learn_vocabulary(words, 20)[9:] == ("ab", "ac", "dc")
    learned = learn_vocabulary(words, 20, objective="likelihood")
    assert learned[9:] == ("dc", "ab", "ac")
    # Once (a, ##b) is joined, (a, ##c) has 4 / (4 * 4): above 1/6, if dc may not be.
    learned = learn_vocabulary(words, 20, objective="likelihood", min_count=3)
    assert learned[9:] == ("ab", "ac")


def recounted(words: dict[str, int], size: int, objective: str, min_count: int):
    """Learns a vocabulary the slow way: counts everything anew for each join."""
    cut = {word: [word[0], *("##" + c for c in word[1:])] for word in words}
    tokens = [
        *sorted({pieces[0] for pieces in cut.values()}),
        *sorted({piece for pieces in cut.values() for piece in pieces[1:]}),
    ]
    while len(tokens) + 5 < size:
        pairs, parts = Counter(), Counter()
        for word, pieces in cut.items():
            for pair in pairwise(pieces):
                pairs[pair] += words[word]
            for piece in pieces:
                parts[piece] += words[word]

        def rank(pair, pairs=pairs, parts=parts):
            score = pairs[pair]
            if objective == "likelihood":
                score /= parts[pair[0]] * parts[pair[1]]
            return -score, pair

        left = [pair for pair in pairs if pairs[pair] >= min_count]
        if not left:
            break
        best = min(left, key=rank)
        piece = best[0] + best[1][2:]
        for pieces in cut.values():
            position = 0
            while position < len(pieces) - 1:
                if (pieces[position], pieces[position + 1]) == best:
                    pieces[position : position + 2] = [piece]
                position += 1
        if piece not in tokens:
            tokens.append(piece)
    return tuple(tokens)


@pytest.mark.parametrize("objective", ["count", "likelihood"])
@pytest.mark.parametrize("seed", range(12))
def test_a_recount_at_every_step_says_the_same(objective, seed):
    random = python_random.Random(seed)
    letters = "ab" if seed % 3 == 0 else "abcd" if seed % 3 == 1 else "abcdefghijkl#"
    words = {
        "".join(random.choices(letters, k=random.randint(1, 9))): random.randint(1, 9)
        for _ in range(40)
    }
    for size, min_count in ((1000, 1), (60, 1), (1000, 7)):
        expected = recounted(words, size, objective, min_count)
        learned = learn_vocabulary(
            words, size, objective=objective, min_count=min_count
        )
        assert learned[5:] == expected


def md5(words) -> str:
    tokens = learn_vocabulary(words, 60).tokens
    return hashlib.md5("\n".join(tokens).encode()).hexdigest()


def test_t01_the_same_bytes_for_any_run_order_and_number_of_processes(monkeypatch):
    lines = [" ".join(FRAGMENTS[i : i + 3]) for i in range(9)] * 2
    found = {md5(count_words(lines)) for _ in range(20)}
    for seed in range(5):
        python_random.Random(seed).shuffle(lines)
        found.add(md5(count_words(lines)))
    monkeypatch.setattr(word_counts, "PART", 50)
    found.add(md5(count_words(lines, processes=2)))
    assert len(found) == 1


def test_t02_special_tokens_in_the_text_are_not_counted():
    words = count_words(["foo [SEP] bar [UNK] baz"] * 50)
    tokens = learn_vocabulary(words, 40).tokens
    assert tokens.count("[SEP]") == 1
    assert not {"sep", "unk", "[sep", "##sep", "[", "]"} & set(tokens)


def test_t04_the_size_is_never_exceeded_and_the_least_is_named():
    words = count_words(["abcdefghijklmnopqrstuvwxyz"] * 3)
    with pytest.raises(ValueError, match="size=20.*at least 31, for 5 .* 26 char"):
        learn_vocabulary(words, 20)
    for size in (31, 32, 40):
        assert len(learn_vocabulary(words, size)) == size
    words = count_words(["abc"], never_split=["A", "B", "a"])
    with pytest.raises(ValueError, match="at least 10, for 8 .* 2 characters"):
        learn_vocabulary(words, 9)  # "a" is both
    assert len(learn_vocabulary(words, 10)) == 10


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


def test_t08_the_options_travel_with_the_vocabulary(tmp_path):
    words = count_words(["café"] * 50, lowercase=True, strip_accents=False)
    vocabulary = learn_vocabulary(words, 30)
    assert vocabulary.options == words.options
    vocabulary.write(tmp_path / "vocab.txt")
    tokenizer = WordPieceTokenizer(tmp_path / "vocab.txt")
    (number,) = tokenizer("Café")["token_ids"].numpy()
    assert vocabulary[number] == "café"
    with pytest.raises(ValueError, match="strip_accents"):
        WordPieceTokenizer(tmp_path / "vocab.txt", strip_accents=True)
    assert learn_vocabulary(dict(words), 30).options is None


def test_names_come_first_and_are_known():
    names = SpecialTokens("<pad>", "<unk>", "<s>", "</s>", "<mask>")
    words = count_words(["ab <s>"], special_tokens=names, never_split=["US", "x"])
    vocabulary = learn_vocabulary(words, 20)
    assert vocabulary.tokens == (*names, "US", "x", "a", "##b", "ab")
    assert vocabulary.special_tokens == names
    assert learn_vocabulary(words, 20, special_tokens=names) == vocabulary
    with pytest.raises(ValueError, match="other special tokens"):
        learn_vocabulary(words, 20, special_tokens=SpecialTokens())
    assert learn_vocabulary({"a": 1}, 20, special_tokens=names)[:5] == (*names,)


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


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"size": 0}, "size=0; allowed: an integer of at least 1"),
        ({"min_count": 0}, "min_count=0"),
        ({"alphabet_size": "all"}, "alphabet_size='all'"),
        ({"objective": "loss"}, "objective='loss'; allowed: 'count', 'likelihood'"),
        ({"words": {"a": 1.5}}, "'a': 1.5; allowed: strings, each with an integer"),
    ],
)
def test_wrong_arguments_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        learn_vocabulary(**{"words": {"a": 1}, "size": 20, **wrong})


def test_frequent_words_stay_whole_and_progress_is_told():
    seen = []
    words = {word: 10 - n // 2 for n, word in enumerate(FRAGMENTS)}
    vocabulary = learn_vocabulary(words, 40, progress=seen.append)
    assert seen == list(range(seen[0], len(vocabulary) + 1))
    assert {"low", "lower", "new"} <= set(vocabulary)


def test_pairs_below_the_least_count_are_not_joined():
    words = {"ab": 3, "cd": 2, "ed": 1}
    assert learn_vocabulary(words, 40, min_count=2)[10:] == ("ab", "cd")
    assert len(learn_vocabulary(words, 40)) == 13


def test_the_peer_learns_the_same_but_for_ties():
    tokenizers = pytest.importorskip("tokenizers")
    random = python_random.Random(3)
    names = [a + b for a in FRAGMENTS for b in FRAGMENTS]
    weights = [1 / n for n in range(1, len(names) + 1)]
    lines = [" ".join(random.choices(names, weights, k=8)) for _ in range(500)]
    peer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    peer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=90, special_tokens=list(SpecialTokens()), show_progress=False
    )
    peer.train_from_iterator(lines, trainer)
    theirs = {token for token in peer.get_vocab() if len(token.strip("#")) > 1}
    # It keeps each character both ways, "a" and "##a", so it has fewer joined pieces.
    words = count_words(lines)
    alphabet = learn_vocabulary(words, 90, min_count=10**9)
    learned = learn_vocabulary(words, len(alphabet) + len(theirs) - 5)
    ours = {token for token in learned if len(token.strip("#")) > 1}
    assert len(ours) == len(theirs) > 50
    assert len(ours - theirs) <= 2

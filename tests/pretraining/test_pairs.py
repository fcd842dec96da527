"""Sentence pairs. Ids in the names (M05) are those of the public reports."""

import numpy as np
import pytest

from bert_keras.pretraining.pairs import sentence_pairs


def documents(count, sentences=12):
    """Sentences of 1 to 5 tokens; a token is 1000 * document + its place there."""
    random = np.random.default_rng(3)
    made = []
    for number in range(count):
        place, document = 0, []
        for length in random.integers(1, 6, sentences):
            start = 1000 * number + place
            document.append(np.arange(start, start + length, dtype=np.int32))
            place += length
        made.append(document)
    return made


def pairs(count, places=16, seed=0, sentences=12, **options):
    random = np.random.default_rng(seed)
    made = documents(count, sentences)
    return list(sentence_pairs(made, places, random, **options))


def test_m05_a_random_second_text_comes_from_another_document():
    made = pairs(40)
    for pair in made:
        one, other = set(pair.first // 1000), set(pair.second // 1000)
        assert len(one) == len(other) == 1
        assert (one == other) == pair.is_next


def test_a_real_second_text_follows_the_first():
    for pair in pairs(40):
        assert (np.diff(pair.first) == 1).all()
        assert (np.diff(pair.second) == 1).all()
        if pair.is_next:
            assert pair.second[0] == pair.first[-1] + 1


def test_half_of_the_pairs_are_real():
    made = [pair for seed in range(10) for pair in pairs(40, seed=seed)]
    share = np.mean([pair.is_next for pair in made])
    # The last stretch of a document may be one sentence, which has no next.
    assert 0.40 < share < 0.50


def test_every_token_of_a_document_is_used_as_text():
    made = pairs(30)
    firsts = {int(t) for pair in made for t in pair.first}
    followers = {int(t) for pair in made if pair.is_next for t in pair.second}
    assert firsts | followers == {
        int(t) for document in documents(30) for sentence in document for t in sentence
    }


def test_m05_one_document_has_real_pairs_only_and_a_warning():
    with pytest.warns(UserWarning, match="one document"):
        made = pairs(1)
    assert made
    assert all(pair.is_next for pair in made)


def test_one_document_of_long_sentences_has_pairs_too():
    long = [[np.arange(200, dtype=np.int32) + 200 * n for n in range(10)]]
    with pytest.warns(UserWarning, match="one document"):
        made = list(sentence_pairs(long, 125, np.random.default_rng(0)))
    assert len(made) == 5
    assert all(pair.second[0] == pair.first[-1] + 1 for pair in made)


def test_rows_are_filled_but_for_the_short_ones():
    def lengths(probability):
        made = pairs(5, 16, sentences=200, short_probability=probability)
        return np.array([len(p.first) + len(p.second) for p in made])

    # But for the end of a document: of the walk's own, or of the one drawn from.
    assert np.mean(lengths(0.0) >= 16) > 0.9
    assert np.mean(lengths(1.0) >= 16) < 0.3


def test_the_seed_decides_everything():
    one, again, other = pairs(9), pairs(9), pairs(9, seed=1)
    assert [p.first.tolist() for p in one] == [p.first.tolist() for p in again]
    assert [p.first.tolist() for p in one] != [p.first.tolist() for p in other]

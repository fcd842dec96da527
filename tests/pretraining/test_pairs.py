"""Rows of text. Ids in the names (M05) are those of the public reports."""

import numpy as np
import pytest

from bert_keras.pretraining.pairs import OBJECTIVES, texts_in_a_row
from bert_keras.pretraining.shards import TokenizedStretch


def stretches(count, sentences=12):
    """Sentences of 1 to 5 tokens; a token is 1000 * document + its place there."""
    random = np.random.default_rng(3)
    made = []
    for number in range(count):
        place, document = 0, []
        for length in random.integers(1, 6, sentences):
            start = 1000 * number + place
            document.append(np.arange(start, start + length, dtype=np.int32))
            place += length
        made.append(TokenizedStretch(number, document))
    return made


def rows(made, places=16, seed=0, objective="next_sentence", **options):
    random = np.random.default_rng(seed)
    return list(OBJECTIVES[objective](made, places, random, **options))


def pairs(count, *, sentences=12, **options):
    return rows(stretches(count, sentences), **options)


def test_m05_a_random_second_text_comes_from_another_document():
    for pair in pairs(40):
        one, other = set(pair.first // 1000), set(pair.second // 1000)
        assert len(one) == len(other) == 1
        assert (one == other) == pair.is_next


def test_m05_stretches_of_one_document_are_no_others():
    """Three stretches of document 0, one of document 1."""
    made = [s._replace(document=n // 3) for n, s in enumerate(stretches(4))]
    for pair in rows(made):
        one, other = (set(text // 1000) for text in pair[:2])
        if not pair.is_next:
            assert (one == {3}) != (other == {3})


def test_a_real_second_text_follows_the_first():
    for pair in pairs(40):
        assert (np.diff(pair.first) == 1).all()
        assert (np.diff(pair.second) == 1).all()
        if pair.is_next:
            assert pair.second[0] == pair.first[-1] + 1


@pytest.mark.parametrize(("sentences", "places"), [(12, 16), (12, 3), (3, 16)])
def test_half_of_the_pairs_are_real(sentences, places):
    """Also where a sentence fills a row, and where documents are short."""
    made = pairs(2000, sentences=sentences, places=places)
    share = np.mean([pair.is_next for pair in made])
    assert 0.48 < share < 0.52  # of 4,000 pairs and more: 2.5 standard deviations


def test_every_token_of_a_document_is_used_as_text():
    made = pairs(30)
    firsts = {int(t) for pair in made for t in pair.first}
    followers = {int(t) for pair in made if pair.is_next for t in pair.second}
    assert firsts | followers == {
        int(t) for stretch in stretches(30) for s in stretch.sentences for t in s
    }


def test_m05_one_document_has_real_pairs_only():
    made = pairs(1)
    assert made
    assert all(pair.is_next for pair in made)


def test_one_document_of_long_sentences_has_pairs_too():
    long = [np.arange(200, dtype=np.int32) + 200 * n for n in range(10)]
    made = rows([TokenizedStretch(0, long)], 125)
    assert len(made) == 5
    assert all(pair.second[0] == pair.first[-1] + 1 for pair in made)


def test_rows_are_filled_but_for_the_short_ones():
    def lengths(probability):
        made = pairs(5, sentences=200, short_probability=probability)
        return np.array([len(p.first) + len(p.second) for p in made])

    # But for the end of a document: of the walk's own, or of the one drawn from.
    assert np.mean(lengths(0.0) >= 16) > 0.9
    assert np.mean(lengths(1.0) >= 16) < 0.35


def test_sentence_order_has_neighbours_half_of_them_swapped():
    made = pairs(500, objective="sentence_order")
    for pair in made:
        first, second = pair[:2] if pair.is_next else pair[1::-1]
        assert second[0] == first[-1] + 1
        assert (np.diff(np.concatenate([first, second])) == 1).all()
    share = np.mean([pair.is_next for pair in made])
    assert 0.45 < share < 0.55  # of about 1,200: 3.5 standard deviations
    lone = [TokenizedStretch(n, [np.arange(9)]) for n in range(3)]
    assert rows(lone, objective="sentence_order") == []


def test_masked_lm_alone_fills_rows_with_one_document():
    made = stretches(20, sentences=50)
    found = rows(made, objective="masked_lm", short_probability=0.0)
    assert all(pair.second is None for pair in found)
    tokens = np.concatenate([np.concatenate(s.sentences) for s in made])
    np.testing.assert_array_equal(np.concatenate([p.first for p in found]), tokens)
    assert all(len(set(pair.first // 1000)) == 1 for pair in found)
    lengths = np.array([len(pair.first) for pair in found])
    assert lengths.max() == 16
    assert (lengths == 16).sum() >= len(found) - 2 * 20  # but the ends of documents
    other = rows(made, objective="masked_lm", short_probability=0.0, seed=1)
    assert [p.first.tolist() for p in found] != [p.first.tolist() for p in other]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_seed_decides_everything(objective):
    one, again, other = (
        [p.first.tolist() for p in pairs(9, seed=seed, objective=objective)]
        for seed in (0, 0, 1)
    )
    assert one == again
    assert one != other


def test_objectives_say_how_many_texts_they_need():
    assert [texts_in_a_row(name) for name in OBJECTIVES] == [2, 2, 1]
    with pytest.raises(ValueError, match="'nsp'; allowed: next_sentence, sentence"):
        texts_in_a_row("nsp")

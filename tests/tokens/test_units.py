"""What masked LM hides together."""

import numpy as np
import pytest
import tensorflow as tf

from bert_keras import MaskedLMMasker, WordPieceTokenizer
from bert_keras.tokens.units import UNITS, fill_room, units_of

#            [CLS] w  ##p  w [SEP] ##p ##p  w [SEP] [PAD]
TEXT = [False, True, True, True, False, True, True, True, False, False]
GOES_ON = [False, False, True, False, False, True, True, False, False, False]


def units(unit, text=TEXT, goes_on=GOES_ON, seed=(0, 0)):
    """Returns the groups: of spans the spans, else the units."""
    found = units_of(unit, tf.constant([text]), tf.constant([goes_on]), list(seed))
    if unit != "span":
        np.testing.assert_array_equal(*found)
    return found[1].numpy()[0]


def test_units_by_hand():
    """The text behind [SEP] begins with "##": cut so, it is a word all the same."""
    assert units("piece").tolist() == [0, 0, 1, 2, 2, 3, 4, 5, 5, 5]
    assert units("word").tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3, 3]


def test_a_row_that_is_all_text():
    assert units("piece", [True] * 4, [False] * 4).tolist() == [0, 1, 2, 3]
    assert units("word", [True] * 4, [True] * 4).tolist() == [0, 0, 0, 0]
    assert units("word", [False] * 4, [False] * 4).tolist() == [0, 0, 0, 0]


def test_spans_hold_whole_words_and_end_where_a_text_does():
    for seed in range(50):
        words, spans = units("word"), units("span", seed=(seed, 0))
        for word in range(4):
            members = (words == word) & np.array(TEXT)
            assert len(set(spans[members])) == 1
        assert spans[3] < spans[5]


def test_lengths_of_spans_are_geometric_and_at_most_ten():
    """Of P(length = n) = 0.2 * 0.8 ** (n - 1), what is above 10 counts as 10."""
    text = [True] * 20_000
    spans = units("span", text, [False] * len(text))
    lengths = np.bincount(spans)[:-1]
    assert lengths.max() == 10
    for length in range(1, 10):
        expected = 0.2 * 0.8 ** (length - 1)
        assert np.mean(lengths == length) == pytest.approx(expected, abs=0.02)
    assert np.mean(lengths == 10) == pytest.approx(0.8**9, abs=0.02)


def chosen(sizes, room, order):
    """Fills a room with units of some sizes, in an order; returns those chosen."""
    numbers = np.repeat(np.arange(len(sizes)), sizes)
    drawn = np.full(len(numbers), 0.99, np.float32)
    drawn[order] = np.arange(len(sizes)) / 100
    text = tf.ones([1, len(numbers)], tf.bool)
    units = tf.constant(numbers[None], tf.int32)
    taken = fill_room(units, units, text, tf.constant([room]), drawn[None])
    return np.flatnonzero(taken.numpy()[0]).tolist()


@pytest.mark.parametrize(
    ("sizes", "room", "order", "expected"),
    [
        ([1, 1, 1, 1], 2, [3, 1, 0, 2], [1, 3]),
        ([2, 3, 1, 1], 4, [1, 0, 2, 3], [1, 2]),  # 3, not 2, 1
        ([3, 3, 2, 1], 6, [2, 0, 1, 3], [0, 2, 3]),  # 2, 3, not 3, 1
        ([4, 3, 5], 2, [0, 2, 1], [1]),  # none fits: the smallest
        ([4, 3, 5], 0, [0, 2, 1], []),
    ],
)
def test_a_room_is_filled_in_order_by_hand(sizes, room, order, expected):
    assert chosen(sizes, room, order) == expected


def test_of_the_last_span_as_much_is_chosen_as_has_room():
    """Words of 2, 1, 3, 1 and 1 tokens; spans of the first two and the last three."""
    words = tf.constant([[0, 0, 1, 2, 2, 2, 3, 4]])
    spans = tf.constant([[0, 0, 0, 1, 1, 1, 1, 1]])
    text, last_first = tf.ones([1, 8], tf.bool), [[0.9, 0.1] + [0.5] * 6]
    for room, expected in ((4, [2, 3]), (5, [2, 3, 4]), (6, [1, 2, 3, 4]), (2, [3, 4])):
        taken = fill_room(words, spans, text, tf.constant([room]), last_first)
        assert np.flatnonzero(taken.numpy()[0]).tolist() == expected


def test_a_room_is_filled_as_a_loop_would(random):
    for _ in range(200):
        sizes = random.integers(1, 6, 12)
        room, order = int(random.integers(0, 20)), random.permutation(12)
        left, expected = room, []
        for unit in order:
            if sizes[unit] <= left:
                expected.append(int(unit))
                left -= sizes[unit]
        if expected or not room:
            assert chosen(sizes, room, order) == sorted(expected)


@pytest.fixture(scope="module")
def tokenizer():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return WordPieceTokenizer([*special, *"abcdef", *("##" + c for c in "abcdef")])


def rows_of_words(random, rows=200, words=40):
    """Returns features whose words have 1 to 4 pieces, and the word of each token."""
    ids = np.zeros((rows, 128), np.int32)
    numbers = np.full((rows, 128), -1)
    for row in range(rows):
        tokens, owners = [2], [-1]
        for word in range(words):
            length = int(random.integers(1, 5))
            tokens += [int(random.integers(5, 11))]
            tokens += random.integers(11, 17, length - 1).tolist()
            owners += [word] * length
        end = min(len(tokens), 127)
        ids[row, :end], numbers[row, :end] = tokens[:end], owners[:end]
        ids[row, end] = 3
    mask = (ids > 0).astype(np.int32)
    features = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}
    return features, numbers


@pytest.mark.parametrize("unit", UNITS)
def test_the_number_chosen(tokenizer, random, unit):
    """Pieces: exactly round(0.15 n). Others: at most that, and short by a word."""
    features, words = rows_of_words(random)
    masker = MaskedLMMasker.of(tokenizer, predictions=20, unit=unit)
    answer = masker(features, seed=[1, 2])
    found = answer["mask_weights"].numpy().sum(axis=1)
    wanted = np.array([min(20, round(0.15 * n)) for n in (words >= 0).sum(axis=1)])
    if unit == "piece":
        np.testing.assert_array_equal(found, wanted)
    else:
        assert (found <= wanted).all()
        assert (found >= wanted - 3).all()
        assert found.mean() > wanted.mean() - 0.5


@pytest.mark.parametrize("unit", ["word", "span"])
def test_words_are_chosen_whole(tokenizer, random, unit):
    features, words = rows_of_words(random)
    masker = MaskedLMMasker.of(tokenizer, predictions=20, unit=unit)
    answer = masker(features, seed=[1, 2])
    positions, weights = (
        answer[name].numpy() for name in ("mask_positions", "mask_weights")
    )
    for row in range(len(words)):
        at = positions[row][weights[row] > 0]
        assert (np.diff(at) > 0).all()
        touched = set(words[row, at])
        assert set(np.flatnonzero(np.isin(words[row], list(touched)))) == set(at)


def test_the_tokens_of_a_span_share_one_fate(tokenizer, random):
    """Of 80, 10 and 10 %; of pieces and words, each token has its own."""
    features, _ = rows_of_words(random, rows=2000)
    shares = {}
    for unit in UNITS:
        masker = MaskedLMMasker.of(tokenizer, predictions=20, unit=unit)
        answer = masker(features, seed=[1, 2])
        positions = answer["mask_positions"].numpy()
        weights = answer["mask_weights"].numpy() > 0
        rows = np.arange(len(positions))[:, None]
        hidden = answer["token_ids"].numpy()[rows, positions] == 4
        both = weights[:, 1:] & (np.diff(positions, axis=1) == 1)
        changes = (hidden[:, 1:] != hidden[:, :-1])[both].mean()
        shares[unit] = changes
        assert hidden[weights].mean() == pytest.approx(0.8, abs=0.03)
    # Two neighbours differ in 2 * 0.8 * 0.2 of the cases if each has its own fate.
    assert shares["piece"] == pytest.approx(0.32, abs=0.03)
    assert shares["word"] == pytest.approx(0.32, abs=0.03)
    assert shares["span"] < 0.15


def test_one_long_word_is_hidden_as_far_as_there_is_room(tokenizer):
    ids = np.array([[2, 5, 11, 12, 13, 3]], np.int32)
    features = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids // ids}
    for predictions, expected in ((20, [1, 2, 3, 4]), (2, [1, 2])):
        masker = MaskedLMMasker.of(tokenizer, predictions=predictions, unit="word")
        answer = masker(features, seed=[0, 0])
        at = answer["mask_positions"].numpy()[answer["mask_weights"].numpy() > 0]
        assert at.tolist() == expected


def test_an_unknown_unit_is_refused(tokenizer):
    with pytest.raises(ValueError, match="'letter'; allowed: piece, word, span"):
        MaskedLMMasker.of(tokenizer, predictions=3, unit="letter")

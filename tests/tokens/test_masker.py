"""Masking. Ids in the names (M01 ...) are those of the public reports."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_keras import MaskedLMMasker, SpecialTokens

SPECIAL = SpecialTokens(pad=0, unk=1, cls=2, sep=3, mask=4)
SIZE = 100


def features(rows: int, texts: int, padding: int = 3) -> dict:
    """Rows of [CLS], `texts` text tokens, [SEP] and padding."""
    ids = [2, *(5 + n % (SIZE - 5) for n in range(texts)), 3]
    row = np.array(ids + [0] * padding, np.int32)
    mask = np.array([1] * len(ids) + [0] * padding, np.int32)
    tiled = {"token_ids": row, "segment_ids": 0 * row, "padding_mask": mask}
    return {name: np.tile(value, (rows, 1)) for name, value in tiled.items()}


def masker(**options):
    return MaskedLMMasker(SIZE, SPECIAL, **{"predictions": 20, **options})


def masked(given, seed=(1, 2), **options) -> dict:
    return {k: np.array(v) for k, v in masker(**options)(given, seed=seed).items()}


@pytest.mark.parametrize(
    ("texts", "expected"), [(0, 0), (1, 1), (6, 1), (20, 3), (100, 15), (30, 4)]
)
def test_m03_the_count_is_exact(texts, expected):
    """max(1, round(0.15 n)), and Python's round(4.5) is 4."""
    answer = masked(features(50, texts))
    assert answer["mask_weights"].sum(axis=1).tolist() == [expected] * 50


def test_m03_never_more_than_predictions():
    answer = masked(features(9, 100), predictions=7)
    assert answer["mask_positions"].shape == (9, 7)
    assert answer["mask_weights"].min() == 1


def test_m01_only_real_text_tokens_are_chosen():
    given = {
        "token_ids": np.tile(np.array([2, 5, 6, 3, 0, 0], np.int32), (1000, 1)),
        "segment_ids": np.zeros((1000, 6), np.int32),
        "padding_mask": np.tile(np.array([1, 1, 1, 1, 0, 0], np.int32), (1000, 1)),
    }
    answer = masked(given)
    chosen = answer["mask_positions"][answer["mask_weights"] > 0]
    assert set(chosen.tolist()) == {1, 2}
    assert 400 < (chosen == 1).sum() < 600  # 500 +- 6 standard deviations


def test_positions_are_distinct_ascending_and_labelled():
    given = features(64, 100)
    answer = masked(given)
    positions = answer["mask_positions"][:, :15]
    assert (np.diff(positions) > 0).all()
    rows = np.arange(64)[:, None]
    np.testing.assert_array_equal(
        answer["mask_ids"][:, :15], given["token_ids"][rows, positions]
    )
    for name in ("mask_positions", "mask_ids", "mask_weights"):
        assert not answer[name][:, 15:].any()
    elsewhere = np.ones(given["token_ids"].shape, bool)
    elsewhere[rows, positions] = False
    np.testing.assert_array_equal(
        answer["token_ids"][elsewhere], given["token_ids"][elsewhere]
    )


def test_m02_m03_shares_of_what_replaces(random):
    answer = masked(features(2000, 100))
    rows = np.arange(2000)[:, None]
    positions = answer["mask_positions"][:, :15]
    now, before = answer["token_ids"][rows, positions], answer["mask_ids"][:, :15]
    # A random token is the same as before once in 95 draws.
    assert abs((now == 4).mean() - 0.8) < 0.01
    assert abs((now == before).mean() - (0.1 + 0.1 / 95)) < 0.01
    replaced = now[(now != 4) & (now != before)]
    assert not set(replaced.tolist()) & set(SPECIAL)
    assert len(set(replaced.tolist())) == SIZE - len(SPECIAL)


@pytest.mark.parametrize(
    ("rates", "share"), [((1.0, 0.0), 1.0), ((0.0, 0.0), 0.0), ((0.0, 1.0), 0.0)]
)
def test_rates_of_0_and_1(rates, share):
    given = features(10, 50)
    answer = masked(given, mask_rate=rates[0], random_rate=rates[1], rate=1.0)
    chosen = answer["mask_weights"] > 0
    assert chosen.all()
    rows = np.arange(10)[:, None]
    now = answer["token_ids"][rows, answer["mask_positions"]]
    assert (now == 4).mean() == share
    if rates == (0.0, 0.0):
        np.testing.assert_array_equal(answer["token_ids"], given["token_ids"])


def test_the_seed_decides_everything_everywhere():
    given = features(8, 40)
    layer = masker()
    eager = layer(given, seed=[7, 8])
    graph = tf.function(lambda x, s: layer(x, seed=s))(given, tf.constant([7, 8]))
    other = layer(given, seed=[7, 9])
    for name, value in eager.items():
        np.testing.assert_array_equal(graph[name], value)
    assert (eager["mask_positions"].numpy() != other["mask_positions"].numpy()).any()


def test_ids_of_64_bits():
    given = features(3, 9)
    wide = {name: value.astype(np.int64) for name, value in given.items()}
    np.testing.assert_array_equal(masked(wide)["token_ids"], masked(given)["token_ids"])


def test_a_single_row_and_rows_shorter_than_predictions():
    row = {name: value[0] for name, value in features(1, 4).items()}
    answer = masked(row)
    assert answer["mask_positions"].shape == (20,)
    assert answer["mask_weights"].sum() == 1


def test_serialization_keeps_every_option():
    layer = masker(predictions=3, rate=0.4, mask_rate=0.5, random_rate=0.25)
    again = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(layer)
    )
    assert again.get_config() == layer.get_config()
    given = features(4, 30)
    for name, value in layer(given, seed=[1, 2]).items():
        np.testing.assert_array_equal(again(given, seed=[1, 2])[name], value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0.0}, "rate=0.0"),
        ({"rate": 1.5}, "rate=1.5"),
        ({"mask_rate": 0.9, "random_rate": 0.2}, "mask_rate=0.9, random_rate=0.2"),
        ({"predictions": 0}, "predictions=0"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        masker(**options)


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="vocabulary_size=5.*more than the 5"):
        MaskedLMMasker(5, SPECIAL, predictions=1)

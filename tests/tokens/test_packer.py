"""Packing. Ids in the names (P01 ...) are those of the public reports."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_keras import BertPacker

IDS = {"cls_id": 2, "sep_id": 3, "pad_id": 0}


def packed(length, *texts, **options):
    features = BertPacker(length, **IDS, **options)(*map(tf.constant, texts))
    return {name: value.numpy().tolist() for name, value in features.items()}


def test_p01_the_limit_counts_special_tokens():
    features = packed(5, [5, 6, 7, 10, 11])
    assert features["token_ids"] == [2, 5, 6, 7, 3]
    assert features["padding_mask"] == [1] * 5


def test_a_pair_by_hand():
    assert packed(9, [7, 8], [9]) == {
        "token_ids": [2, 7, 8, 3, 9, 3, 0, 0, 0],
        "segment_ids": [0, 0, 0, 0, 1, 1, 0, 0, 0],
        "padding_mask": [1, 1, 1, 1, 1, 1, 0, 0, 0],
    }


def test_n20_empty_texts():
    assert packed(5, np.array([], np.int32))["token_ids"] == [2, 3, 0, 0, 0]
    features = packed(6, [7, 8], np.array([], np.int32))
    assert features["token_ids"] == [2, 7, 8, 3, 3, 0]
    assert features["segment_ids"] == [0, 0, 0, 0, 1, 0]


@pytest.mark.parametrize(
    ("first", "second", "places", "kept"),
    [
        (10, 3, 8, (5, 3)),
        (7, 7, 8, (4, 4)),
        (7, 7, 9, (5, 4)),
        (3, 10, 8, (3, 5)),
        (2, 3, 8, (2, 3)),
    ],
)
def test_p02_the_longer_text_is_cut_first(first, second, places, kept):
    features = packed(places + 3, [7] * first, [8] * second)
    assert features["token_ids"].count(7) == kept[0]
    assert features["token_ids"].count(8) == kept[1]


def test_p02_as_kerashub_trims(random):
    keras_nlp = pytest.importorskip("keras_nlp")
    for _ in range(20):
        length = int(random.integers(3, 24))
        first, second = (
            tf.ragged.constant(
                [[7] * n for n in random.integers(0, 14, 6)], dtype=tf.int32
            )
            for _ in range(2)
        )
        peer = keras_nlp.layers.MultiSegmentPacker(
            length, start_value=2, end_value=3, pad_value=0, truncate="round_robin"
        )
        ids, segments = peer((first, second))
        features = BertPacker(length, **IDS)(first, second)
        np.testing.assert_array_equal(features["token_ids"], ids)
        np.testing.assert_array_equal(features["segment_ids"], segments)


@pytest.mark.parametrize("length", [4, 6, 8])
def test_p03_the_same_in_every_way(length):
    first = tf.ragged.constant([[5, 6, 7], [8]], dtype=tf.int32)
    second = tf.ragged.constant([[9, 9], []], dtype=tf.int32)
    packer = BertPacker(length, **IDS)
    expected = packer(first, second)
    rows = tf.data.Dataset.from_tensor_slices((first, second))
    answers = [
        tf.function(lambda a, b: packer(a, b))(first, second),
        next(iter(rows.batch(2).map(packer))),
        next(iter(rows.map(packer).batch(2))),
    ]
    for answer in answers:
        for name, value in expected.items():
            np.testing.assert_array_equal(answer[name], value)


def test_padding_to_the_longest():
    texts = tf.ragged.constant([[5, 6, 7], [8]], dtype=tf.int32)
    features = BertPacker(10, **IDS, pad_to_longest=True)(texts)
    assert features["token_ids"].numpy().tolist() == [[2, 5, 6, 7, 3], [2, 8, 3, 0, 0]]


@pytest.mark.parametrize(("length", "texts"), [(1, 1), (2, 2)])
def test_no_room_for_special_tokens_is_refused(length, texts):
    with pytest.raises(ValueError, match=f"sequence_length={length}.*{texts + 1}"):
        packed(length, *[[5]] * texts)


def test_serialization_keeps_every_option():
    packer = BertPacker(7, cls_id=8, sep_id=9, pad_id=5, pad_to_longest=True)
    again = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(packer)
    )
    assert again.get_config() == packer.get_config()
    assert again(tf.constant([1]))["token_ids"].numpy().tolist() == [8, 1, 9]

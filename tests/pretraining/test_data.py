"""Shards -> batches."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from corpora import prepared
from oracles import SMALL

from bert_keras import BertPacker, MaskedLMMasker, PretrainingData, Vocabulary
from bert_keras.pretraining.data import Place, unigram_accuracy
from bert_keras.pretraining.pairs import OBJECTIVES

TEXTS = [["the quick fox.", "brown the"], ["fox fox.", "the"], ["."]]


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return prepared(tmp_path_factory.mktemp("data"), TEXTS * 20, SMALL)


def data_of(shards, length=10, **options):
    ids = Vocabulary(SMALL).special_ids
    packer = BertPacker(length, cls_id=ids.cls, sep_id=ids.sep, pad_id=ids.pad)
    masker = MaskedLMMasker.of(shards.tokenizer, predictions=3)
    options = {"batch_size": 4, "seed": 5, **options}
    return PretrainingData(shards, packer, masker, **options)


def arrays(batches, count):
    return list(batches.take(count).as_numpy_iterator())


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert set(one) == set(other)
        for name, value in one.items():
            np.testing.assert_array_equal(value, other[name])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_batch(shards, objective):
    (batch,) = arrays(data_of(shards, objective=objective).dataset(), 1)
    shapes = {
        "token_ids": (4, 10),
        "segment_ids": (4, 10),
        "padding_mask": (4, 10),
        "mask_positions": (4, 3),
        "mask_ids": (4, 3),
        "mask_weights": (4, 3),
    }
    texts = 1 if objective == "masked_lm" else 2
    if texts == 2:
        shapes["next_sentence"] = (4,)
    assert {name: value.shape for name, value in batch.items()} == shapes
    assert set(batch["token_ids"][:, 0]) == {2}
    assert ((batch["token_ids"] == 3).sum(axis=1) == texts).all()
    assert set(batch["segment_ids"].ravel()) == set(range(texts))
    assert (batch["mask_weights"].sum(axis=1) >= 1).all()


@pytest.mark.parametrize("block", [1, 60, 1 << 20])
def test_taken_up_again_it_goes_on_with_the_same_batches(shards, block, monkeypatch):
    """At every step of several epochs, of one or of many blocks."""
    data = data_of(shards, block=block)
    whole = arrays(data.dataset(), 40)
    places = [data.place(step) for step in range(40)]
    assert places[0] == Place()
    assert places[-1].epoch >= 2
    for step in (1, 7, 23, 39):
        again = data_of(shards, block=block)
        rest = arrays(again.dataset(places[step]), 40 - step)
        assert_same(rest, whole[step:])
        assert again.place(40) == data.place(40)


def test_a_place_far_from_the_data_is_not_known(shards):
    data = data_of(shards)
    with pytest.raises(ValueError, match="step 9; allowed: None to None"):
        data.place(9)


def many_chunks(tmp_path, monkeypatch):
    from bert_keras.pretraining import shards as module

    monkeypatch.setattr(module, "CHUNK", 10)
    return prepared(tmp_path, TEXTS * 20, SMALL)


def test_chunks_are_mixed_anew_in_every_epoch(tmp_path, monkeypatch):
    found = many_chunks(tmp_path, monkeypatch)
    assert len(found.chunks()) > 20
    data = data_of(found, block=50)
    orders = [list(data._blocks(epoch)) for epoch in (0, 1)]
    for blocks in orders:
        assert len(blocks) > 3
        assert sorted(itertools.chain(*blocks)) == found.chunks()
        assert max(sum(c.tokens for c in block) for block in blocks) < 50 + 20
    assert orders[0] != orders[1]
    assert orders[0] == list(data._blocks(0))


def test_every_epoch_has_other_pairs_and_masks(shards):
    data = data_of(shards)
    epoch = sum(1 for _ in data.dataset(epochs=1))
    batches = arrays(data.dataset(), 2 * epoch)
    tokens = [batch["token_ids"].tobytes() for batch in batches]
    assert len(set(tokens)) == len(tokens)


def test_m06_masks_differ_in_every_step(tmp_path):
    """One row, again and again."""
    found = prepared(tmp_path, [["the quick brown fox the fox."]], SMALL)
    data = data_of(found, length=20, objective="masked_lm", short_probability=0.0)
    batches = arrays(data.dataset(), 10)
    positions = {batch["mask_positions"].tobytes() for batch in batches}
    assert len(positions) > 5
    assert_same(arrays(data.dataset(), 10), batches)


def test_one_epoch_keeps_its_last_smaller_batch(shards):
    data = data_of(shards)
    sizes = [len(batch["token_ids"]) for batch in data.dataset(epochs=1)]
    assert set(sizes[:-1]) == {4}
    assert 1 <= sizes[-1] <= 4
    endless = arrays(data.dataset(), 3 * len(sizes))
    assert {len(batch["token_ids"]) for batch in endless} == {4}


def test_the_seed_decides_everything(shards):
    one, again = (arrays(data_of(shards).dataset(), 3) for _ in range(2))
    (other,) = arrays(data_of(shards, seed=6).dataset(), 1)
    assert_same(one, again)
    assert (one[0]["token_ids"] != other["token_ids"]).any()


def test_m05_a_corpus_of_one_document_warns(tmp_path):
    found = prepared(tmp_path, [["fox.", "the.", "fox"]], SMALL)
    with pytest.warns(UserWarning, match="one document"):
        data = data_of(found)
    batch = next(iter(data.dataset()))
    assert batch["next_sentence"].numpy().all()
    data_of(found, objective="masked_lm")  # has no use for others: no warning


def test_a_corpus_without_rows_is_refused(tmp_path):
    found = prepared(tmp_path, [["fox"]], SMALL)
    with (
        pytest.warns(UserWarning, match="one document"),
        pytest.raises(ValueError, match="no row for next_sentence. Received: 1 doc"),
    ):
        data_of(found)


def test_rows_without_room_are_refused(shards):
    with pytest.raises(ValueError, match="sequence_length=4; allowed: at least 5"):
        data_of(shards, length=4)
    with pytest.raises(ValueError, match="sequence_length=2; allowed: at least 3"):
        data_of(shards, length=2, objective="masked_lm")


def test_a_corpus_smaller_than_a_batch_fills_it_from_several_epochs(shards):
    (batch,) = arrays(data_of(shards, batch_size=300).dataset(), 1)
    assert batch["token_ids"].shape == (300, 10)


def test_the_accuracy_of_the_most_frequent_piece_by_hand():
    batch = {
        "mask_ids": [[5, 5, 6], [5, 9, 9]],
        "mask_weights": [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]],
    }
    batches = tf.data.Dataset.from_tensors(batch)
    assert unigram_accuracy(batches) == 3 / 4

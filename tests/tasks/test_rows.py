"""Batches of labelled rows: all of them, in an order that the seed decides."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight
from tasks.readers import preprocessor

from bert_keras.tasks.rows import Batches, Rows, balanced_weights, encode


def rows(number: int, random: np.random.Generator) -> Rows:
    lengths = random.integers(1, 30, number)
    ids = [np.full(length, 1 + row, np.int32) for row, length in enumerate(lengths)]
    ones = [np.ones(length, np.int32) for length in lengths]
    features = {"token_ids": ids, "padding_mask": ones}
    return Rows(features, {"label": np.arange(number, dtype=np.int32)})


def batches(number=50, random=None, **changes) -> Batches:
    arguments = {"batch_size": 8, "epochs": 2, "seed": 5, "pad_id": 99, **changes}
    return Batches(rows(number, random or np.random.default_rng(0)), **arguments)


def taken(made: Batches, first_step: int = 0) -> list[dict]:
    return list(made.dataset(first_step).as_numpy_iterator())


def test_every_epoch_has_every_row_once():
    made = batches()
    found = taken(made)
    assert (made.steps_per_epoch, made.steps, len(found)) == (7, 14, 14)
    epochs = [np.concatenate([b["label"] for b in found[e : e + 7]]) for e in (0, 7)]
    for labels in epochs:
        assert sorted(labels) == list(range(50))
    assert epochs[0].tolist() != epochs[1].tolist()
    assert int(made.dataset(3).cardinality()) == 11


def test_rows_are_padded_to_the_longest_of_a_batch():
    for batch in taken(batches()):
        lengths = batch["padding_mask"].sum(axis=1)
        assert batch["token_ids"].shape[1] == lengths.max()
        for ids, label, length in zip(
            batch["token_ids"], batch["label"], lengths, strict=True
        ):
            assert ids[:length].tolist() == [label + 1] * length
            assert set(ids[length:]) <= {99}


def test_rows_of_like_length_come_together():
    """With 1 to 29 tokens at random, 8 rows would be a half padding, or so."""
    total = used = 0
    for batch in taken(batches(1000, epochs=1)):
        total += batch["padding_mask"].size
        used += batch["padding_mask"].sum()
    assert used / total > 0.9


@pytest.mark.parametrize("step", [0, 1, 6, 7, 8, 13, 14])
def test_a_run_goes_on_where_it_was(step):
    whole, rest = taken(batches()), taken(batches(), step)
    assert len(rest) == 14 - step
    for one, other in zip(whole[step:], rest, strict=True):
        np.testing.assert_array_equal(one["token_ids"], other["token_ids"])


def test_the_seed_decides_the_order():
    one, same, other = (
        [b["label"].tolist() for b in taken(batches(seed=s))] for s in (1, 1, 2)
    )
    assert one == same != other


def test_lengths_are_multiples_where_they_are_compiled():
    lengths = {b["token_ids"].shape[1] for b in taken(batches(multiple=16))}
    assert lengths <= {16, 32}


def test_balanced_weights_are_scikit_learns():
    numbers = np.array([0, 0, 0, 2, 2, 0, 2, 3])
    expected = compute_class_weight("balanced", classes=np.array([0, 2, 3]), y=numbers)
    found = balanced_weights(numbers, classes=5)
    by_class = dict(zip([0, 2, 3], expected, strict=True))
    np.testing.assert_allclose(found, [by_class[n] for n in numbers], atol=1e-6)
    assert found.mean() == pytest.approx(1)


def test_encoded_texts_have_no_padding():
    found = encode(preprocessor(), ["the fox", "", "quick brown fox"] * 100)
    assert [ids.tolist() for ids in found["token_ids"][:3]] == [
        [2, 5, 10, 3],
        [2, 3],
        [2, 6, 7, 8, 9, 10, 3],
    ]
    assert len(found["token_ids"]) == 300
    pairs = encode(preprocessor(), [("the", "fox")])
    assert pairs["segment_ids"][0].tolist() == [0, 0, 0, 1, 1]

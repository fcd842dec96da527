"""Documents -> batches."""

import numpy as np
import pytest
import tensorflow as tf
from oracles import SMALL

from bert_keras import (
    BertPacker,
    MaskedLMMasker,
    Vocabulary,
    WordPieceTokenizer,
    pretraining_dataset,
    tokenize_documents,
)
from bert_keras.pretraining.data import unigram_accuracy

TEXTS = [["the quick fox.", "", "brown the"], ["fox fox.", "the"], ["."], [" "]]


@pytest.fixture
def documents():
    tokenizer = WordPieceTokenizer(SMALL)
    return list(tokenize_documents(TEXTS * 20, tokenizer))


def dataset(documents, **options):
    vocabulary = Vocabulary(SMALL)
    ids = vocabulary.special_ids
    packer = BertPacker(10, cls_id=ids.cls, sep_id=ids.sep, pad_id=ids.pad)
    masker = MaskedLMMasker(len(SMALL), ids, predictions=3)
    options = {"batch_size": 4, "seed": 5, **options}
    return pretraining_dataset(documents, packer, masker, **options)


def arrays(batches, count):
    return list(batches.take(count).as_numpy_iterator())


def test_documents_keep_their_sentences_and_lose_empty_ones(documents):
    first = [[sentence.tolist() for sentence in d] for d in documents[:3]]
    assert first == [[[5, 6, 7, 10, 11], [8, 9, 5]], [[10, 10, 11], [5]], [[11]]]
    assert len(documents) == 60


def test_a_batch(documents):
    (batch,) = arrays(dataset(documents), 1)
    assert {name: value.shape for name, value in batch.items()} == {
        "token_ids": (4, 10),
        "segment_ids": (4, 10),
        "padding_mask": (4, 10),
        "mask_positions": (4, 3),
        "mask_ids": (4, 3),
        "mask_weights": (4, 3),
        "next_sentence": (4,),
    }
    assert set(batch["token_ids"][:, 0]) == {2}
    assert ((batch["token_ids"] == 3).sum(axis=1) == 2).all()
    assert (batch["mask_weights"].sum(axis=1) >= 1).all()


def test_taken_up_again_it_goes_on_with_the_same_batches(documents):
    whole = arrays(dataset(documents), 60)
    rest = arrays(dataset(documents, first_step=23), 37)
    for expected, found in zip(whole[23:], rest, strict=True):
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)


def test_every_epoch_has_other_pairs_and_masks(documents):
    epoch = sum(1 for _ in dataset(documents, epochs=1))
    batches = arrays(dataset(documents), 2 * epoch)
    tokens = [batch["token_ids"].tobytes() for batch in batches]
    assert len(set(tokens)) == len(tokens)


def test_one_epoch_keeps_its_last_smaller_batch(documents):
    sizes = [len(batch["token_ids"]) for batch in dataset(documents, epochs=1)]
    assert set(sizes[:-1]) == {4}
    assert 1 <= sizes[-1] <= 4
    endless = arrays(dataset(documents), 3 * len(sizes))
    assert {len(batch["token_ids"]) for batch in endless} == {4}


def test_the_seed_decides_everything(documents):
    one, again = (arrays(dataset(documents), 3) for _ in range(2))
    (other,) = arrays(dataset(documents, seed=6), 1)
    np.testing.assert_array_equal(one[2]["token_ids"], again[2]["token_ids"])
    assert (one[0]["token_ids"] != other["token_ids"]).any()


def test_a_corpus_without_pairs_is_refused():
    only = [[np.array([5, 6], np.int32)]]
    with (
        pytest.warns(UserWarning, match="one document"),
        pytest.raises(ValueError, match="no sentence pair. Received: 1 documents"),
    ):
        dataset(only)


def test_rows_without_room_are_refused(documents):
    ids = Vocabulary(SMALL).special_ids
    packer = BertPacker(4, cls_id=ids.cls, sep_id=ids.sep, pad_id=ids.pad)
    with pytest.raises(ValueError, match="sequence_length=4; allowed: at least 5"):
        pretraining_dataset(documents, packer, None, batch_size=2, seed=0)


def test_a_corpus_smaller_than_a_batch_fills_it_from_several_epochs(documents):
    (batch,) = arrays(dataset(documents[:3], batch_size=50), 1)
    assert batch["token_ids"].shape == (50, 10)


def test_the_accuracy_of_the_most_frequent_piece_by_hand():
    batch = {
        "mask_ids": [[5, 5, 6], [5, 9, 9]],
        "mask_weights": [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]],
    }
    batches = tf.data.Dataset.from_tensors(batch)
    assert unigram_accuracy(batches) == 3 / 4

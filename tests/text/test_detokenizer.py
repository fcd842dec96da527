"""Ids -> text. N23 is one of the public reports."""

import pytest
import tensorflow as tf
from oracles import SMALL, needs_data, vocabulary_path

from bert_keras import WordPieceTokenizer


@pytest.fixture
def tokenizer():
    return WordPieceTokenizer([*SMALL, "中", "文", "##"])


def text(tokenizer, ids, **options):
    return tokenizer.detokenize(ids, **options).numpy()


def test_pieces_are_joined_and_special_tokens_dropped(tokenizer):
    ids = [2, 5, 6, 7, 10, 11, 3, 0, 0]
    assert text(tokenizer, ids) == b"the quick fox ."
    everything = b"[CLS] the quick fox . [SEP] [PAD] [PAD]"
    assert text(tokenizer, ids, skip_special_tokens=False) == everything


def test_n23_no_space_between_ideographs(tokenizer):
    expected = "中文 the 中".encode()
    assert text(tokenizer, [2, 12, 13, 5, 12, 3]) == expected


def test_rows_dense_and_ragged_do_not_run_into_each_other(tokenizer):
    dense = [[12, 0], [13, 7]]
    expected = ["中".encode(), "文ick".encode()]
    assert text(tokenizer, dense).tolist() == expected
    ragged = tf.ragged.constant([[12], [], [13, 7]], dtype=tf.int32)
    assert text(tokenizer, ragged).tolist() == [expected[0], b"", expected[1]]


def test_an_id_outside_the_vocabulary_is_an_error(tokenizer):
    with pytest.raises(tf.errors.InvalidArgumentError):
        tokenizer.detokenize([5, 15])


def test_in_a_graph(tokenizer):
    graph = tf.function(lambda ids: tokenizer.detokenize(ids))
    assert graph(tf.constant([[5, 10]])).numpy().tolist() == [b"the fox"]


@needs_data
def test_n23_published_ids(uncased):
    tokenizer = WordPieceTokenizer(uncased)
    assert text(tokenizer, [101, 2023, 2003, 102, 0]) == b"this is"
    chinese = WordPieceTokenizer(vocabulary_path("chinese"))
    ids = chinese("中文 text")["token_ids"]
    assert text(chinese, ids).decode() == "中文 text"

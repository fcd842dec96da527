"""Text -> features."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracles import needs_data

from bert_keras import BertPreprocessor, WordPieceTokenizer


@pytest.fixture
def preprocessor(small_vocabulary):
    return BertPreprocessor(WordPieceTokenizer(small_vocabulary), 9)


@needs_data
def test_the_example_of_the_question(uncased):
    preprocessor = BertPreprocessor(WordPieceTokenizer(uncased), 8)
    features = preprocessor("Welcome to HuggingFace Forums!")
    expected = [101, 6160, 2000, 17662, 12172, 21415, 999, 102]
    assert features["token_ids"].numpy().tolist() == expected


def test_a_pair(preprocessor):
    features = preprocessor("the quick fox", "brown")
    assert features["token_ids"].numpy().tolist() == [2, 5, 6, 7, 10, 3, 8, 9, 3]
    assert features["segment_ids"].numpy().tolist() == [0] * 6 + [1] * 3


def test_eager_graph_and_tf_data_agree(preprocessor):
    first, second = ["the quick fox", "fox", ""], ["brown", "", "the the the"]
    expected = preprocessor(first, second)
    rows = tf.data.Dataset.from_tensor_slices((first, second))
    for answer in (
        tf.function(lambda a, b: preprocessor(a, b))(first, second),
        next(iter(rows.batch(3).map(preprocessor))),
        next(iter(rows.map(preprocessor).batch(3))),
    ):
        for name, value in expected.items():
            np.testing.assert_array_equal(answer[name], value)


def test_a_saved_model_is_complete(small_vocabulary, tmp_path):
    tokenizer = WordPieceTokenizer(small_vocabulary, lowercase=False)
    preprocessor = BertPreprocessor(tokenizer, 7, pad_to_longest=True)
    text = keras.Input((), dtype="string")
    model = keras.Model(text, preprocessor(text))
    model.save(tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    layer = loaded.get_layer(preprocessor.name)
    assert layer.get_config() == preprocessor.get_config()
    assert not layer.tokenizer.options.lowercase
    texts = tf.constant(["the fox", "The"])
    ids = loaded(texts)["token_ids"].numpy().tolist()
    assert ids == [[2, 5, 10, 3], [2, 1, 3, 0]]


def test_texts_that_do_not_fit_together_are_refused(preprocessor):
    for first, second in ((["a", "b"], ["c"]), ("a", ["b"]), (["a"], "b")):
        with pytest.raises(ValueError, match="do not fit together"):
            preprocessor(first, second)
    assert preprocessor([])["token_ids"].shape == (0, 9)


def test_no_room_is_refused_at_once(small_vocabulary):
    with pytest.raises(ValueError, match="sequence_length=1"):
        BertPreprocessor(WordPieceTokenizer(small_vocabulary), 1)


def test_a_tokenizer_that_pads_is_refused(small_vocabulary):
    tokenizer = WordPieceTokenizer(small_vocabulary, sequence_length=4)
    with pytest.raises(ValueError, match="sequence_length=4"):
        BertPreprocessor(tokenizer, 9)

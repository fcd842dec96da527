"""The layer this project is about. Ids in the names are those of the public reports."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_keras import BertEmbeddings, TokenTable
from bert_keras.embeddings import in_range


def summed(layer, ids, segments):
    """Returns what the layer sums, before norm and dropout, by plain indexing."""
    tokens = layer.token_embedding.embeddings.numpy()[ids]
    positions = layer.position_embeddings.numpy()[: ids.shape[1]]
    return tokens + layer.segment_embeddings.numpy()[segments] + positions


def layer_norm(x, epsilon):
    """Ba et al. 2016, equation 3, in float64."""
    x = np.asarray(x, np.float64)
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)


@pytest.fixture
def layer():
    made = BertEmbeddings(12, 8, max_sequence_length=8, initializer_range=0.5)
    made.build((None, None))
    return made


def test_it_is_the_normed_sum_of_three_rows(layer):
    ids = np.array([[5, 6, 7], [0, 11, 5]], np.int32)
    segments = np.array([[0, 0, 1], [1, 1, 0]], np.int32)
    expected = layer_norm(summed(layer, ids, segments), 1e-12)
    np.testing.assert_allclose(layer(ids, segments), expected, atol=1e-5)


def test_p06_each_table_is_read_by_its_own_ids(layer, monkeypatch):
    """Token row i holds i, segment row s 1000 s, position row p 100 p."""
    layer.token_embedding.embeddings.assign(np.tile(np.arange(12.0)[:, None], 8))
    layer.segment_embeddings.assign(np.tile([[0.0], [1000.0]], 8))
    layer.position_embeddings.assign(np.tile(100 * np.arange(8.0)[:, None], 8))
    monkeypatch.setattr(layer, "_norm", lambda x: x)
    answer = layer(np.array([[2, 5, 3, 6, 3]]), np.array([[0, 0, 0, 1, 1]]))
    assert answer[0, :, 0].numpy().tolist() == [2, 105, 203, 1306, 1403]


def test_a_row_is_one_hot_times_the_table():
    table = TokenTable(6, 4)
    ids = np.array([[3, 0, 5]])
    rows = table(ids)
    product = tf.one_hot(ids, 6) @ tf.convert_to_tensor(table.embeddings)
    np.testing.assert_array_equal(rows, product)


def test_e04_only_the_rows_of_the_batch_get_a_gradient():
    table = TokenTable(6, 4)
    table.build()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(table(np.array([[3, 1, 3]])) ** 2)
    (gradient,) = tape.gradient(loss, table.trainable_variables)
    assert isinstance(gradient, tf.IndexedSlices)
    assert set(gradient.indices.numpy().tolist()) == {1, 3}


def test_reverse_scores_against_every_row():
    table = TokenTable(6, 4, initializer_range=1.0)
    table.build()
    hidden = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    expected = hidden @ table.embeddings.numpy().T
    np.testing.assert_allclose(table(hidden, reverse=True), expected, atol=1e-6)


@pytest.mark.parametrize("wrong", [-1, 12])
@pytest.mark.parametrize("way", ["eager", "graph"])
def test_e01_an_id_outside_the_table_is_an_error(layer, wrong, way):
    call = layer if way == "eager" else tf.function(lambda i, s: layer(i, s))
    ids = tf.constant([[5, wrong, 6]])
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        call(ids, tf.zeros_like(ids))
    assert "token_ids" in str(caught.value) or "Assert" in str(caught.value)
    assert str(wrong) in str(caught.value)
    assert "12 rows" in str(caught.value)


def test_p06_a_segment_outside_its_table_is_an_error(layer):
    with pytest.raises(tf.errors.InvalidArgumentError, match="segment_ids"):
        layer(np.array([[5]]), np.array([[2]]))


@pytest.mark.parametrize("way", ["eager", "graph"])
def test_p05_a_length_beyond_the_positions_is_an_error(layer, way):
    free = tf.TensorSpec([None, None], tf.int32)
    graph = tf.function(lambda i, s: layer(i, s), input_signature=[free, free])
    call = layer if way == "eager" else graph
    ids = tf.fill([1, 12], 5)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)) as caught:
        call(ids, tf.zeros_like(ids))
    assert "12" in str(caught.value)
    assert "8" in str(caught.value)
    assert "position table" in str(caught.value)


def test_under_xla_an_id_outside_the_table_reads_the_nearest_row():
    """XLA cannot raise; what it does is documented, and this is it."""
    table = TokenTable(5, 3, initializer_range=1.0)
    table.build()
    answer = tf.function(lambda i: table(i), jit_compile=True)(tf.constant([1, 7, -1]))
    np.testing.assert_array_equal(answer, table.embeddings.numpy()[[1, 4, 0]])


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_e02_mixed_precision(policy):
    ids, segments = np.array([[1, 2]]), np.array([[0, 1]])
    half = BertEmbeddings(5, 8, max_sequence_length=4, dtype=policy)
    full = BertEmbeddings(5, 8, max_sequence_length=4)
    half.build((None, None))
    full.build((None, None))
    full.set_weights(half.get_weights())
    answer = half(ids, segments)
    assert answer.dtype == policy.removeprefix("mixed_")
    assert {weight.dtype for weight in half.weights} == {"float32"}
    # Values are about 1: two units in the last place of bfloat16.
    np.testing.assert_allclose(
        tf.cast(answer, tf.float32), full(ids, segments), atol=2**-6
    )


def test_e06_the_norm_of_tiny_values_in_float16():
    """Variance 1e-8 is below what float16 can hold; in float32 it is not."""
    layer = BertEmbeddings(2, 4, max_sequence_length=1, dtype="mixed_float16")
    layer.build((None, None))
    layer.token_embedding.embeddings.assign([[1e-4, -1e-4, 1e-4, -1e-4], [0] * 4])
    layer.segment_embeddings.assign(np.zeros((2, 4)))
    layer.position_embeddings.assign(np.zeros((1, 4)))
    answer = layer(np.array([[0]]), np.array([[0]]))
    np.testing.assert_allclose(answer[0, 0], [1, -1, 1, -1], atol=1e-3)
    assert layer.get_config()["layer_norm_epsilon"] == 1e-12


def test_dropout_is_on_in_training_only():
    layer = BertEmbeddings(5, 64, max_sequence_length=4, dropout=0.5)
    ids = np.array([[1, 2, 3, 4]])
    still = layer(ids, 0 * ids)
    np.testing.assert_array_equal(layer(ids, 0 * ids), still)
    trained = layer(ids, 0 * ids, training=True).numpy()
    assert 0.3 < (trained == 0).mean() < 0.7


def test_serialization_keeps_every_option(tmp_path):
    options = {
        "vocabulary_size": 11,
        "hidden_dim": 6,
        "max_sequence_length": 5,
        "num_segments": 3,
        "dropout": 0.3,
        "initializer_range": 0.7,
        "layer_norm_epsilon": 1e-6,
    }
    layer = BertEmbeddings(**options)
    ids, segments = (keras.Input((None,), dtype="int32") for _ in range(2))
    outputs = layer(ids, segments)
    assert outputs.shape == (None, None, 6)
    model = keras.Model([ids, segments], outputs)
    model.save(tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    config = loaded.get_layer(layer.name).get_config()
    assert {name: config[name] for name in options} == options
    inputs = [np.array([[1, 10]]), np.array([[2, 0]])]
    np.testing.assert_array_equal(loaded(inputs), model(inputs))


def test_an_empty_batch_is_in_range():
    assert in_range(tf.zeros([0, 3], tf.int32), 5, "ids").shape == (0, 3)

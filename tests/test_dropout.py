"""Dropout: how much is dropped, how the rest is scaled, and when."""

import itertools

import keras
import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from bert_keras.dropout import Dropout

SHAPES = [(400, 500), (3, 7, 101, 97)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_its_share_is_dropped_and_the_rest_scaled(shape, rate):
    answer = Dropout(rate)(tf.ones(shape), training=True).numpy()
    count = answer.size
    deviation = (rate * (1 - rate) / count) ** 0.5
    assert (answer == 0).mean() == pytest.approx(rate, abs=5 * deviation)
    np.testing.assert_allclose(answer[answer != 0], 1 / (1 - rate), rtol=1e-6)


def together(one, other, rate):
    """How often both are dropped, in deviations from what chance would have."""
    expected = rate**2
    deviation = (expected * (1 - expected) / one.size) ** 0.5
    return abs((one & other).mean() - expected) / deviation


def test_neighbours_are_dropped_independently():
    dropped = Dropout(0.3, seed=1)(tf.ones((1024, 1024)), training=True).numpy() == 0
    for distance in (1, 2, 3, 7, 16, 512):
        assert together(dropped[:, distance:], dropped[:, :-distance], 0.3) < 5
        assert together(dropped[distance:], dropped[:-distance], 0.3) < 5


def test_calls_and_layers_are_dropped_independently():
    """Seeds that follow one another, and steps that do, have nothing in common."""
    patterns = [
        layer(tf.ones((512, 512)), training=True).numpy() == 0
        for layer in (Dropout(0.3, seed=seed) for seed in range(4))
        for _ in range(4)
    ]
    for one, other in itertools.combinations(patterns, 2):
        assert together(one, other, 0.3) < 5
        assert together(one[:, 1:], other[:, :-1], 0.3) < 5


def test_every_number_is_as_likely_as_another():
    """Chi-square of how many of 64 neighbours are dropped, beside the binomial."""
    dropped = Dropout(0.5, seed=1)(tf.ones((1 << 15, 64)), training=True).numpy() == 0
    found = np.bincount(dropped.sum(axis=1), minlength=65)
    expected = scipy.stats.binom.pmf(np.arange(65), 64, 0.5) * len(dropped)
    is_common = expected > 20
    square = ((found - expected) ** 2 / expected)[is_common].sum()
    assert scipy.stats.chi2.sf(square, is_common.sum()) > 1e-4
    by_place = dropped.mean(axis=0)
    assert np.abs(by_place - 0.5).max() < 5 * (0.25 / len(dropped)) ** 0.5


def test_the_gradient_passes_where_the_number_did():
    x = tf.random.stateless_normal((50, 40), [1, 2])
    with tf.GradientTape() as tape:
        tape.watch(x)
        answer = Dropout(0.4)(x, training=True)
    gradient = tape.gradient(answer, x)
    np.testing.assert_allclose(gradient * x, answer, rtol=1e-6)


def test_not_in_training_nothing_happens():
    x = tf.random.stateless_normal((5, 4), [1, 2])
    np.testing.assert_array_equal(Dropout(0.4)(x), x)
    np.testing.assert_array_equal(Dropout(0.0)(x, training=True), x)


def test_each_call_draws_anew_and_the_state_brings_it_back():
    layer, x = Dropout(0.4), tf.ones((50, 40))
    state = layer.seed_generator.state.numpy()
    first, second = (layer(x, training=True) for _ in range(2))
    assert (first != second).numpy().any()
    layer.seed_generator.state.assign(state)
    np.testing.assert_array_equal(layer(x, training=True), first)
    assert layer.seed_generator.state.path.endswith("seed_generator_state")


@pytest.mark.parametrize("jit", [False, True])
def test_in_a_graph_of_any_shape(jit):
    layer = Dropout(0.4)
    signature = [tf.TensorSpec([None, None], tf.float32)]
    graph = tf.function(
        lambda x: layer(x, training=True), input_signature=signature, jit_compile=jit
    )
    assert graph(tf.ones((7, 9))).shape == (7, 9)
    assert (graph(tf.ones((70, 90))) == 0).numpy().mean() == pytest.approx(
        0.4, abs=0.05
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_it_keeps_the_dtype(dtype):
    answer = Dropout(0.4, dtype=dtype)(tf.ones((50, 40), dtype), training=True)
    assert answer.dtype == dtype


def test_serialization_keeps_every_option():
    layer = Dropout(0.4, seed=7)
    again = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(layer)
    )
    assert type(again) is Dropout
    assert again.get_config() == layer.get_config()


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5])
def test_a_rate_that_leaves_nothing_is_refused(rate):
    with pytest.raises(ValueError, match="rate"):
        Dropout(rate)

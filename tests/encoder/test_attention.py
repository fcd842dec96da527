"""Attention against NumPy, and its way back against TensorFlow's own derivative."""

import numpy as np
import pytest
import tensorflow as tf

from bert_keras.dropout import Dropout, kept
from bert_keras.encoder.attention import attend, attend_in_training

MASK = np.array([[1, 1, 1, 1, 1, 0], [1, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 1]], np.int32)
SHAPE = 3, 2, 6, 4  # rows, heads, tokens, size of a head


class KnownKey(Dropout):
    """A dropout whose pattern a test can make again."""

    key = tf.constant([12, 34])

    def new_key(self):
        return self.key


@pytest.fixture
def heads(random):
    """Queries, keys and values, large enough for weights that differ."""
    return tuple(3 * random.normal(size=SHAPE).astype(np.float32) for _ in range(3))


def numpy_weights(query, key):
    """Vaswani et al. 2017 (1), with what no token attends to left out; float64."""
    scores = query.astype(float) @ key.astype(float).swapaxes(-1, -2) / 2  # sqrt(4)
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    exponentials *= MASK[:, None, None, :]
    return exponentials / exponentials.sum(-1, keepdims=True)


@pytest.mark.parametrize("in_training", [False, True])
def test_it_is_the_formula(heads, in_training):
    query, key, value = heads
    expected = numpy_weights(query, key) @ value
    if in_training:
        answer = attend_in_training(*map(tf.constant, heads), MASK, Dropout(0.0))
    else:
        answer = attend(*map(tf.constant, heads), MASK)
    np.testing.assert_allclose(answer, expected, atol=2e-6, rtol=1e-5)


def test_dropout_falls_on_the_weights(heads):
    query, key, value = heads
    pattern = kept(tf.constant([3, 2, 6, 6]), KnownKey.key, 0.4).numpy()
    assert 0 < (pattern == 0).mean() < 1
    expected = (numpy_weights(query, key) * pattern) @ value
    answer = attend_in_training(*map(tf.constant, heads), MASK, KnownKey(0.4))
    np.testing.assert_allclose(answer, expected, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_its_gradients_are_those_of_the_plain_operations(heads, random, rate, dtype):
    upstream = random.normal(size=SHAPE).astype(np.float32)
    heads = [x / 3 for x in heads]  # the size that a trained model has
    heads, upstream = (
        tf.nest.map_structure(lambda x: tf.cast(tf.cast(x, dtype), tf.float32), given)
        for given in (heads, upstream)
    )
    pattern = kept(tf.constant([3, 2, 6, 6]), KnownKey.key, rate)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(heads)
        query, key, value = heads
        scores = tf.matmul(query / 2, key, transpose_b=True)
        scores -= 1e9 * tf.cast(MASK == 0, tf.float32)[:, None, None, :]
        plain = tf.matmul(tf.nn.softmax(scores) * pattern, value)
        cast = [tf.cast(x, dtype) for x in heads]
        answer = attend_in_training(*cast, MASK, KnownKey(rate))
    assert answer.dtype == dtype
    expected = tape.gradient(plain, heads, upstream)
    found = tape.gradient(answer, heads, tf.cast(upstream, dtype))
    # Of half types: what four roundings do, since outputs and weights are rounded.
    tolerance = {"float32": 1e-5, "bfloat16": 4 * 2**-8, "float16": 4 * 2**-11}[dtype]
    for one, other in zip(found, expected, strict=True):
        assert np.linalg.norm(one - other) < tolerance * np.linalg.norm(other)

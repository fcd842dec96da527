"""What XLA compiles to one pass is the function that it was, and so is its gradient."""

import numpy as np
import pytest
import tensorflow as tf

from bert_keras.encoder.block import activation_named
from bert_keras.one_pass import in_one_pass


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_in_training_activations_and_their_gradients_are_the_same(name, dtype):
    plain = activation_named(name)
    x = tf.constant(np.linspace(-6, 6, 101), tf.float32)
    x = tf.cast(tf.cast(x, dtype), tf.float32)  # what the half types can hold
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        expected = plain(x)
        answer = in_one_pass(plain)(tf.cast(x, dtype))
    assert answer.dtype == dtype
    for one, other in (
        (answer, expected),
        (tape.gradient(answer, x), tape.gradient(expected, x)),
    ):
        tolerance = {"float32": 1e-5, "bfloat16": 2**-8, "float16": 2**-11}[dtype]
        np.testing.assert_allclose(
            tf.cast(one, tf.float32), other, rtol=tolerance, atol=tolerance
        )

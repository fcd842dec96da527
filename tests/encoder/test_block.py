"""One Transformer block against NumPy, by the equations of the papers."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_keras import TransformerBlock
from bert_keras.encoder.block import gelu


def numpy_block(block, x, mask, heads):
    """Vaswani et al. 2017 (1), 3.2.2, 3.3, post-norm; in float64, head by head."""
    weights = {w.path.split("/", 1)[-1]: w.numpy().astype(float) for w in block.weights}

    def dense(name, inputs):
        return inputs @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]

    def norm(name, inputs):
        centred = inputs - inputs.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * weights[f"{name}/gamma"] + weights[f"{name}/beta"]

    width = x.shape[-1]
    size = width // heads
    query, key, value = np.split(dense("query_key_value", x), 3, axis=-1)
    attended = np.zeros_like(x)
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        scores = query[..., part] @ key[..., part].swapaxes(-1, -2) / math.sqrt(size)
        scores = np.where(mask[:, None, :] > 0, scores, -np.inf)
        exponents = np.exp(scores - scores.max(-1, keepdims=True))
        shares = exponents / exponents.sum(-1, keepdims=True)
        attended[..., part] = shares @ value[..., part]
    x = norm("attention_norm", x + dense("attention_output", attended))
    wide = dense("intermediate", x)
    erf = np.vectorize(math.erf)
    wide = 0.5 * wide * (1 + erf(wide / math.sqrt(2)))
    return norm("output_norm", x + dense("output", wide))


@pytest.fixture
def block():
    made = TransformerBlock(2, 12, initializer_range=0.4)
    made.build((None, None, 8))
    for weight in made.weights:  # biases and norms start at 0 and 1: not here
        noise = np.random.default_rng(len(weight.path)).normal(size=weight.shape) / 5
        weight.assign_add(noise.astype("float32"))
    return made


def test_it_is_the_papers_block(block, random):
    x = random.normal(size=(3, 5, 8)).astype(np.float32)
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 1, 1, 0]])
    expected = numpy_block(block, x.astype(float), mask, heads=2)
    np.testing.assert_allclose(block(x, mask), expected, atol=2e-5)


def test_padding_does_not_change_the_tokens(block, random):
    x = random.normal(size=(2, 9, 8)).astype(np.float32)
    mask = np.array([[1] * 6 + [0] * 3] * 2)
    alone = block(x[:, :6], mask[:, :6])
    np.testing.assert_allclose(block(x, mask)[:, :6], alone, atol=1e-5)


@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_e05_a_row_of_padding_stays_finite(policy, random):
    block = TransformerBlock(2, 12, dtype=policy)
    x = 30 * random.normal(size=(2, 4, 8))
    answer = block(x, np.array([[0, 0, 0, 0], [1, 1, 0, 0]]))
    assert np.isfinite(tf.cast(answer, tf.float32)).all()


def test_gelu_is_exact():
    """Against the standard library's erf; TensorFlow's own is a second opinion."""
    x = np.linspace(-6, 6, 101).astype(np.float32)
    expected = [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.tolist()]
    np.testing.assert_allclose(gelu(tf.constant(x)), expected, atol=1e-6)
    np.testing.assert_allclose(gelu(tf.constant(x)), tf.nn.gelu(x), atol=1e-6)


def test_the_tanh_form_is_another_function(random):
    x = random.normal(size=(1, 3, 8)).astype(np.float32)
    mask = np.ones((1, 3), np.int32)
    exact = TransformerBlock(2, 12, initializer_range=0.5)
    tanh = TransformerBlock(2, 12, initializer_range=0.5, activation="gelu_tanh")
    exact.build(x.shape)
    tanh.build(x.shape)
    tanh.set_weights(exact.get_weights())
    difference = np.abs(exact(x, mask) - tanh(x, mask)).max()
    assert 1e-6 < difference < 1e-2


def test_one_product_makes_queries_keys_and_values(block):
    shapes = {w.path.split("/", 1)[-1]: tuple(w.shape) for w in block.weights}
    assert shapes["query_key_value/kernel"] == (8, 24)


def test_serialization_keeps_every_option():
    block = TransformerBlock(
        4,
        24,
        dropout=0.4,
        activation="gelu_tanh",
        initializer_range=0.3,
        layer_norm_epsilon=1e-5,
    )
    again = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(block)
    )
    assert again.get_config() == block.get_config()
    assert again.get_config()["activation"] == "gelu_tanh"


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="'relu'.*'gelu'"):
        TransformerBlock(2, 12, activation="relu")
    with pytest.raises(ValueError, match="num_heads=3 and a hidden size of 8"):
        TransformerBlock(3, 12).build((None, None, 8))

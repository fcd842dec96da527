"""`TransformerBlock`: self-attention and a feed-forward layer, each normed after.

Dimensions in the comments: B batch, S sequence, H hidden, N heads, D = H / N.
"""

import math

import keras
import tensorflow as tf

from bert_keras.dropout import Dropout
from bert_keras.embeddings import LAYER_NORM_EPSILON, initial_weights
from bert_keras.encoder.attention import attend, attend_in_training
from bert_keras.one_pass import in_one_pass

ACTIVATIONS = ("gelu", "gelu_tanh")


def gelu(x: tf.Tensor) -> tf.Tensor:
    """x * Phi(x), exact, as in 2018. Written with erf, which ONNX has; TF's has erfc.

    Source: Hendrycks and Gimpel 2016, "Gaussian Error Linear Units".
    """
    return 0.5 * x * (1.0 + tf.math.erf(x * tf.cast(math.sqrt(0.5), x.dtype)))


def activation_named(name: str):
    """Returns `gelu` or its tanh form; a `ValueError` lists the names."""
    if name not in ACTIVATIONS:
        raise ValueError(
            f"Unknown activation. Received: {name!r}; allowed: "
            f"{', '.join(map(repr, ACTIVATIONS))}."
        )
    return gelu if name == "gelu" else lambda x: tf.nn.gelu(x, approximate=True)


_IN_TRAINING = {name: in_one_pass(activation_named(name)) for name in ACTIVATIONS}


@keras.saving.register_keras_serializable(package="bert_keras")
class TransformerBlock(keras.layers.Layer):
    """One post-norm Transformer block (Vaswani et al. 2017, 3.1; Devlin et al. 2018).

    Written for speed: one product makes queries, keys and values, and all products with
    weights are two-dimensional.

    Args:
        num_heads: attention heads; must divide the hidden size.
        intermediate_dim: width of the feed-forward layer.
        dropout: rate behind both halves and on the attention weights.
        activation: `"gelu"` (exact) or `"gelu_tanh"`.
        initializer_range: standard deviation of the initial kernels.
        layer_norm_epsilon: added to the variances, which are computed in float32.

    Call arguments:
        hidden: `[batch, sequence, hidden]`.
        padding_mask: int32 `[batch, sequence]`, 0 for padding, which no token attends
            to; a row that is all padding stays finite.

    Returns:
        `[batch, sequence, hidden]`.

    Raises:
        ValueError: an unknown activation, or heads that do not divide the hidden size.
    """

    def __init__(
        self,
        num_heads: int,
        intermediate_dim: int,
        *,
        dropout: float = 0.1,
        activation: str = "gelu",
        initializer_range: float = 0.02,
        layer_norm_epsilon: float = LAYER_NORM_EPSILON,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.activation = activation
        self._activation = activation_named(activation)
        self.initializer_range = initializer_range
        self.layer_norm_epsilon = layer_norm_epsilon

    def build(self, hidden_shape, padding_mask_shape=None):
        width = hidden_shape[-1]
        if width % self.num_heads:
            raise ValueError(
                f"num_heads must divide the hidden size. Received: num_heads="
                f"{self.num_heads} and a hidden size of {width}."
            )
        self._query_key_value = self._add_dense("query_key_value", width, 3 * width)
        self._attention_output = self._add_dense("attention_output", width, width)
        self._attention_norm = self._add_norm("attention_norm", width)
        self._intermediate = self._add_dense(
            "intermediate", width, self.intermediate_dim
        )
        self._output = self._add_dense("output", self.intermediate_dim, width)
        self._output_norm = self._add_norm("output_norm", width)
        self._dropout_layer = Dropout(
            self.dropout, dtype=self.dtype_policy, name="dropout"
        )

    def _add_dense(self, name: str, inputs: int, outputs: int) -> keras.layers.Dense:
        layer = keras.layers.Dense(
            outputs,
            kernel_initializer=initial_weights(self.initializer_range),
            dtype=self.dtype_policy,
            name=name,
        )
        layer.build((None, inputs))
        return layer

    def _add_norm(self, name: str, width: int) -> keras.layers.LayerNormalization:
        layer = keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name=name
        )
        layer.build((None, width))
        return layer

    def call(self, hidden, padding_mask, training=None):
        shape = tf.shape(hidden)
        flat = tf.reshape(hidden, [-1, hidden.shape[-1]])  # [B*S, H]
        attended = self._attend(flat, shape, padding_mask, training)
        attended = self._attention_output(attended)
        attended = self._dropout_layer(attended, training=training)
        flat = self._attention_norm(flat + attended)

        activation = _IN_TRAINING[self.activation] if training else self._activation
        widened = activation(self._intermediate(flat))
        narrowed = self._dropout_layer(self._output(widened), training=training)
        flat = self._output_norm(flat + narrowed)
        return tf.ensure_shape(tf.reshape(flat, shape), hidden.shape)

    def _attend(self, flat, shape, padding_mask, training) -> tf.Tensor:
        width = flat.shape[-1]
        head = width // self.num_heads
        batch, length = shape[0], shape[1]
        heads = self._query_key_value(flat)  # [B*S, 3*H]
        heads = tf.reshape(heads, [batch, length, 3, self.num_heads, head])
        heads = tf.transpose(heads, [2, 0, 3, 1, 4])  # [3, B, N, S, D]
        query, key, value = tf.unstack(heads, axis=0)
        if training:
            dropout = self._dropout_layer
            attended = attend_in_training(query, key, value, padding_mask, dropout)
        else:
            attended = attend(query, key, value, padding_mask)
        attended = tf.transpose(attended, [0, 2, 1, 3])  # [B, S, N, D]
        return tf.reshape(attended, [-1, width])  # [B*S, H]

    def compute_output_shape(self, hidden_shape, padding_mask_shape=None):
        return hidden_shape

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "dropout": self.dropout,
            "activation": self.activation,
            "initializer_range": self.initializer_range,
            "layer_norm_epsilon": self.layer_norm_epsilon,
        }

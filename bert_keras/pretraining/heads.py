"""The two heads of pretraining: masked LM and next sentence."""

import keras
import tensorflow as tf

from bert_keras.embeddings import LAYER_NORM_EPSILON, TokenTable, initial_weights
from bert_keras.encoder.block import activation_named


@keras.saving.register_keras_serializable(package="bert_keras")
class MaskedLMHead(keras.layers.Layer):
    """A score for every piece at every position: dense, GELU, norm, the token table.

    The output layer *is* the token table, one variable, with a bias of its own
    (google-research/bert, `get_masked_lm_output`).

    Args:
        token_embedding: the `TokenTable` of the encoder; another one unties them.
        activation: as the encoder's.
        initializer_range: standard deviation of the initial kernel.
        layer_norm_epsilon: as the encoder's.

    Call arguments:
        hidden: `[batch, positions, hidden_dim]`.

    Returns:
        logits `[batch, positions, vocabulary_size]`.
    """

    def __init__(
        self,
        token_embedding: TokenTable,
        *,
        activation: str = "gelu",
        initializer_range: float = 0.02,
        layer_norm_epsilon: float = LAYER_NORM_EPSILON,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.token_embedding = token_embedding
        self.activation = activation
        self._activation = activation_named(activation)
        self.initializer_range = initializer_range
        self.layer_norm_epsilon = layer_norm_epsilon

    def build(self, hidden_shape):
        width = hidden_shape[-1]
        self._dense = keras.layers.Dense(
            width,
            kernel_initializer=initial_weights(self.initializer_range),
            dtype=self.dtype_policy,
            name="dense",
        )
        self._dense.build((None, width))
        self._norm = keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name="norm"
        )
        self._norm.build((None, width))
        if not self.token_embedding.built:
            self.token_embedding.build()
        self.bias = self.add_weight(
            name="bias",
            shape=(self.token_embedding.vocabulary_size,),
            initializer="zeros",
        )

    def call(self, hidden):
        flat = tf.reshape(hidden, [-1, hidden.shape[-1]])
        flat = self._norm(self._activation(self._dense(flat)))
        logits = self.token_embedding(flat, reverse=True) + self.bias
        shape = tf.concat([tf.shape(hidden)[:-1], [logits.shape[-1]]], axis=0)
        return tf.reshape(logits, shape)

    def compute_output_shape(self, hidden_shape):
        return (*hidden_shape[:-1], self.token_embedding.vocabulary_size)

    def get_config(self):
        return {
            **super().get_config(),
            "token_embedding": keras.saving.serialize_keras_object(
                self.token_embedding
            ),
            "activation": self.activation,
            "initializer_range": self.initializer_range,
            "layer_norm_epsilon": self.layer_norm_epsilon,
        }

    @classmethod
    def from_config(cls, config):
        table = keras.saving.deserialize_keras_object(config["token_embedding"])
        return cls(**{**config, "token_embedding": table})


@keras.saving.register_keras_serializable(package="bert_keras")
class GatherPositions(keras.layers.Layer):
    """Picks the vectors at some positions of each row.

    Call arguments:
        hidden: `[batch, sequence, hidden_dim]`.
        positions: int32 `[batch, positions]`.

    Returns:
        `[batch, positions, hidden_dim]`.
    """

    def call(self, hidden, positions):
        return tf.gather(hidden, positions, batch_dims=1)

    def compute_output_shape(self, hidden_shape, positions_shape):
        return (*positions_shape, hidden_shape[-1])

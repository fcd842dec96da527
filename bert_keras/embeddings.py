"""How the input of BERT is made: token row + segment row + position row.

All three tables start random and are trained with the rest of the network. A token's
row is found by its id; that is the same linear map as multiplying a one-hot vector by
the table, without the zeros. So the gradient, too, has rows only for the ids in the
batch (`tf.IndexedSlices`), unless the table is also the output layer of masked LM.

Source: Devlin et al. 2018, section 3 and figure 2; google-research/bert, `modeling.py`
(`embedding_lookup`, `embedding_postprocessor`).
"""

import keras
import tensorflow as tf

from bert_keras.dropout import Dropout

LAYER_NORM_EPSILON = 1e-12


def initial_weights(stddev: float) -> keras.initializers.Initializer:
    """Returns a *new* initializer: the same object would draw the same numbers again.

    A normal distribution cut at two standard deviations, as in 2018.
    """
    return keras.initializers.TruncatedNormal(stddev=stddev)


@keras.saving.register_keras_serializable(package="bert_keras")
class TokenTable(keras.layers.Layer):
    """The token table: a row for each id, and back from a vector to a score per row.

    Args:
        vocabulary_size: number of rows.
        hidden_dim: length of a row.
        initializer_range: standard deviation of the initial values.

    Call arguments:
        inputs: int32 ids of any shape, or with `reverse` float `[..., hidden_dim]`.
        reverse: score vectors against every row, with the same table.

    Returns:
        The rows, `[*inputs.shape, hidden_dim]`; with `reverse`
        `[..., vocabulary_size]`; both in the compute dtype.

    Raises:
        tf.errors.InvalidArgumentError: an id below 0 or not below `vocabulary_size`,
            naming both. Not under XLA, which has no way to raise: there an id outside
            the table reads the nearest row.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        initializer_range: float = 0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.initializer_range = initializer_range

    def build(self, inputs_shape=None):
        # Not cast by Keras: under mixed precision that would copy the whole table.
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocabulary_size, self.hidden_dim),
            initializer=initial_weights(self.initializer_range),
            autocast=False,
        )

    def call(self, inputs, reverse=False):
        table = tf.convert_to_tensor(self.embeddings)
        if reverse:
            table = tf.cast(table, self.compute_dtype)
            hidden = tf.reshape(inputs, [-1, self.hidden_dim])
            logits = tf.matmul(hidden, table, transpose_b=True)
            shape = tf.concat([tf.shape(inputs)[:-1], [self.vocabulary_size]], axis=0)
            logits = tf.reshape(logits, shape)
            return tf.ensure_shape(logits, [*inputs.shape[:-1], self.vocabulary_size])
        ids = in_range(inputs, self.vocabulary_size, "token_ids")
        return tf.cast(tf.gather(table, ids), self.compute_dtype)

    def compute_output_shape(self, inputs_shape, reverse=False):
        if reverse:
            return (*inputs_shape[:-1], self.vocabulary_size)
        return (*inputs_shape, self.hidden_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "initializer_range": self.initializer_range,
        }


@keras.saving.register_keras_serializable(package="bert_keras")
class BertEmbeddings(keras.layers.Layer):
    """LayerNorm(token row + segment row + position row), then dropout.

    Args:
        vocabulary_size: rows of the token table.
        hidden_dim: length of every row.
        max_sequence_length: rows of the position table.
        num_segments: rows of the segment table.
        dropout: rate of the dropout behind the norm.
        initializer_range: standard deviation of the initial rows.
        layer_norm_epsilon: added to the variance, which is computed in float32.

    Call arguments:
        token_ids: int32 `[batch, sequence]`.
        segment_ids: int32 `[batch, sequence]`.

    Returns:
        `[batch, sequence, hidden_dim]` in the compute dtype.

    Raises:
        ValueError: a sequence of known length with more positions than the table.
        tf.errors.InvalidArgumentError: an id, a segment or a length outside its table;
            the message names both numbers. Not under XLA, which cannot raise: there an
            index outside the table reads the nearest row.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        *,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        dropout: float = 0.1,
        initializer_range: float = 0.02,
        layer_norm_epsilon: float = LAYER_NORM_EPSILON,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.dropout = dropout
        self.initializer_range = initializer_range
        self.layer_norm_epsilon = layer_norm_epsilon
        self.token_embedding = TokenTable(
            vocabulary_size,
            hidden_dim,
            initializer_range,
            dtype=self.dtype_policy,
            name="token_embedding",
        )
        self._norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="layer_norm"
        )
        self._dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, token_ids_shape, segment_ids_shape=None):
        self.token_embedding.build(token_ids_shape)
        self.segment_embeddings = self._add_table("segment", self.num_segments)
        self.position_embeddings = self._add_table("position", self.max_sequence_length)
        summed_shape = (*token_ids_shape, self.hidden_dim)
        self._norm.build(summed_shape)
        self._dropout.build(summed_shape)

    def _add_table(self, name: str, rows: int):
        return self.add_weight(
            name=f"{name}_embeddings",
            shape=(rows, self.hidden_dim),
            initializer=initial_weights(self.initializer_range),
            autocast=False,
        )

    def call(self, token_ids, segment_ids, training=None):
        segment_ids = in_range(segment_ids, self.num_segments, "segment_ids")
        tokens = self.token_embedding(token_ids)
        segments = tf.gather(tf.convert_to_tensor(self.segment_embeddings), segment_ids)
        positions = self._positions(token_ids)
        summed = tokens + tf.cast(segments, tokens.dtype)
        summed += tf.cast(positions, tokens.dtype)
        return self._dropout(self._norm(summed), training=training)

    def _positions(self, token_ids: tf.Tensor) -> tf.Tensor:
        """Returns the rows of positions 0 to sequence - 1, `[sequence, hidden]`."""
        rows = self.max_sequence_length
        problem = "The sequence is longer than the position table. Received: length"
        length = token_ids.shape[1]
        if length is None:
            length = tf.shape(token_ids)[1]
            fits = tf.debugging.Assert(
                length <= rows, [problem, length, "; allowed: at most", rows]
            )
            with tf.control_dependencies([fits] if fits is not None else []):
                length = tf.identity(length)
        elif length > rows:
            raise ValueError(f"{problem} {length}; allowed: at most {rows}.")
        return tf.convert_to_tensor(self.position_embeddings)[:length]

    def compute_output_shape(self, token_ids_shape, segment_ids_shape=None):
        return (*token_ids_shape, self.hidden_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "max_sequence_length": self.max_sequence_length,
            "num_segments": self.num_segments,
            "dropout": self.dropout,
            "initializer_range": self.initializer_range,
            "layer_norm_epsilon": self.layer_norm_epsilon,
        }


def in_range(ids: tf.Tensor, rows: int, name: str) -> tf.Tensor:
    """Returns `ids`; where TensorFlow can raise, it does if one is no row of a table.

    On a GPU, `tf.gather` itself would return zeros for such an id.
    """
    lowest, highest = tf.reduce_min(ids), tf.reduce_max(ids)
    is_valid = tf.debugging.Assert(
        (tf.size(ids) == 0) | ((lowest >= 0) & (highest < rows)),
        [
            f"{name} holds values from",
            lowest,
            "to",
            highest,
            f"; allowed: 0 to {rows - 1}, for a table of {rows} rows.",
        ],
    )
    with tf.control_dependencies([is_valid] if is_valid is not None else []):
        return tf.identity(ids)

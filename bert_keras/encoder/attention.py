"""What a token takes from the others: scaled dot-product attention (Vaswani 2017, 3.2).

Dimensions in the comments: B batch, N heads, S sequence, D size of a head.
"""

import math

import tensorflow as tf

from bert_keras.dropout import Dropout, kept
from bert_keras.one_pass import compiled

# Added to the scores of padding, which are float32 whatever the model computes in: a
# float16 has no such number. exp() of it is exactly 0.
_HIDDEN_SCORE = -1e9


def attend(query, key, value, padding_mask) -> tf.Tensor:
    """Returns softmax(query key' / sqrt(D)) value, without padding: `[B, N, S, D]`.

    Args:
        query, key, value: `[B, N, S, D]`.
        padding_mask: int32 `[B, S]`, 0 for padding, which nothing attends to.
    """
    scores = tf.matmul(_scaled(query), key, transpose_b=True)  # [B, N, S, S]
    scores = tf.cast(scores, tf.float32) + _bias(padding_mask)
    return tf.matmul(tf.cast(tf.nn.softmax(scores), value.dtype), value)


def attend_in_training(query, key, value, padding_mask, dropout: Dropout) -> tf.Tensor:
    """Returns the same with dropout of the weights, and knows a shorter way back.

    Between two products each number is read and written once. The gradient of softmax
    needs the sum of weights times their gradients; that is the sum of outputs times
    theirs, which is `S / D` times shorter (Dao et al. 2022, "FlashAttention", B.2).

    Args:
        dropout: of the weights; it has a new pattern in each call.
    """
    rate = dropout.rate
    dropout_key = dropout.new_key() if rate else None

    @tf.custom_gradient
    def attended(query, key, value):
        scores = tf.matmul(query, key, transpose_b=True)
        weights = tf.nn.softmax(_biased(scores, _bias(padding_mask)))
        weights, left = _kept_weights(weights, dropout_key, rate, value.dtype)
        output = tf.matmul(left, value)

        def gradient(upstream):
            of_left = tf.matmul(upstream, value, transpose_b=True)
            of_scores = _of_scores(weights, left, of_left, output, upstream)
            return (
                tf.matmul(of_scores, key),
                tf.matmul(of_scores, query, transpose_a=True),
                tf.matmul(left, upstream, transpose_a=True),
            )

        return output, gradient

    return attended(_scaled(query), key, value)


def _scaled(query: tf.Tensor) -> tf.Tensor:
    return query * tf.cast(1 / math.sqrt(query.shape[-1]), query.dtype)


def _bias(padding_mask: tf.Tensor) -> tf.Tensor:
    """Returns what is added to the scores, float32 `[B, 1, 1, S]`."""
    return _HIDDEN_SCORE * tf.cast(padding_mask == 0, tf.float32)[:, None, None, :]


@compiled
def _biased(scores, bias):
    return tf.cast(scores, tf.float32) + bias


@compiled
def _kept_weights(weights, key, rate, dtype):
    left = weights * kept(tf.shape(weights), key, rate) if rate else weights
    return tf.cast(weights, dtype), tf.cast(left, dtype)


@compiled
def _of_scores(weights, left, of_left, output, upstream):
    dtype = weights.dtype
    weights, left, of_left, output, upstream = (
        tf.cast(x, tf.float32) for x in (weights, left, of_left, output, upstream)
    )
    sums = tf.reduce_sum(output * upstream, axis=-1, keepdims=True)  # [B, N, S, 1]
    return tf.cast(left * of_left - weights * sums, dtype)

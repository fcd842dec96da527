"""`Dropout`: Keras's layer, with half the random numbers."""

import keras
import tensorflow as tf

_STEPS = 1 << 16  # what 16 random bits can tell apart


@keras.saving.register_keras_serializable(package="bert_keras")
class Dropout(keras.layers.Dropout):
    """Sets a share of the numbers to zero and scales the rest up (Srivastava 2014).

    Attention alone needs `heads * sequence` random numbers for each token, so that they
    are a good part of a step on a CPU. Keras draws a float32 for each; 16 bits will do:
    the rate is rounded to a multiple of 1/65536, and the scale is that of the rounded
    rate. State, arguments and config are those of `keras.layers.Dropout`.

    Raises:
        ValueError: a rate below 0, or one that leaves nothing.
    """

    def __init__(self, rate, **kwargs):
        super().__init__(rate, **kwargs)
        self._dropped = round(rate * _STEPS)
        if self._dropped == _STEPS:
            raise ValueError(
                f"Nothing is left. Received: rate={rate}; allowed: 0 up to, but not, 1."
            )

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        seed = _of_this_replica(self.seed_generator.next())
        bits = _random_int16(tf.shape(inputs), seed)
        is_kept = bits >= self._dropped - _STEPS // 2
        scale = tf.cast(1 / (1 - self._dropped / _STEPS), inputs.dtype)
        return inputs * (tf.cast(is_kept, inputs.dtype) * scale)


def _of_this_replica(seed: tf.Tensor) -> tf.Tensor:
    """Returns another seed on each replica: of one state, but for rows of its own."""
    context = tf.distribute.get_replica_context()
    number = tf.cast(context.replica_id_in_sync_group if context else 0, seed.dtype)
    return seed + tf.stack([tf.zeros_like(number), number])


def _random_int16(shape: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Returns uniform random numbers, two from each that TensorFlow draws."""
    last = shape[-1]
    pairs = tf.concat([shape[:-1], [(last + 1) // 2]], axis=0)
    drawn = tf.random.stateless_uniform(pairs, seed, None, None, tf.int32)
    halves = tf.bitcast(drawn, tf.int16)  # [..., pairs, 2]
    even = tf.concat([shape[:-1], [2 * pairs[-1]]], axis=0)
    return tf.reshape(halves, even)[..., :last]

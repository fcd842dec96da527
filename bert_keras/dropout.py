"""`Dropout`: Keras's layer, with random numbers that are made where they are used."""

import keras
import tensorflow as tf

from bert_keras.one_pass import compiled


@keras.saving.register_keras_serializable(package="bert_keras")
class Dropout(keras.layers.Dropout):
    """Sets a share of the numbers to zero and scales the rest up (Srivastava 2014).

    Attention alone needs `heads * sequence` random numbers for each token; to draw them
    by TensorFlow's generator takes a CPU as long as the products of attention do. Here
    a number is a hash of its place and of a key, which that generator draws anew for
    each call; nothing is kept, since it can be hashed again. State, arguments and
    config are those of `keras.layers.Dropout`.

    Raises:
        ValueError: a rate below 0, or one that leaves nothing.
    """

    def __init__(self, rate, **kwargs):
        super().__init__(rate, **kwargs)
        if rate == 1:
            raise ValueError(
                f"Nothing is left. Received: rate={rate}; allowed: 0 up to, but not, 1."
            )

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        return dropped(inputs, self.new_key(), self.rate)

    def new_key(self) -> tf.Tensor:
        """Returns int32 `[2]`: of this call and this replica alone."""
        seed = _of_this_replica(self.seed_generator.next())
        return tf.random.stateless_uniform([2], seed, None, None, tf.int32)


def dropped(x: tf.Tensor, key: tf.Tensor, rate: float) -> tf.Tensor:
    """Returns `x` with a share of zeros, chosen by `key`, and the rest scaled up."""

    @tf.custom_gradient
    def scaled(x):
        return _dropped(x, key, rate), lambda upstream: _dropped(upstream, key, rate)

    return scaled(x)


@compiled
def _dropped(x, key, rate):
    return tf.cast(tf.cast(x, tf.float32) * kept(tf.shape(x), key, rate), x.dtype)


def kept(shape: tf.Tensor, key: tf.Tensor, rate: float) -> tf.Tensor:
    """Returns what each number is times: 0 or 1 / (1 - rate), float32. For XLA."""
    place = tf.reshape(tf.range(tf.reduce_prod(shape)), shape)
    bits = _mixed(tf.bitwise.bitwise_xor(tf.cast(place, tf.uint32), _word(key[0])))
    bits = _mixed(bits + _word(key[1]))
    return tf.where(bits >= int(rate * 2**32), 1 / (1 - rate), 0.0)


def _mixed(bits: tf.Tensor) -> tf.Tensor:
    """Returns uint32 of which each bit depends on all of the input's.

    Source: `lowbias32` of Wellons 2018, "Prospecting for Hash Functions".
    """
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        bits = _shifted_in(bits, shift) * tf.constant(factor, tf.uint32)
    return _shifted_in(bits, 16)


def _shifted_in(bits: tf.Tensor, shift: int) -> tf.Tensor:
    shifted = tf.bitwise.right_shift(bits, tf.constant(shift, tf.uint32))
    return tf.bitwise.bitwise_xor(bits, shifted)


def _word(number: tf.Tensor) -> tf.Tensor:
    return tf.bitcast(number, tf.uint32)


def _of_this_replica(seed: tf.Tensor) -> tf.Tensor:
    """Returns another seed on each replica: of one state, but for rows of its own."""
    context = tf.distribute.get_replica_context()
    number = tf.cast(context.replica_id_in_sync_group if context else 0, seed.dtype)
    return seed + tf.stack([tf.zeros_like(number), number])

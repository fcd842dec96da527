"""Two idioms of flat integer tensors."""

import tensorflow as tf


def indices(condition: tf.Tensor) -> tf.Tensor:
    """Returns the indices at which a bool vector is true, int32."""
    return tf.cast(tf.where(condition)[:, 0], tf.int32)


def put(values: tf.Tensor, places: tf.Tensor, value: int) -> tf.Tensor:
    """Returns a vector with one value written at some places."""
    return tf.tensor_scatter_nd_update(
        values, places[:, None], tf.fill(tf.shape(places), value)
    )

"""Elementwise functions that take one pass over memory, compiled by XLA.

On a CPU what TensorFlow does between two matrix products is bound by memory: each
operation reads and writes whole tensors. These read their inputs once, compute in
float32, and write once. For training alone: an export holds plain operations.
"""

import tensorflow as tf


def compiled(function):
    """Returns a `tf.function` of it that XLA compiles, once for each shape."""
    return tf.function(
        function, jit_compile=True, autograph=False, reduce_retracing=True
    )


def in_one_pass(function):
    """Returns an elementwise function that takes one pass, and one for its gradient.

    It keeps its input alone for the way back.
    """

    def in_float32(x):
        return tf.cast(function(tf.cast(x, tf.float32)), x.dtype)

    def its_gradient(x, upstream):
        with tf.GradientTape() as tape:
            tape.watch(x)
            answer = in_float32(x)
        return tape.gradient(answer, x, upstream)

    forward, backward = compiled(in_float32), compiled(its_gradient)

    @tf.custom_gradient
    def in_training(x):
        return forward(x), lambda upstream: backward(x, upstream)

    return in_training

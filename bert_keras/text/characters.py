"""A text whose characters say where in the original they came from."""

from typing import NamedTuple

import tensorflow as tf

from bert_keras.text.tensors import indices, put


class Characters(NamedTuple):
    """A batch of texts, flat, and where it came from.

    Attributes:
        codepoints: int32 `[characters]`.
        row_splits: int32 `[batch + 1]`.
        starts: int32 `[characters]`: index of the codepoint at which each began.
        ends: int32 `[characters]`: one past the last codepoint that it came from.
    """

    codepoints: tf.Tensor
    row_splits: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


def row_splits_after(
    kept: tf.Tensor, before: tf.Tensor, row_splits: tf.Tensor
) -> tf.Tensor:
    """Returns the row splits of what was kept of a flat batch.

    Args:
        kept: int32 `[kept]`: from where in `before` each came; of the space that ends a
            row, one.
        before: int32 `[codepoints]`.
        row_splits: int32 `[batch + 1]`: of `before`.
    """
    is_row_end = put(tf.zeros_like(before), row_splits[1:] - 1, 1)
    row_ends = indices(tf.gather(is_row_end, kept) > 0)
    return tf.concat([[0], row_ends + 1], axis=0)

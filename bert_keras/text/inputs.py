"""Whatever a caller has -> codepoints, the rows behind one another."""

import keras
import tensorflow as tf

from bert_keras.text.rules import CODEPOINTS

_REPLACEMENT = 0xFFFD  # what a decoder writes for bytes that are no character


def as_text(inputs):
    """Makes a tensor of strings or codepoints; a symbolic one stays as it is."""
    if isinstance(inputs, keras.KerasTensor):
        return inputs
    if isinstance(inputs, list | tuple) and not inputs:
        return tf.constant([], tf.string)
    return tf.convert_to_tensor(inputs)


def check_text(inputs) -> None:
    """Raises a `ValueError` for a tensor that holds no text."""
    dtype, rank = keras.backend.standardize_dtype(inputs.dtype), len(inputs.shape)
    if (dtype == "string" and rank in (0, 1)) or ("int" in dtype and rank == 2):
        return
    raise ValueError(
        f"The tokenizer cannot read its input. Received: {dtype} of shape "
        f"{tuple(inputs.shape)}; allowed: strings of rank 0 or 1, or integer "
        "codepoints [batch, length]."
    )


def codepoints_of(texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the codepoints of a batch, flat, and where its rows begin and end.

    Args:
        texts: strings `[batch]`, or int32 codepoints `[batch, length]`.

    Returns:
        int32 `[codepoints]`, every row with a space behind it, and row splits, int32
        `[batch + 1]`.
    """
    if texts.dtype == tf.string:
        return _decode(texts + " ")
    is_valid = (texts >= 0) & (texts < CODEPOINTS)
    texts = tf.where(is_valid, texts, _REPLACEMENT)
    batch, length = tf.unstack(tf.shape(texts))
    rows = tf.concat([texts, tf.fill([batch, 1], ord(" "))], axis=1)
    return tf.reshape(rows, [-1]), tf.range(batch + 1) * (length + 1)


def _decode(texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    def decode_bytes():  # of ASCII, each byte is a codepoint: several times faster
        ends = tf.cumsum(tf.strings.length(texts))
        return tf.cast(all_bytes, tf.int32), tf.concat([[0], ends], axis=0)

    def decode_characters():
        decoded = tf.strings.unicode_decode(texts, "UTF-8")
        return decoded.values, tf.cast(decoded.row_splits, tf.int32)

    all_bytes = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)
    return tf.cond(tf.reduce_all(all_bytes < 128), decode_bytes, decode_characters)

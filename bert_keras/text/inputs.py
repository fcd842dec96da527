"""Whatever a caller has -> codepoints, the rows behind one another."""

from typing import NamedTuple

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


class Text(NamedTuple):
    """A batch of texts, flat.

    Attributes:
        codepoints: int32 `[codepoints]`, every row with a space behind it.
        row_splits: int32 `[batch + 1]`: row r is `codepoints[row_splits[r:r + 2]]`.
        positions: int32 `[codepoints]`: byte at which each codepoint begins, counted so
            that a difference within a row is a number of bytes; None if nobody asked.
    """

    codepoints: tf.Tensor
    row_splits: tf.Tensor
    positions: tf.Tensor | None


def codepoints_of(texts: tf.Tensor, in_bytes: bool = False) -> Text:
    """Takes a batch of texts apart.

    Args:
        texts: strings `[batch]`, or int32 codepoints `[batch, length]`.
        in_bytes: say where in the UTF-8 text each codepoint begins.
    """
    if texts.dtype == tf.string:
        texts = texts + " "
        return _decode_with_positions(texts) if in_bytes else _decode(texts)
    is_valid = (texts >= 0) & (texts < CODEPOINTS)
    texts = tf.where(is_valid, texts, _REPLACEMENT)
    batch, length = tf.unstack(tf.shape(texts))
    rows = tf.concat([texts, tf.fill([batch, 1], ord(" "))], axis=1)
    codepoints = tf.reshape(rows, [-1])
    positions = tf.cumsum(_utf8_lengths(codepoints), exclusive=True)
    return Text(
        codepoints,
        tf.range(batch + 1) * (length + 1),
        positions if in_bytes else None,
    )


def _utf8_lengths(codepoints: tf.Tensor) -> tf.Tensor:
    """Returns how many bytes each codepoint takes."""
    firsts = tf.constant([0x80, 0x800, 0x10000])  # of two, three and four bytes
    return 1 + tf.reduce_sum(tf.cast(codepoints[:, None] >= firsts, tf.int32), axis=1)


def _decode(texts: tf.Tensor) -> Text:
    def decode_bytes():  # of ASCII, each byte is a codepoint: several times faster
        ends = tf.cumsum(tf.strings.length(texts))
        return tf.cast(all_bytes, tf.int32), tf.concat([[0], ends], axis=0)

    def decode_characters():
        decoded = tf.strings.unicode_decode(texts, "UTF-8")
        return decoded.values, tf.cast(decoded.row_splits, tf.int32)

    all_bytes = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)
    decoded = tf.cond(tf.reduce_all(all_bytes < 128), decode_bytes, decode_characters)
    return Text(*decoded, positions=None)


def _decode_with_positions(texts: tf.Tensor) -> Text:
    codepoints, positions = tf.strings.unicode_decode_with_offsets(texts, "UTF-8")
    row_splits = tf.cast(codepoints.row_splits, tf.int32)
    return Text(codepoints.values, row_splits, tf.cast(positions.values, tf.int32))

"""One number for each codepoint: a table that is small, and quick to look up in."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_keras.text.options import NAMES
from bert_keras.text.rules import CODEPOINTS

_PAGE = 64
_FLAT = 1 << 16
_END = CODEPOINTS + NAMES  # a number for each name in a text, too


class PagedTable(NamedTuple):
    """One number for each codepoint.

    The first 65,536 stand in order; of the rest, equal pages of 64 are stored once.

    Attributes:
        shifts: int32 `[codepoints / 64]`: what to add to a codepoint on each page to
            find its number among `values`.
        values: integers.
    """

    shifts: np.ndarray
    values: np.ndarray


def paged(values: np.ndarray) -> PagedTable:
    """Makes the table of an integer for each codepoint, and each name (or 0)."""
    values = np.pad(values, (0, _END - len(values)))
    numbers: dict[bytes, int] = {}
    stored = [values[:_FLAT]]
    shifts = np.zeros(_END // _PAGE, np.int32)
    for page in range(_FLAT // _PAGE, _END // _PAGE):
        content = values[page * _PAGE : (page + 1) * _PAGE]
        number = numbers.setdefault(content.tobytes(), len(numbers))
        if number == len(stored) - 1:
            stored.append(content)
        shifts[page] = _FLAT + (number - page) * _PAGE
    return PagedTable(shifts, narrow(np.concatenate(stored)))


def narrow(array: np.ndarray) -> np.ndarray:
    """Stores small numbers in one byte or two: the exported files halve."""
    largest = array.max(initial=0)
    types = ((1 << 8, np.uint8), (1 << 16, np.uint16))
    return array.astype(next((t for end, t in types if largest < end), np.int32))


def look_up(table: PagedTable, codepoints: tf.Tensor) -> tf.Tensor:
    """Returns the number of each codepoint, int32."""

    def on_pages():
        # A power of two divides exactly in floating point, and far faster.
        page = tf.cast(tf.cast(codepoints, tf.float32) / _PAGE, tf.int32)
        return codepoints + tf.gather(table.shifts, page)

    is_flat = tf.reduce_max(codepoints) < _FLAT
    index = tf.cond(is_flat, lambda: codepoints, on_pages)
    return tf.cast(tf.gather(table.values, index), tf.int32)

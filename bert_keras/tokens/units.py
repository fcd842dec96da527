"""What masked LM hides together: pieces, words, or spans of words.

A *unit* is a piece or a word: it is hidden whole or not at all. A *group* is a unit, or
a span of them: units that come one behind the other. Both are runs of text tokens in a
row of the batch, and numbered from 0 along it; what is no text has the number of the
unit before it. Shapes: B batch, S sequence.
"""

import tensorflow as tf

UNITS = ("piece", "word", "span")
_SPAN_END = 0.2  # probability that a span ends behind a word
_MOST_WORDS = 10  # in a span


def units_of(unit: str, is_text, continues, seed) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns each position's unit and group, by their numbers, int32 `[B, S]`.

    Args:
        unit: one of `UNITS`.
        is_text: bool `[B, S]`: may be hidden.
        continues: bool `[B, S]`: continues the word before it, if there is one.
        seed: int `[2]`, where spans end.
    """
    if unit == "piece":
        pieces = _counted(is_text)
        return pieces, pieces
    before = tf.pad(is_text, [[0, 0], [1, 0]])[:, :-1]
    begins_text = is_text & ~before
    begins_word = is_text & (~continues | begins_text)
    words = _counted(begins_word)
    if unit == "word":
        return words, words
    # A length is geometric if behind each word a coin decides whether it was the last.
    coin = tf.random.stateless_uniform(tf.shape(is_text), seed) < _SPAN_END
    begins_span = begins_word & (coin | begins_text)
    spans = _counted(begins_span)
    first = _per_unit(tf.math.unsorted_segment_min, words, spans)
    is_too_long = (words - tf.gather(first, spans, batch_dims=1)) % _MOST_WORDS == 0
    return words, _counted(begins_span | (begins_word & is_too_long))


def fill_room(units, groups, is_text, room, drawn) -> tf.Tensor:
    """Chooses groups in random order, and of each the units that have room left.

    If none has, the smallest unit is chosen.

    Args:
        units, groups: int32 `[B, S]`, of `units_of`.
        is_text: bool `[B, S]`.
        room: int32 `[B]`: tokens to choose.
        drawn: float `[B, S]`, 0 to 1: a random number for each group.

    Returns:
        bool `[B, S]`: is the unit of this number chosen?
    """
    tokens = tf.cast(is_text, tf.int32)
    sizes = _per_unit(tf.math.unsorted_segment_sum, tokens, units)
    drawn = tf.gather(drawn, groups, batch_dims=1)
    drawn = _per_unit(tf.math.unsorted_segment_max, drawn, units)
    # Of equal numbers, those of a group, the first stays first.
    order = tf.argsort(tf.where(sizes > 0, drawn, 2.0), axis=1)
    ordered = tf.gather(sizes, order, batch_dims=1)
    taken = _fit(ordered, room)
    is_none = ~tf.reduce_any(taken, axis=1, keepdims=True)
    smallest = tf.argmin(tf.where(ordered > 0, ordered, ordered.dtype.max), axis=1)
    chosen = tf.one_hot(smallest, tf.shape(taken)[1], True, False) & (ordered > 0)
    taken |= chosen & is_none & (room[:, None] > 0)
    return tf.gather(taken, tf.argsort(order, axis=1), batch_dims=1)


def _fit(sizes, room) -> tf.Tensor:
    """Returns which sizes fit, from left to right; what is too large is passed over.

    Each round takes those before the first that does not fit, and passes over all that
    have no room behind them; so there are about as many rounds as sizes.
    """
    room = room[:, None]

    def one_round(candidates, _):
        total = tf.cumsum(tf.where(candidates, sizes, 0), axis=1)
        taken = candidates & (total <= room)
        used = tf.reduce_sum(tf.where(taken, sizes, 0), axis=1, keepdims=True)
        left = taken | (candidates & (sizes <= room - used))
        return left, tf.reduce_any(left != taken)

    candidates = (sizes > 0) & (sizes <= room)
    taken, _ = tf.while_loop(
        lambda _, goes_on: goes_on, one_round, one_round(candidates, True)
    )
    return taken


def _counted(begins) -> tf.Tensor:
    return tf.maximum(tf.cumsum(tf.cast(begins, tf.int32), axis=1) - 1, 0)


def _per_unit(reduce, values, units) -> tf.Tensor:
    """Reduces `[B, S]` values over the positions of each unit, to `[B, S]`."""
    rows, length = tf.unstack(tf.shape(units))
    flat = units + tf.range(rows)[:, None] * length
    reduced = reduce(tf.reshape(values, [-1]), tf.reshape(flat, [-1]), rows * length)
    return tf.reshape(reduced, [rows, length])

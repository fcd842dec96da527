"""Flat tokens -> a dictionary of rows, padded or ragged."""

import tensorflow as tf

from bert_keras.features import TOKEN_IDS, SpecialTokens
from bert_keras.text.wordpiece import WordPieces

COUNTS = "counts"
OFFSETS = "offsets"
SPECIAL_TOKENS_MASK = "special_tokens_mask"


def padded_rows(
    pieces: WordPieces,
    row_starts: tf.Tensor | None,
    pad_id: int,
    length: int | None,
    at_most: int | None,
) -> dict[str, tf.Tensor]:
    """Lays tokens out in rows of one length.

    Args:
        pieces: of `wordpiece`.
        row_starts: int32 `[batch]`: where each row begins, in the unit of the pieces'
            places; None to leave the places out.
        pad_id: fills up the ids; zeros fill up the places.
        length: of every row; None for that of the longest.
        at_most: the most that the longest may have.
    """
    firsts = pieces.row_splits[:-1]
    counts = pieces.row_splits[1:] - firsts
    if length is None:
        length = tf.reduce_max(tf.concat([counts, [0]], axis=0))
        length = length if at_most is None else tf.minimum(length, at_most)
    column = tf.range(length)[None, :]
    is_token = column < counts[:, None]
    # Padding reads a value past the last token, which is always there.
    index = tf.where(is_token, firsts[:, None] + column, tf.size(pieces.ids))

    def spread(values, padding):
        return tf.gather(tf.concat([values, [padding]], axis=0), index)

    outputs = {
        TOKEN_IDS: spread(pieces.ids, pad_id),
        COUNTS: tf.minimum(counts, length),
    }
    if row_starts is not None:
        edges = tf.stack([spread(pieces.starts, 0), spread(pieces.ends, 0)], axis=-1)
        edges -= row_starts[:, None, None]
        outputs[OFFSETS] = tf.where(is_token[..., None], edges, 0)
    return outputs


def ragged_rows(
    pieces: WordPieces, row_starts: tf.Tensor | None, length: int | None
) -> dict[str, tf.Tensor | tf.RaggedTensor]:
    """Lays tokens out in ragged rows of at most `length`; as `padded_rows` else."""

    def rows(values):
        ragged = tf.RaggedTensor.from_row_splits(
            values, pieces.row_splits, validate=False
        )
        return ragged if length is None else ragged[:, :length]

    ids = rows(pieces.ids)
    outputs = {TOKEN_IDS: ids, COUNTS: tf.cast(ids.row_lengths(), tf.int32)}
    if row_starts is not None:
        counts = pieces.row_splits[1:] - pieces.row_splits[:-1]
        edges = tf.stack([pieces.starts, pieces.ends], axis=-1)
        outputs[OFFSETS] = rows(edges - tf.repeat(row_starts, counts)[:, None])
    return outputs


def special_mask(ids, special_ids: SpecialTokens):
    """Returns 1 where an id is [PAD], [CLS], [SEP] or [MASK], int32, as ids are laid.

    [UNK] stands for text, and is none of them.
    """
    if isinstance(ids, tf.RaggedTensor):
        return ids.with_flat_values(special_mask(ids.flat_values, special_ids))
    specials = set(special_ids._replace(unk=special_ids.pad))
    return tf.cast(tf.reduce_any([ids == i for i in specials], axis=0), tf.int32)

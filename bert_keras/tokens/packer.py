"""`BertPacker`: [CLS] A [SEP], or [CLS] A [SEP] B [SEP]."""

import keras
import tensorflow as tf

from bert_keras.features import ENCODER_INPUTS, PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from bert_keras.text.layout import COUNTS


@keras.saving.register_keras_serializable(package="bert_keras")
class BertPacker(keras.layers.Layer):
    """Packs the tokens of one text, or of a pair, into the feature dictionary.

    Texts that are too long lose tokens at their ends, never a special token. Of a pair,
    the longer one is cut first (round robin from text A, as KerasHub's and the paper's
    packers do): with n places, A keeps min(a, max(ceil(n / 2), n - b)).

    Args:
        sequence_length: most tokens in a row, special tokens included; at least 2 for
            single texts and 3 for pairs.
        cls_id, sep_id, pad_id: ids of [CLS], [SEP] and [PAD].
        pad_to_longest: pad to the longest row of the batch, not to `sequence_length`.

    Call arguments:
        first: text A: the dictionary that `WordPieceTokenizer` returns, or a ragged
            int32 tensor `[batch, (tokens)]`, or a dense one whose every id counts;
            each also without the batch axis.
        second: text B, or None.

    Returns:
        `token_ids`, `segment_ids`, `padding_mask`, each int32 `[batch, sequence]`. The
        segment is 0 for [CLS] A [SEP] and padding, 1 for B [SEP]; an empty B still has
        its [SEP].

    Raises:
        ValueError: `sequence_length` has no room for the special tokens.
    """

    def __init__(
        self,
        sequence_length: int,
        *,
        cls_id: int,
        sep_id: int,
        pad_id: int,
        pad_to_longest: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.sequence_length = sequence_length
        self.cls_id, self.sep_id, self.pad_id = cls_id, sep_id, pad_id
        self.pad_to_longest = pad_to_longest
        check_room(sequence_length, texts=1)
        self.built = True

    def call(self, first, second=None):
        return pack(
            [text for text in (first, second) if text is not None],
            sequence_length=self.sequence_length,
            cls_id=self.cls_id,
            sep_id=self.sep_id,
            pad_id=self.pad_id,
            pad_to_longest=self.pad_to_longest,
        )

    def compute_output_spec(self, first, second=None):
        counts = first[COUNTS] if isinstance(first, dict) else first
        length = None if self.pad_to_longest else self.sequence_length
        return feature_spec(tuple(counts.shape[:1]), length)

    def get_config(self):
        return {
            **super().get_config(),
            "sequence_length": self.sequence_length,
            "cls_id": self.cls_id,
            "sep_id": self.sep_id,
            "pad_id": self.pad_id,
            "pad_to_longest": self.pad_to_longest,
        }


def pack(
    texts: list,
    *,
    sequence_length: int,
    cls_id: int,
    sep_id: int,
    pad_id: int,
    pad_to_longest: bool,
) -> dict[str, tf.Tensor]:
    """Packs one or two texts; arguments and result are those of `BertPacker`."""
    texts = [_Tokens.of(text) for text in texts]
    shapes = [text.counts.shape for text in texts]
    if not shapes[0].is_compatible_with(shapes[-1]):
        raise ValueError(
            f"Text A and text B do not fit together. Received: batches of shape "
            f"{shapes[0]} and {shapes[-1]}; allowed: the same for both."
        )
    is_single_row = texts[0].counts.shape.rank == 0
    if is_single_row:
        texts = [text.batched() for text in texts]
    kept = _trim([text.counts for text in texts], sequence_length)
    total = sum(kept) + len(texts) + 1
    longest = tf.reduce_max(tf.concat([total, [0]], 0))
    position = tf.range(longest if pad_to_longest else sequence_length)[None, :]

    token_ids = tf.where(position == 0, cls_id, pad_id)
    segment_ids = tf.zeros_like(position)
    start = tf.ones_like(total)[:, None]  # where the next text begins
    for number, (text, count) in enumerate(zip(texts, kept, strict=True)):
        end = start + count[:, None]
        inside = (position >= start) & (position < end)
        token_ids = tf.where(inside, text.at(position - start), token_ids)
        token_ids = tf.where(position == end, sep_id, token_ids)
        in_segment = (position >= start) & (position <= end)
        segment_ids = tf.where(in_segment, number, segment_ids)
        start = end + 1
    features = {
        TOKEN_IDS: token_ids,
        SEGMENT_IDS: segment_ids,
        PADDING_MASK: tf.cast(position < total[:, None], tf.int32),
    }
    if is_single_row:
        features = {name: value[0] for name, value in features.items()}
    return features


def feature_spec(batch: tuple, length: int | None) -> dict[str, keras.KerasTensor]:
    """Returns the symbolic feature dictionary of shape `(*batch, length)`."""
    return {
        name: keras.KerasTensor((*batch, length), dtype="int32", name=name)
        for name in ENCODER_INPUTS
    }


def check_room(sequence_length: int, texts: int) -> int:
    """Returns how many tokens of text fit in beside the special tokens.

    Raises:
        ValueError: not even the special tokens do.
    """
    least = texts + 1
    if not isinstance(sequence_length, int) or sequence_length < least:
        raise ValueError(
            f"sequence_length is too short. Received: sequence_length="
            f"{sequence_length!r} for {texts} text(s); allowed: an integer of at least "
            f"{least}, for one [CLS] and {texts} [SEP]."
        )
    return sequence_length - least


def _trim(counts: list[tf.Tensor], sequence_length: int) -> list[tf.Tensor]:
    places = check_room(sequence_length, texts=len(counts))
    if len(counts) == 1:
        return [tf.minimum(counts[0], places)]
    first, second = counts
    kept = tf.minimum(first, tf.maximum((places + 1) // 2, places - second))
    return [kept, tf.minimum(second, places - kept)]


class _Tokens:
    """The tokens of a batch of texts: padded ids and how many of them count."""

    def __init__(self, ids: tf.Tensor, counts: tf.Tensor):
        self.ids, self.counts = ids, counts

    @classmethod
    def of(cls, text) -> "_Tokens":
        ids = text[TOKEN_IDS] if isinstance(text, dict) else text
        if isinstance(ids, tf.RaggedTensor):
            counts, ids = ids.row_lengths(), ids.to_tensor()
        elif isinstance(text, dict):
            counts = text[COUNTS]
        else:  # one row, or rows of equal length
            ids = tf.convert_to_tensor(ids)
            counts = tf.reduce_sum(tf.ones_like(ids), axis=-1)
        return cls(tf.cast(ids, tf.int32), tf.cast(counts, tf.int32))

    def batched(self) -> "_Tokens":
        return _Tokens(self.ids[None], self.counts[None])

    def at(self, index: tf.Tensor) -> tf.Tensor:
        """Returns the ids at `index` `[batch, sequence]`, anything where it is out."""
        ids = tf.concat([self.ids, tf.zeros_like(self.counts)[:, None]], axis=1)
        index = tf.clip_by_value(index, 0, tf.shape(ids)[1] - 1)
        return tf.gather(ids, index, batch_dims=1)

"""`BertPreprocessor`: text or text pair -> feature dictionary."""

from collections.abc import Sequence

import keras
import tensorflow as tf

from bert_keras.text.inputs import as_text
from bert_keras.text.tokenizer import WordPieceTokenizer
from bert_keras.tokens.packer import check_room, feature_spec, pack


@keras.saving.register_keras_serializable(package="bert_keras")
class BertPreprocessor(keras.layers.Layer):
    """The tokenizer and the packer, one behind the other.

    Args:
        tokenizer: a `WordPieceTokenizer` that cuts and pads nothing itself.
        sequence_length: most tokens in a row, special tokens included.
        pad_to_longest: pad to the longest row of the batch, not to `sequence_length`.

    Call arguments:
        first: text A, as `WordPieceTokenizer` takes it.
        second: text B, or None.

    Returns:
        `token_ids`, `segment_ids`, `padding_mask`, each int32 `[batch, sequence]`,
        without the batch axis for a rank 0 input.

    >>> preprocessor = BertPreprocessor(WordPieceTokenizer("vocab.txt"), 512)
    >>> preprocessor("Welcome to HuggingFace Forums!")["token_ids"][:8]
    [101, 6160, 2000, 17662, 12172, 21415, 999, 102]
    """

    def __init__(
        self,
        tokenizer: WordPieceTokenizer,
        sequence_length: int = 512,
        *,
        pad_to_longest: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if tokenizer.sequence_length is not None:
            raise ValueError(
                "The packer cuts and pads, and so the tokenizer must not. Received: a "
                f"tokenizer with sequence_length={tokenizer.sequence_length}; allowed: "
                "None."
            )
        check_room(sequence_length, texts=1)
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        self.pad_to_longest = pad_to_longest
        self.built = True

    def __call__(self, first, second=None, **kwargs):
        texts = [first] if second is None else [first, second]
        return super().__call__(*map(as_text, texts), **kwargs)

    def call(self, first, second=None):
        special_ids = self.tokenizer.special_ids
        texts = [text for text in (first, second) if text is not None]
        return pack(
            [self.tokenizer(text, at_most=self.sequence_length) for text in texts],
            sequence_length=self.sequence_length,
            cls_id=special_ids.cls,
            sep_id=special_ids.sep,
            pad_id=special_ids.pad,
            pad_to_longest=self.pad_to_longest,
        )

    def check_rows(self, rows: int) -> None:
        """Raises a `ValueError` if a token table of so many rows is too small."""
        end, first = self.tokenizer.ids_end, self.tokenizer.options.id_offset
        if end > rows:
            raise ValueError(
                "The vocabulary does not fit the token table. Received: "
                f"{len(self.tokenizer.vocabulary)} tokens"
                f"{f', their ids from {first} on,' if first else ''} and {rows} rows; "
                f"allowed: at least as many rows as tokens."
            )

    def compute_output_spec(self, first, second=None):
        length = None if self.pad_to_longest else self.sequence_length
        return feature_spec(tuple(first.shape[:1]), length)

    def get_config(self):
        return {
            **super().get_config(),
            "tokenizer": keras.saving.serialize_keras_object(self.tokenizer),
            "sequence_length": self.sequence_length,
            "pad_to_longest": self.pad_to_longest,
        }

    @classmethod
    def from_config(cls, config):
        tokenizer = keras.saving.deserialize_keras_object(config["tokenizer"])
        return cls(**{**config, "tokenizer": tokenizer})


def features_of(
    preprocessor: BertPreprocessor, texts: Sequence[str | tuple[str, str]]
) -> dict[str, tf.Tensor]:
    """Returns the features of a list of texts, or of a list of pairs."""
    if all(isinstance(text, str) for text in texts):
        return preprocessor(tf.constant(list(texts), tf.string))
    first, second = zip(*texts, strict=True)
    return preprocessor(list(first), list(second))

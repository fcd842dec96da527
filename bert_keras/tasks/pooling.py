"""From the vectors of the tokens to one vector for the row."""

import keras
import tensorflow as tf

from bert_keras.encoder.backbone import BertBackbone
from bert_keras.features import PADDING_MASK, POOLED_OUTPUT, SEQUENCE_OUTPUT

POOLINGS = ("mean", "cls")


@keras.saving.register_keras_serializable(package="bert_keras")
class Pooling(keras.layers.Layer):
    """One vector for a row: the mean over its tokens, or that of [CLS].

    Args:
        pooling: `"mean"`, over the tokens that are no padding, or `"cls"`.
        normalize: scale the vector to length 1.

    Call arguments:
        hidden: `[batch, sequence, hidden_dim]`.
        padding_mask: int32 `[batch, sequence]`.

    Returns:
        float32 `[batch, hidden_dim]`.
    """

    def __init__(self, pooling: str = "mean", normalize: bool = False, **kwargs):
        super().__init__(**kwargs)
        if pooling not in POOLINGS:
            raise ValueError(
                f"Received: pooling={pooling!r}; allowed: "
                f"{', '.join(map(repr, POOLINGS))}."
            )
        self.pooling = pooling
        self.normalize = normalize

    def call(self, hidden, padding_mask):
        hidden = tf.cast(hidden, tf.float32)
        if self.pooling == "cls":
            pooled = hidden[:, 0]
        else:
            weights = tf.cast(padding_mask, tf.float32)[..., None]
            # The least weight, as in sentence-transformers: a row may be all padding.
            total = tf.maximum(tf.reduce_sum(weights, axis=1), 1e-9)
            pooled = tf.reduce_sum(hidden * weights, axis=1) / total
        if not self.normalize:
            return pooled
        length = tf.sqrt(tf.reduce_sum(tf.square(pooled), axis=-1, keepdims=True))
        return pooled / tf.maximum(length, 1e-12)

    def compute_output_spec(self, hidden, padding_mask):
        return keras.KerasTensor((hidden.shape[0], hidden.shape[-1]), dtype="float32")

    def get_config(self):
        return {
            **super().get_config(),
            "pooling": self.pooling,
            "normalize": self.normalize,
        }


POOLER = "pooler"


def pooled(
    backbone: BertBackbone, inputs: dict, pooling: str, name: str = "pooling"
) -> keras.KerasTensor:
    """Returns the vector that the head of a classifier or regressor reads.

    Args:
        pooling: `"pooler"`: the encoder's `pooled_output`; else as `Pooling`.
    """
    encoded = backbone(inputs)
    if pooling == POOLER:
        return encoded[POOLED_OUTPUT]
    if pooling not in POOLINGS:
        raise ValueError(
            f"Received: pooling={pooling!r}; allowed: "
            f"{', '.join(map(repr, (POOLER, *POOLINGS)))}."
        )
    pool = Pooling(pooling, dtype="float32", name=name)
    return pool(encoded[SEQUENCE_OUTPUT], inputs[PADDING_MASK])

"""`BertEmbedder`: a text to one vector."""

from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from bert_keras.encoder.backbone import BertBackbone
from bert_keras.features import EMBEDDING, PADDING_MASK, SEQUENCE_OUTPUT, Task
from bert_keras.tasks.answers import embed
from bert_keras.tasks.model import TaskModel, encoder_inputs
from bert_keras.tokens.preprocessor import BertPreprocessor

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


@keras.saving.register_keras_serializable(package="bert_keras")
class BertEmbedder(TaskModel):
    """The encoder, pooled to one vector a text (Reimers and Gurevych 2019).

    It has no labels, and so is not trained by itself: bring the weights.

    Args:
        backbone: the encoder.
        preprocessor: text -> features.
        pooling: `"mean"` or `"cls"`.
        normalize: scale the vectors to length 1.
        frozen, micro_batches: as `TaskModel`.

    Inputs: the feature dictionary.

    Outputs: `embedding` float32 `[batch, hidden_dim]`.
    """

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertPreprocessor | None = None,
        *,
        pooling: str = "mean",
        normalize: bool = False,
        **kwargs,
    ):
        inputs = encoder_inputs()
        pool = Pooling(pooling, normalize, dtype="float32", name="pooling")
        hidden = backbone(inputs)[SEQUENCE_OUTPUT]
        super().__init__(
            backbone,
            preprocessor,
            inputs,
            {EMBEDDING: pool(hidden, inputs[PADDING_MASK])},
            head=None,
            arguments={"pooling": pooling, "normalize": normalize},
            **kwargs,
        )

    @property
    def task(self) -> Task:
        return Task("embed")

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the vectors of texts, float32 `[texts, hidden_dim]`."""
        return embed(self, texts)

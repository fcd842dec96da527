"""`BertEmbedder`: a text to one vector."""

from collections.abc import Sequence

import keras
import numpy as np

from bert_keras.encoder.backbone import BertBackbone
from bert_keras.features import EMBEDDING, PADDING_MASK, SEQUENCE_OUTPUT, Task
from bert_keras.tasks.answers import embed
from bert_keras.tasks.pooling import Pooling
from bert_keras.tokens.preprocessor import BertPreprocessor
from bert_keras.training.encoder_model import EncoderModel, encoder_inputs


@keras.saving.register_keras_serializable(package="bert_keras")
class BertEmbedder(EncoderModel):
    """The encoder, pooled to one vector a text (Reimers and Gurevych 2019).

    It has no labels, and so is not trained by itself: bring the weights.

    Args:
        backbone: the encoder.
        preprocessor: text -> features.
        pooling: `"mean"` or `"cls"`.
        normalize: scale the vectors to length 1.
        frozen, micro_batches: as `EncoderModel`.

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

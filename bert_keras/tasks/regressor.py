"""`BertRegressor`: text, or a pair of texts, to a number."""

from collections.abc import Sequence

import keras
import tensorflow as tf

from bert_keras.dropout import Dropout
from bert_keras.encoder.backbone import BertBackbone
from bert_keras.features import LABEL, LABEL_WEIGHT, VALUE, Task
from bert_keras.tasks.answers import regress
from bert_keras.tasks.heads import head_layer
from bert_keras.tasks.pooling import POOLER, pooled
from bert_keras.tokens.preprocessor import BertPreprocessor
from bert_keras.training.encoder_model import EncoderModel, encoder_inputs
from bert_keras.training.model import Term


@keras.saving.register_keras_serializable(package="bert_keras")
class BertRegressor(EncoderModel):
    """A linear map of the pooled vector of a row to a number; the loss is the square.

    Args:
        backbone: the encoder.
        preprocessor: text -> features.
        dropout: rate between the encoder and the head.
        text_pairs: it reads pairs of texts.
        pooling: what the head reads: `"pooler"`, the pooled [CLS] vector, as in 2018;
            `"mean"` or `"cls"`, of the vectors of tokens, as an embedder.
        frozen, micro_batches: as `EncoderModel`.

    Inputs: the feature dictionary.

    Outputs: `value` `[batch]`.
    """

    term_names = ("value",)
    kinds = ("loss",)

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertPreprocessor | None = None,
        *,
        dropout: float = 0.1,
        text_pairs: bool = False,
        pooling: str = POOLER,
        **kwargs,
    ):
        head = head_layer(backbone, 1, "regressor")
        inputs = encoder_inputs()
        vector = pooled(backbone, inputs, pooling)
        vector = Dropout(dropout, dtype=backbone.dtype_policy, name="dropout")(vector)
        super().__init__(
            backbone,
            preprocessor,
            inputs,
            {VALUE: head(vector)[:, 0]},
            head=head,
            arguments={
                "dropout": dropout,
                "text_pairs": text_pairs,
                "pooling": pooling,
            },
            **kwargs,
        )
        self._task = Task("regress", text_pairs=text_pairs)

    @property
    def task(self) -> Task:
        return self._task

    def regress(self, texts: Sequence[str | tuple[str, str]]) -> list[float]:
        """Returns the number of each text, or of each pair."""
        return regress(self, texts)

    def terms(self, features: dict, training: bool) -> list[Term]:
        value = self(self.inputs_of(features), training=training)[VALUE]
        errors = tf.square(tf.cast(value, tf.float32) - features[LABEL])
        return [Term("value", tf.reduce_sum(errors * features[LABEL_WEIGHT]))]

    def weights_of(self, features: dict) -> dict[str, tf.Tensor]:
        return {"value": tf.reduce_sum(features[LABEL_WEIGHT])}

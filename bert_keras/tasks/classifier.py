"""`BertClassifier`: text, or a pair of texts, to one of some classes."""

from collections.abc import Sequence

import keras
import tensorflow as tf

from bert_keras.dropout import Dropout
from bert_keras.encoder.backbone import BertBackbone
from bert_keras.features import (
    LABEL,
    LABEL_LOGITS,
    LABEL_PROBABILITIES,
    LABEL_WEIGHT,
    Task,
)
from bert_keras.tasks.answers import Classified, classify
from bert_keras.tasks.heads import check_labels, head_layer
from bert_keras.tasks.pooling import POOLER, pooled
from bert_keras.tokens.preprocessor import BertPreprocessor
from bert_keras.training.encoder_model import EncoderModel, encoder_inputs
from bert_keras.training.model import Term, classification_term


@keras.saving.register_keras_serializable(package="bert_keras")
class BertClassifier(EncoderModel):
    """A linear map of the pooled vector of a row to classes (Devlin et al. 2018, 4.1).

    Args:
        backbone: the encoder.
        labels: names of the classes.
        preprocessor: text -> features.
        dropout: rate between the encoder and the head.
        text_pairs: it reads pairs of texts.
        pooling: what the head reads: `"pooler"`, the pooled [CLS] vector, as in 2018;
            `"mean"` or `"cls"`, of the vectors of tokens, as an embedder.
        frozen, micro_batches: as `EncoderModel`.

    Inputs: the feature dictionary.

    Outputs: `label_logits` `[batch, labels]`.

    >>> classifier = keras.saving.load_model("model.keras")
    >>> classifier.classify(["A fine film."])
    [Classified(label='positive', probability=0.98)]
    """

    term_names = ("label",)

    def __init__(
        self,
        backbone: BertBackbone,
        labels: Sequence[str],
        preprocessor: BertPreprocessor | None = None,
        *,
        dropout: float = 0.1,
        text_pairs: bool = False,
        pooling: str = POOLER,
        **kwargs,
    ):
        names = check_labels(labels)
        head = head_layer(backbone, len(names), "classifier")
        inputs = encoder_inputs()
        vector = pooled(backbone, inputs, pooling)
        vector = Dropout(dropout, dtype=backbone.dtype_policy, name="dropout")(vector)
        super().__init__(
            backbone,
            preprocessor,
            inputs,
            {LABEL_LOGITS: head(vector)},
            head=head,
            arguments={
                "labels": list(names),
                "dropout": dropout,
                "text_pairs": text_pairs,
                "pooling": pooling,
            },
            **kwargs,
        )
        self._task = Task("classify", names, text_pairs)

    @property
    def task(self) -> Task:
        return self._task

    def classify(self, texts: Sequence[str | tuple[str, str]]) -> list[Classified]:
        """Returns the most probable class of each text, or of each pair."""
        return classify(self, texts)

    def encode(self, features: dict) -> dict:
        """Returns `label_logits` and `label_probabilities`, `[batch, labels]` each."""
        logits = super().encode(features)[LABEL_LOGITS]
        probabilities = tf.nn.softmax(tf.cast(logits, tf.float32))
        return {LABEL_LOGITS: logits, LABEL_PROBABILITIES: probabilities}

    def terms(self, features: dict, training: bool) -> list[Term]:
        logits = self(self.inputs_of(features), training=training)[LABEL_LOGITS]
        weights = features[LABEL_WEIGHT]
        return [classification_term("label", logits, features[LABEL], weights)]

    def weights_of(self, features: dict) -> dict[str, tf.Tensor]:
        return {"label": tf.reduce_sum(features[LABEL_WEIGHT])}

"""`BertTagger`: a tag for every word of a text."""

from collections.abc import Sequence

import keras
import tensorflow as tf

from bert_keras.dropout import Dropout
from bert_keras.encoder.backbone import BertBackbone
from bert_keras.features import SEQUENCE_OUTPUT, TAG_LOGITS, TAG_WEIGHTS, TAGS, Task
from bert_keras.tasks.heads import check_labels, head_layer
from bert_keras.tasks.tags import Tagged, tag
from bert_keras.tokens.preprocessor import BertPreprocessor
from bert_keras.training.encoder_model import EncoderModel, encoder_inputs
from bert_keras.training.model import Term, classification_term


@keras.saving.register_keras_serializable(package="bert_keras")
class BertTagger(EncoderModel):
    """A linear map of every token's vector to tags (Devlin et al. 2018, 5.3).

    The first piece of a word speaks for it; the others are not asked and not trained.

    Args:
        backbone: the encoder.
        labels: names of the tags.
        preprocessor: text -> features.
        dropout: rate between the encoder and the head.
        frozen, micro_batches: as `EncoderModel`.

    Inputs: the feature dictionary.

    Outputs: `tag_logits` `[batch, sequence, labels]`.
    """

    term_names = ("tag",)

    def __init__(
        self,
        backbone: BertBackbone,
        labels: Sequence[str],
        preprocessor: BertPreprocessor | None = None,
        *,
        dropout: float = 0.1,
        **kwargs,
    ):
        names = check_labels(labels)
        head = head_layer(backbone, len(names), "tagger")
        inputs = encoder_inputs()
        hidden = backbone(inputs)[SEQUENCE_OUTPUT]
        hidden = Dropout(dropout, dtype=backbone.dtype_policy, name="dropout")(hidden)
        super().__init__(
            backbone,
            preprocessor,
            inputs,
            {TAG_LOGITS: head(hidden)},
            head=head,
            arguments={"labels": list(names), "dropout": dropout},
            **kwargs,
        )
        self._task = Task("tag", names)

    @property
    def task(self) -> Task:
        return self._task

    def tag(self, texts: Sequence[str | Sequence[str]]) -> list[Tagged]:
        """Returns the tags of the words of each text, and its entities.

        Args:
            texts: strings, or lists of words.
        """
        return tag(self, texts)

    def terms(self, features: dict, training: bool) -> list[Term]:
        logits = self(self.inputs_of(features), training=training)[TAG_LOGITS]
        weights = features[TAG_WEIGHTS]
        return [classification_term("tag", logits, features[TAGS], weights)]

    def weights_of(self, features: dict) -> dict[str, tf.Tensor]:
        return {"tag": tf.reduce_sum(features[TAG_WEIGHTS])}

"""`BertSpanFinder`: the answer to a question as a span of a text."""

from collections.abc import Sequence

import keras
import tensorflow as tf

from bert_keras.encoder.backbone import BertBackbone
from bert_keras.features import (
    END_LOGITS,
    SEGMENT_IDS,
    SEQUENCE_OUTPUT,
    SPAN_END,
    SPAN_START,
    START_LOGITS,
    Task,
)
from bert_keras.tasks.heads import head_layer
from bert_keras.tasks.spans import Span, find_spans
from bert_keras.tokens.preprocessor import BertPreprocessor
from bert_keras.training.encoder_model import EncoderModel, encoder_inputs
from bert_keras.training.model import Term, classification_term

_HIDDEN_SCORE = -1e9


@keras.saving.register_keras_serializable(package="bert_keras")
class BertSpanFinder(EncoderModel):
    """Scores of every token as the first and as the last of the answer.

    Source: Devlin et al. 2018, 4.2 and 4.3: where there is no answer, both are [CLS].

    Args:
        backbone: the encoder.
        preprocessor: question and text -> features.
        may_abstain: it may find that a text has no answer, as those of SQuAD 2.0 may.
        frozen, micro_batches: as `EncoderModel`.

    Inputs: the feature dictionary of pairs of a question and a text.

    Outputs: `start_logits` and `end_logits`, `[batch, sequence]` each.
    """

    term_names = ("start", "end")

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertPreprocessor | None = None,
        *,
        may_abstain: bool = False,
        **kwargs,
    ):
        head = head_layer(backbone, 2, "span_finder")
        inputs = encoder_inputs()
        logits = head(backbone(inputs)[SEQUENCE_OUTPUT])
        super().__init__(
            backbone,
            preprocessor,
            inputs,
            {START_LOGITS: logits[..., 0], END_LOGITS: logits[..., 1]},
            head=head,
            arguments={"may_abstain": may_abstain},
            **kwargs,
        )

    @property
    def task(self) -> Task:
        may_abstain = self.arguments["may_abstain"]
        return Task("span", text_pairs=True, may_abstain=may_abstain)

    def find(self, questions: Sequence[tuple[str, str]]) -> list[Span]:
        """Returns the most probable answer to each question in its text.

        Args:
            questions: pairs of a question and a text of any length.
        """
        return find_spans(self, questions)

    def terms(self, features: dict, training: bool) -> list[Term]:
        logits = self(self.inputs_of(features), training=training)
        segments = features[SEGMENT_IDS]
        is_text = (segments == 1) | (tf.range(tf.shape(segments)[1]) == 0)
        hidden = tf.where(is_text, 0.0, _HIDDEN_SCORE)
        ones = tf.ones_like(features[SPAN_START], tf.float32)
        return [
            classification_term(
                name,
                tf.cast(logits[scores], tf.float32) + hidden,
                features[place],
                ones,
            )
            for name, scores, place in (
                ("start", START_LOGITS, SPAN_START),
                ("end", END_LOGITS, SPAN_END),
            )
        ]

    def weights_of(self, features: dict) -> dict[str, tf.Tensor]:
        rows = tf.cast(tf.shape(features[SPAN_START])[0], tf.float32)
        return {"start": rows, "end": rows}

"""`BertPretrainer`: the encoder with both heads, trained by `model.fit`."""

import keras
import tensorflow as tf

from bert_keras.embeddings import TokenTable, initial_weights
from bert_keras.encoder.backbone import BertBackbone
from bert_keras.features import (
    MASK_IDS,
    MASK_POSITIONS,
    MASK_WEIGHTS,
    MASKED_LM_LOGITS,
    NEXT_SENTENCE,
    NEXT_SENTENCE_LOGITS,
    POOLED_OUTPUT,
    SEQUENCE_OUTPUT,
    Task,
)
from bert_keras.pretraining.heads import GatherPositions, MaskedLMHead
from bert_keras.tokens.preprocessor import BertPreprocessor
from bert_keras.training.encoder_model import EncoderModel, encoder_inputs
from bert_keras.training.model import Term, classification_term


@keras.saving.register_keras_serializable(package="bert_keras")
class BertPretrainer(EncoderModel):
    """Masked LM and next-sentence prediction on a `BertBackbone`.

    The loss is the sum of the two mean cross-entropies (Devlin et al. 2018, A.2), each
    mean taken over the global batch. `model.fit` takes a dataset of feature
    dictionaries with labels (`bert_keras.features`).

    Args:
        backbone: the encoder.
        preprocessor: text -> features; not used in training, but saved with the model,
            so that one `.keras` file is complete and can be exported to read text.
        tied: masked LM scores pieces by their rows in the token table, as in 2018. Not
            tied, it has a table of its own, and of the token table only the rows in a
            batch get a gradient.
        next_sentence: there is a second head, for pairs of texts. Without it masked LM
            is learned alone, and of the encoder the pooler is not trained.
        frozen, micro_batches: as `EncoderModel`.

    Inputs: the feature dictionary with `mask_positions`.

    Outputs: `masked_lm_logits` `[batch, predictions, vocabulary_size]` and
    `next_sentence_logits` `[batch, 2]` (class 1: B follows A; of sentence order: A and
    B are in order).

    Raises:
        ValueError: a vocabulary with more tokens than the token table has rows.
    """

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertPreprocessor | None = None,
        tied: bool = True,
        next_sentence: bool = True,
        **kwargs,
    ):
        dtype = backbone.dtype_policy
        table = backbone.token_embedding
        if not tied:
            table = TokenTable(
                backbone.vocabulary_size,
                backbone.hidden_dim,
                backbone.initializer_range,
                dtype=dtype,
                name="output_table",
            )
        masked_lm_head = MaskedLMHead(
            table,
            activation=backbone.activation,
            initializer_range=backbone.initializer_range,
            layer_norm_epsilon=backbone.layer_norm_epsilon,
            dtype=dtype,
            name="masked_lm",
        )
        next_sentence_head = None
        if next_sentence:
            next_sentence_head = keras.layers.Dense(
                2,
                kernel_initializer=initial_weights(backbone.initializer_range),
                dtype=dtype,
                name="next_sentence",
            )
        inputs = encoder_inputs()
        encoded = backbone(inputs)
        positions = keras.Input((None,), dtype="int32", name=MASK_POSITIONS)
        hidden = GatherPositions(dtype=dtype, name="gather_positions")(
            encoded[SEQUENCE_OUTPUT], positions
        )
        outputs = {MASKED_LM_LOGITS: masked_lm_head(hidden)}
        if next_sentence:
            pooled = encoded[POOLED_OUTPUT]
            outputs[NEXT_SENTENCE_LOGITS] = next_sentence_head(pooled)
        super().__init__(
            backbone,
            preprocessor,
            {**inputs, MASK_POSITIONS: positions},
            outputs,
            head=None,
            arguments={"tied": tied, "next_sentence": next_sentence},
            **kwargs,
        )
        self.masked_lm_head = masked_lm_head
        self.next_sentence_head = next_sentence_head
        self.tied = tied
        self.next_sentence = next_sentence

    @property
    def term_names(self) -> tuple[str, ...]:
        """The parts of the loss."""
        has_pairs = self.arguments["next_sentence"]
        return ("masked_lm", "next_sentence") if has_pairs else ("masked_lm",)

    @property
    def task(self) -> Task:
        """What the model is for."""
        return Task("fill-mask")

    def terms(self, features: dict, training: bool) -> list[Term]:
        inputs = self.inputs_of(features)
        inputs[MASK_POSITIONS] = features[MASK_POSITIONS]
        logits = self(inputs, training=training)
        terms = [
            classification_term(
                "masked_lm",
                logits[MASKED_LM_LOGITS],
                features[MASK_IDS],
                features[MASK_WEIGHTS],
            )
        ]
        if self.next_sentence:
            labels = features[NEXT_SENTENCE]
            ones = tf.ones_like(labels, tf.float32)
            pair_logits = logits[NEXT_SENTENCE_LOGITS]
            terms.append(
                classification_term("next_sentence", pair_logits, labels, ones)
            )
        return terms

    def weights_of(self, features: dict) -> dict[str, tf.Tensor]:
        weights = {"masked_lm": tf.reduce_sum(features[MASK_WEIGHTS])}
        if self.next_sentence:
            rows = tf.shape(features[NEXT_SENTENCE])[0]
            weights["next_sentence"] = tf.cast(rows, tf.float32)
        return weights

    def encode(self, features: dict) -> dict:
        """Returns every output at every position: what an exported model answers.

        Args:
            features: `token_ids`, `segment_ids`, `padding_mask`.

        Returns:
            `sequence_output` `[batch, sequence, hidden_dim]`, `pooled_output`
            `[batch, hidden_dim]`, `masked_lm_logits` `[batch, sequence,
            vocabulary_size]`, and with that head `next_sentence_logits` `[batch, 2]`.
        """
        encoded = self.backbone(features, training=False)
        outputs = dict(encoded)
        outputs[MASKED_LM_LOGITS] = self.masked_lm_head(encoded[SEQUENCE_OUTPUT])
        if self.next_sentence:
            pooled = encoded[POOLED_OUTPUT]
            outputs[NEXT_SENTENCE_LOGITS] = self.next_sentence_head(pooled)
        return outputs

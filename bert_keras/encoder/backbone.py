"""`BertBackbone`: the encoder, from the feature dictionary to vectors."""

import keras
from keras_nlp.models import Backbone

from bert_keras.config import size_named
from bert_keras.embeddings import LAYER_NORM_EPSILON, BertEmbeddings, initial_weights
from bert_keras.encoder.block import TransformerBlock
from bert_keras.features import (
    ENCODER_INPUTS,
    PADDING_MASK,
    POOLED_OUTPUT,
    SEGMENT_IDS,
    SEQUENCE_OUTPUT,
    TOKEN_IDS,
)


@keras.saving.register_keras_serializable(package="bert_keras")
class BertBackbone(Backbone):
    """The encoder of BERT (Devlin et al. 2018) as a functional Keras model.

    A `keras_nlp.models.Backbone` with its argument names, so presets, saving and
    KerasHub's tasks work with it.

    Args:
        vocabulary_size: rows of the token table.
        num_layers: Transformer blocks.
        num_heads: attention heads of each block.
        hidden_dim: width of the residual stream.
        intermediate_dim: width of the feed-forward layers.
        dropout: rate of every dropout.
        max_sequence_length: rows of the position table.
        num_segments: rows of the segment table.
        activation: `"gelu"` (exact) or `"gelu_tanh"`.
        initializer_range: standard deviation of the initial weights; see
            `bert_keras.config` for what suits which size.
        layer_norm_epsilon: added to the variances of the norms.
        dtype: dtype or dtype policy of the computations and weights.

    Inputs: `token_ids`, `segment_ids`, `padding_mask`, each int32 `[batch, sequence]`.

    Outputs: `sequence_output` `[batch, sequence, hidden_dim]`, the vectors of the
    tokens; `pooled_output` `[batch, hidden_dim]`, tanh of a linear map of [CLS]'s.
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        dropout: float = 0.1,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        *,
        activation: str = "gelu",
        initializer_range: float = 0.02,
        layer_norm_epsilon: float = LAYER_NORM_EPSILON,
        dtype=None,
        **kwargs,
    ):
        # === Layers ===
        self.embeddings = BertEmbeddings(
            vocabulary_size,
            hidden_dim,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
            dropout=dropout,
            initializer_range=initializer_range,
            layer_norm_epsilon=layer_norm_epsilon,
            dtype=dtype,
            name="embeddings",
        )
        self.blocks = [
            TransformerBlock(
                num_heads,
                intermediate_dim,
                dropout=dropout,
                activation=activation,
                initializer_range=initializer_range,
                layer_norm_epsilon=layer_norm_epsilon,
                dtype=dtype,
                name=f"block_{number}",
            )
            for number in range(num_layers)
        ]
        self.pooler = keras.layers.Dense(
            hidden_dim,
            activation="tanh",
            kernel_initializer=initial_weights(initializer_range),
            dtype=dtype,
            name="pooler",
        )

        # === Functional model ===
        inputs = {
            name: keras.Input((None,), dtype="int32", name=name)
            for name in ENCODER_INPUTS
        }
        hidden = self.embeddings(inputs[TOKEN_IDS], inputs[SEGMENT_IDS])
        for block in self.blocks:
            hidden = block(hidden, inputs[PADDING_MASK])
        outputs = {SEQUENCE_OUTPUT: hidden, POOLED_OUTPUT: self.pooler(hidden[:, 0])}
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, **kwargs)

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.activation = activation
        self.initializer_range = initializer_range
        self.layer_norm_epsilon = layer_norm_epsilon
        # KerasHub's tasks read these two.
        self.token_embedding = self.embeddings.token_embedding
        self.cls_token_index = 0

    @classmethod
    def from_size(cls, name: str, vocabulary_size: int, **kwargs) -> "BertBackbone":
        """Makes a backbone of a named size: tiny, mini, small, base or large."""
        arguments = {**size_named(name).arguments(), **kwargs}
        return cls(vocabulary_size=vocabulary_size, **arguments)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "hidden_dim": self.hidden_dim,
            "intermediate_dim": self.intermediate_dim,
            "dropout": self.dropout,
            "max_sequence_length": self.max_sequence_length,
            "num_segments": self.num_segments,
            "activation": self.activation,
            "initializer_range": self.initializer_range,
            "layer_norm_epsilon": self.layer_norm_epsilon,
        }

"""What every trained model shares: an encoder, what stands on it, and text in."""

from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from bert_keras.encoder.backbone import BertBackbone
from bert_keras.features import ENCODER_INPUTS, TOKEN_IDS, Task
from bert_keras.text.options import check_integer
from bert_keras.tokens.preprocessor import BertPreprocessor, features_of
from bert_keras.training.model import WeightedMeanTraining


class EncoderModel(WeightedMeanTraining, keras.Model):
    """An encoder with heads; the base of `BertPretrainer` and of the models of tasks.

    Trained by `model.fit` on feature dictionaries with labels (`bert_keras.features`),
    under any strategy, in any precision. One `.keras` file holds the tokenizer, the
    weights and the labels.

    Args:
        backbone: the encoder.
        preprocessor: text -> features.
        inputs, outputs: of the functional model.
        head: the layer behind the encoder, if there is just one.
        arguments: what a subclass was given beside these, for its config.
        frozen: how many of the lower layers stay as they are: 1 is the embeddings, and
            n is these and n - 1 blocks.
        micro_batches: parts in which a batch is worked through, to the same effect.

    Raises:
        ValueError: a vocabulary with more tokens than the token table has rows, or more
            frozen layers than there are.
    """

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertPreprocessor | None,
        inputs: dict,
        outputs: dict,
        *,
        head: keras.layers.Layer | None,
        arguments: dict,
        frozen: int = 0,
        micro_batches: int = 1,
        **kwargs,
    ):
        check_integer("frozen", frozen, 0, backbone.num_layers + 1)
        check_integer("micro_batches", micro_batches, 1)
        for number, layer in enumerate([backbone.embeddings, *backbone.blocks]):
            layer.trainable = number >= frozen
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        self.dtype_policy = backbone.dtype_policy  # so that float16 scales its loss
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head = head
        self.arguments = arguments
        self.frozen = frozen
        self.micro_batches = micro_batches
        self._encode_compiled = tf.function(self.encode, autograph=False)
        if preprocessor is not None and preprocessor.tokenizer.has_vocabulary:
            self.check_vocabulary()
        self.make_trackers()

    def call(self, inputs, training=None, mask=None):
        """Reads its own of a feature dictionary; Keras would go by the order of all."""
        if isinstance(inputs, dict):
            inputs = {name: inputs[name] for name in self.input if name in inputs}
        return super().call(inputs, training=training, mask=mask)

    @property
    def task(self) -> Task:
        """What the model is for."""
        raise TypeError(f"{type(self).__name__} does not define task.")

    def check_vocabulary(self) -> None:
        """Refuses a vocabulary that the token table has no rows for."""
        self.preprocessor.check_rows(self.backbone.vocabulary_size)

    def encode(self, features: dict) -> dict:
        """Returns what an exported model answers.

        Args:
            features: `token_ids`, `segment_ids`, `padding_mask`.
        """
        return self(self.inputs_of(features), training=False)

    def inputs_of(self, features: dict) -> dict:
        """Returns what the encoder reads of a feature dictionary."""
        return {name: features[name] for name in ENCODER_INPUTS}

    def run(self, texts: Sequence[str | tuple[str, str]]) -> dict[str, np.ndarray]:
        """Returns the outputs, and `token_ids`, for texts or for text pairs.

        Rows are padded to the longest of them.
        """
        if self.preprocessor is None:
            raise ValueError(
                "Only a model that carries its preprocessor can read text. Received: "
                f"{type(self).__name__} with preprocessor=None; allowed: a "
                "BertPreprocessor."
            )
        features = features_of(self.preprocessor, texts)
        outputs = {TOKEN_IDS: features[TOKEN_IDS], **self._encode_compiled(features)}
        return {name: value.numpy() for name, value in outputs.items()}

    def in_float32(self) -> "EncoderModel":
        """Returns the model that computes in float32 with the same weights."""
        if self.backbone.dtype_policy.compute_dtype == "float32":
            return self
        config = {**self.backbone.get_config(), "dtype": "float32"}
        full = type(self)(
            BertBackbone.from_config(config),
            preprocessor=self.preprocessor,
            **self.arguments,
        )
        full.set_weights(self.get_weights())
        return full

    def get_config(self):
        return {
            "name": self.name,
            "trainable": self.trainable,
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "preprocessor": keras.saving.serialize_keras_object(self.preprocessor),
            "frozen": self.frozen,
            "micro_batches": self.micro_batches,
            **self.arguments,
        }

    @classmethod
    def from_config(cls, config):
        parts = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in ("backbone", "preprocessor")
        }
        return cls(**{**config, **parts})


def encoder_inputs() -> dict[str, keras.KerasTensor]:
    """Returns the inputs of a functional model, int32 `[batch, sequence]` each."""
    return {
        name: keras.Input((None,), dtype="int32", name=name) for name in ENCODER_INPUTS
    }

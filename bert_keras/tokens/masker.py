"""`MaskedLMMasker`: which positions masked LM predicts, and what replaces them."""

import keras
import numpy as np
import tensorflow as tf

from bert_keras.features import (
    MASK_IDS,
    MASK_POSITIONS,
    MASK_WEIGHTS,
    PADDING_MASK,
    TOKEN_IDS,
    SpecialTokens,
)


@keras.saving.register_keras_serializable(package="bert_keras")
class MaskedLMMasker(keras.layers.Layer):
    """Chooses positions, and hides most of what stands there (Devlin et al., 3.1).

    Of the n real text tokens in a row (special tokens and padding do not count),
    min(`predictions`, max(1, round(`rate` * n))) are chosen without replacement; none
    if n is 0. `round` is Python's. Of those chosen, 80 % become [MASK], 10 % a random
    token that is not special, 10 % stay.

    The 2018 script counted [CLS] and [SEP] into n, and drew random tokens over the
    whole vocabulary.

    Args:
        vocabulary_size: rows that a random token is drawn from.
        special_ids: ids of the special tokens: never chosen, never drawn.
        predictions: most positions in a row; the width of the outputs.
        rate: share of the text tokens to choose, above 0 and at most 1.
        mask_rate: share of those chosen that become [MASK].
        random_rate: share of those chosen that become a random token.
        id_offset: the id of the vocabulary's first token.

    Call arguments:
        features: the feature dictionary, `[batch, sequence]` or `[sequence]`.
        seed: int `[2]`: the same seed gives the same masks, anywhere.

    Returns:
        `features` with `token_ids` masked, and `mask_positions` (int32, ascending),
        `mask_ids` (int32) and `mask_weights` (float32), each `[batch, predictions]`,
        zeros where there is no prediction.

    Raises:
        ValueError: a rate outside its range, or no token left to draw.
    """

    def __init__(
        self,
        vocabulary_size: int,
        special_ids: SpecialTokens,
        *,
        predictions: int,
        rate: float = 0.15,
        mask_rate: float = 0.8,
        random_rate: float = 0.1,
        id_offset: int = 0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if not 0 < rate <= 1:
            raise ValueError(f"Received: rate={rate!r}; allowed: above 0, at most 1.")
        if min(mask_rate, random_rate) < 0 or mask_rate + random_rate > 1 + 1e-9:
            raise ValueError(
                f"Received: mask_rate={mask_rate!r}, random_rate={random_rate!r}; "
                "allowed: shares of at least 0 whose sum is at most 1."
            )
        if not isinstance(predictions, int) or predictions < 1:
            raise ValueError(
                f"Received: predictions={predictions!r}; allowed: an integer of at "
                "least 1."
            )
        self.vocabulary_size = vocabulary_size
        self._special_ids = tuple(int(number) for number in special_ids)
        if vocabulary_size <= len(set(self._special_ids)):
            raise ValueError(
                f"Received: vocabulary_size={vocabulary_size!r}; allowed: more than "
                f"the {len(set(self._special_ids))} special tokens."
            )
        self.predictions = predictions
        self.rate = rate
        self.mask_rate = mask_rate
        self.random_rate = random_rate
        self.id_offset = id_offset
        self.built = True

    def call(self, features, seed):
        features = dict(features)
        is_single_row = features[TOKEN_IDS].shape.rank == 1
        ids = tf.cast(features[TOKEN_IDS], tf.int32)
        real = features[PADDING_MASK]
        if is_single_row:
            ids, real = ids[None], real[None]
        seeds = tf.unstack(
            tf.random.experimental.stateless_split(tf.cast(seed, tf.int32), 3)
        )
        positions, weights = self._choose(ids, real, seeds[0])
        labels = tf.gather(ids, positions, batch_dims=1) * tf.cast(weights, tf.int32)
        replaced = self._replace(labels, seeds[1], seeds[2])
        outputs = {
            TOKEN_IDS: _put(ids, positions, replaced, weights),
            MASK_POSITIONS: positions,
            MASK_IDS: labels,
            MASK_WEIGHTS: weights,
        }
        if is_single_row:
            outputs = {name: value[0] for name, value in outputs.items()}
        return {**features, **outputs}

    def _choose(self, ids, real, seed) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns positions, ascending, and their weights, each `[batch, predictions]`.

        Every candidate draws a number; those with the greatest are chosen, which is a
        draw without replacement.
        """
        special = tf.reduce_any([ids == number for number in self._special_ids], axis=0)
        candidate = (real > 0) & ~special
        count = tf.reduce_sum(tf.cast(candidate, tf.int32), axis=1)
        # In float64, and half to even: exactly Python's round(rate * n).
        share = tf.round(tf.cast(count, tf.float64) * self.rate)
        wanted = tf.minimum(tf.maximum(tf.cast(share, tf.int32), 1), count)
        wanted = tf.minimum(wanted, self.predictions)

        drawn = tf.random.stateless_uniform(tf.shape(ids), seed)
        drawn = tf.where(candidate, drawn, -1.0)
        missing = tf.maximum(self.predictions - tf.shape(ids)[1], 0)
        drawn = tf.pad(drawn, [[0, 0], [0, missing]], constant_values=-1.0)
        _, positions = tf.math.top_k(drawn, self.predictions)
        chosen = tf.range(self.predictions) < wanted[:, None]
        end = tf.shape(drawn)[1]
        positions = tf.sort(tf.where(chosen, positions, end), axis=1)
        return (
            tf.where(positions < end, positions, 0),
            tf.cast(positions < end, tf.float32),
        )

    def _replace(self, labels, share_seed, token_seed) -> tf.Tensor:
        """Returns what stands at each chosen position afterwards."""
        ids = np.arange(self.vocabulary_size) + self.id_offset
        ordinary = np.setdiff1d(ids, self._special_ids)
        drawn = tf.random.stateless_uniform(
            tf.shape(labels), token_seed, maxval=len(ordinary), dtype=tf.int32
        )
        random = tf.gather(ordinary.astype(np.int32), drawn)
        share = tf.random.stateless_uniform(tf.shape(labels), share_seed)
        mask_id = SpecialTokens(*self._special_ids).mask
        hidden = tf.where(share < self.mask_rate, mask_id, labels)
        is_random = (share >= self.mask_rate) & (
            share < self.mask_rate + self.random_rate
        )
        return tf.where(is_random, random, hidden)

    def compute_output_spec(self, features, seed):
        batch = tuple(features[TOKEN_IDS].shape[:-1])
        types = {MASK_POSITIONS: "int32", MASK_IDS: "int32", MASK_WEIGHTS: "float32"}
        added = {
            name: keras.KerasTensor((*batch, self.predictions), dtype=dtype, name=name)
            for name, dtype in types.items()
        }
        return {**features, **added}

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "special_ids": list(self._special_ids),
            "predictions": self.predictions,
            "rate": self.rate,
            "mask_rate": self.mask_rate,
            "random_rate": self.random_rate,
            "id_offset": self.id_offset,
        }


def _put(ids, positions, values, weights) -> tf.Tensor:
    """Writes `values` at `positions` where the weight is 1."""
    index = tf.cast(tf.where(weights > 0), tf.int32)
    row = index[:, :1]
    column = tf.gather_nd(positions, index)[:, None]
    return tf.tensor_scatter_nd_update(
        ids, tf.concat([row, column], axis=1), tf.gather_nd(values, index)
    )

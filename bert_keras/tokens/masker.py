"""`MaskedLMMasker`: which positions masked LM predicts, and what replaces them."""

from collections.abc import Sequence

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
from bert_keras.text.tokenizer import WordPieceTokenizer
from bert_keras.text.vocabulary import split_token
from bert_keras.tokens.units import UNITS, fill_room, units_of


@keras.saving.register_keras_serializable(package="bert_keras")
class MaskedLMMasker(keras.layers.Layer):
    """Chooses positions, and hides most of what stands there (Devlin et al., 3.1).

    Of the n real text tokens in a row (special tokens and padding do not count),
    min(`predictions`, max(1, round(`rate` * n))) are to be chosen; none if n is 0.
    `round` is Python's. They are chosen in *units*, in random order:

    - `"piece"`: a token. The number is always exact.
    - `"word"`: a token and the "##" tokens that continue it (google-research/bert,
      whole word masking). A word of more tokens than are wanted yet is passed over.
    - `"span"`: words in a row, as many as a geometric distribution says (p = 0.2, at
      most 10), the whole row being cut so (Joshi et al. 2019, "SpanBERT", 3.1). Of the
      last span those words are taken that are wanted yet.

    If each word has more tokens than are wanted, the shortest is chosen, as far as
    `predictions` allows. Of the tokens chosen 80 % become [MASK], 10 % a random token
    that is not special, 10 % stay; all tokens of a span share one fate.

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
        unit: `"piece"`, `"word"` or `"span"`.
        continuation_ids: ids of the tokens that continue a word; words need them.

    Call arguments:
        features: the feature dictionary, `[batch, sequence]` or `[sequence]`.
        seed: int `[2]`: the same seed gives the same masks, anywhere.

    Returns:
        `features` with `token_ids` masked, and `mask_positions` (int32, ascending),
        `mask_ids` (int32) and `mask_weights` (float32), each `[batch, predictions]`,
        zeros where there is no prediction.

    Raises:
        ValueError: a rate outside its range, an unknown unit, or no token left to draw.
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
        unit: str = "piece",
        continuation_ids: Sequence[int] = (),
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
        if unit not in UNITS:
            raise ValueError(f"Received: unit={unit!r}; allowed: {', '.join(UNITS)}.")
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
        self.unit = unit
        self.continuation_ids = [int(number) for number in continuation_ids]
        self.built = True

    @classmethod
    def of(cls, tokenizer: WordPieceTokenizer, **options) -> "MaskedLMMasker":
        """Makes the masker for a tokenizer's vocabulary.

        Args:
            tokenizer: tells the ids of special tokens and of those that continue words.
            **options: `predictions`, and what else the constructor takes.
        """
        first, tokens = tokenizer.options.id_offset, tokenizer.vocabulary.tokens
        continuing = [
            first + number for number, t in enumerate(tokens) if split_token(t)[0]
        ]
        return cls(
            len(tokens),
            tokenizer.special_ids,
            id_offset=first,
            continuation_ids=continuing,
            **options,
        )

    def call(self, features, seed):
        features = dict(features)
        is_single_row = features[TOKEN_IDS].shape.rank == 1
        ids = tf.cast(features[TOKEN_IDS], tf.int32)
        real = features[PADDING_MASK]
        if is_single_row:
            ids, real = ids[None], real[None]
        seeds = tf.random.experimental.stateless_split(tf.cast(seed, tf.int32), 4)
        chosen, groups = self._choose(ids, real, seeds[0], seeds[1])
        positions, weights = self._places(chosen)
        labels = tf.gather(ids, positions, batch_dims=1) * tf.cast(weights, tf.int32)
        share = tf.random.stateless_uniform(tf.shape(ids), seeds[2])
        if self.unit == "span":
            share = tf.gather(share, groups, batch_dims=1)
        share = tf.gather(share, positions, batch_dims=1)
        replaced = self._replace(labels, share, seeds[3])
        outputs = {
            TOKEN_IDS: _put(ids, positions, replaced, weights),
            MASK_POSITIONS: positions,
            MASK_IDS: labels,
            MASK_WEIGHTS: weights,
        }
        if is_single_row:
            outputs = {name: value[0] for name, value in outputs.items()}
        return {**features, **outputs}

    def _choose(self, ids, real, order_seed, span_seed) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns which positions are chosen, and their groups: `[batch, sequence]`."""
        special = tf.reduce_any([ids == number for number in self._special_ids], axis=0)
        is_text = (real > 0) & ~special
        count = tf.reduce_sum(tf.cast(is_text, tf.int32), axis=1)
        # In float64, and half to even: exactly Python's round(rate * n).
        share = tf.round(tf.cast(count, tf.float64) * self.rate)
        room = tf.minimum(tf.maximum(tf.cast(share, tf.int32), 1), count)
        room = tf.minimum(room, self.predictions)

        units, groups = units_of(self.unit, is_text, self._continues(ids), span_seed)
        drawn = tf.random.stateless_uniform(tf.shape(ids), order_seed)
        taken = fill_room(units, groups, is_text, room, drawn)
        return is_text & tf.gather(taken, units, batch_dims=1), groups

    def _continues(self, ids) -> tf.Tensor:
        continues = np.zeros(self.vocabulary_size, bool)
        continues[np.array(self.continuation_ids, int) - self.id_offset] = True
        places = tf.clip_by_value(ids - self.id_offset, 0, self.vocabulary_size - 1)
        return tf.gather(continues, places)

    def _places(self, chosen) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns chosen positions, ascending, and weights: `[batch, predictions]`."""
        missing = tf.maximum(self.predictions - tf.shape(chosen)[1], 0)
        chosen = tf.pad(tf.cast(chosen, tf.int32), [[0, 0], [0, missing]])
        end = tf.shape(chosen)[1]
        from_end = chosen * tf.range(end, 0, -1)  # the first is the greatest
        from_end, _ = tf.math.top_k(from_end, self.predictions)
        is_chosen = from_end > 0
        positions = tf.where(is_chosen, end - from_end, 0)
        return positions, tf.cast(is_chosen, tf.float32)

    def _replace(self, labels, share, token_seed) -> tf.Tensor:
        """Returns what stands at each chosen position afterwards."""
        ids = np.arange(self.vocabulary_size) + self.id_offset
        ordinary = np.setdiff1d(ids, self._special_ids)
        drawn = tf.random.stateless_uniform(
            tf.shape(labels), token_seed, maxval=len(ordinary), dtype=tf.int32
        )
        random = tf.gather(ordinary.astype(np.int32), drawn)
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
            "unit": self.unit,
            "continuation_ids": self.continuation_ids,
        }


def _put(ids, positions, values, weights) -> tf.Tensor:
    """Writes `values` at `positions` where the weight is 1."""
    index = tf.cast(tf.where(weights > 0), tf.int32)
    row = index[:, :1]
    column = tf.gather_nd(positions, index)[:, None]
    return tf.tensor_scatter_nd_update(
        ids, tf.concat([row, column], axis=1), tf.gather_nd(values, index)
    )

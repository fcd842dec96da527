"""Labelled rows in memory, and the batches that are made of them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_keras.features import (
    ENCODER_INPUTS,
    PADDING_MASK,
    TAG_WEIGHTS,
    TOKEN_IDS,
)
from bert_keras.tokens.preprocessor import BertPreprocessor, features_of

_AT_ONCE = 256  # texts that are encoded together
_POOL = 32  # batches whose rows are sorted by length


class Rows(NamedTuple):
    """Rows of features, each as long as it is, and their labels.

    Attributes:
        features: name -> one array `[tokens]` for each row.
        labels: name -> array `[rows]`.
    """

    features: dict[str, list[np.ndarray]]
    labels: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.features[TOKEN_IDS])


def encode(
    preprocessor: BertPreprocessor, texts: Sequence[str | tuple[str, str]]
) -> dict[str, list[np.ndarray]]:
    """Returns the features of each text, without padding."""
    found: dict[str, list[np.ndarray]] = {name: [] for name in ENCODER_INPUTS}
    for start in range(0, len(texts), _AT_ONCE):
        features = features_of(preprocessor, texts[start : start + _AT_ONCE])
        lengths = features[PADDING_MASK].numpy().sum(axis=1)
        for name in ENCODER_INPUTS:
            values = features[name].numpy()
            found[name] += [v[:n] for v, n in zip(values, lengths, strict=True)]
    return found


def balanced_weights(numbers: np.ndarray, classes: int) -> np.ndarray:
    """Returns what each example counts: n / (classes * examples of its class).

    Source: King and Zeng 2001; "balanced" in scikit-learn. The mean is 1.

    Args:
        numbers: int `[examples]`, the class of each.
    """
    counts = np.maximum(np.bincount(numbers, minlength=classes), 1)
    present = np.count_nonzero(np.bincount(numbers, minlength=classes))
    return (len(numbers) / (present * counts))[numbers].astype(np.float32)


class Batches:
    """The batches of a run, in an order that its seed decides.

    Rows are shuffled anew in each epoch; then, within some dozens of batches, those of
    about the same length come together, so that little is padded; and the batches are
    shuffled.

    Args:
        rows: all of them.
        batch_size: rows in a batch; the last one of an epoch may be smaller.
        epochs: times that every row is seen.
        seed: of the order.
        pad_id: of [PAD].
        multiple: rows are padded to the longest, and to a multiple of this, so that
            few lengths are compiled.
    """

    def __init__(
        self,
        rows: Rows,
        *,
        batch_size: int,
        epochs: int,
        seed: int,
        pad_id: int,
        multiple: int = 1,
    ):
        self.rows, self.batch_size, self.epochs = rows, batch_size, epochs
        self.seed, self.pad_id, self.multiple = seed, pad_id, multiple
        self.steps_per_epoch = -(-len(rows) // batch_size)
        self.steps = epochs * self.steps_per_epoch

    def dataset(self, first_step: int = 0) -> tf.data.Dataset:
        """Returns the batches from a step on."""
        rows = self.rows
        signature = {
            name: tf.TensorSpec([None, None], _type_of(name)) for name in rows.features
        }
        for name, values in rows.labels.items():
            signature[name] = tf.TensorSpec([None], values.dtype)
        dataset = tf.data.Dataset.from_generator(
            lambda: self._from(first_step), output_signature=signature
        )
        left = tf.data.experimental.assert_cardinality(self.steps - first_step)
        return dataset.apply(left).prefetch(2)

    def _from(self, first_step: int) -> Iterator[dict[str, np.ndarray]]:
        for epoch in range(first_step // self.steps_per_epoch, self.epochs):
            skipped = max(first_step - epoch * self.steps_per_epoch, 0)
            for numbers in self._order(epoch)[skipped:]:
                yield self._batch(numbers)

    def _order(self, epoch: int) -> list[np.ndarray]:
        random = np.random.default_rng([self.seed, epoch])
        order = random.permutation(len(self.rows))
        lengths = np.array([len(ids) for ids in self.rows.features[TOKEN_IDS]])
        pool = _POOL * self.batch_size
        pools = [order[start : start + pool] for start in range(0, len(order), pool)]
        pools = [p[np.argsort(lengths[p], kind="stable")] for p in pools]
        order = np.concatenate(pools)
        starts = range(0, len(order), self.batch_size)
        batches = [order[start : start + self.batch_size] for start in starts]
        return [batches[number] for number in random.permutation(len(batches))]

    def _batch(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        ids = self.rows.features[TOKEN_IDS]
        length = max(len(ids[number]) for number in numbers)
        length = -(-length // self.multiple) * self.multiple
        batch = {}
        for name, values in self.rows.features.items():
            padding = self.pad_id if name == TOKEN_IDS else 0
            shape = len(numbers), length
            batch[name] = np.full(shape, padding, _type_of(name).as_numpy_dtype)
            for row, number in zip(batch[name], numbers, strict=True):
                row[: len(values[number])] = values[number]
        for name, values in self.rows.labels.items():
            batch[name] = values[numbers]
        return batch


def _type_of(name: str) -> tf.DType:
    return tf.float32 if name == TAG_WEIGHTS else tf.int32

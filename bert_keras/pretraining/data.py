"""Shards -> batches of features and labels, as a `tf.data.Dataset`.

The chunks of the corpus are put into a random order, anew in each epoch, and worked
through in *blocks* of some: the rows of a block are made and shuffled in memory, which
so grows with the block and not with the corpus. Every choice is a function of the seed
and of the number of the epoch, block or step, and so a run can be taken up again at any
place. Masks are drawn here, as a batch is made: the same row is masked differently in
every epoch, and no copies are kept.
"""

import itertools
import threading
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_keras.features import MASK_IDS, MASK_WEIGHTS, NEXT_SENTENCE
from bert_keras.pretraining.pairs import OBJECTIVES, Pair, texts_in_a_row
from bert_keras.pretraining.shards import Shards
from bert_keras.tokens.masker import MaskedLMMasker
from bert_keras.tokens.packer import BertPacker

BLOCK = 1 << 20
"""Tokens of a block, about: what is shuffled at once, and held in memory."""

_REMEMBERED = 10_000  # steps whose places are known; more than are ever in flight


class Place(NamedTuple):
    """Where a run is in its data: the next row is the `row`-th of a block.

    Attributes:
        step: batches that were made.
        epoch: passes over the corpus that were finished.
        block: blocks of this epoch that were finished.
        row: rows of this block that were taken.
    """

    step: int = 0
    epoch: int = 0
    block: int = 0
    row: int = 0


class PretrainingData:
    """Batches of a prepared corpus.

    Args:
        shards: the corpus.
        packer: makes the rows.
        masker: chooses and hides what masked LM predicts.
        batch_size: rows of a batch; the last of a finite dataset may have fewer.
        seed: of the rows, their order and the masks.
        objective: `"next_sentence"`, `"sentence_order"` or `"masked_lm"`.
        short_probability: how often a row aims at a shorter length.
        held_out: the documents that are not trained on, instead of the others.
        block: tokens of a block, about.

    Raises:
        ValueError: an unknown objective, the documents yield no row, or rows have no
            room for one.
    """

    def __init__(
        self,
        shards: Shards,
        packer: BertPacker,
        masker: MaskedLMMasker,
        *,
        batch_size: int,
        seed: int,
        objective: str = "next_sentence",
        short_probability: float = 0.1,
        held_out: bool = False,
        block: int = BLOCK,
    ):
        self.shards, self.packer, self.masker = shards, packer, masker
        self.batch_size, self.seed = batch_size, seed
        self.objective, self.short_probability = objective, short_probability
        self.texts = texts_in_a_row(objective)
        self._places_in_row = self._check_room()
        self._chunks = shards.chunks(held_out)
        self._block = block
        self._places: dict[int, Place] = {}
        self._lock = threading.Lock()
        documents = shards.documents[held_out]
        if documents == 1 and objective == "next_sentence":
            warnings.warn(
                "The corpus has one document. A random second sentence must come from "
                "another one, and so every pair is a real one; separate documents by "
                "blank lines, or choose another objective.",
                stacklevel=2,
            )
        if next(self._rows(Place()), None) is None:
            raise ValueError(
                f"The corpus yields no row for {objective}. Received: {documents} "
                "documents; needed: text, and of pairs two sentences in one document "
                "or two documents."
            )

    def dataset(
        self, place: Place = Place(), epochs: int | None = None
    ) -> tf.data.Dataset:
        """Returns batches from a place on.

        Each is a feature dictionary (`bert_keras.features`) of `token_ids`,
        `segment_ids` and `padding_mask` `[batch, sequence]`, `mask_positions`,
        `mask_ids` and `mask_weights` `[batch, predictions]`, and, where there are two
        texts in a row, `next_sentence` `[batch]`.

        Args:
            place: where to begin, as `place` told it.
            epochs: passes over the documents; without end if None.
        """
        numbers = tf.TensorSpec([None], tf.int32)
        dataset = tf.data.Dataset.from_generator(
            lambda: self._batches(place, epochs),
            output_signature=(tf.TensorSpec([], tf.int64), *[numbers] * 5),
        )
        return dataset.map(self._features, num_parallel_calls=2).prefetch(4)

    def place(self, step: int) -> Place:
        """Returns where the data were when `step` batches had been made.

        Raises:
            ValueError: no dataset of these has come so far, or it was long ago.
        """
        with self._lock:
            if step not in self._places:
                raise ValueError(
                    f"The place in the data is not known. Received: step {step}; "
                    f"allowed: {min(self._places, default=None)} to "
                    f"{max(self._places, default=None)}."
                )
            return self._places[step]

    def _check_room(self) -> int:
        special = 1 + self.texts  # [CLS] and a [SEP] behind each text
        places = self.packer.sequence_length - special
        if places < self.texts:
            raise ValueError(
                f"Rows are too short for {self.objective}. Received: sequence_length="
                f"{self.packer.sequence_length}; allowed: at least "
                f"{special + self.texts}."
            )
        return places

    def _batches(self, place: Place, epochs: int | None) -> Iterator[tuple]:
        self._remember(place)
        rows = self._rows(place, epochs)
        for step in itertools.count(place.step):
            batch = list(itertools.islice(rows, self.batch_size))
            if not batch:
                return
            self._remember(batch[-1][0]._replace(step=step + 1))
            yield step, *_flat([pair for _, pair in batch])

    def _remember(self, place: Place) -> None:
        with self._lock:
            self._places[place.step] = place
            self._places.pop(place.step - _REMEMBERED, None)

    def _rows(
        self, place: Place, epochs: int | None = None
    ) -> Iterator[tuple[Place, Pair]]:
        """Yields rows, each with the place behind it."""
        stop = itertools.count() if epochs is None else range(epochs)
        for epoch in stop:
            if epoch < place.epoch:
                continue
            is_empty = True
            for number, block in enumerate(self._blocks(epoch)):
                if (epoch, number) < (place.epoch, place.block):
                    is_empty = False
                    continue
                pairs = self._pairs(block, epoch, number)
                is_begun = (epoch, number) == (place.epoch, place.block)
                for row in range(place.row if is_begun else 0, len(pairs)):
                    yield Place(0, epoch, number, row + 1), pairs[row]
                is_empty &= not pairs
            if is_empty:
                return

    def _blocks(self, epoch: int) -> Iterator[list]:
        """Yields groups of chunks, in the random order of an epoch."""
        random = np.random.default_rng([self.seed, epoch])
        block, size = [], 0
        for number in random.permutation(len(self._chunks)):
            block.append(self._chunks[number])
            size += block[-1].tokens
            if size >= self._block:
                yield block
                block, size = [], 0
        if block:
            yield block

    def _pairs(self, block: list, epoch: int, number: int) -> list[Pair]:
        """Makes and shuffles the rows of a block."""
        random = np.random.default_rng([self.seed, epoch, number])
        stretches = [s for chunk in block for s in self.shards.read(chunk)]
        stretches = [stretches[i] for i in random.permutation(len(stretches))]
        make = OBJECTIVES[self.objective]
        pairs = list(
            make(stretches, self._places_in_row, random, self.short_probability)
        )
        return [pairs[i] for i in random.permutation(len(pairs))]

    def _features(self, step, first, first_lengths, second, second_lengths, is_next):
        rows = tf.RaggedTensor.from_row_lengths
        texts = rows(first, first_lengths), rows(second, second_lengths)
        features = self.packer(*texts[: self.texts])
        seed = tf.stack([tf.cast(self.seed, tf.int64), step])
        features = self.masker(features, seed=seed)
        return {**features, NEXT_SENTENCE: is_next} if self.texts == 2 else features


def _flat(pairs: list[Pair]) -> tuple[np.ndarray, ...]:
    """Returns the ids and lengths of all first texts, of all second, and the labels."""
    arrays: list[np.ndarray] = []
    none = np.zeros(0, np.int32)
    for texts in (
        [pair.first for pair in pairs],
        [none if pair.second is None else pair.second for pair in pairs],
    ):
        arrays.append(np.concatenate(texts))
        arrays.append(np.array([len(text) for text in texts], np.int32))
    return *arrays, np.array([pair.is_next for pair in pairs], np.int32)


def unigram_accuracy(dataset: tf.data.Dataset) -> float:
    """Returns the masked-LM accuracy of always answering the most frequent piece."""
    counts: dict[int, int] = {}
    for features in dataset.as_numpy_iterator():
        labels = features[MASK_IDS][features[MASK_WEIGHTS] > 0]
        for piece, count in zip(*np.unique(labels, return_counts=True), strict=True):
            counts[int(piece)] = counts.get(int(piece), 0) + int(count)
    return max(counts.values()) / sum(counts.values())

"""Documents -> batches of features and labels, as a `tf.data.Dataset`.

Every choice is a function of the seed and the number of the epoch or step, so a run can
be taken up again at any step. Masks are drawn here, as a batch is made: the same pair
is masked differently in every epoch, and no copies are kept.
"""

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from bert_keras.features import MASK_IDS, MASK_WEIGHTS, NEXT_SENTENCE
from bert_keras.pretraining.corpus import Document
from bert_keras.pretraining.pairs import Pair, TokenizedDocument, sentence_pairs
from bert_keras.text.tokenizer import WordPieceTokenizer
from bert_keras.tokens.masker import MaskedLMMasker
from bert_keras.tokens.packer import BertPacker

_TEXTS_AT_ONCE = 1000
_SPECIAL_TOKENS = 3  # of a pair: [CLS] A [SEP] B [SEP]
_LEAST_PLACES = 2  # a token of each text


def tokenize_documents(
    documents: Iterable[Document], tokenizer: WordPieceTokenizer
) -> Iterator[TokenizedDocument]:
    """Yields each document with its sentences as ids, int32 `[tokens]`.

    Sentences and documents without tokens are left out.
    """
    batch: list[Document] = []
    waiting = 0
    for document in documents:
        batch.append(document)
        waiting += len(document)
        if waiting >= _TEXTS_AT_ONCE:
            yield from _tokenize(batch, tokenizer)
            batch, waiting = [], 0
    yield from _tokenize(batch, tokenizer)


def _tokenize(batch, tokenizer) -> Iterator[TokenizedDocument]:
    sentences = [sentence for document in batch for sentence in document]
    if not sentences:
        return
    tokens = tokenizer(sentences)
    counts = tokens["counts"].numpy()
    rows = iter(
        row[:count].copy()
        for row, count in zip(tokens["token_ids"].numpy(), counts, strict=True)
    )
    for document in batch:
        tokenized = [row for row in (next(rows) for _ in document) if len(row)]
        if tokenized:
            yield tokenized


def pretraining_dataset(
    documents: Sequence[TokenizedDocument],
    packer: BertPacker,
    masker: MaskedLMMasker,
    *,
    batch_size: int,
    seed: int,
    epochs: int | None = None,
    first_step: int = 0,
) -> tf.data.Dataset:
    """Returns batches of features with the labels of both objectives.

    Each is a feature dictionary (`bert_keras.features`) of `token_ids`, `segment_ids`
    and `padding_mask` `[batch, sequence]`, `mask_positions`, `mask_ids` and
    `mask_weights` `[batch, predictions]`, and `next_sentence` `[batch]`.

    Args:
        documents: tokenized documents.
        packer: makes the rows.
        masker: chooses and hides what masked LM predicts.
        batch_size: rows of a batch; the last of a finite dataset may have fewer.
        seed: of the pairs, their order and the masks.
        epochs: passes over the documents; without end if None.
        first_step: batches to leave out, as a run that is taken up again does.

    Raises:
        ValueError: the documents yield no pair, or rows have no room for one.
    """
    places = packer.sequence_length - _SPECIAL_TOKENS
    if places < _LEAST_PLACES:
        raise ValueError(
            "Rows are too short for pairs. Received: sequence_length="
            f"{packer.sequence_length}; allowed: at least "
            f"{_SPECIAL_TOKENS + _LEAST_PLACES}."
        )

    @functools.lru_cache(maxsize=1)
    def pairs_of(epoch: int) -> list[Pair]:
        random = np.random.default_rng([seed, epoch])
        order = [documents[number] for number in random.permutation(len(documents))]
        pairs = list(sentence_pairs(order, places, random))
        return [pairs[number] for number in random.permutation(len(pairs))]

    if not pairs_of(0):
        raise ValueError(
            f"The corpus yields no sentence pair. Received: {len(documents)} "
            "documents; needed: two sentences in one document, or two documents."
        )

    def all_batches() -> Iterator[tuple]:
        passes = itertools.count() if epochs is None else range(epochs)
        pairs = (pair for epoch in passes for pair in pairs_of(epoch))
        for step in itertools.count():
            batch = list(itertools.islice(pairs, batch_size))
            if not batch:
                return
            if step >= first_step:
                first = _flat(pair.first for pair in batch)
                second = _flat(pair.second for pair in batch)
                yield step, *first, *second, [int(pair.is_next) for pair in batch]

    def to_features(step, first, first_lengths, second, second_lengths, is_next):
        rows = tf.RaggedTensor.from_row_lengths
        features = packer(rows(first, first_lengths), rows(second, second_lengths))
        features = masker(features, seed=tf.stack([seed, step]))
        return {**features, NEXT_SENTENCE: is_next}

    numbers = tf.TensorSpec([None], tf.int32)
    dataset = tf.data.Dataset.from_generator(
        all_batches, output_signature=(tf.TensorSpec([], tf.int32), *[numbers] * 5)
    )
    if epochs is not None:
        pairs = sum(len(pairs_of(epoch)) for epoch in range(epochs))
        left = max(-(-pairs // batch_size) - first_step, 0)
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(left))
    return dataset.map(to_features, num_parallel_calls=2).prefetch(4)


def _flat(rows: Iterable[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the values of some rows behind one another, and the rows' lengths."""
    rows = list(rows)
    return np.concatenate(rows), np.array([len(row) for row in rows], np.int32)


def unigram_accuracy(dataset: tf.data.Dataset) -> float:
    """Returns the masked-LM accuracy of always answering the most frequent piece."""
    counts: dict[int, int] = {}
    for features in dataset.as_numpy_iterator():
        labels = features[MASK_IDS][features[MASK_WEIGHTS] > 0]
        for piece, count in zip(*np.unique(labels, return_counts=True), strict=True):
            counts[int(piece)] = counts.get(int(piece), 0) + int(count)
    return max(counts.values()) / sum(counts.values())

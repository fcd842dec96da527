"""What the tasks differ in: their examples, labels, rows, models and metrics."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from bert_keras.encoder.backbone import BertBackbone
from bert_keras.features import (
    LABEL,
    LABEL_WEIGHT,
    SPAN_END,
    SPAN_START,
    TAG_WEIGHTS,
    TAGS,
)
from bert_keras.tasks import metrics
from bert_keras.tasks.answers import Reader, classify, regress
from bert_keras.tasks.classifier import BertClassifier
from bert_keras.tasks.records import Example, read_records
from bert_keras.tasks.regressor import BertRegressor
from bert_keras.tasks.rows import Rows, balanced_weights, encode
from bert_keras.tasks.span_finder import BertSpanFinder
from bert_keras.tasks.spans import QuestionWindow, find_spans, question_windows
from bert_keras.tasks.squad import Question, read_squad
from bert_keras.tasks.tagged import TaggedSentence, read_tagged
from bert_keras.tasks.tagger import BertTagger
from bert_keras.tasks.tags import Spaced, first_pieces, tag, tag_windows
from bert_keras.tokens.preprocessor import BertPreprocessor
from bert_keras.training.encoder_model import EncoderModel


class Kind(Protocol):
    """What fine-tuning has to know of a task.

    Attributes:
        metrics: what `evaluate` returns, the usual first; all but errors are better
            the greater they are.
    """

    metrics: tuple[str, ...]

    def read(self, path: Path, **columns) -> list:
        """Reads the examples of a file."""

    def labels(self, examples: Sequence) -> tuple[str, ...]:
        """Returns the names of the classes in the examples."""

    def model(
        self,
        backbone: BertBackbone,
        preprocessor: BertPreprocessor,
        examples: Sequence,
        labels: tuple[str, ...],
        **arguments,
    ) -> EncoderModel:
        """Makes a new model."""

    def rows(self, model: EncoderModel, examples: Sequence, balanced: bool) -> Rows:
        """Returns labelled rows."""

    def evaluate(self, reader: Reader, examples: Sequence) -> dict[str, float]:
        """Compares the answers of a model with the labels."""


class Classify:
    """Texts or pairs and their classes."""

    metrics = ("accuracy", "macro_f1", "matthews")

    def read(self, path: Path, **columns) -> list[Example]:
        return read_records(path, **columns)

    def labels(self, examples: Sequence[Example]) -> tuple[str, ...]:
        return tuple(sorted({example.label for example in examples}))

    def model(self, backbone, preprocessor, examples, labels, **arguments):
        pairs = _are_pairs(examples)
        return BertClassifier(
            backbone, labels, preprocessor, text_pairs=pairs, **arguments
        )

    def rows(self, model: BertClassifier, examples, balanced: bool) -> Rows:
        labels = model.task.labels
        numbers = numbered([example.label for example in examples], labels)
        weights = np.ones(len(numbers), np.float32)
        if balanced:
            weights = balanced_weights(numbers, len(labels))
        features = encode(model.preprocessor, texts_of(examples))
        return Rows(features, {LABEL: numbers, LABEL_WEIGHT: weights})

    def evaluate(self, reader: Reader, examples) -> dict[str, float]:
        labels = [example.label for example in examples]
        found = [answer.label for answer in classify(reader, texts_of(examples))]
        return metrics.classification_metrics(labels, found, reader.task.labels)


class Regress:
    """Texts or pairs and a number for each."""

    metrics = ("spearman", "pearson")

    def read(self, path: Path, **columns) -> list[Example]:
        return read_records(path, number=True, **columns)

    def labels(self, examples: Sequence[Example]) -> tuple[str, ...]:
        return ()

    def model(self, backbone, preprocessor, examples, labels, **arguments):
        pairs = _are_pairs(examples)
        return BertRegressor(backbone, preprocessor, text_pairs=pairs, **arguments)

    def rows(self, model: BertRegressor, examples, balanced: bool) -> Rows:
        refuse_balance(balanced, "numbers")
        values = np.array([example.label for example in examples], np.float32)
        features = encode(model.preprocessor, texts_of(examples))
        return Rows(features, {LABEL: values, LABEL_WEIGHT: np.ones_like(values)})

    def evaluate(self, reader: Reader, examples) -> dict[str, float]:
        values = [example.label for example in examples]
        return metrics.regression_metrics(values, regress(reader, texts_of(examples)))


class Tag:
    """Sentences in words, and a tag for each word."""

    metrics = ("entity_f1", "word_accuracy")

    def read(self, path: Path, **columns) -> list[TaggedSentence]:
        return read_tagged(path, **columns)

    def labels(self, examples: Sequence[TaggedSentence]) -> tuple[str, ...]:
        return tuple(sorted({name for sentence in examples for name in sentence.tags}))

    def model(self, backbone, preprocessor, examples, labels, pooling, **arguments):
        del pooling  # every token speaks for itself
        return BertTagger(backbone, labels, preprocessor, **arguments)

    def rows(self, model: BertTagger, examples, balanced: bool) -> Rows:
        names = model.task.labels
        spaced = [Spaced.of(sentence.words) for sentence in examples]
        windows = tag_windows(model, [text for text, _ in spaced])
        flat = [window.text for found in windows for window in found]
        features = encode(model.preprocessor, flat)
        places, numbers = [], []  # of each tag that counts: its row and token
        row = 0
        for sentence, text, found in zip(examples, spaced, windows, strict=True):
            tags = numbered(sentence.tags, names)
            for window in found:
                for word, token in first_pieces(text, window):
                    places.append((row, 1 + token))
                    numbers.append(tags[word])
                row += 1
        numbers = np.array(numbers, np.int32)
        weights = np.ones(len(numbers), np.float32)
        if balanced:
            weights = balanced_weights(numbers, len(names))
        lengths = [len(mask) for mask in next(iter(features.values()))]
        features[TAGS] = [np.zeros(length, np.int32) for length in lengths]
        features[TAG_WEIGHTS] = [np.zeros(length, np.float32) for length in lengths]
        for place, number, weight in zip(places, numbers, weights, strict=True):
            features[TAGS][place[0]][place[1]] = number
            features[TAG_WEIGHTS][place[0]][place[1]] = weight
        return Rows(features, {})

    def evaluate(self, reader: Reader, examples) -> dict[str, float]:
        found = tag(reader, [sentence.words for sentence in examples])
        predicted = [[word.tag for word in answer.words] for answer in found]
        return metrics.tagging_metrics([s.tags for s in examples], predicted)


class FindSpans:
    """Questions, and the part of a text that answers each."""

    metrics = ("f1", "exact_match")

    def read(self, path: Path, **columns) -> list[Question]:
        return read_squad(path, **columns)

    def labels(self, examples: Sequence[Question]) -> tuple[str, ...]:
        return ()

    def model(
        self, backbone, preprocessor, examples, labels, pooling, dropout, **arguments
    ):
        del pooling, dropout  # there is none behind the encoder, as in 2018
        may_abstain = any(question.is_impossible for question in examples)
        return BertSpanFinder(
            backbone, preprocessor, may_abstain=may_abstain, **arguments
        )

    def rows(self, model: BertSpanFinder, examples, balanced: bool) -> Rows:
        refuse_balance(balanced, "spans")
        preprocessor = model.preprocessor
        windows = question_windows(
            preprocessor.tokenizer, _questions(examples), preprocessor.sequence_length
        )
        flat = [(row.question, row.window.text) for found in windows for row in found]
        places = [
            _place_of(question, row)
            for question, found in zip(examples, windows, strict=True)
            for row in found
        ]
        starts, ends = np.array(places, np.int32).T
        features = encode(preprocessor, flat)
        return Rows(features, {SPAN_START: starts.copy(), SPAN_END: ends.copy()})

    def evaluate(self, reader: Reader, examples) -> dict[str, float]:
        found = find_spans(reader, _questions(examples))
        answers = {q.id: s.text for q, s in zip(examples, found, strict=True)}
        return metrics.span_metrics(examples, answers)


KINDS: dict[str, Kind] = {
    "classify": Classify(),
    "regress": Regress(),
    "tag": Tag(),
    "span": FindSpans(),
}


class _Place(NamedTuple):
    first: int
    last: int


def _place_of(question: Question, row: QuestionWindow) -> _Place:
    """Returns the positions of the answer in a row; [CLS] if it is not all there."""
    if not question.answers:
        return _Place(0, 0)
    start = question.answers[0].start
    end = start + len(question.answers[0].text)
    offsets = row.window.offsets
    inside = np.flatnonzero((offsets[:, 1] > start) & (offsets[:, 0] < end))
    is_whole = len(inside) and offsets[0, 0] <= start and end <= offsets[-1, 1]
    if not is_whole:
        return _Place(0, 0)
    return _Place(row.first + int(inside[0]), row.first + int(inside[-1]))


def _questions(examples: Sequence[Question]) -> list[tuple[str, str]]:
    return [(question.question, question.context) for question in examples]


def texts_of(examples: Sequence[Example]) -> list[str | tuple[str, str]]:
    """Returns the texts of examples, or their pairs."""
    return [e.text if e.second is None else (e.text, e.second) for e in examples]


def _are_pairs(examples: Sequence[Example]) -> bool:
    return examples[0].second is not None


def numbered(labels: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """Returns int32 numbers of classes; a `ValueError` names one that is not known."""
    numbers = {name: number for number, name in enumerate(names)}
    for label in labels:
        if label not in numbers:
            raise ValueError(
                f"A label is none of the model's. Received: {label!r}; allowed: "
                f"{', '.join(map(repr, names))}."
            )
    return np.array([numbers[label] for label in labels], np.int32)


def refuse_balance(balanced: bool, what: str) -> None:
    """Raises a `ValueError` where there are no classes."""
    if balanced:
        raise ValueError(
            f"There are no classes to balance. Received: balanced=True for {what}; "
            "allowed: False."
        )

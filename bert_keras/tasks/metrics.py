"""How good the answers of a task are: figures, tables and a picture.

All figures are Python numbers, and shares are from 0 to 1.
"""

import os
import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import eq

import numpy as np
from scipy import stats
from sklearn import metrics

from bert_keras.files import replacing
from bert_keras.tasks.squad import Question
from bert_keras.tasks.tagged import entities_of

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_MOST_COUNTS = 30  # classes whose counts can still be read in a picture


def classification_metrics(
    labels: Sequence[str] | np.ndarray,
    predictions: Sequence[str] | np.ndarray,
    names: Sequence[str],
) -> dict[str, float]:
    """Compares classes with those predicted.

    Args:
        labels, predictions: `[examples]`: the names of classes, or their numbers.
        names: of all classes, in the order of their numbers.

    Returns:
        `accuracy`; `macro_f1`, the mean over the classes that stand among labels or
        predictions; `matthews`, the correlation of Matthews (Gorodkin's for more than
        two classes), which is 0 if all labels or all predictions are the same.

    Raises:
        ValueError: no examples, different lengths, or a class that has no name.
    """
    labels, predictions = _numbered(labels, predictions, names)
    macro_f1 = metrics.f1_score(labels, predictions, average="macro", zero_division=0)
    matthews = 0.0
    if not _is_constant(labels, predictions):
        matthews = metrics.matthews_corrcoef(labels, predictions)
    return {
        "accuracy": float(metrics.accuracy_score(labels, predictions)),
        "macro_f1": float(macro_f1),
        "matthews": float(matthews),
    }


def confusion_matrix(
    labels: Sequence[str] | np.ndarray,
    predictions: Sequence[str] | np.ndarray,
    names: Sequence[str],
) -> np.ndarray:
    """Counts how often each class was taken for each.

    Args:
        labels, predictions, names: as `classification_metrics`, and the same errors.

    Returns:
        int64 `[classes, classes]`: a row is a label, a column a prediction.
    """
    labels, predictions = _numbered(labels, predictions, names)
    return metrics.confusion_matrix(labels, predictions, labels=range(len(names)))


def report(
    labels: Sequence[str] | np.ndarray,
    predictions: Sequence[str] | np.ndarray,
    names: Sequence[str],
) -> dict[str, dict[str, float]]:
    """Returns, for each class, `precision`, `recall`, `f1` and `support`.

    The support is the number of labels; a share of nothing is 0.

    Args:
        labels, predictions, names: as `classification_metrics`, and the same errors.
    """
    labels, predictions = _numbered(labels, predictions, names)
    columns = metrics.precision_recall_fscore_support(
        labels, predictions, labels=range(len(names)), zero_division=0
    )
    figures = ("precision", "recall", "f1", "support")
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {
        name: dict(zip(figures, row, strict=True))
        for name, row in zip(names, rows, strict=True)
    }


def regression_metrics(
    values: Sequence[float] | np.ndarray, predictions: Sequence[float] | np.ndarray
) -> dict[str, float]:
    """Compares numbers with those predicted.

    Args:
        values, predictions: `[examples]`, finite.

    Returns:
        `pearson`, `spearman` and `mean_squared_error`. A correlation with numbers that
        are all the same has no value: it is NaN.

    Raises:
        ValueError: no examples, different lengths, or a number that is not finite.
    """
    _check_lengths(values, predictions)
    values, predictions = np.float64(values), np.float64(predictions)
    for name, numbers in (("values", values), ("predictions", predictions)):
        if not np.isfinite(numbers).all():
            raise ValueError(
                f"The {name} are not all numbers. Received: "
                f"{numbers[~np.isfinite(numbers)][0]}; allowed: finite numbers."
            )
    pearson = spearman = float("nan")
    if not _is_constant(values, predictions):
        pearson = float(stats.pearsonr(values, predictions)[0])
        spearman = float(stats.spearmanr(values, predictions)[0])
    error = float(metrics.mean_squared_error(values, predictions))
    return {"pearson": pearson, "spearman": spearman, "mean_squared_error": error}


def tagging_metrics(
    tags: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Compares the tags of sentences with those predicted.

    As `conlleval` counts: an entity is right if its words and its label are the same,
    and a share of nothing is 0. See `entities_of`.

    Args:
        tags, predicted: for each sentence, a tag for each word.

    Returns:
        `entity_f1`, `entity_precision` and `entity_recall` over all entities of all
        labels, and `word_accuracy`, the share of words with the right tag.

    Raises:
        ValueError: no words, or different lengths (naming the sentence, from 1).
    """
    _check_lengths(tags, predicted)
    for number, pair in enumerate(zip(tags, predicted, strict=True), 1):
        _check_lengths(*pair, what=f"sentence {number}")
    there, found = (
        {
            (number, entity)
            for number, sentence in enumerate(sentences)
            for entity in entities_of(sentence)
        }
        for sentences in (tags, predicted)
    )
    words, guesses = map(list, map(chain.from_iterable, (tags, predicted)))
    right = len(there & found)
    return {
        "entity_f1": _share(2 * right, len(there) + len(found)),
        "entity_precision": _share(right, len(found)),
        "entity_recall": _share(right, len(there)),
        "word_accuracy": _share(sum(map(eq, words, guesses)), len(words)),
    }


def span_metrics(
    questions: Sequence[Question], answers: Mapping[str, str]
) -> dict[str, float]:
    """Compares answers with the best of those that count as right.

    The rule is that of the evaluation script of SQuAD 2.0 (Rajpurkar et al. 2018):
    texts are compared in lower case and without ASCII punctuation, the words a, an and
    the, and further spaces. For a question that has no answer, only the empty one is
    right. (The script of 1.1 gives the same where every question has one with words.)

    Args:
        questions: with their right answers.
        answers: id -> text, at least for the questions given; empty for "no answer".

    Returns:
        `exact_match`, the share of answers that are the same, and `f1`, the mean of how
        much of their words, between spaces, are.

    Raises:
        ValueError: no questions, or one without an answer (naming its id).
    """
    if not questions:
        raise ValueError(
            "There is nothing to compare. Received: no questions; allowed: some."
        )
    scores = []
    for question in questions:
        if question.id not in answers:
            raise ValueError(
                f"A question has no answer. Received: none for {question.id!r}; "
                'allowed: a text, or "" if it has none.'
            )
        answer = _words_of(answers[question.id])
        right = [_words_of(text) for text, _ in question.answers]
        # The script leaves out what is nothing but punctuation and articles.
        right = [words for words in right if words] or [[]]
        exact = max(answer == words for words in right)
        scores.append((exact, max(_overlap(answer, words) for words in right)))
    exact_match, f1 = np.mean(scores, axis=0).tolist()
    return {"exact_match": exact_match, "f1": f1}


def plot_confusion(
    matrix: np.ndarray, names: Sequence[str], path: str | os.PathLike
) -> None:
    """Draws how often each class was taken for each.

    Args:
        matrix: `[classes, classes]`, as `confusion_matrix` returns it.
        names: of the classes.
        path: of the picture; its suffix is the format, such as ".png".

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: the matrix is of another shape.
    """
    matrix = np.asarray(matrix)
    if matrix.shape != (len(names), len(names)):
        raise ValueError(
            f"The matrix does not fit the names. Received: shape {matrix.shape}; "
            f"allowed: {(len(names), len(names))}."
        )
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            'A plot needs matplotlib: pip install "bert-keras[plot]"'
        ) from error
    size = 3 + 0.4 * len(names)
    figure = Figure(figsize=(size, size), layout="constrained")
    axes = figure.subplots()
    axes.imshow(matrix, cmap="Blues")
    places = range(len(names))
    axes.set_xticks(places, names, rotation=90, parse_math=False)
    axes.set_yticks(places, names, parse_math=False)
    axes.set(title="confusion", xlabel="prediction", ylabel="label")
    readable = matrix if len(names) <= _MOST_COUNTS else matrix[:0]
    for (row, column), count in np.ndenumerate(readable):
        color = "white" if 2 * count > matrix.max() else "black"
        axes.text(column, row, str(count), color=color, ha="center", va="center")
    with replacing(path) as temporary:
        figure.savefig(temporary)


def _check_lengths(first: Sequence, second: Sequence, what: str = "all") -> None:
    if len(first) != len(second) or not len(first):
        raise ValueError(
            f"The predictions do not fit. Received: {len(second)} for {len(first)} "
            f"in {what}; allowed: as many, and at least one."
        )


def _numbered(
    labels: Sequence | np.ndarray, predictions: Sequence | np.ndarray, names: Sequence
) -> tuple[np.ndarray, np.ndarray]:
    """Returns labels and predictions as int64 `[examples]`, the numbers of classes."""
    _check_lengths(labels, predictions)
    numbers = {name: number for number, name in enumerate(names)}
    numbers |= {number: number for number in range(len(names))}
    return tuple(_numbers(values, numbers) for values in (labels, predictions))


def _numbers(values: Sequence | np.ndarray, numbers: Mapping) -> np.ndarray:
    for value in values:
        if value not in numbers:
            raise ValueError(
                f"A class is not known. Received: {value!r}; allowed: "
                f"{', '.join(map(repr, numbers))}."
            )
    return np.array([numbers[value] for value in values], np.int64)


def _is_constant(*arrays: np.ndarray) -> bool:
    """Says whether all numbers of one of them are the same."""
    return any(np.ptp(array) == 0 for array in arrays)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _words_of(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _overlap(answer: list[str], right: list[str]) -> float:
    """Returns the F1 of words; where a side has none, whether both have."""
    if not answer or not right:
        return float(answer == right)
    same = sum((Counter(answer) & Counter(right)).values())
    return 2 * same / (len(answer) + len(right))

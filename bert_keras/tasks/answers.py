"""From outputs to answers: what a model that reads texts says of them.

The functions take anything that has `task`, `preprocessor` and `run(texts)`: a model in
memory, or an artefact of any kind.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from bert_keras.features import (
    EMBEDDING,
    LABEL_PROBABILITIES,
    VALUE,
    Task,
)
from bert_keras.tokens.preprocessor import BertPreprocessor

Text = str | tuple[str, str]
_ROWS = 32


class Reader(Protocol):
    """What can be asked: texts or text pairs in, arrays with one row for each out."""

    task: Task
    preprocessor: BertPreprocessor

    def run(self, texts: Sequence[Text]) -> dict[str, np.ndarray]: ...


class Classified(NamedTuple):
    """The most probable class of a text."""

    label: str
    probability: float


def classify(reader: Reader, texts: Sequence[Text]) -> list[Classified]:
    """Returns the most probable class of each text."""
    check_task(reader, "classify")
    probabilities = in_batches(reader, texts, lambda o: o[LABEL_PROBABILITIES])
    return [
        Classified(reader.task.labels[row.argmax()], float(row.max()))
        for row in probabilities
    ]


def regress(reader: Reader, texts: Sequence[Text]) -> list[float]:
    """Returns the number of each text."""
    check_task(reader, "regress")
    return [float(v) for v in in_batches(reader, texts, lambda outputs: outputs[VALUE])]


def embed(reader: Reader, texts: Sequence[Text]) -> np.ndarray:
    """Returns the vector of each text, float32 `[texts, hidden_dim]`."""
    check_task(reader, "embed")
    return np.stack(in_batches(reader, texts, lambda outputs: outputs[EMBEDDING]))


def check_task(reader: Reader, *names: str) -> None:
    """Raises a `ValueError` for a model that is for something else."""
    if reader.task.name not in names:
        raise ValueError(
            f"The model is for another task. Received: a model to "
            f"{reader.task.name}; allowed: {' or '.join(names)}."
        )


def in_batches(
    reader: Reader, texts: Sequence[Text], taken: Callable[[dict], Sequence]
) -> list:
    """Asks for texts of about the same length together, so that few are padded much.

    Args:
        taken: outputs of a batch -> what is wanted of each of its rows.

    Returns:
        what was taken, in the order of the texts.
    """
    check_texts(reader, texts)
    lengths = [len(t) if isinstance(t, str) else sum(map(len, t)) for t in texts]
    order = np.argsort(lengths, kind="stable")
    found: list = [None] * len(texts)
    for start in range(0, len(order), _ROWS):
        rows = order[start : start + _ROWS]
        answers = taken(reader.run([texts[row] for row in rows]))
        for row, answer in zip(rows, answers, strict=True):
            found[row] = answer
    return found


def check_texts(reader: Reader, texts: Sequence[Text]) -> None:
    """Raises a `ValueError` if texts are given where pairs are read, or the reverse."""
    wants = reader.task.text_pairs
    for number, text in enumerate(texts):
        is_pair = not isinstance(text, str)
        if is_pair != wants and reader.task.name != "embed":
            kinds = ("a text", "a pair of texts")
            raise ValueError(
                f"The model reads {kinds[wants]} at once. Received: {kinds[is_pair]}, "
                f"number {number}: {str(text)[:60]!r}; allowed: {kinds[wants]}."
            )

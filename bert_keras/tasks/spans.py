"""Spans: answers as a part of a text, found in windows and put together again."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_keras.features import END_LOGITS, START_LOGITS
from bert_keras.tasks.answers import Reader, check_task, in_batches
from bert_keras.tasks.windows import Size, Window, Windows
from bert_keras.text.tokenizer import WordPieceTokenizer

# As in run_squad.py of 2018: tokens of the longest question and answer, and between
# the starts of two windows.
LONGEST_QUESTION = 64
LONGEST_ANSWER = 30
_STRIDE = 128
_BEST = 20


class Span(NamedTuple):
    """An answer: a part of the text; empty where the text does not answer.

    Attributes:
        text: the answer.
        start, end: where it stands in the text, in characters, the end excluded.
        score: sum of the two logits, less that of no answer.
    """

    text: str
    start: int
    end: int
    score: float


class QuestionWindow(NamedTuple):
    """A question, shortened if need be, and a window of the text behind it.

    Attributes:
        question: the text of the first segment.
        first: position of the window's first token in the row.
        window: the window.
    """

    question: str
    first: int
    window: Window


def question_windows(
    tokenizer: WordPieceTokenizer,
    questions: Sequence[tuple[str, str]],
    sequence_length: int,
) -> list[list[QuestionWindow]]:
    """Returns for each pair of a question and a text the rows that it is read in."""
    # [CLS] question [SEP] text [SEP], with room for some text in any row.
    if not questions:
        return []
    longest = min(LONGEST_QUESTION, (sequence_length - 3) // 2)
    if longest < 1:
        raise ValueError(
            f"Rows are too short for a question and a text. Received: sequence_length="
            f"{sequence_length}; allowed: at least 5."
        )
    windows = Windows.by(tokenizer)
    asked, texts = (list(column) for column in zip(*questions, strict=True))
    asked = [found[0] for found in windows.of(asked, [Size(longest, 0)] * len(asked))]
    rooms = [sequence_length - 3 - len(start.offsets) for start in asked]
    sizes = [Size(room, max(room - _STRIDE, room // 4)) for room in rooms]
    return [
        [QuestionWindow(start.text, len(start.offsets) + 2, window) for window in cut]
        for start, cut in zip(asked, windows.of(texts, sizes), strict=True)
    ]


def find_spans(reader: Reader, questions: Sequence[tuple[str, str]]) -> list[Span]:
    """Returns the most probable answer to each question in its text.

    The best span of up to 30 tokens over all windows; none, if [CLS] alone scores more
    than the best in every window, and the model may abstain.
    """
    check_task(reader, "span")
    preprocessor = reader.preprocessor
    rows = question_windows(
        preprocessor.tokenizer, questions, preprocessor.sequence_length
    )
    flat = [(row.question, row.window.text) for found in rows for row in found]
    logits = iter(in_batches(reader, flat, _pairs_of_logits))
    answers = []
    for (_, text), found in zip(questions, rows, strict=True):
        candidates, nothing = [], np.inf
        for row in found:
            start, end = next(logits)
            candidates += _candidates(text, row, start, end)
            nothing = min(nothing, float(start[0] + end[0]))
        best = max(candidates, key=lambda span: span.score, default=None)
        abstains = reader.task.may_abstain and best and best.score < nothing
        if best is None or abstains:
            answers.append(Span("", 0, 0, 0.0))
        else:
            answers.append(best._replace(score=best.score - nothing))
    return answers


def _pairs_of_logits(outputs: dict) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(zip(outputs[START_LOGITS], outputs[END_LOGITS], strict=True))


def _candidates(text: str, row: QuestionWindow, start, end) -> list[Span]:
    """Returns the best span of a window, if it holds any text."""
    offsets = row.window.offsets
    tokens = slice(row.first, row.first + len(offsets))
    start, end = start[tokens].astype(float), end[tokens].astype(float)
    found = []
    for first in np.argsort(-start, kind="stable")[:_BEST]:
        last = first + int(end[first : first + LONGEST_ANSWER].argmax())
        place = int(offsets[first, 0]), int(offsets[last, 1])
        score = float(start[first] + end[last])
        found.append(Span(text[slice(*place)], *place, score))
    return found

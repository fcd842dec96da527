"""Files of questions about a paragraph, in the JSON of SQuAD 1.1 and 2.0."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bert_keras.tasks.records import decoded_lines, whole_characters

_KINDS = {str: "a string", int: "an integer", list: "a list", bool: "true or false"}
_SHOWN = 60  # characters of a wrong value


class Answer(NamedTuple):
    """A part of a context.

    Attributes:
        text: as it stands there; not empty.
        start: the character (codepoint) of the context at which it begins, from 0.
    """

    text: str
    start: int


class Question(NamedTuple):
    """A question and the paragraph that may answer it.

    Attributes:
        id: of this question only.
        question: its text.
        context: the paragraph.
        answers: those that count as right; none if it is impossible.
        is_impossible: the context does not answer it.
    """

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...]
    is_impossible: bool


def read_squad(path: str | os.PathLike) -> list[Question]:
    """Reads the questions of a file in the order in which they stand there.

    A question that does not say whether it is impossible (SQuAD 1.1, XQuAD) is if it
    has no answer, as the evaluation script of SQuAD 2.0 counts it.

    Args:
        path: of the file, UTF-8, which may be gzipped (".gz").

    Raises:
        ValueError: not JSON; a part that is missing or of another type, naming where;
            naming the question's id, an answer that does not stand in the context at
            its `answer_start`, an impossible question with answers or another one
            without, or an id that stands twice; no question; as `decoded_lines`.
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    try:
        content = json.loads("\n".join(decoded_lines(path)))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    questions: dict[str, Question] = {}
    for question in _questions(str(path), content):
        if questions.setdefault(question.id, question) is not question:
            raise ValueError(
                f"{path} has two questions with one id. Received: {question.id!r} "
                "twice; allowed: once."
            )
    if not questions:
        raise ValueError(f"{path} is empty. Received: no questions; allowed: some.")
    return list(questions.values())


def _questions(where: str, content) -> Iterator[Question]:
    for number, article in enumerate(_part(where, content, "data", list), 1):
        in_article = f"{where}, article {number}"
        paragraphs = _part(in_article, article, "paragraphs", list)
        for number, paragraph in enumerate(paragraphs, 1):
            in_paragraph = f"{in_article}, paragraph {number}"
            context = _part(in_paragraph, paragraph, "context", str)
            asked = _part(in_paragraph, paragraph, "qas", list)
            for number, entry in enumerate(asked, 1):
                identity = _part(f"{in_paragraph}, question {number}", entry, "id", str)
                in_question = f"{where}, question {identity!r}"
                yield _question(in_question, entry, identity, context)


def _question(where: str, entry: dict, identity: str, context: str) -> Question:
    text = _part(where, entry, "question", str)
    answers = tuple(
        Answer(
            _part(where, answer, "text", str), _part(where, answer, "answer_start", int)
        )
        for answer in _part(where, entry, "answers", list)
    )
    is_impossible = not answers
    if "is_impossible" in entry:
        is_impossible = _part(where, entry, "is_impossible", bool)
    if is_impossible == bool(answers):
        raise ValueError(
            f"{where} contradicts itself. Received: is_impossible={is_impossible} with "
            f"{len(answers)} answers; allowed: answers, or else is_impossible."
        )
    for answer in answers:
        _check_answer(where, answer, context)
    return Question(identity, text, context, answers, is_impossible)


def _check_answer(where: str, answer: Answer, context: str) -> None:
    # A slice from a number below 0 would begin at the other end.
    behind = context[answer.start :] if answer.start >= 0 else ""
    found = behind[: len(answer.text)]
    if not answer.text or found != answer.text:
        raise ValueError(
            f"{where} has an answer that does not stand where it should. Received: "
            f"{answer.text[:_SHOWN]!r} at character {answer.start}, where the context "
            f"has {found[:_SHOWN]!r}; allowed: text of the context, and where it "
            "begins in characters, not bytes."
        )


def _part(where: str, whole, name: str, kind: type):
    """Returns a part of an object, or raises a `ValueError` that says where it is."""
    value = whole.get(name) if isinstance(whole, dict) else None
    if type(value) is not kind:  # a bool is an int, but no number here
        shown = repr(value) if isinstance(whole, dict) else repr(whole)
        raise ValueError(
            f"{where} lacks {name!r}. Received: {shown[:_SHOWN]}; allowed: an object "
            f"in which it is {_KINDS[kind]}."
        )
    return whole_characters(value) if kind is str else value

"""Answers in windows, and where they stand."""

import numpy as np
import pytest
from tasks.readers import Said

from bert_keras.features import Task
from bert_keras.tasks.kinds import FindSpans
from bert_keras.tasks.spans import LONGEST_ANSWER, find_spans
from bert_keras.tasks.squad import Answer, Question

FOX, QU, OWN = 10, 6, 9


def says_quick_brown(ids: np.ndarray) -> dict:
    """The answer begins with "qu" and ends with "##own"; [CLS] scores 1 each."""
    start, end = np.zeros(ids.shape, np.float32), np.zeros(ids.shape, np.float32)
    start[ids == QU], end[ids == OWN] = 5, 4
    start[:, 0] = end[:, 0] = 1
    return {"start_logits": start, "end_logits": end}


def reader(length=16, may_abstain=True, says=says_quick_brown) -> Said:
    task = Task("span", text_pairs=True, may_abstain=may_abstain)
    return Said(task, says, length)


def test_an_answer_has_its_place():
    text = "the fox. The  Quick   brown fox"
    (found,) = find_spans(reader(), [("fox", text)])
    assert found.text == "Quick   brown" == text[found.start : found.end]
    assert found.score == 5 + 4 - 2


def test_what_the_question_says_is_no_answer():
    (found,) = find_spans(reader(), [("quick brown", "the fox the fox")])
    assert found == ("", 0, 0, 0.0)


def test_a_model_that_must_answer_answers():
    (found,) = find_spans(reader(may_abstain=False), [("quick brown", "the fox")])
    assert found.text in ("the", "fox", "the fox")
    assert found.score == -2


def test_a_text_longer_than_a_row_is_read_in_windows():
    text = "the fox " * 100 + "quick brown " + "fox the " * 100
    asked = reader()
    (found,) = find_spans(asked, [("the fox", text)])
    assert (found.start, found.end) == (800, 811)
    assert len(asked.read) > 15
    assert all(question == "the fox" for question, _ in asked.read)


def test_a_long_question_leaves_room_for_the_text():
    asked = reader()
    (found,) = find_spans(asked, [("the fox " * 40, "the fox the quick brown fox")])
    assert found.text == "quick brown"
    assert {question for question, _ in asked.read} == {"the fox the fox the fox "}


def test_an_empty_text_has_no_answer():
    for may_abstain in (True, False):
        (found,) = find_spans(reader(may_abstain=may_abstain), [("fox", "")])
        assert found == ("", 0, 0, 0.0)


def test_an_answer_has_at_most_thirty_tokens():
    text = "quick " + "fox " * (LONGEST_ANSWER - 1) + "brown"
    (found,) = find_spans(reader(length=64, may_abstain=False), [("fox", text)])
    assert not found.text.endswith("brown") or not found.text.startswith("quick")


def question(text: str, answer: str | None) -> Question:
    answers = (Answer(answer, text.index(answer)),) if answer else ()
    return Question("1", "fox", text, answers, not answers)


def test_rows_point_at_the_answer():
    """[CLS] fox [SEP] the qu ##ick br ##own fox [SEP]: the answer is 4 to 7."""
    examples = [question("the quick brown fox", "quick brown"), question("the", None)]
    rows = FindSpans().rows(reader(), examples, balanced=False)
    assert rows.labels["span_start"].tolist() == [4, 0]
    assert rows.labels["span_end"].tolist() == [7, 0]
    assert rows.features["segment_ids"][0].tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1, 1]


def test_a_window_without_the_whole_answer_points_at_cls():
    text = "the " * 20 + "quick brown" + " fox" * 20
    rows = FindSpans().rows(reader(), [question(text, "quick brown")], balanced=False)
    pointed = 0
    for ids, start, end in zip(
        rows.features["token_ids"], *map(list, rows.labels.values()), strict=True
    ):
        if start:
            assert ids[start : end + 1].tolist() == [6, 7, 8, 9]
            pointed += 1
        else:
            assert end == 0
    assert 1 <= pointed < len(rows)


def test_rows_too_short_are_refused():
    with pytest.raises(ValueError, match="sequence_length=4; allowed: at least 5"):
        find_spans(reader(length=4), [("fox", "fox")])

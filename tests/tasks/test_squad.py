"""Files in the JSON of SQuAD -> questions."""

import gzip
import json

import pytest
from oracles import DATA, needs_data

from bert_keras.tasks.squad import Answer, Question, read_squad

CONTEXT = "Der Bär 🐻 schläft."
HOW = {
    "id": "q1",
    "question": "Wie?",
    "answers": [
        {"text": "schläft", "answer_start": 10},
        {"text": "🐻 schläft", "answer_start": 8},
    ],
}
WHY = {"id": "q2", "question": "Warum?", "answers": []}


@pytest.fixture
def read(tmp_path):
    """Returns a function: the questions of a file."""

    def read(content, name="a.json"):
        if isinstance(content, list | dict):
            content = json.dumps(content).encode()
        (tmp_path / name).write_bytes(content)
        return read_squad(tmp_path / name)

    return read


@pytest.fixture
def refused(read, tmp_path):
    """Returns a function: what is said of a file, FILE standing for its path."""

    def refused(content):
        with pytest.raises(ValueError) as caught:
            read(content)
        return str(caught.value).replace(str(tmp_path / "a.json"), "FILE")

    return refused


def whole(*entries, context=CONTEXT):
    paragraph = {"context": context, "qas": list(entries)}
    return {"version": "1.1", "data": [{"title": "Bär", "paragraphs": [paragraph]}]}


def test_questions(read):
    answers = (Answer("schläft", 10), Answer("🐻 schläft", 8))
    expected = [
        Question("q1", "Wie?", CONTEXT, answers, False),
        Question("q2", "Warum?", CONTEXT, (), True),
    ]
    assert read(whole(HOW, WHY)) == expected
    said = {"is_impossible": False}, {"is_impossible": True, "plausible_answers": [1]}
    assert read(whole(HOW | said[0], WHY | said[1])) == expected
    text = json.dumps(whole(HOW, WHY), ensure_ascii=False, indent=1)
    assert read(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()) == expected
    assert read(gzip.compress(text.encode()), "a.json.gz") == expected


def test_halves_of_characters_are_replaced_where_they_stand(read):
    entry = HOW | {"answers": [{"text": "\ud83d b", "answer_start": 2}]}
    (question,) = read(whole(entry, context="a \ud83d b"))
    assert question.context == "a \ufffd b"
    assert question.answers == (Answer("\ufffd b", 2),)


@pytest.mark.parametrize(
    ("text", "start", "found"),
    [
        ("schläft", 11, "chläft."),
        ("schläft", 14, "äft."),  # counted in bytes
        ("schläft", -8, ""),  # which Python would count from the end
        ("schläft", 99, ""),
        ("Schläft", 10, "schläft"),
        ("", 3, ""),
    ],
)
def test_an_answer_must_stand_where_it_says(refused, text, start, found):
    entry = HOW | {"answers": [{"text": text, "answer_start": start}]}
    assert refused(whole(WHY, entry)) == (
        "FILE, question 'q1' has an answer that does not stand where it should. "
        f"Received: {text!r} at character {start}, where the context has {found!r}; "
        "allowed: text of the context, and where it begins in characters, not bytes."
    )


@pytest.mark.parametrize(
    ("content", "where", "name", "received", "kind"),
    [
        ([], "", "data", "[]", "a list"),
        ({"data": 1}, "", "data", "1", "a list"),
        ({"data": ["x"]}, ", article 1", "paragraphs", "'x'", "a list"),
        (
            {"data": [{"paragraphs": []}, {"paragraphs": [{"qas": []}]}]},
            ", article 2, paragraph 1",
            "context",
            "None",
            "a string",
        ),
        (
            {"data": [{"paragraphs": [{"context": "a"}]}]},
            ", article 1, paragraph 1",
            "qas",
            "None",
            "a list",
        ),
        (
            whole(HOW, WHY | {"id": 2}),
            ", article 1, paragraph 1, question 2",
            "id",
            "2",
            "a string",
        ),
        (whole({"id": "q3"}), ", question 'q3'", "question", "None", "a string"),
        (whole(HOW | {"answers": {}}), ", question 'q1'", "answers", "{}", "a list"),
        (
            whole(HOW | {"answers": [{"text": "Bär", "answer_start": True}]}),
            ", question 'q1'",
            "answer_start",
            "True",
            "an integer",
        ),
        (
            whole(WHY | {"is_impossible": 1}),
            ", question 'q2'",
            "is_impossible",
            "1",
            "true or false",
        ),
    ],
)
def test_parts_that_are_not_there(refused, content, where, name, received, kind):
    assert refused(content) == (
        f"FILE{where} lacks {name!r}. Received: {received}; allowed: an object in "
        f"which it is {kind}."
    )


@pytest.mark.parametrize(("entry", "answers"), [(HOW, 2), (WHY, 0)])
def test_an_impossible_question_has_no_answers(refused, entry, answers):
    says = bool(answers)
    assert refused(whole(entry | {"is_impossible": says})) == (
        f"FILE, question {entry['id']!r} contradicts itself. Received: is_impossible="
        f"{says} with {answers} answers; allowed: answers, or else is_impossible."
    )


def test_files_that_are_wrong_as_a_whole(refused):
    said = "FILE has two questions with one id. Received: 'q1' twice; allowed: once."
    assert refused(whole(HOW, WHY, HOW)) == said
    said = "FILE is empty. Received: no questions; allowed: some."
    assert refused(whole()) == said
    said = "FILE is not JSON: Expecting value: line 2 column 1 (char 2)"
    assert refused(b"[\n?") == said
    assert refused(b'{"data":\n\xff}') == (
        "FILE is not UTF-8. Received: byte 0xff on line 2; allowed: text in this "
        "encoding; others, such as latin-1, by encoding=."
    )


@needs_data
@pytest.mark.parametrize("language", ["ar", "en", "ru", "zh"])
def test_xquad(language):
    """The sizes are those of Artetxe et al. (2020): 240 paragraphs, 1,190 questions."""
    questions = read_squad(DATA / "multilingual" / f"xquad.{language}.json")
    assert len(questions) == 1190
    assert len({question.context for question in questions}) == 240
    assert not any(question.is_impossible for question in questions)
    assert {len(question.answers) for question in questions} == {1}
    assert questions[0].id == "56beb4343aeaaa14008c925b"
    assert questions[0].answers[0].text == "308"
    for question in questions:
        for text, start in question.answers:
            assert question.context[start:].startswith(text)

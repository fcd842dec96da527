"""How tags meet words: by the first piece, wherever the word stands in the text."""

import numpy as np
import pytest
from tasks.readers import Said

from bert_keras.features import Task
from bert_keras.tasks.kinds import Tag
from bert_keras.tasks.tagged import TaggedSentence
from bert_keras.tasks.tags import Spaced, tag

LABELS = ("O", "B-x", "I-x")
FOX, QU, BR = 10, 6, 8  # ids of SMALL: "fox", and the first pieces of quick and brown


def says_by_id(ids: np.ndarray) -> dict:
    """Says B-x of "qu", I-x of "br", and of "##ick", which nobody should ask, B-x."""
    logits = np.zeros((*ids.shape, 3), np.float32)
    logits[..., 0] = 1
    logits[ids == QU] = [0, 3, 0]
    logits[ids == BR] = [0, 0, 3]
    logits[ids == 7] = [0, 9, 0]
    return {"tag_logits": logits}


def reader(sequence_length: int = 16) -> Said:
    return Said(Task("tag", LABELS), says_by_id, sequence_length)


def test_words_and_entities_have_their_places():
    text = 'the "quick  brown" fox, QUICK.'
    (found,) = tag(reader(), [text])
    assert [(w.text, w.tag) for w in found.words] == [
        ("the", "O"),
        ('"', "O"),
        ("quick", "B-x"),
        ("brown", "I-x"),
        ('"', "O"),
        ("fox", "O"),
        (",", "O"),
        ("QUICK", "B-x"),
        (".", "O"),
    ]
    for word in found.words:
        assert text[word.start : word.end] == word.text
    assert [(e.text, e.label, e.start, e.end) for e in found.entities] == [
        ("quick  brown", "x", 5, 17),
        ("QUICK", "x", 24, 29),
    ]
    # softmax of (0, 3, 0) at 3: e^3 / (e^3 + 2)
    assert found.words[2].probability == pytest.approx(0.9094, abs=1e-4)


def test_lists_of_words_keep_them():
    (found,) = tag(reader(), [["the", "quick", "fox."]])
    assert [(w.text, w.tag) for w in found.words] == [
        ("the", "O"),
        ("quick", "B-x"),
        ("fox.", "O"),
    ]


def test_a_text_longer_than_a_row_loses_nothing():
    text = "the fox " * 30 + "quick brown fox " * 30
    asked = reader(sequence_length=8)
    (found,) = tag(asked, [text])
    assert len(found.words) == 150
    assert len(found.entities) == 30
    assert {e.text for e in found.entities} == {"quick brown"}
    assert len(asked.read) > 20


def test_a_word_without_pieces_is_outside():
    (found,) = tag(reader(), [["quick", "\u200b", "brown"]])
    assert [w.tag for w in found.words] == ["B-x", "O", "I-x"]
    assert found.words[1].probability == 0


def test_an_empty_text_has_no_words():
    assert tag(reader(), ["", "fox"])[0] == ([], [])
    assert tag(reader(), []) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't stop", ["don't", "stop"]),
        ("U.S. 3.14%", ["U.S", ".", "3.14", "%"]),
        ("(a-b) @c #d", ["(", "a-b", ")", "@", "c", "#", "d"]),
        ("日本 x", ["日本", "x"]),
        ("...", [".", ".", "."]),
    ],
)
def test_words_of_a_text(text, words):
    found = Spaced.of(text)
    assert [text[start:end] for start, end in found.places] == words


def test_rows_have_a_tag_at_first_pieces_alone():
    """[CLS] the qu ##ick fox [SEP]"""
    sentence = TaggedSentence(("the", "quick", "fox"), ("O", "B-x", "I-x"))
    rows = Tag().rows(reader(), [sentence], balanced=False)
    assert rows.features["token_ids"][0].tolist() == [2, 5, 6, 7, 10, 3]
    assert rows.features["tags"][0].tolist() == [0, 0, 1, 0, 2, 0]
    assert rows.features["tag_weights"][0].tolist() == [0, 1, 1, 0, 1, 0]


def test_every_word_counts_once_in_long_sentences():
    words = ("quick", "the", "fox") * 20
    sentence = TaggedSentence(words, ("B-x", "O", "I-x") * 20)
    rows = Tag().rows(reader(sequence_length=10), [sentence], balanced=False)
    assert len(rows) > 5
    assert sum(weights.sum() for weights in rows.features["tag_weights"]) == 60
    tags = [t for row in zip(*(rows.features[n] for n in ("tags", "tag_weights")),
                             strict=True) for t in row[0][row[1] == 1]]  # fmt: skip
    assert np.bincount(tags).tolist() == [20, 20, 20]


def test_balanced_tags_count_the_same_together():
    sentence = TaggedSentence(("the", "the", "the", "fox"), ("O", "O", "O", "B-x"))
    rows = Tag().rows(reader(), [sentence], balanced=True)
    # 4 words, 2 classes that occur: 4 / (2 * 3) and 4 / (2 * 1)
    np.testing.assert_allclose(
        rows.features["tag_weights"][0], [0, 2 / 3, 2 / 3, 2 / 3, 2, 0], atol=1e-6
    )


def test_another_model_is_refused():
    said = Said(Task("classify", ("a", "b")), lambda ids: {})
    with pytest.raises(ValueError, match="a model to classify; allowed: tag"):
        tag(said, ["fox"])

"""Files -> tagged sentences -> entities."""

import gzip
import json

import pytest
from oracles import DATA, needs_data

from bert_keras.tasks.tagged import (
    Entity,
    TaggedSentence,
    entities_of,
    read_tagged,
)


@pytest.fixture
def read(tmp_path):
    """Returns a function: words and tags of the sentences of a file, as text."""

    def read(content, name="a.conll", **options):
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
        sentences = read_tagged(tmp_path / name, **options)
        return [list(map("|".join, sentence)) for sentence in sentences]

    return read


@pytest.fixture
def refused(read, tmp_path):
    """Returns a function: what is said of a file, FILE standing for its path."""

    def refused(content, name="a.conll", **options):
        with pytest.raises(ValueError) as caught:
            read(content, name, **options)
        return str(caught.value).replace(str(tmp_path / name), "FILE")

    return refused


def test_columns_between_tabs_or_spaces(read):
    expected = [["EU|rejects", "B-ORG|O"], ["Peter", "B-PER"]]
    assert read("EU\tB-ORG\nrejects\tO\n\nPeter\tB-PER\n") == expected
    assert read("EU B-ORG\nrejects   O \n\nPeter B-PER") == expected
    assert read("\ufeffEU\tB-ORG\r\nrejects\tO\r\n\t\r\n\nPeter\tB-PER\r\n") == expected
    packed = gzip.compress(b"EU B-ORG\nrejects O\n \nPeter B-PER\n\n\n")
    assert read(packed, "a.conll.gz") == expected


def test_a_word_may_hold_spaces_that_do_not_separate(read):
    assert read("20 000\tO\n\u00a0\tO\n") == [["20 000|\u00a0", "O|O"]]
    assert read("20\u00a0000 O\n\u2028 O\n") == [["20\u00a0000|\u2028", "O|O"]]


def test_columns_by_number(read):
    """The first sentence of the English data of CoNLL-2003, shortened."""
    text = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n"
    assert read(text) == [["EU|rejects", "B-ORG|O"]]
    assert read(text, tag=1) == [["EU|rejects", "NNP|VBZ"]]
    assert read(text, word=-4, tag=2) == [["EU|rejects", "B-NP|B-VP"]]
    begins = "a O\n-DOCSTART- O\nb O\n"
    assert read(begins) == [["a", "O"], ["b", "O"]]
    assert read("-DOCSTART- O\n\n20 000\tO\n") == [["20 000", "O"]]


# "du" is two words to CoNLL-U, and the word 3.1 is one that was left out.
UNIVERSAL = """\
# newdoc
# sent_id = 1
# text = Voir du
1\tVoir\tvoir\tVERB\t_\t_\t0\troot\t_\t_
2-3\tdu\t_\t_\t_\t_\t_\t_\t_\t_
2\tde\tde\tADP\t_\t_\t1\tobl\t_\t_
3\tle\tle\tDET\t_\t_\t1\tdet\t_\t_
3.1\tvu\tvoir\tVERB\t_\t_\t_\t_\t_\t_

# a remark
1\t#\t#\tSYM\t_\t_\t0\troot\t_\t_
2\t#tag\t#tag\tX\t_\t_\t1\tdep\t_\t_
"""


def test_universal_columns(read):
    expected = [["Voir|de|le", "VERB|ADP|DET"], ["#|#tag", "SYM|X"]]
    assert read(UNIVERSAL, word=1, tag=3) == expected
    scores = "2-3 is a score of ten columns in the O\n"
    assert read(scores) == [["2-3", "O"]]


def test_comments_are_left_out_and_no_word_is(read):
    words = [["#|#tag|#|a", "O|O|O|O"], ["#", "B-x"]]
    assert read("#\tO\n#tag\tO\n#\tO\na\tO\n\n#\tB-x\n") == words
    assert read("# O\n#tag O\n# O\na O\n\n# B-x\n") == words
    assert read("# id = 1\n# O\n#tag O\n# O\na O\n\n# text = b\n# B-x\n") == words
    assert read("# O\n") == [["#", "O"]]


def test_json_lines(read):
    lines = [
        {"words": ["New York", "#"], "tags": ["B-LOC", "O"], "id": 7},
        {"words": ["\ud83d"], "tags": ["O"]},
    ]
    text = "\n\n".join(map(json.dumps, lines))
    expected = [["New York|#", "B-LOC|O"], ["\ufffd", "O"]]
    assert read(text, "a.jsonl") == expected
    assert read(gzip.compress(text.encode()), "a.jsonl.gz") == expected


def test_other_encodings(read, refused):
    data = "café O\n".encode("latin-1")
    assert read(data, encoding="latin-1") == [["café", "O"]]
    assert refused(b"a O\n" + data) == (
        "FILE is not UTF-8. Received: byte 0xe9 on line 2; allowed: text in this "
        "encoding; others, such as latin-1, by encoding=."
    )


@pytest.mark.parametrize(
    ("content", "columns", "line"),
    [
        ("a\tO\n\nb\n", 1, 3),
        ("a O\nNew York B-LOC\n", 3, 2),
        ("a\tO\n# b\n", 1, 2),  # in the middle of a sentence nothing is a comment
    ],
)
def test_rows_of_another_width(refused, content, columns, line):
    assert refused(content) == (
        f"FILE has a wrong number of columns. Received: {columns} on line {line}; "
        "allowed: 2, as above."
    )


@pytest.mark.parametrize(
    ("content", "word", "tag", "line", "width"),
    [
        ("\na\nb\n", 0, -1, 2, 1),
        ("a O\n", 0, 2, 1, 2),
        ("a O\n", -3, 1, 1, 2),
        ("a O\n", -1, 1, 1, 2),
    ],
)
def test_columns_that_are_not_there(refused, content, word, tag, line, width):
    assert refused(content, word=word, tag=tag) == (
        f"FILE lacks a column. Received: word={word}, tag={tag} on line {line}; "
        f"allowed: two columns from {-width} to {width - 1}."
    )


@pytest.mark.parametrize("row", ["\tO", "b\t ", " \tO"])
def test_empty_words_and_tags(refused, row):
    assert refused(f"a\tO\n{row}\n") == (
        f"FILE lacks a word or tag. Received: {row!r} on line 2; allowed: both, or a "
        "blank line."
    )


def test_files_without_sentences_and_wrong_arguments(refused):
    for content in ("", "\n\n", "-DOCSTART- O\n\n", "# id = 1\n"):
        said = "FILE is empty. Received: no sentences; allowed: some."
        assert refused(content) == said
    for name in ("word", "tag"):
        assert refused("a O\n", **{name: "form"}) == (
            f"{name} is not allowed. Received: {name}='form'; allowed: an integer of "
            "at least -1024 and at most 1024."
        )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"words": ["a", "b"], "tags": ["O"]}', "2 words and 1 tags"),
        ('{"words": [], "tags": []}', "0 words and 0 tags"),
        ('{"words": ["a"], "tags": [1]}', "1 is no word or tag"),
        ('{"words": [""], "tags": ["O"]}', "'' is no word or tag"),
        ('{"words": ["a"]}', "'tags'"),
        ("[]", "list indices must be integers or slices, not str"),
        ("?", "Expecting value: line 1 column 1 (char 0)"),
    ],
)
def test_json_lines_that_are_not_tagged_words(refused, line, reason):
    text = '{"words": ["a"], "tags": ["O"]}\n\n' + line
    assert refused(text, "a.jsonl") == (
        f"FILE is not JSON lines of tagged words. Received: {line!r} ({reason}) on "
        'line 3; allowed: an object such as {"words": ["A", "b"], "tags": ["O", '
        '"B-x"]}.'
    )


@pytest.mark.parametrize(
    ("tags", "entities"),
    [
        ("", []),
        ("O O", []),
        # IOB2, and two ways of two entities side by side.
        ("B-x I-x O B-y", [("x", 0, 2), ("y", 3, 4)]),
        ("B-x B-x", [("x", 0, 1), ("x", 1, 2)]),
        ("B-x I-y", [("x", 0, 1), ("y", 1, 2)]),
        # IOB1: B only between two of one label.
        ("I-x I-x B-x O I-y", [("x", 0, 2), ("x", 2, 3), ("y", 4, 5)]),
        # BIOES, and BILOU and BMES, which are the same by other letters.
        ("B-x I-x E-x S-x S-y", [("x", 0, 3), ("x", 3, 4), ("y", 4, 5)]),
        ("B-x I-x L-x U-x U-y", [("x", 0, 3), ("x", 3, 4), ("y", 4, 5)]),
        ("B-x M-x E-x S-x S-y", [("x", 0, 3), ("x", 3, 4), ("y", 4, 5)]),
        # What no scheme allows begins an entity where conlleval begins one.
        ("E-x E-x", [("x", 0, 1), ("x", 1, 2)]),
        ("S-x I-x E-x", [("x", 0, 1), ("x", 1, 3)]),
        ("B-x E-x I-x", [("x", 0, 2), ("x", 2, 3)]),
        # Labels with hyphens, and none.
        ("B-creative-work I-creative-work", [("creative-work", 0, 2)]),
        ("B I O I", [("", 0, 2), ("", 3, 4)]),
        # Parts of speech are no entities.
        ("NOUN VERB PUNCT", []),
    ],
)
def test_entities(tags, entities):
    assert entities_of(tags.split()) == [Entity(*entity) for entity in entities]


@needs_data
@pytest.mark.parametrize(
    ("name", "sentences", "words", "entities"),
    [
        ("wnut17train.conll", 3394, 62730, 1975),
        ("emerging.dev.conll", 1009, 15733, 836),
        ("emerging.test.annotated", 1287, 23394, 1079),
    ],
)
def test_wnut17(name, sentences, words, entities):
    """The numbers of entities are those of Derczynski et al. (2017); words are counted
    as lines that are not blank, and sentences as runs of them.
    """
    found = read_tagged(DATA / "labelled" / name)
    assert len(found) == sentences
    assert sum(len(sentence.words) for sentence in found) == words
    assert sum(len(entities_of(sentence.tags)) for sentence in found) == entities
    lines = (DATA / "labelled" / name).read_bytes().decode().split("\n")
    rows = [f"{w}\t{t}" for sentence in found for w, t in zip(*sentence, strict=True)]
    assert rows == [line for line in lines if line.strip()]


@needs_data
def test_wnut17_begins_as_it_does():
    first, second = read_tagged(DATA / "labelled" / "emerging.dev.conll")[:2]
    assert isinstance(first, TaggedSentence)
    assert first.words[:5] == ("Stabilized", "approach", "or", "not", "?")
    assert entities_of(first.tags) == []
    assert entities_of(second.tags)[0] == Entity("location", 6, 9)
    assert second.words[6:9] == ("Redondo", "Beach", "Blvd")

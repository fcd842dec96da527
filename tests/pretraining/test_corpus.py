"""Files -> documents."""

import gzip
import itertools

import pytest

from bert_keras.pretraining.corpus import (
    documents_of,
    read_documents,
    split_sentences,
)
from bert_keras.pretraining.default_corpus import default_documents


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ('He said "no." She left.', ['He said "no."', "She left."]),
        ("It is 3.14 or so. 5 is more.", ["It is 3.14 or so.", "5 is more."]),
        ("Он пришёл. Она ушла. и всё", ["Он пришёл.", "Она ушла. и всё"]),
        ("他来了。她走了！好", ["他来了。", "她走了！", "好"]),
        ("جاء. ذهبت", ["جاء.", "ذهبت"]),
        ("e.g. this stays whole", ["e.g. this stays whole"]),
        ("hard\n  wrapped\ttext.  Next", ["hard wrapped text.", "Next"]),
        ("(Yes.) (No.)", ["(Yes.)", "(No.)"]),
        ("   ", []),
    ],
)
def test_sentences(text, sentences):
    assert split_sentences(text) == sentences


def test_a_blank_line_ends_a_document():
    lines = ["", "A b.", "C d. E", "f.", "", " \t", "G.", ""]
    assert list(documents_of(lines)) == [["A b.", "C d.", "E f."], ["G."]]
    assert list(documents_of(["Last line."])) == [["Last line."]]


def test_documents_of_files_plain_and_gzipped(tmp_path):
    text = "Caf\u00e9 one.\u2028Still.\r\n\nTwo.\n".encode()
    (tmp_path / "a.txt").write_bytes(text)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(text))
    documents = list(read_documents([tmp_path / "a.txt", tmp_path / "b.txt.gz"]))
    assert documents == [["Café one.", "Still."], ["Two."]] * 2


def test_the_default_corpus_is_english_prose_and_always_the_same():
    documents = list(default_documents(300_000))
    assert documents == list(default_documents(300_000))
    size = sum(len(sentence) for document in documents for sentence in document)
    assert 300_000 <= size < 400_000
    assert min(map(len, documents)) >= 2
    text = " ".join(itertools.chain.from_iterable(documents))
    assert text.count(" the ") > 2000
    assert ">>>" not in text

"""Files -> documents."""

import gzip
import itertools
import json

import pytest
from oracles import DATA, needs_data

from bert_keras.pretraining import corpus as corpus_module
from bert_keras.pretraining.corpus import (
    CorpusFormat,
    corpus_files,
    cut_at_documents,
    read_documents,
    read_stretches,
)
from bert_keras.pretraining.default_corpus import default_documents
from bert_keras.pretraining.sentences import LONGEST, split_sentences
from bert_keras.text.lines import Span


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


def test_a_text_without_full_stops_is_cut_at_spaces():
    words = ["abc"] * 10_000
    sentences = split_sentences(" ".join(words))
    assert max(map(len, sentences)) <= LONGEST
    assert " ".join(sentences).split() == words


@pytest.fixture
def read(tmp_path):
    """Returns a function: the documents of a file with some text."""

    def read(text, corpus=CorpusFormat(), name="corpus.txt"):
        data = text if isinstance(text, bytes) else text.encode()
        (tmp_path / name).write_bytes(data)
        return list(read_documents([tmp_path / name], corpus))

    return read


def test_a_blank_line_ends_a_document_of_prose(read):
    text = "\nA b.\nC d. E\nf.\n\n \t\nG.\n\n"
    assert read(text) == [["A b.", "C d.", "E f."], ["G."]]
    assert read("Last line.") == [["Last line."]]
    assert read("") == read(" \n\n") == []


def test_several_blank_lines_may_be_asked_for(read):
    """As between the chapters of a book; one ends a paragraph, and so a sentence."""
    text = "CHAPTER I\n\nA b.\n\n\nCHAPTER II\n\nC d.\n\n\n\nIII"
    assert read(text, CorpusFormat(blank_lines=2)) == [
        ["CHAPTER I", "A b."],
        ["CHAPTER II", "C d."],
        ["III"],
    ]


def test_the_format_of_2018_has_a_sentence_a_line(read):
    text = "A b. C d\nno stop\n\nE.  f\n"
    found = read(text, CorpusFormat("sentences"))
    assert found == [["A b. C d", "no stop"], ["E. f"]]


def test_json_lines(read):
    lines = [{"text": "A b. C d.\n\nE.", "id": 1}, {"text": " "}, {"text": "G."}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    expected = [["A b.", "C d.", "E."], ["G."]]
    assert read(text, name="corpus.jsonl") == expected
    assert read(text.rstrip(), CorpusFormat("jsonl")) == expected
    renamed = text.replace('"text"', '"body"')
    assert read(renamed, CorpusFormat("jsonl", text_field="body")) == expected
    for bad, said in (
        ('{"text": "A"}\n{"title": "B"}\n', r"'\{\"title\": \"B\"\}' on line 2"),
        ('{"text": 5}\n', "on line 1; allowed: an object such as"),
        ("\n\n[1]\n", "on line 3"),
        ("not json\n", "'not json' on line 1"),
    ):
        with pytest.raises(ValueError, match=said):
            read(bad, CorpusFormat("jsonl"))


def test_files_plain_and_gzipped(read):
    text = "\ufeffCaf\u00e9 one.\u2028Still.\r\n\r\nTwo.\n".encode()
    expected = [["Café one.", "Still."], ["Two."]]
    assert read(text) == read(gzip.compress(text), name="b.txt.gz") == expected


def test_what_is_not_utf8_is_named_by_its_line(read):
    with pytest.raises(ValueError, match="not UTF-8. Received: byte 0xff on line 2"):
        read(b"fine\nnot \xff\n")


def test_folders_and_patterns(tmp_path):
    for name in ("b.txt", "a.txt", "c/d.txt", ".hidden", ".git/x", "e.gz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    def names(*paths):
        return [str(f.relative_to(tmp_path)) for f in corpus_files(paths)]

    assert names(tmp_path) == ["a.txt", "b.txt", "c/d.txt", "e.gz"]
    assert names(tmp_path / "*.txt") == ["a.txt", "b.txt"]
    assert names(tmp_path / "**" / "*.txt") == ["a.txt", "b.txt", "c/d.txt"]
    assert names(tmp_path / "b.txt", tmp_path / "*.txt") == ["b.txt", "a.txt"]
    (tmp_path / "empty").mkdir()
    for absent in ("absent.txt", "*.pdf", "empty"):
        with pytest.raises(FileNotFoundError) as caught:
            corpus_files([tmp_path / absent])
        assert caught.value.filename == str(tmp_path / absent)


@pytest.mark.parametrize("corpus", ["prose", "sentences", "jsonl"])
def test_parts_of_a_file_together_are_the_file(tmp_path, corpus):
    documents = [[f"Document {n}.", "It ends."][: 1 + n % 2] for n in range(200)]
    text = "\n\n".join(map("\n".join, documents))
    if corpus == "jsonl":
        text = "".join(json.dumps({"text": " ".join(d)}) + "\n" for d in documents)
    path = tmp_path / "corpus"
    path.write_text(text)
    found = CorpusFormat(corpus)
    for size in (1, 100, 1000, len(text)):
        parts = cut_at_documents(path, size, found)
        assert parts[0].start == 0
        assert parts[-1].end == len(text)
        stretches = [s for part in parts for s in read_stretches(part, found)]
        assert [s.sentences for s in stretches] == documents
        assert all(s.begins for s in stretches)
    assert len(cut_at_documents(path, 1000, found)) > 3


def test_an_error_in_a_later_part_names_the_line_of_the_file(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text('{"text": "A"}\n' * 50 + "bad\n")
    *_, last = cut_at_documents(path, 100, CorpusFormat())
    assert last.start > 0
    with pytest.raises(ValueError, match="'bad' on line 51"):
        list(read_stretches(last, CorpusFormat()))


@pytest.mark.parametrize("kind", ["prose", "sentences"])
def test_a_long_document_comes_in_stretches(tmp_path, kind):
    sentences = [f"Sentence {n} of one document." for n in range(10_000)]
    path = tmp_path / "long.txt"
    path.write_text("\n".join(sentences))
    corpus = CorpusFormat(kind)
    found = list(read_stretches(Span(path, 0, path.stat().st_size), corpus))
    assert len(found) > 3
    assert [s.begins for s in found] == [True] + [False] * (len(found) - 1)
    assert [s for stretch in found for s in stretch.sentences] == sentences
    assert list(read_documents([path], corpus)) == [sentences]


@pytest.mark.parametrize("text", ["abc " * 700_000, "语" * 700_000])
def test_a_line_without_an_end_is_read_in_pieces(tmp_path, text):
    path = tmp_path / "line.txt"
    path.write_text(text)
    stretches = list(
        read_stretches(Span(path, 0, path.stat().st_size), CorpusFormat("sentences"))
    )
    sentences = [s for stretch in stretches for s in stretch.sentences]
    assert max(map(len, sentences)) <= LONGEST
    assert len(stretches) > 1
    assert " ".join(text.split()).replace(" ", "") == "".join(sentences).replace(
        " ", ""
    )


@needs_data
def test_the_shared_prose():
    """233 speeches, one a line; six novels whose chapters stand three lines apart."""
    prose = DATA / "prose"
    speeches = list(read_documents([prose / "state-of-the-union.txt.gz"]))
    assert len(speeches) == 233
    assert min(map(len, speeches)) > 10
    novels = [prose / "austen.txt.gz"]
    chapters = list(read_documents(novels, CorpusFormat(blank_lines=3)))
    assert 250 < len(chapters) < 300
    assert list(itertools.chain(*chapters)) == [
        sentence for paragraph in read_documents(novels) for sentence in paragraph
    ]


def test_bad_formats_are_refused():
    with pytest.raises(ValueError, match="'pdf'; allowed: prose, sentences, jsonl"):
        CorpusFormat("pdf").check()
    with pytest.raises(ValueError, match="blank_lines"):
        CorpusFormat(blank_lines=0).check()
    assert corpus_module.FORMATS == ("prose", "sentences", "jsonl")


def test_the_default_corpus_is_english_prose_and_always_the_same():
    documents = list(default_documents(300_000))
    assert documents == list(default_documents(300_000))
    size = sum(len(sentence) for document in documents for sentence in document)
    assert 300_000 <= size < 400_000
    assert min(map(len, documents)) >= 2
    text = " ".join(itertools.chain.from_iterable(documents))
    assert text.count(" the ") > 2000
    assert ">>>" not in text

"""Files -> examples to classify or regress."""

import csv
import gzip
import json

import pytest
from oracles import DATA, needs_data

from bert_keras.tasks.records import Example, read_records

LABELLED = DATA / "labelled"


@pytest.fixture
def read(tmp_path):
    """Returns a function: the examples of a file with some content."""

    def read(name, content, **options):
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
        return read_records(tmp_path / name, **options)

    return read


@pytest.fixture
def refused(read, tmp_path):
    """Returns a function: what is said of a file, FILE standing for its path."""

    def refused(name, content, **options):
        with pytest.raises(ValueError) as caught:
            read(name, content, **options)
        return str(caught.value).replace(str(tmp_path / name), "FILE")

    return refused


EXAMPLES = [Example("a b", None, "x"), Example("", None, "y")]


def test_every_format_gives_the_same(read):
    lines = [{"text": "a b", "label": "x"}, {"label": "y", "text": "", "id": 5}]
    assert read("a.tsv", "a b\tx\n\ty\n") == EXAMPLES
    assert read("a.csv", '"a b",x\n,y\n') == EXAMPLES
    assert read("a.jsonl", "\n".join(map(json.dumps, lines))) == EXAMPLES
    assert read("a.train", "x a b\ny \n", format="labelled") == EXAMPLES


def test_line_ends_byte_order_marks_blank_lines_and_gzip_change_nothing(read):
    for name, text in (
        ("a.tsv", "\ufeffa b\tx\r\n\r\n\ty\r\n\r\n"),
        ("a.csv", "\ufeffa b,x\r\n\r\n,y\r\n\r\n"),
        ("a.labelled", "\ufeffx a b\r\n\r\ny \r\n\r\n"),
        (
            "a.jsonl",
            '\ufeff{"text":"a b","label":"x"}\r\n\n{"text":"","label":"y"}\r\n',
        ),
    ):
        assert read(name, text) == EXAMPLES
        assert read(f"{name}.gz", gzip.compress(text.encode())) == EXAMPLES


def test_lines_end_at_line_feeds_only(read):
    text = "a\u2028b\x0bc\x85d"
    for name, line in (
        ("a.tsv", f"{text}\tx"),
        ("a.csv", f"{text},x"),
        ("a.labelled", f"x {text}"),
        ("a.jsonl", json.dumps({"text": text, "label": "x"}, ensure_ascii=False)),
    ):
        assert read(name, f"{line}\n{line}\n") == [Example(text, None, "x")] * 2


def test_fields_of_csv_may_hold_all_that_separates(read):
    """The rules 5 to 7 of RFC 4180, section 2."""
    text = 'text,label\r\n"a ""b"", c\r\nd",x\r\n"","y"\r\n'
    expected = [Example('a "b", c\nd', None, "x"), Example("", None, "y")]
    assert read("a.csv", text) == expected


def test_csv_is_read_as_it_is_written_by_others(read, tmp_path):
    texts = ['"', '""', 'a "b" c', ",", "a,b", "\n", "a\n\nb", " a ", "", "'", "\t"]
    with open(tmp_path / "b.csv", "w", newline="") as file:
        csv.writer(file).writerows([text, "x"] for text in texts)
    assert [e.text for e in read_records(tmp_path / "b.csv")] == texts


def test_quotes_are_letters_in_tsv(read):
    text = '"a" b\tx\n"c\ty\n'
    assert read("a.tsv", text) == [
        Example('"a" b', None, "x"),
        Example('"c', None, "y"),
    ]


def test_columns_by_name(read):
    text = "id\tlabel\tB\tA\n1\tx\tb\ta\textra\n"
    expected = [Example("a", "b", "x")]
    assert read("a.tsv", text, text="A", second="B") == expected
    assert read("a.tsv", text, text="A", second="B", header=True) == expected
    line = json.dumps({"A": "a", "B": "b", "class": "x", "more": None})
    found = read("a.jsonl", line, text="A", second="B", label="class")
    assert found == expected


def test_columns_by_number(read):
    text = "1\tx\tb\ta\n2\ty\td\tc\n"
    expected = [Example("a", "b", "x"), Example("c", "d", "y")]
    columns = {"text": 3, "second": 2, "label": 1}
    assert read("a.tsv", text, **columns) == expected
    assert read("a.tsv", text, **columns, header=True) == expected[1:]
    assert read("a.tsv", "id\tclass\tB\tA\n" + text, **columns, header=True) == expected


def test_without_a_header_the_text_is_first_and_the_label_last(read):
    assert read("a.csv", "a,b,x\n") == [Example("a", None, "x")]
    assert read("a.csv", "a,b,x\n", second=1) == [Example("a", "b", "x")]
    assert read("a.csv", "text,x\n", header=False) == [Example("text", None, "x")]
    found = read("a.csv", "text,label\n", header=False)
    assert found == [Example("text", None, "label")]


def test_without_labels(read):
    assert read("a.tsv", "a\n\nb\tx\n", label=None) == [
        Example("a"),
        Example(""),  # else predictions would stand on other lines
        Example("b"),
    ]
    assert read("a.csv", 'text\n"a"\n\nb\n', label=None) == list(
        map(Example, ["a", "", "b"])
    )
    assert read("a.jsonl", '{"text": "a"}\n', label=None) == [Example("a")]
    assert read("a.labelled", "x a b\n", label=None) == [Example("a b")]


def test_labels(read):
    text = "a\t 1 \nb\t-2.5e0\n"
    assert [e.label for e in read("a.tsv", text)] == ["1", "-2.5e0"]
    assert [e.label for e in read("a.tsv", text, number=True)] == [1.0, -2.5]
    labels = [1, "1", 2.5, True]
    lines = (json.dumps({"text": "a", "label": label}) + "\n" for label in labels)
    text = "".join(lines)
    assert [e.label for e in read("a.jsonl", text)] == ["1", "1", "2.5", "true"]
    numbers = text[: text.index("true")].rpartition("\n")[0]
    assert [e.label for e in read("a.jsonl", numbers, number=True)] == [1.0, 1.0, 2.5]
    (example,) = read("a.labelled", "DESC:manner How did it ?\n")
    assert example == Example("How did it ?", None, "DESC:manner")


def test_halves_of_characters_are_replaced(read):
    line = r'{"text": "a\ud83db\ud83d\ude00", "label": "\ude00"}'
    assert read("a.jsonl", line) == [Example("a\ufffdb\U0001f600", None, "\ufffd")]


def test_other_encodings(read, refused):
    data = "x caf\u00e9\n".encode("latin-1")
    found = read("a.labelled", b"y b\n" + data, encoding="latin-1")
    assert found[1] == Example("café", None, "x")
    said = (
        "FILE is not UTF-8. Received: byte 0xe9 on line 2; allowed: text in this "
        "encoding; others, such as latin-1, by encoding=."
    )
    assert refused("a.labelled", b"y b\n" + data) == said
    assert refused("a.labelled.gz", gzip.compress(b"y b\n" + data)) == said
    assert refused("a.csv", b'"y\ncaf\xe9",x\n') == said
    assert "is not ASCII. Received: byte 0xe9" in refused(
        "a.csv", data, encoding="ascii"
    )
    for encoding in ("utf-16", "no-such", "hex", "cp037"):
        assert refused("a.csv", data, encoding=encoding) == (
            f"The encoding is not allowed. Received: encoding={encoding!r}; allowed: "
            "one of Python's that ends a line with the byte 0x0a, such as utf-8."
        )


@pytest.mark.parametrize(
    ("name", "content", "options", "columns", "line", "allowed"),
    [
        ("a.tsv", "a\tx\n\nb\n", {}, 1, 3, "2"),
        ("a.tsv", "a\tx\nb\tc\tx\n", {}, 3, 2, "2"),  # a tab in the text
        ("a.tsv", "only text\n", {}, 1, 1, "2"),
        ("a.csv", "a,x\n", {"second": 1}, 2, 1, "3"),
        ("a.csv", 'text,label\n"a\nb",x\nc\n', {}, 1, 4, "at least 2"),
        ("a.csv", "a,x\n", {"text": 0, "label": 2}, 2, 1, "at least 3"),
        ("a.csv", "a,b\nc\n", {"second": 1, "label": None}, 1, 2, "at least 2"),
    ],
)
def test_rows_without_a_column(refused, name, content, options, columns, line, allowed):
    assert refused(name, content, **options) == (
        f"FILE has a wrong number of columns. Received: {columns} on line {line}; "
        f"allowed: {allowed}."
    )


@pytest.mark.parametrize(
    ("name", "content", "label", "line"),
    [
        ("a.tsv", "a\t1\nb\t \n", " ", 2),
        ("a.csv", "a,\n", "", 1),
        ("a.labelled", "1 a\n b\n", "", 2),
        ("a.jsonl", '{"text": "a", "label": ""}', "", 1),
    ],
)
def test_empty_labels(refused, name, content, label, line):
    said = f"FILE has a wrong label. Received: {label!r} on line {line}; allowed: "
    assert refused(name, content) == said + "the name of a class."
    assert refused(name, content, number=True) == said + "a finite number."


@pytest.mark.parametrize(
    ("name", "content", "label", "line"),
    [
        ("a.csv", '"a\nb",1\nc,good\n', "good", 3),
        ("a.tsv", "a\tnan\n", "nan", 1),
        ("a.labelled", "1 a\n-inf a\n", "-inf", 2),
        ("a.jsonl", '{"text": "a", "label": true}', "true", 1),
    ],
)
def test_labels_that_are_no_numbers(refused, name, content, label, line):
    assert refused(name, content, number=True) == (
        f"FILE has a wrong label. Received: {label!r} on line {line}; allowed: a "
        "finite number."
    )


@pytest.mark.parametrize(
    ("content", "options", "column", "row"),
    [
        ("sentence,label\na,x\n", {}, "text", "'sentence', 'label'"),
        ("a,x\n", {"text": "sentence"}, "sentence", "'a', 'x'"),
        ("a,x\n", {"header": True}, "text", "'a', 'x'"),
        ("A,B\na,x\n", {"second": "B", "header": False}, "B", "'A', 'B'"),
        ("text,text,label\na,b,x\n", {}, "text", "'text', 'text', 'label'"),
    ],
)
def test_columns_that_are_not_there(refused, content, options, column, row):
    assert refused("a.csv", content, **options) == (
        f"FILE has no column {column!r}. Received: {row} on line 1; allowed: a name "
        "that stands there once, a number, or header=False."
    )


def test_lines_that_are_not_of_the_format(refused):
    assert refused("a.labelled", "x a\n\nb\n") == (
        "FILE lacks a label or text. Received: 'b' on line 3; allowed: a label, a "
        "space and a text."
    )
    for line in ('{"text": "b"}', "[1]", "no", '{"text": 1, "label": "x"}', '"a"'):
        text = '{"text": "a", "label": "x"}\n\n' + line
        assert refused("a.jsonl", text) == (
            f"FILE is not JSON lines of examples. Received: {line!r} on line 3; "
            'allowed: an object such as {"text": "...", "label": "..."}.'
        )
    for text, reason in (
        ('a,x\n"b,x\nc,x\n', "unexpected end of data"),
        ('a,x\n"b"c,x\n', "',' expected after '\"'"),
    ):
        assert refused("a.csv", text) == (
            f"FILE is not CSV. Received: {reason}, in the row that begins on line 2; "
            'allowed: RFC 4180, fields with commas or quotes like "one, ""two""".'
        )


def test_files_without_examples(refused):
    for name, text in (
        ("a.tsv", ""),
        ("a.tsv", "\n\n"),
        ("a.csv", "text,label\n\n"),
        ("a.labelled", "\n"),
        ("a.jsonl", "\n"),
    ):
        said = "FILE is empty. Received: no examples; allowed: some."
        assert refused(name, text) == said


def test_arguments_that_are_not_allowed(refused):
    assert refused("sst2.train", "x a\n") == (
        "The format of FILE is not known. Received: suffix '.train' and format=None; "
        "allowed: tsv, csv, jsonl, labelled."
    )
    assert refused("a.tsv", "x a\n", format="xml") == (
        "The format of FILE is not known. Received: suffix '.tsv' and format='xml'; "
        "allowed: tsv, csv, jsonl, labelled."
    )
    said = "JSON fields have names. Received: text=0; allowed: a name."
    assert refused("a.jsonl", "{}", text=0) == said
    assert refused("a.labelled", "x a\n", second=1) == (
        "A labelled file has one text a line. Received: second=1; allowed: None, or "
        "another format."
    )
    for name, column in (("text", None), ("label", -1), ("second", True)):
        assert refused("a.tsv", "a\tx\n", **{name: column}) == (
            f"{name} is not allowed. Received: {name}={column!r}; allowed: an integer "
            "of at least 0."
        )


@pytest.mark.parametrize("wrong", ["null", '["x"]', '{"a": 1}'])
def test_a_json_label_is_one_value(refused, wrong):
    said = refused("a.jsonl", f'{{"text": "a", "label": {wrong}}}')
    assert "is not JSON lines of examples" in said
    assert "on line 1" in said


def test_files_that_cannot_be_read(refused, tmp_path):
    said = "FILE is not a whole gzip file: "
    assert refused("a.tsv.gz", b"a\tx\n").startswith(said)
    assert refused("a.tsv.gz", gzip.compress(b"a\tx\n" * 999)[:40]).startswith(said)
    with pytest.raises(FileNotFoundError):
        read_records(tmp_path / "absent.tsv")


@needs_data
@pytest.mark.parametrize(
    ("name", "size"), [("sst2.train", 6920), ("sst2.dev", 872), ("sst2.test", 1821)]
)
def test_sst2(name, size):
    """The sizes are those of Socher et al. (2013), two classes."""
    examples = read_records(LABELLED / name, format="labelled")
    assert len(examples) == size
    assert {example.label for example in examples} == {"0", "1"}
    lines = (LABELLED / name).read_bytes().decode().split("\n")[:-1]
    assert [f"{e.label} {e.text}" for e in examples] == lines


@needs_data
def test_trec_is_not_utf8():
    """The sizes are those of Li and Roth (2002): 5,452 and 500 questions."""
    with pytest.raises(
        ValueError, match="trec.train is not UTF-8. .* 0xf0 on line 66;"
    ):
        read_records(LABELLED / "trec.train", format="labelled")
    examples = read_records(
        LABELLED / "trec.train", format="labelled", encoding="latin-1"
    )
    assert len(examples) == 5452
    assert {example.label for example in examples} == set("012345")
    assert "\u00f0" in examples[65].text
    assert len(read_records(LABELLED / "trec.test", format="labelled")) == 500


@needs_data
@pytest.mark.parametrize(
    ("part", "size"), [("train", 5749), ("dev", 1500), ("test", 1379)]
)
def test_stsb(part, size):
    """The sizes are those of Cer et al. (2017), as is the scale from 0 to 5."""
    path = LABELLED / f"stsb-en-{part}.csv"
    examples = read_records(path, second=1, number=True)
    assert len(examples) == size
    assert {min(e.label for e in examples), max(e.label for e in examples)} == {
        0.0,
        5.0,
    }
    if part == "train":
        assert examples[1523] == Example(  # line 1524, with doubled quotes
            'A dog in a "superman" shirt sleeps on a blanket.',
            "A brown dog in a Superman shirt is laying on a blue blanket.",
            4.0,
        )

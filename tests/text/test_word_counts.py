"""Corpus -> word counts. Ids in the names (T09 ...) are those of the public reports."""

import copy
import gzip
import pickle
import random as python_random
import tracemalloc
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from bert_keras import (
    SpecialTokens,
    Vocabulary,
    WordPieceTokenizer,
    learn_vocabulary,
)
from bert_keras.text import counter, processes, word_counts
from bert_keras.text.options import tokenizer_options
from bert_keras.text.word_counts import (
    WordCounts,
    count_words,
    read_word_counts,
    write_word_counts,
)

LINES = [
    "The quick brown fox, it's said, jumps!",
    "",
    "[MASK] Ça va? ÇA VA [SEP]word <e1>x</e1> US, USA (US)",
    "中文字 and 中 ΟΔΥΣΣΕΥΣ ΣΑΣ\r",
    "the the\tthe\u00a0the\u2028the\x0bthe",
] * 3


def test_words_are_cut_as_the_tokenizer_cuts_them():
    words = count_words(["It's a\tTEST\x00s, 中文\u00a0naïve", "x" * 101])
    expected = {"it": 1, "'": 1, "s": 1, "a": 1, "tests": 1, ",": 1}
    assert words == {**expected, "中": 1, "文": 1, "naive": 1}
    words = count_words(["Ça\u0301 中文"], lowercase=False, split_on_cjk=False)
    assert words == {"Ça\u0301": 1, "中文": 1}
    assert count_words(["Mo\u0308chte"], lowercase=False, normalization="NFC") == {
        "M\u00f6chte": 1
    }
    assert len(*count_words(["x" * 150], rules="google")) == 150


def test_the_counts_know_their_options():
    words = count_words(["a"], lowercase=False, rules="google", never_split=["US"])
    given = {"lowercase": False, "rules": "google", "never_split": ["US"]}
    assert words.options == tokenizer_options(given)
    for copied in (words.copy(), copy.copy(words), pickle.loads(pickle.dumps(words))):
        assert copied == words
        assert copied.options == words.options
        assert copied.special_tokens == words.special_tokens
    assert WordCounts({"a": 1}).options == tokenizer_options()


def test_special_tokens_are_not_counted():
    names = SpecialTokens("<pad>", "<unk>", "<s>", "</s>", "<mask>")
    words = count_words(["a<mask>b [MASK] <s>c</s>"], special_tokens=names)
    assert words == {"a": 1, "b": 1, "[": 1, "mask": 1, "]": 1, "c": 1}
    with pytest.raises(ValueError, match="Received: '<m ask>'; allowed: words without"):
        count_words(["a"], special_tokens=names._replace(mask="<m ask>"))


NEVER_SPLIT = ["US", "<e1>", "x<e1>y", "C++", "Σ1", "naïve"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("US us", {"us": 1}),
        ("USA AUS US's", {"usa": 1, "aus": 1, "'": 1, "s": 1}),
        ("-US- US\u0301", {"-": 2, "us": 1}),
        ("中US中", {"中": 2}),
        ("<e1>word word<e1>", {"word": 2}),
        ("<e1>US <e1>USA <e2>", {"usa": 1, "<": 1, "e2": 1, ">": 1}),
        ("x<e1>y x<e1>yy xx<e1>y", {"x": 1, "yy": 1, "xx": 1, "y": 1}),
        ("C++ C+++ XC++ C++11", {"+": 3, "xc": 1, "11": 1}),
        ("ΑΣ1 Σ1 ς1", {"ασ1": 1, "ς1": 1}),
        ("naïve naive NAÏVE", {"naive": 2}),
        ("US US\nUS", {}),
    ],
)
def test_words_that_are_never_split_are_not_counted(text, found):
    """By hand: next to a letter of its own, a name does not go on."""
    assert count_words([text], never_split=NEVER_SPLIT) == found


@pytest.mark.parametrize("rules", ["huggingface", "google"])
@pytest.mark.parametrize("form", [None, "NFC"])
def test_names_are_found_where_the_tokenizer_finds_them(rules, form):
    parts = ["US", "A", "x", "<e1>", "C++", *"+ 中\u0301.éeΣ"]
    random = python_random.Random(5)
    names = ["US", "<e1>", "x<e1>.", "C++", "...", "e\u0301", "A.Σ"]
    characters = {c for part in [*parts, "ς"] for c in part.lower() if c != " "}
    characters = sorted(characters | set("e\u0301éáść"))
    tokens = [*SpecialTokens(), *characters, *("##" + c for c in characters), *names]
    options = {"never_split": names, "rules": rules, "normalization": form}
    options["strip_accents"] = False
    tokenizer = WordPieceTokenizer(tokens, ragged=True, **options)
    texts = ["".join(random.choices(parts, k=6)) for _ in range(1000)]
    for text, row in zip(texts, tokenizer(texts)["token_ids"], strict=True):
        pieces = [tokens[number] for number in row.numpy()]
        words: list[str] = []
        for piece in pieces:
            if piece.startswith("##"):  # each character is a piece
                words[-1] += piece[2:]
            else:
                words.append(piece)
        expected = Counter(word for word in words if word not in names)
        assert count_words([text], **options) == expected, text


def lowered_as_in_2018(text: str) -> Counter:
    """Drops control characters, cuts at spaces, and lets Python lower each part."""
    kept = "".join(c for c in text if c == " " or unicodedata.category(c) != "Cc")
    words: Counter[str] = Counter()
    for part in kept.split():
        part = unicodedata.normalize("NFD", part.lower())
        part = "".join(c for c in part if unicodedata.category(c) != "Mn")
        words.update(part.replace(".", " . ").replace("'", " ' ").split())
    return words


def test_final_sigma_is_that_of_python():
    assert count_words(["ΟΔΥΣΣΕΥΣ"], rules="google") == {"οδυσσευς": 1}
    assert count_words(["ΟΔΥΣΣΕΥΣ"]) == {"οδυσσευσ": 1}
    cased = count_words(["ΟΔΥΣΣΕΥΣ"], rules="google", lowercase=False)
    assert cased == {"ΟΔΥΣΣΕΥΣ": 1}
    random = python_random.Random(6)
    for _ in range(500):
        text = "".join(random.choices("ΣΣσΑa1.' \u0301\x00\u00ad\u02b0", k=7))
        text = text.replace("\u00ad", "")  # category Cf; dropped alike, see Cc
        assert count_words([text], rules="google") == lowered_as_in_2018(text), text


def write(folder: Path) -> list[Path]:
    """Writes the lines to three files, one of them gzipped."""
    paths = [folder / "a.txt", folder / "b.txt", folder / "c.txt.gz"]
    for number, path in enumerate(paths):
        data = "\n".join(LINES[number::3]).encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return paths


@pytest.mark.parametrize("rules", ["huggingface", "google"])
@pytest.mark.parametrize("chunks", [0, 1 << 17])
def test_files_strings_and_tables_are_the_same(tmp_path, monkeypatch, rules, chunks):
    monkeypatch.setattr(counter, "MOST_CHUNKS", chunks)
    monkeypatch.setattr(word_counts, "PART", 30)
    options = {"rules": rules, "never_split": ["US", "<e1>"]}
    expected = Counter()
    for line in LINES:
        expected.update(count_words([line], **options))
    assert expected["the"] == 15
    assert count_words(iter(LINES), **options) == expected
    assert count_words(["\n".join(LINES)], **options) == expected
    assert count_words([" ".join(LINES)], **options) == expected
    paths = write(tmp_path)
    assert count_words(paths, **options) == expected
    assert count_words(paths[::-1], **options) == expected
    assert count_words([*paths[1:], *LINES[::3]], **options) == expected
    assert count_words(Counter(LINES), **options) == expected
    assert count_words(expected, **options) == expected
    assert count_words({"Ab c": 5, "AB": 2, "x": 0}) == {"ab": 7, "c": 5}


def test_processes_count_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(word_counts, "PART", 30)
    options = {"rules": "google", "never_split": ["US", "<e1>"]}
    expected = count_words(LINES, **options)
    paths = write(tmp_path)
    for corpus in (paths, LINES):
        seen = []
        words = count_words(corpus, **options, processes=2, progress=seen.append)
        assert words == expected
        assert words.options == expected.options
        assert seen == sorted(seen)
        stored = sum(path.stat().st_size for path in paths)
        assert seen[-1] == (stored if corpus is paths else len(LINES))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_bad_corpus_is_one_error_from_any_process(tmp_path, processes):
    good = write(tmp_path)
    (tmp_path / "latin.txt").write_bytes(b"fine\n" * 10_000 + b"na\xefve\n")
    (tmp_path / "plain.gz").write_bytes(b"plain")
    for name, said in (
        ("latin.txt", "latin.txt is not UTF-8. Received: byte 0xef on line 10001;"),
        ("plain.gz", "plain.gz is not a whole gzip file"),
    ):
        with pytest.raises(ValueError, match=said):
            count_words([*good, tmp_path / name], processes=processes)
    with pytest.raises(FileNotFoundError, match="absent"):
        count_words([*good, tmp_path / "absent"], processes=processes)
    with pytest.raises(ValueError, match="Received: 5; allowed: strings, and paths"):
        count_words(["fine", 5], processes=processes)


def test_a_process_that_is_killed_is_said(monkeypatch):
    monkeypatch.setattr(processes, "_PROGRAM", "raise SystemExit(7)")
    with pytest.raises(ChildProcessError, match="exit status 7; allowed"):
        count_words(["a"], processes=2)


def test_progress_is_told_in_bytes_or_strings(tmp_path):
    seen = []
    paths = write(tmp_path)
    count_words(paths, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == sum(path.stat().st_size for path in paths)
    seen = []
    count_words(LINES, progress=seen.append)
    assert seen == [len(LINES)]


def peak(corpus) -> int:
    """Returns the most bytes that Python held while it counted."""
    count_words(["warm up"])
    tracemalloc.start()
    count_words(corpus)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_t09_memory_grows_with_distinct_words_and_not_with_lines(tmp_path, monkeypatch):
    monkeypatch.setattr("bert_keras.text.lines.BLOCK", 1 << 14)
    random = python_random.Random(7)
    names = [f"word{n}" for n in range(2000)]
    line = [" ".join(random.choices(names, k=10)) for _ in range(2000)]
    (tmp_path / "1").write_text("\n".join(line))
    (tmp_path / "10").write_text("\n".join(line * 10))
    one, ten = peak([tmp_path / "1"]), peak([tmp_path / "10"])
    assert abs(ten - one) < 0.05 * one


@pytest.mark.parametrize("length", [20, 200])
def test_t09_sentences_without_spaces_are_not_kept(tmp_path, monkeypatch, length):
    """Each chunk is another one, so there are as many as sentences: 100,000 bytes."""
    monkeypatch.setattr(counter, "MOST_CHUNKS", 1 << 8)
    monkeypatch.setattr("bert_keras.text.lines.BLOCK", 1 << 14)
    random = python_random.Random(8)
    signs = [chr(0x4E00 + n) for n in range(500)]
    for times in (1, 10):
        sentences = (
            "".join(random.choices(signs, k=length))
            for _ in range(times * 40_000 // length)
        )
        (tmp_path / str(times)).write_text("\n".join(sentences), encoding="utf-8")
    one, ten = peak([tmp_path / "1"]), peak([tmp_path / "10"])
    assert abs(ten - one) < 0.05 * one


def test_a_table_is_written_in_one_order_and_read_again(tmp_path):
    path = tmp_path / "words.tsv"
    words = {"b": 2, "a": 2, "ç": 10**12, "#": 1}
    write_word_counts(words, path)
    assert path.read_bytes() == "ç\t1000000000000\na\t2\nb\t2\n#\t1\n".encode()
    assert read_word_counts(path) == words
    path.write_text("a\t1\nb b\t2\na\t3\n")
    assert read_word_counts(path) == {"a": 4, "b b": 2}
    path.write_bytes(b"\xef\xbb\xbfa\t1\r\n")
    assert read_word_counts(path) == {"a": 1}


@pytest.mark.parametrize("word", ["", "a\tb", "a\nb", "a\r"])
def test_a_word_that_could_not_be_read_back_is_refused(tmp_path, word):
    with pytest.raises(ValueError, match="cannot stand in a table"):
        write_word_counts({"fine": 1, word: 1}, tmp_path / "words.tsv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("line", ["a", "a\t", "\t5", "a\t-1", "a\t1.5", "a 1", "a\t²"])
def test_a_bad_line_of_a_table_is_named(tmp_path, line):
    path = tmp_path / "words.tsv"
    path.write_text(f"fine\t1\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"words.tsv is no table.*on line 2; allowed"):
        read_word_counts(path)


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="the string 'one text'"):
        count_words("one text")
    with pytest.raises(ValueError, match="'a': -1; allowed"):
        count_words({"a": -1})
    with pytest.raises(ValueError, match="Received: processes=0"):
        count_words(["a"], processes=0)
    with pytest.raises(ValueError, match="Received: rules='bing'"):
        count_words(["a"], rules="bing")


def test_the_vocabulary_of_counts_carries_names_and_options(tmp_path):
    words = count_words(["<us> trade, USA"] * 5, never_split=["<us>"])
    vocabulary = learn_vocabulary(words, 60)
    assert vocabulary[5] == "<us>"
    vocabulary.write(tmp_path / "vocab.txt")
    assert Vocabulary.read(tmp_path / "vocab.txt") == vocabulary
    tokenizer = WordPieceTokenizer(tmp_path / "vocab.txt")
    ids = tokenizer("<us> trade USA")["token_ids"].numpy()
    assert [vocabulary[i] for i in ids] == ["<us>", "trade", "usa"]

"""Corpora on Apache Beam: the same counts and the same bytes."""

import gzip
import importlib.util
import json
import sys

import pytest
from corpora import SENTENCES, files, write
from oracles import SMALL

from bert_keras import (
    SpecialTokens,
    WordPieceTokenizer,
    count_words,
    count_words_on_beam,
    prepare_corpus,
    prepare_on_beam,
)
from bert_keras.cli import main
from bert_keras.pretraining import beam, prepare
from bert_keras.pretraining.prepare import ShardMaker

DOCUMENTS = [["the fox.", "Été, brown."], ["quick US fox [MASK]"], ["the", "."]] * 30
DIRECT = {"runner": "DirectRunner"}
needs_beam = pytest.mark.skipif(
    importlib.util.find_spec("apache_beam") is None,
    reason="apache-beam is not installed; `make test-beam` has it",
)


@pytest.fixture
def tokenizer():
    return WordPieceTokenizer(SMALL)


@pytest.fixture
def small_parts(monkeypatch):
    for module in (beam, prepare):
        monkeypatch.setattr(module, "PART", 200)


@pytest.fixture
def corpus(tmp_path, small_parts):
    """A folder of plain text, in many parts, and of gzipped text."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    path = write(folder / "a.txt", DOCUMENTS)
    (folder / "b.txt.gz").write_bytes(gzip.compress(path.read_bytes() + b" z\xc3\xa9"))
    return folder


def spoil(corpus):
    """Makes the last line of a file another than UTF-8; returns its number."""
    path = corpus / "a.txt"
    path.write_bytes(path.read_bytes() + b"\n\xff\n")
    return path.read_bytes().count(b"\n")


@needs_beam
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"lowercase": False, "never_split": ["US"]},
        {"rules": "google", "special_tokens": SpecialTokens(mask="fox")},
    ],
)
def test_counts_are_those_of_one_machine(tmp_path, corpus, settings):
    words = count_words_on_beam([corpus], tmp_path, **DIRECT, **settings)
    expected = count_words(sorted(corpus.iterdir()), **settings)
    assert words == expected
    assert words.options == expected.options
    assert words.special_tokens == expected.special_tokens
    assert words["the"] == 120
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]


@needs_beam
def test_a_corpus_without_text_has_no_counts(tmp_path, small_parts):
    for text in ("", " \n"):
        (tmp_path / "c.txt").write_text(text)
        assert count_words_on_beam([tmp_path], tmp_path, **DIRECT) == {}


@needs_beam
def test_shards_have_the_bytes_of_one_machine(tmp_path, corpus, tokenizer):
    here = prepare_corpus([corpus], tokenizer, tmp_path / "a", corpus=SENTENCES)
    there = prepare_on_beam(
        [corpus], tokenizer, tmp_path / "b", corpus=SENTENCES, **DIRECT
    )
    assert here.digest == there.digest
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert len(files(tmp_path / "a")) > 10


@needs_beam
def test_workers_may_be_other_processes(tmp_path, corpus, tokenizer):
    """All that a worker needs can be sent to it."""
    several = ["direct_running_mode=multi_processing", "direct_num_workers=2"]
    prepare_corpus([corpus], tokenizer, tmp_path / "a")
    prepare_on_beam(
        [corpus], tokenizer, tmp_path / "b", runner_options=several, **DIRECT
    )
    assert files(tmp_path / "a") == files(tmp_path / "b")


@needs_beam
def test_a_cluster_is_asked_in_the_same_way(tmp_path, corpus):
    """Flink and Spark are spoken to in the protocol of the PortableRunner."""
    words = count_words_on_beam(
        [corpus],
        tmp_path,
        runner="PortableRunner",
        runner_options=["job_endpoint=embed", "environment_type=LOOPBACK"],
    )
    assert words == count_words(sorted(corpus.iterdir()))


@needs_beam
def test_what_is_wrong_with_the_text_comes_through(tmp_path, corpus, tokenizer):
    line = spoil(corpus)
    said = f"a.txt is not UTF-8. Received: byte 0xff on line {line}; a corpus must be"
    with pytest.raises(ValueError, match=said):
        count_words_on_beam([corpus], tmp_path, **DIRECT)
    out = tmp_path / "s"
    for _ in range(2):
        with pytest.raises(ValueError, match=said):
            prepare_on_beam([corpus], tokenizer, out, corpus=SENTENCES, **DIRECT)
    write(corpus / "a.txt", DOCUMENTS)  # corrected, it may go on
    prepare_on_beam([corpus], tokenizer, out, corpus=SENTENCES, **DIRECT)
    prepare_corpus([corpus], tokenizer, tmp_path / "t", corpus=SENTENCES)
    assert files(out) == files(tmp_path / "t")


@needs_beam
def test_of_several_errors_the_first_is_said(tmp_path, small_parts):
    (tmp_path / "a.txt").write_text("fine")
    for name in ("b", "c", "d"):
        (tmp_path / f"{name}.jsonl").write_text("{}")
    with pytest.raises(ValueError, match="b.jsonl is not JSON lines.* on line 1;"):
        count_words_on_beam([tmp_path], tmp_path, **DIRECT)


@needs_beam
def test_a_corpus_without_a_whole_shard_leaves_nothing(tmp_path, corpus, tokenizer):
    (corpus / "a.txt").write_bytes(b"\xff")
    (corpus / "b.txt.gz").unlink()
    with pytest.raises(ValueError, match="a.txt is not UTF-8"):
        prepare_on_beam([corpus], tokenizer, tmp_path / "s", **DIRECT)
    (corpus / "a.txt").write_bytes(b" ")
    with pytest.raises(ValueError, match="no text. Received: a.txt"):
        prepare_on_beam([corpus], tokenizer, tmp_path / "s", **DIRECT)
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]


@needs_beam
def test_what_is_missing_is_made_and_nothing_else(
    tmp_path, corpus, tokenizer, monkeypatch
):
    prepare_corpus([corpus], tokenizer, tmp_path / "s", corpus=SENTENCES)
    whole = files(tmp_path / "s")
    for name in ("manifest.json", "shard-00002.json", "shard-00004.json"):
        (tmp_path / "s" / name).unlink()
    made = []
    work = ShardMaker.work
    monkeypatch.setattr(
        ShardMaker, "work", lambda self, part: made.append(part[0]) or work(self, part)
    )
    for _ in range(2):
        prepare_on_beam([corpus], tokenizer, tmp_path / "s", corpus=SENTENCES, **DIRECT)
        assert files(tmp_path / "s") == whole
    assert sorted(made) == [2, 4]


@needs_beam
def test_a_failure_of_a_worker_is_one_line(tmp_path, corpus, tokenizer, monkeypatch):
    def fails(self, part):
        raise FileNotFoundError(2, "No such file or directory", "/far/away.txt")

    monkeypatch.setattr(ShardMaker, "work", fails)
    with pytest.raises(ChildProcessError) as caught:
        prepare_on_beam([corpus], tokenizer, tmp_path / "s", **DIRECT)
    said = "Received: FileNotFoundError: [Errno 2] No such file or directory: '/far/"
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "s").exists()


@needs_beam
def test_options_are_those_of_beam(tmp_path, corpus):
    arguments = {"paths": [corpus], "scratch": tmp_path}
    with pytest.raises(ValueError, match="Unexpected pipeline runner: magic"):
        count_words_on_beam(**arguments, runner="magic")
    said = "Received: argument --direct_num_workers: invalid int value: 'x'; allowed:"
    for option in ("direct_num_workers=x", "--direct_num_workers=x"):
        with pytest.raises(ValueError, match=said):
            count_words_on_beam(**arguments, runner_options=[option], **DIRECT)


@needs_beam
def test_the_commands_make_the_same_files(tmp_path, corpus, capsys):
    lines = [json.dumps({"text": " ".join(document)}) for document in DOCUMENTS]
    (corpus / "c.jsonl").write_text("\n".join(lines))
    counts = tmp_path / "more.tsv"
    counts.write_text("fox\t100\nlynx\t2\n")
    for name in ("here", "there"):
        out = tmp_path / name
        out.mkdir()
        runner = ["--runner", "DirectRunner"] if name == "there" else []
        vocab = ["vocab", corpus, counts, "--counts", "--held-out", corpus / "a.txt"]
        vocab += ["--size", 60, "--out", out / "vocab.txt"]
        vocab += ["--write-counts", out / "counts.tsv", *runner]
        assert main(list(map(str, vocab))) == 0
        prepared = ["prepare", corpus, "--vocab", out / "vocab.txt", *runner]
        assert main([*map(str, prepared), "--out", str(out / "data")]) == 0
    here, there = tmp_path / "here", tmp_path / "there"
    for name in ("vocab.txt", "vocab.options.json", "counts.tsv"):
        assert (here / name).read_bytes() == (there / name).read_bytes()
    assert files(here / "data") == files(there / "data")
    results = capsys.readouterr().out.splitlines()
    assert results[:2] == results[2:]
    assert len(results) == 4


@needs_beam
def test_the_commands_say_what_is_wrong_in_one_line(tmp_path, corpus, capfd):
    line = spoil(corpus)
    arguments = ["vocab", str(corpus), "--size", "60", "--runner", "DirectRunner"]
    assert main([*arguments, "--out", str(tmp_path / "vocab.txt")]) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    *_, said = captured.err.splitlines()
    assert said.startswith("bert-keras: error: ")
    assert f"a.txt is not UTF-8. Received: byte 0xff on line {line};" in said
    assert not (tmp_path / "vocab.txt").exists()


def test_without_beam_the_commands_say_what_to_install(
    tmp_path, corpus, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    (tmp_path / "vocab.txt").write_text("\n".join(SMALL))
    for arguments in (
        f"vocab {corpus} --size 60 --out {tmp_path}/v.txt",
        f"prepare {corpus} --vocab {tmp_path}/vocab.txt --out {tmp_path}/s",
    ):
        assert main([*arguments.split(), "--runner", "FlinkRunner"]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert 'pip install "bert-keras[beam]"' in error
    assert {path.name for path in tmp_path.iterdir()} == {"corpus", "vocab.txt"}


def test_options_of_a_runner_need_a_runner(tmp_path, corpus, capsys):
    arguments = f"vocab {corpus} --size 60 --out {tmp_path}/v.txt"
    assert main([*arguments.split(), "--runner-options", "parallelism=8"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "Received: --runner-options parallelism=8; allowed: none" in error

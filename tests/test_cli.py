"""The command line: its contract, and one clear line for whatever is wrong."""

import gzip
import io
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from oracles import SMALL, needs_data, vocabulary_path

from bert_keras import Vocabulary
from bert_keras.cli import main
from bert_keras.text.word_counts import count_words, write_word_counts

CORPUS = "\n\n".join(
    f"The quick brown fox number {n}. It jumps over {n} lazy dogs. Then it rests."
    for n in range(60)
)


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs a command on lines of input; returns status, output lines, error text."""

    def call(*arguments, lines=()):
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        stdin = io.TextIOWrapper(io.BytesIO(data))
        monkeypatch.setattr(sys, "stdin", stdin)
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code
        captured = capsys.readouterr()
        return status, captured.out.splitlines(), captured.err

    return call


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a corpus, a vocabulary, a pretrained model and all artefacts."""
    made = tmp_path_factory.mktemp("cli")
    (made / "corpus.txt").write_text(CORPUS)
    vocabulary = made / "vocab.txt"
    corpus = made / "corpus.txt"
    assert main(["vocab", str(corpus), "--size", "120", "--out", str(vocabulary)]) == 0
    arguments = f"pretrain {corpus} --vocab {vocabulary} --steps 3 --sequence-length 24"
    arguments += f" --batch-size 4 --predictions 3 --out {made / 'run'}"
    assert main(arguments.split()) == 0
    model = made / "run" / "model.keras"
    assert main(["export", str(model), "--out", str(made / "run")]) == 0
    return made


def test_vocab(folder):
    vocabulary = Vocabulary.read(folder / "vocab.txt")
    assert len(vocabulary) == 120
    assert "quick" in vocabulary


def test_vocab_reads_gzip_and_keeps_case(folder, tmp_path, command):
    (tmp_path / "c.gz").write_bytes(gzip.compress("Été Été ÉTÉ\n".encode()))
    out = tmp_path / "v.txt"
    for switches, expected in (
        (["--cased"], {"É", "##É", "##T", "##t", "##é"}),
        (["--keep-accents"], {"é", "##t", "##é"}),
        ([], {"e", "##t", "##e"}),
    ):
        status, _, _ = command(
            "vocab", tmp_path / "c.gz", "--size", 10, "--out", out, *switches
        )
        assert status == 0
        assert expected <= set(Vocabulary.read(out))


def test_vocab_reports_as_one_json_object(folder, tmp_path, command):
    out = tmp_path / "v.txt"
    arguments = ["vocab", folder / "corpus.txt", "--size", 60, "--out", out]
    status, lines, _ = command(*arguments)
    (report,) = map(json.loads, lines)
    assert status == 0
    assert report["tokens"] == 60
    assert report["measured_on"] == "the corpus itself"
    assert report["characters_covered"] == 1
    assert report["unknown_words"] == report["unknown_tokens"] == 0
    (tmp_path / "held.txt").write_text("The fox. Ωmega!")
    status, lines, _ = command(*arguments, "--held-out", tmp_path / "held.txt")
    (report,) = map(json.loads, lines)
    assert report["measured_on"] == "held-out text"
    assert report["words"] == 5
    assert report["unknown_words"] == 2 / 5  # "ωmega", "!"


def test_vocab_is_the_same_by_processes_and_from_counts(folder, tmp_path, command):
    corpus = folder / "corpus.txt"
    write_word_counts(count_words([corpus]), tmp_path / "counts.tsv")
    made = []
    for switches in (
        [corpus, "--write-counts", tmp_path / "kept.tsv"],
        [corpus, "--processes", 2],
        [tmp_path / "counts.tsv", "--counts"],
    ):
        out = tmp_path / f"{len(made)}.txt"
        status, _, _ = command("vocab", *switches, "--size", 80, "--out", out)
        assert status == 0
        made.append(out.read_bytes())
    assert made[0] == made[1] == made[2]
    kept, counted = (tmp_path / f"{name}.tsv" for name in ("kept", "counts"))
    assert kept.read_bytes() == counted.read_bytes()


def test_vocab_stores_its_options_beside_it(folder, tmp_path, command):
    out = tmp_path / "v.txt"
    status, _, _ = command(
        "vocab", folder / "corpus.txt", "--size", 60, "--out", out, "--keep-accents",
        "--rules", "google", "--never-split", "<e1>", "C++",
        "--objective", "likelihood", "--min-count", 3, "--alphabet", 40,
    )  # fmt: skip
    assert status == 0
    vocabulary = Vocabulary.read(out)
    assert vocabulary[5:7] == ("<e1>", "C++")
    assert vocabulary.options.rules == "google"
    assert vocabulary.options.lowercase
    assert not vocabulary.options.strip_accents
    assert vocabulary.options.never_split == ("<e1>", "C++")


@needs_data
def test_tokenize(command):
    vocab = ["--vocab", vocabulary_path("uncased")]
    lines = ["Welcome to HuggingFace Forums!", "", "x[SEP]y", "\ud83d ok"]
    status, out, _ = command("tokenize", *vocab, lines=lines)
    assert status == 0
    assert [json.loads(line) for line in out] == [
        [6160, 2000, 17662, 12172, 21415, 999],
        [],
        [1060, 1031, 19802, 1033, 1061],
        [7929],
    ]
    _, out, _ = command("tokenize", *vocab, "--special-tokens", lines=["x[SEP]y"])
    assert json.loads(out[0]) == [1060, 102, 1061]
    _, out, _ = command("tokenize", *vocab, "--offsets", lines=["HuggingFace"])
    assert json.loads(out[0]) == {
        "ids": [17662, 12172],
        "tokens": ["hugging", "##face"],
        "offsets": [[0, 7], [7, 11]],
    }


@needs_data
def test_tokenize_with_rules_and_engines(command):
    vocab = ["--vocab", vocabulary_path("uncased")]
    for engine in ([], ["--engine", "stock"], ["--engine", "tf_text"]):
        _, out, _ = command("tokenize", *vocab, *engine, lines=["ΟΣ", "the"])
        assert [json.loads(line) for line in out] == [[1169, 29733], [1996]]
        rules = ["--rules", "google"]
        _, out, _ = command("tokenize", *vocab, *engine, *rules, lines=["ΟΣ"])
        assert json.loads(out[0]) == [1169, 19579]


def test_tokenize_as_the_vocabulary_was_learned(command, tmp_path):
    (tmp_path / "c.txt").write_text("Été Été ÉTÉ", encoding="utf-8")
    out = tmp_path / "v.txt"
    command("vocab", tmp_path / "c.txt", "--size", 12, "--out", out, "--cased")
    vocabulary = Vocabulary.read(out)
    _, lines, _ = command("tokenize", "--vocab", out, lines=["Été", "été"])
    whole = json.loads(lines[0])
    assert [vocabulary[i] for i in whole] == ["Été"]
    assert json.loads(lines[1]) == [vocabulary.special_ids.unk]
    status, _, error = command(
        "tokenize", "--vocab", out, "--rules", "google", lines=["x"]
    )
    assert status == 2
    assert "another rules. Received: rules='google'" in error


def test_tokenize_with_a_model_or_its_vocabulary_is_the_same(folder, command):
    text = ["The quick [MASK] fox"]
    vocabulary = Vocabulary.read(folder / "vocab.txt")
    expected = [vocabulary.id(t) for t in ("the", "quick", "[MASK]", "fox")]
    vocab = ["--vocab", folder / "vocab.txt"]
    _, out, _ = command("tokenize", *vocab, "--special-tokens", lines=text)
    assert json.loads(out[0]) == expected
    _, out, _ = command("tokenize", *vocab, lines=text)
    assert vocabulary.id("[MASK]") not in json.loads(out[0])
    for name in ("model.keras", "saved_model", "model.onnx", "text_model.onnx"):
        _, out, _ = command("tokenize", "--model", folder / "run" / name, lines=text)
        assert json.loads(out[0]) == expected


def test_pretrain_says_what_it_reached_and_goes_on(folder, command):
    metrics = json.loads((folder / "run" / "metrics.json").read_text())
    assert 0 <= metrics["metrics"]["masked_lm_accuracy"] <= 1
    arguments = f"pretrain {folder}/corpus.txt --vocab {folder}/vocab.txt --steps 3"
    arguments += (
        f" --sequence-length 24 --batch-size 4 --predictions 3 --out {folder}/run"
    )
    status, out, err = command(*arguments.split())
    assert status == 0
    assert json.loads(out[0])["unigram"] == metrics["unigram_accuracy"]
    status, _, err = command(*arguments.split(), "--seed", "5")
    assert status == 2
    assert "holds another run. Received: seed=5; allowed: seed=0" in err


def test_prepare_and_pretrain_on_what_was_prepared(folder, tmp_path, command):
    """From text in other formats, too; the vocabulary need not be said again."""
    lines = (json.dumps({"body": text}) for text in CORPUS.split("\n\n"))
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.jsonl").write_text("\n".join(lines))
    vocab = tmp_path / "vocab.txt"
    jsonl = ["--text-field", "body", "--processes", 2]
    texts = tmp_path / "texts"
    status, _, _ = command("vocab", texts, "--size", 120, "--out", vocab, *jsonl)
    assert status == 0
    assert vocab.read_bytes() == (folder / "vocab.txt").read_bytes()
    out = tmp_path / "data"
    status, lines, _ = command("prepare", texts, "--vocab", vocab, "--out", out, *jsonl)
    assert status == 0
    counted = json.loads(lines[0])
    assert (counted["documents"], counted["sentences"]) == (60, 180)
    run = "--steps 3 --sequence-length 24 --batch-size 4 --predictions 3 --plot"
    run = [*run.split(), tmp_path / "curves.svg", "--out", tmp_path / "run"]
    pytest.importorskip("matplotlib")
    status, lines, _ = command("pretrain", out, *run)
    assert status == 0
    assert "masked_lm_perplexity" in json.loads(lines[0])
    assert "masked lm loss" in (tmp_path / "curves.svg").read_text()
    status, _, _ = command("pretrain", out, "--vocab", vocab, *run)
    assert status == 0
    status, _, err = command("pretrain", out, "--vocab", vocab, "--cased", *run)
    assert (status, err.count("\n")) == (2, 1)


@pytest.mark.parametrize("name", ["model.keras", "saved_model", "model.onnx"])
def test_embed(folder, command, name):
    texts = ["The quick fox", ["The quick", "fox"], ""]
    for pooling in ("mean", "cls"):
        answers = []
        for model in (name, "model.keras"):
            status, out, _ = command(
                "embed", "--model", folder / "run" / model, "--pooling", pooling,
                lines=texts,
            )  # fmt: skip
            assert status == 0
            answers.append([json.loads(line)["embedding"] for line in out])
        assert np.shape(answers[0]) == (3, 128)
        np.testing.assert_allclose(*answers, atol=1e-5)


def test_fill_mask(folder, command):
    status, out, _ = command(
        "fill-mask", "--model", folder / "run" / "text_model.onnx", "--top", 2,
        lines=["the [MASK] fox [MASK]", "none"],
    )  # fmt: skip
    assert status == 0
    first, second = (json.loads(line)["masks"] for line in out)
    assert [len(mask) for mask in first] == [2, 2]
    assert second == []
    assert first[0][0]["probability"] >= first[0][1]["probability"] > 0


def test_check(folder, command, tmp_path):
    status, out, _ = command("check", folder / "run")
    assert status == 0
    assert len(out) == 5
    assert out[-1] == "the same answers, beside model.keras"
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.onnx").write_bytes((folder / "run" / "model.onnx").read_bytes())
    status, _, err = command("check", other)
    assert (status, err.count("\n")) == (2, 1)
    assert "Nothing to compare" in err


def test_check_sees_a_difference(folder, command, tmp_path):
    import keras

    model = keras.saving.load_model(folder / "run" / "model.keras")
    model.backbone.pooler.bias.assign_add(np.full(128, 0.01, np.float32))
    model.save(tmp_path / "model.keras")
    (tmp_path / "model.onnx").write_bytes((folder / "run/model.onnx").read_bytes())
    status, out, _ = command("check", tmp_path)
    assert status == 1
    assert "DIFFERS" in out[1]
    assert out[-1] == "different answers, beside model.keras"


def write_wrong_files(tmp: Path) -> None:
    (tmp / "one.txt").write_text("One sentence.")
    (tmp / "empty.txt").write_text(" \n\n")
    (tmp / "no_unk.txt").write_text("\n".join(SMALL).replace("[UNK]", "[unknown]"))
    (tmp / "file").write_text("a file")
    (tmp / "bytes.txt").write_bytes(b"\xff\xfe")
    (tmp / "words.tsv").write_text("fox\t3\ndog\n")


def wrong_commands(folder: Path, tmp: Path | None) -> dict[str, tuple[str, str]]:
    """Returns what a user may get wrong: the command and what the line must say."""
    if tmp:
        write_wrong_files(tmp)
    corpus, vocab = f"{folder}/corpus.txt", f"--vocab {folder}/vocab.txt"
    model = f"{folder}/run/model.keras"
    return {
        "no command": ("", "arguments are required: COMMAND"),
        "unknown command": ("translate", "invalid choice: 'translate'"),
        "no size": (f"vocab {corpus} --out {tmp}/v.txt", "required: --size"),
        "no number": (f"vocab {corpus} --size x --out {tmp}/v.txt", "'x'"),
        "missing corpus": (
            f"vocab {tmp}/absent.txt --size 99 --out {tmp}/v.txt",
            "absent.txt: No such file or directory",
        ),
        "no words": (
            f"vocab {tmp}/empty.txt --size 99 --out {tmp}/v.txt",
            "no words",
        ),
        "too small": (f"vocab {corpus} --size 9 --out {tmp}/v.txt", "at least"),
        "not utf8": (
            f"vocab {tmp}/bytes.txt --size 99 --out {tmp}/v.txt",
            "bytes.txt is not UTF-8",
        ),
        "not utf8, by processes": (
            f"vocab {tmp}/bytes.txt --size 99 --out {tmp}/v.txt --processes 2",
            "bytes.txt is not UTF-8",
        ),
        "no counts": (
            f"vocab {tmp}/words.tsv --counts --size 99 --out {tmp}/v.txt",
            "Received: 'dog' on line 2; allowed: a word, a tab and its count",
        ),
        "no held-out words": (
            f"vocab {corpus} --size 99 --out {tmp}/v.txt --held-out {tmp}/empty.txt",
            "The held-out text has no words",
        ),
        "unknown objective": (
            f"vocab {corpus} --size 99 --out {tmp}/v.txt --objective loss",
            "invalid choice: 'loss'",
        ),
        "a folder": (
            f"vocab {corpus} --size 99 --out {tmp} --never-split US",
            f"cannot be written to {tmp}: it must be a file",
        ),
        "no folder": (f"vocab {corpus} --size 99 --out {tmp}/a/b.txt", "a/b.txt"),
        "no folder for counts": (
            f"vocab {corpus} --size 99 --out {tmp}/v.txt --write-counts {tmp}/a/b.tsv",
            "The table of counts cannot be written to",
        ),
        "no text": (
            f"pretrain {tmp}/empty.txt {vocab} --out {tmp}/out",
            "The corpus has no text. Received: empty.txt",
        ),
        "no [UNK]": (
            f"pretrain {corpus} --vocab {tmp}/no_unk.txt --out {tmp}/run",
            "Missing: [UNK]",
        ),
        "unwritable": (
            f"pretrain {corpus} {vocab} --steps 1 --out {tmp}/file/run",
            "Not a directory",
        ),
        "unknown size": (
            f"pretrain {corpus} {vocab} --size huge --out {tmp}/run",
            "invalid choice: 'huge'",
        ),
        "no steps": (
            f"pretrain {corpus} {vocab} --steps 0 --out {tmp}/run",
            "Received: steps=0; allowed: an integer, at least 1",
        ),
        "one sentence": (
            f"pretrain {tmp}/one.txt {vocab} --out {tmp}/out",
            "The corpus yields no row for next_sentence",
        ),
        "short rows": (
            f"pretrain {corpus} {vocab} --sequence-length 3 --out {tmp}/run",
            "Received: sequence_length=3; allowed: an integer, at least 5",
        ),
        "no such pattern": (
            f"pretrain {tmp}/*.pdf {vocab} --out {tmp}/run",
            "*.pdf: There are no files",
        ),
        "no vocabulary": (
            f"pretrain {corpus} --out {tmp}/run",
            "needs a vocabulary. Received: no --vocab",
        ),
        "not JSON lines": (
            f"prepare {corpus} {vocab} --format jsonl --out {tmp}/out",
            "is not JSON lines with a text. Received: 'The quick",
        ),
        "unknown strategy": (
            f"pretrain {corpus} {vocab} --strategy magic --out {tmp}/run",
            "invalid choice: 'magic'",
        ),
        "no cluster": (
            f"pretrain {corpus} {vocab} --strategy workers --out {tmp}/run",
            "Workers find one another by TF_CONFIG",
        ),
        "lazy but tied": (
            f"pretrain {corpus} {vocab} --lazy-embeddings --out {tmp}/run",
            "lazy_embeddings=True, untied=False",
        ),
        "bad dropout": (
            f"pretrain {corpus} {vocab} --dropout 2 --out {tmp}/run",
            "Received: dropout=2.0",
        ),
        "missing model": (f"embed --model {tmp}/absent.onnx", "There is no model"),
        "not a model": (f"embed --model {tmp}/file", "is no model"),
        "unknown format": (
            f"export {model} --out {tmp}/out --to tflite",
            "Received: tflite; allowed: saved-model, onnx",
        ),
        "export from text": (f"export {tmp}/file --out {tmp}/out", "file"),
        "export into a file": (f"export {model} --out {tmp}/file", "File exists"),
        "no such folder": (f"check {tmp}/absent", "There is no folder"),
    }


KINDS = wrong_commands(Path(), None)


@pytest.mark.filterwarnings("ignore:The corpus has one document")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_wrong_is_said_in_one_line(kind, folder, tmp_path, command):
    arguments, said = wrong_commands(folder, tmp_path)[kind]
    before = sorted(path.name for path in tmp_path.iterdir())
    status, out, err = command(*arguments.split())
    assert status == 2
    assert out == []
    # Progress bars aside, standard error holds one line.
    lines = [line.split("\r")[-1] for line in err.splitlines()]
    lines = [line for line in lines if not re.match(r"[a-z ]+:.*\[.*\]$", line)]
    (line,) = (line for line in lines if line.strip())
    assert line.startswith("bert-keras")
    assert said in line
    after = {path.name for path in tmp_path.iterdir()} - set(before)
    assert after <= {"out"}
    # An empty folder at most, or the corpus, cut into pieces and whole.
    for path in (tmp_path / "out").glob("*"):
        assert (path / "manifest.json").exists()


def test_a_warning_is_one_line_too(folder, tmp_path, command):
    (tmp_path / "one.txt").write_text("The quick fox. It rests. It sleeps. It eats.")
    arguments = f"pretrain {tmp_path}/one.txt --vocab {folder}/vocab.txt --steps 1"
    arguments += f" --sequence-length 12 --batch-size 2 --out {tmp_path}/run"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        status, out, err = command(*arguments.split())
    assert (status, out) == (0, [])
    lines = [line for line in err.splitlines() if "warning" in line.lower()]
    assert lines
    assert all(line.startswith("bert-keras: warning: ") for line in lines)
    assert "The corpus has one document" in lines[0]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'"fine"\nnot json\n', "Line 2 of the input is not JSON"),
        (b'"fine"\n"\xff"\n', "Line 2 of the input is not JSON"),
        (b"[1, 2]\n", "Line 1 of the input is no text. Received: [1, 2]"),
        (b'{"a": 1}\n', "Line 1 of the input is no text"),
    ],
)
def test_wrong_input_is_named_by_its_line(folder, monkeypatch, capsys, data, said):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert main(["tokenize", "--vocab", str(folder / "vocab.txt")]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_the_installed_command_keeps_its_streams_apart(tmp_path):
    """As a process: results alone on standard output, one line on standard error."""
    program = Path(sys.executable).with_name("bert-keras")
    (tmp_path / "vocab.txt").write_text("\n".join(SMALL))
    arguments = [program, "tokenize", "--vocab", tmp_path / "vocab.txt"]
    done = subprocess.run(arguments, input=b'"the fox"\n', capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"[5, 10]\n", b"")
    done = subprocess.run(
        [program, "check", tmp_path / "absent"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"bert-keras: error: There is no folder {tmp_path}/absent\n"

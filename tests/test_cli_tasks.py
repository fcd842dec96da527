"""The commands about published weights and tasks, from a file to answers."""

import csv
import io
import json
import sys

import numpy as np
import pytest
from tasks.readers import backbone, preprocessor

from bert_keras import BertEmbedder, BertPretrainer
from bert_keras.checkpoints.load import load_checkpoint
from bert_keras.cli import main

WORDS = ("the", "quick", "brown", "fox")
SMALL_RUN = "--sequence-length 16 --batch-size 8 --learning-rate 0.01"


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs a command on lines of input; returns status, output lines, error text."""

    def call(text, *more, lines=()):
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        try:
            status = main([*text.split(), *map(str, more)])
        except SystemExit as stop:
            status = stop.code
        captured = capsys.readouterr()
        found = [json.loads(line) for line in captured.out.splitlines()]
        return status, found, captured.err

    return call


@pytest.fixture
def pretrained(tmp_path):
    path = tmp_path / "model.keras"
    BertPretrainer(backbone(), preprocessor()).save(path)
    return path


def examples():
    for one in WORDS:
        for two in WORDS:
            yield f"{one}, {two}", "fox" if "fox" in (one, two) else "none"


def test_classify_from_csv(pretrained, tmp_path, command):
    with open(tmp_path / "train.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["sentence", "class"])
        rows.writerows(examples())
    arguments = f"finetune classify --model {pretrained} --out {tmp_path / 'run'} "
    arguments += f"--train {tmp_path / 'train.csv'} --dev {tmp_path / 'train.csv'} "
    arguments += "--text-column sentence --label-column class --epochs 60 " + SMALL_RUN
    arguments += f" --plot {tmp_path / 'confusion.png'}"
    status, (found,), _ = command(arguments)
    assert status == 0
    accuracy = found["epochs"][found["best"] - 1]["accuracy"]
    assert accuracy > 0.9
    confusion = np.array(found["confusion"])
    assert confusion.sum(axis=1).tolist() == [7, 9]  # 7 of 16 pairs have a fox
    assert confusion.trace() / 16 == accuracy
    assert found["report"]["fox"]["support"] == 7
    assert (tmp_path / "confusion.png").stat().st_size > 1000
    model = tmp_path / "run" / "model.keras"
    _, answers, _ = command(f"classify --model {model}", lines=["the, fox", "quick"])
    assert [a["label"] for a in answers] == ["fox", "none"]
    assert command(f"export {model} --out {tmp_path / 'out'}")[0] == 0
    for name in ("saved_model", "text_model.onnx"):
        _, again, _ = command(
            f"classify --model {tmp_path / 'out' / name}", lines=["the, fox", "quick"]
        )
        for one, other in zip(again, answers, strict=True):
            assert one["label"] == other["label"]
            assert one["probability"] == pytest.approx(other["probability"], abs=1e-5)
    status, _, error = command(f"tag --model {model}", lines=["x"])
    assert (status, "a model to classify; allowed: tag" in error) == (2, True)


def test_tag_from_columns(pretrained, tmp_path, command):
    sentences = [f"the O\nquick B-x\n{word} O\n" for word in WORDS * 4]
    (tmp_path / "train.conll").write_text("\n".join(sentences))
    arguments = f"finetune tag --model {pretrained} --out {tmp_path / 'run'} "
    arguments += f"--train {tmp_path / 'train.conll'} --epochs 8 " + SMALL_RUN
    arguments += f" --test {tmp_path / 'train.conll'} --plot {tmp_path / 'curves.png'}"
    status, (found,), _ = command(arguments)
    assert status == 0
    assert found["test"]["entity_f1"] > 0.8
    assert (tmp_path / "curves.png").exists()
    model = tmp_path / "run" / "model.keras"
    _, (answer,), _ = command(f"tag --model {model}", lines=["the Quick fox"])
    assert answer["entities"] == [{"text": "Quick", "label": "x", "start": 4, "end": 9}]
    assert [word["text"] for word in answer["words"]] == ["the", "Quick", "fox"]


def test_answers_from_squad(pretrained, tmp_path, command):
    paragraphs = [
        {
            "context": f"{'the ' * n}quick fox.",
            "qas": [
                {
                    "id": str(n),
                    "question": "fox",
                    "answers": [{"text": "quick", "answer_start": 4 * n}],
                }
            ],
        }
        for n in range(8)
    ]
    data = {"data": [{"title": "x", "paragraphs": paragraphs}]}
    (tmp_path / "train.json").write_text(json.dumps(data))
    arguments = f"finetune span --model {pretrained} --out {tmp_path / 'run'} "
    arguments += f"--train {tmp_path / 'train.json'} --epochs 20 " + SMALL_RUN
    assert command(arguments)[0] == 0
    model = tmp_path / "run" / "model.keras"
    _, (found,), _ = command(
        f"answer --model {model}", lines=[["fox", "the the quick fox."]]
    )
    assert (found["text"], found["start"], found["end"]) == ("quick", 8, 13)


@pytest.mark.slow
def test_regress_pairs(pretrained, tmp_path, command):
    lines = [f"{one}\tthe fox\t{float('fox' in one)}" for one, _ in examples()]
    (tmp_path / "train.tsv").write_text("\n".join(lines))
    arguments = f"finetune regress --model {pretrained} --out {tmp_path / 'run'} "
    arguments += f"--train {tmp_path / 'train.tsv'} --text-column 0 --second-column 1 "
    arguments += f"--label-column 2 --epochs 1 {SMALL_RUN}"
    assert command(arguments)[0] == 0
    model = tmp_path / "run" / "model.keras"
    _, (found,), _ = command(f"classify --model {model}", lines=[["the", "the fox"]])
    assert isinstance(found["value"], float)


def test_one_line_for_what_is_wrong(pretrained, tmp_path, command):
    train = tmp_path / "train.tsv"
    train.write_bytes(b"text\tlabel\ngood\ta\n\xff\tb\n")
    start = f"finetune classify --model {pretrained} --out {tmp_path / 'run'} --train "
    for arguments, shown in (
        (f"{train}", "line 3"),
        (f"{tmp_path / 'none.tsv'}", "none.tsv"),
        (f"{train} --word-column 1", "word=1; allowed: text, second, label"),
        (f"{train} --encoding latin-1 --metric f1", "metric='f1'"),
        (f"{train} --encoding latin-1 --frozen 9", "frozen=9"),
    ):
        status, found, error = command(f"{start}{arguments} --sequence-length 16")
        assert (status, found) == (2, [])
        assert shown in error and len(error.strip().splitlines()) == 1, error
    assert not (tmp_path / "run").exists()


def test_a_checkpoint_is_a_model_everywhere(tmp_path, command):
    """.keras -> Hugging Face -> export -> the same vectors."""
    source = tmp_path / "model.keras"
    model = BertEmbedder(backbone(), preprocessor(), normalize=True)
    model.save(source)
    folder = tmp_path / "folder"
    status, (made,), _ = command(f"convert {source} {folder} --to huggingface")
    assert (status, made["model"]) == (0, "BertEmbedder")
    assert type(load_checkpoint(folder)) is BertEmbedder
    texts = ["the quick fox", "brown"]
    expected = model.embed(texts)
    assert command(f"export {folder} --out {tmp_path / 'out'}")[0] == 0
    for path in (folder, tmp_path / "out" / "text_model.onnx", source):
        _, found, _ = command(f"embed --model {path}", lines=texts)
        vectors = np.array([row["embedding"] for row in found])
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
    _, ids, _ = command(f"tokenize --model {folder}", lines=texts)
    assert ids == [[5, 6, 7, 10], [8, 9]]
    back = tmp_path / "again.keras"
    assert command(f"convert {folder} {back}")[0] == 0
    status, _, error = command(f"embed --model {back} --pooling cls", lines=texts)
    assert (status, "a pooling of its own" in error) == (2, True)

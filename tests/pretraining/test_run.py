"""A run folder: made, interrupted, taken up again."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from corpora import prepared
from oracles import SMALL

from bert_keras import PretrainingOptions, RunSettings, pretrain
from bert_keras.files import AnotherRunError
from bert_keras.pretraining.run import MODEL_FILE

SENTENCES = ["the quick fox.", "brown the fox", "fox fox.", "the quick brown fox."]
NUMBERS = [str(n) for n in range(60)]
VOCABULARY = [*SMALL, *NUMBERS]
DOCUMENTS = [[number, *SENTENCES[n % 4 :]] for n, number in enumerate(NUMBERS)]
SMALL_RUN = {"steps": 6, "sequence_length": 12, "batch_size": 4, "predictions": 2}
OPTIONS = PretrainingOptions(**SMALL_RUN, seed=3)
SETTINGS = RunSettings(save_steps=2, record_steps=3)


class Stopped(Exception):
    """Stands for whatever ends a run early."""


def weights(model):
    return [weight.numpy() for weight in [*model.weights, *model.optimizer.variables]]


def assert_same(one, other):
    for mine, theirs in zip(weights(one), weights(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    made = prepared(tmp_path_factory.mktemp("run"), DOCUMENTS, VOCABULARY)
    assert made.documents[1] >= 2
    return made


@pytest.fixture(scope="module")
def finished(shards, tmp_path_factory):
    """A finished run: its folder, model and evaluation. Tests work on copies."""
    keras.utils.set_random_seed(7)  # which must not matter
    folder = tmp_path_factory.mktemp("finished")
    return folder, *pretrain(shards, OPTIONS, folder, SETTINGS)


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of the folder of the finished run."""
    shutil.copytree(finished[0], tmp_path / "run")
    return tmp_path / "run"


def steps_saved(folder):
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


def test_a_run_leaves_a_complete_folder(finished, shards):
    folder, model, evaluation = finished
    assert int(model.optimizer.iterations) == 6
    names = {path.name for path in folder.iterdir()}
    assert names == {
        *("run.json", "checkpoints", "metrics.jsonl", "tensorboard"),
        *("model.keras", "metrics.json"),
    }
    assert steps_saved(folder) == ["step-00000002", "step-00000004", "step-00000006"]
    loaded = keras.saving.load_model(folder / MODEL_FILE)
    assert_same(model, loaded)
    # The model reads [MASK]; the corpus does not.
    ids = loaded.preprocessor("[MASK]")["token_ids"].numpy().tolist()
    assert ids == [2, 4, 3]
    assert not shards.tokenizer.options.special_tokens_in_text
    stored = json.loads((folder / "metrics.json").read_text())
    assert stored["metrics"] == evaluation.metrics
    assert 0 < evaluation.unigram_accuracy <= 1
    metrics = evaluation.metrics
    expected = np.exp(metrics["masked_lm_loss"])
    assert metrics["masked_lm_perplexity"] == pytest.approx(expected)


def test_a_run_says_how_to_do_it_again(finished, shards):
    folder, *_ = finished
    run = json.loads((folder / "run.json").read_text())
    assert PretrainingOptions(**run["options"]) == OPTIONS
    assert run["data"]["shards"] == shards.digest
    assert run["data"]["vocabulary"] == shards.manifest["vocabulary"]
    assert run["data"]["tokenizer"] == shards.tokenizer.options.as_json()
    assert run["versions"]["tensorflow"] == tf.__version__


def test_records_of_training_and_of_held_out_text(tmp_path, shards):
    settings = RunSettings(record_steps=3, evaluate_steps=4)
    _, evaluation = pretrain(shards, OPTIONS, tmp_path, settings)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["step"] for record in records] == [3, 4, 6]
    assert set(records[0]) == {
        *("step", "loss", "learning_rate", "tokens_per_second"),
        *("masked_lm_loss", "masked_lm_accuracy"),
        *("next_sentence_loss", "next_sentence_accuracy"),
    }
    held_out = {f"held_out_{name}" for name in evaluation.metrics}
    assert set(records[1]) == {"step", *held_out}
    (events,) = (tmp_path / "tensorboard").iterdir()
    found = {
        (event.step, value.tag): tf.make_ndarray(value.tensor).item()
        for event in tf.compat.v1.train.summary_iterator(str(events))
        for value in event.summary.value
    }
    assert len(found) == sum(len(record) - 1 for record in records)
    for record in records:
        expected = pytest.approx(record["loss"]) if "loss" in record else None
        assert found.get((record["step"], "loss")) == expected


def test_a_record_is_of_the_steps_since_the_last_one(tmp_path, shards):
    """The mean of two records of one step each is the record of both."""
    losses = {}
    for every in (1, 2):
        folder = tmp_path / str(every)
        pretrain(shards, OPTIONS, folder, RunSettings(record_steps=every))
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        losses[every] = [json.loads(line)["next_sentence_loss"] for line in lines]
    pairs = np.reshape(losses[1], (3, 2)).mean(axis=1)
    np.testing.assert_allclose(losses[2], pairs, rtol=1e-5)


def test_interrupted_and_taken_up_again_it_ends_with_the_same_weights(
    tmp_path, shards, finished, monkeypatch
):
    folder, whole, evaluation = finished
    from bert_keras.training.progress import Progress

    ordinary = Progress.on_train_batch_end

    def interrupts(self, batch, logs=None):
        ordinary(self, batch, logs)
        if batch == 4:
            raise Stopped

    monkeypatch.setattr(Progress, "on_train_batch_end", interrupts)
    with pytest.raises(Stopped):
        pretrain(shards, OPTIONS, tmp_path / "cut", SETTINGS)
    monkeypatch.undo()
    assert steps_saved(tmp_path / "cut")[-1] == "step-00000004"
    assert not (tmp_path / "cut" / MODEL_FILE).exists()
    resumed, again = pretrain(shards, OPTIONS, tmp_path / "cut", SETTINGS)
    assert_same(whole, resumed)
    assert again == evaluation
    records = [
        [json.loads(line) for line in path.read_text().splitlines()]
        for path in (folder / "metrics.jsonl", tmp_path / "cut" / "metrics.jsonl")
    ]
    for one, other in zip(*records, strict=True):
        assert one["step"] == other["step"]


PROGRAM = """
import sys
from bert_keras import PretrainingOptions, RunSettings, Shards, pretrain
options = PretrainingOptions(**{options}, seed=3)
settings = RunSettings(save_steps=2, record_steps=1)
pretrain(Shards(sys.argv[1]), options, sys.argv[2], settings)
"""


def started(shards, out, **options):
    program = PROGRAM.format(options={**SMALL_RUN, **options})
    return subprocess.Popen(
        [sys.executable, "-c", program, str(shards.folder), str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill_behind(process, out, step, patience=120):
    """Sends SIGKILL when a step was recorded, wherever the process is by then."""
    until = time.monotonic() + patience
    records = Path(out) / "metrics.jsonl"
    while f'"step": {step},' not in (records.read_text() if records.exists() else ""):
        assert process.poll() is None, process.stderr.read()[-3000:]
        assert time.monotonic() < until
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def test_d09_killed_and_started_again_it_ends_with_the_same_weights(tmp_path, shards):
    """20 steps, killed twice, at steps that lie between checkpoints."""
    options = PretrainingOptions(**{**SMALL_RUN, "steps": 20}, seed=3)
    whole, _ = pretrain(shards, options, tmp_path / "whole", SETTINGS)
    out = tmp_path / "killed"
    for step in (7, 13):
        kill_behind(started(shards, out, steps=20), out, step)
        assert not (out / MODEL_FILE).exists()
    last = started(shards, out, steps=20)
    _, said = last.communicate(timeout=240)
    assert last.returncode == 0, said[-3000:]
    resumed = keras.saving.load_model(out / MODEL_FILE)
    assert int(resumed.optimizer.iterations) == 20
    assert_same(whole, resumed)
    lines = (out / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(1, 21))


def test_a_damaged_checkpoint_is_skipped_and_the_run_ends_the_same(
    shards, finished, copied, capsys
):
    newest = copied / "checkpoints" / "step-00000006" / MODEL_FILE
    newest.write_bytes(newest.read_bytes()[:-100])
    resumed, _ = pretrain(shards, OPTIONS, copied, SETTINGS)
    assert "step-00000006 is not whole and is skipped" in capsys.readouterr().err
    assert_same(finished[1], resumed)


def test_another_run_s_folder_is_refused(tmp_path, shards, copied):
    before = (copied / MODEL_FILE).read_bytes()
    other = PretrainingOptions(**{**OPTIONS.__dict__, "learning_rate": 5e-4})
    with pytest.raises(
        AnotherRunError, match=r"learning_rate=0.0005.*learning_rate=0.001"
    ):
        pretrain(shards, other, copied, SETTINGS)
    for folder, documents, tokens, options in (
        ("corpus", DOCUMENTS[1:], VOCABULARY, {}),
        ("vocabulary", DOCUMENTS, [*VOCABULARY, "more"], {}),
        ("options", DOCUMENTS, VOCABULARY, {"strip_accents": False}),
    ):
        made = prepared(tmp_path / folder, documents, tokens, **options)
        with pytest.raises(AnotherRunError, match="holds another run"):
            pretrain(made, OPTIONS, copied, SETTINGS)
    assert (copied / MODEL_FILE).read_bytes() == before


def test_a_run_that_never_began_may_be_corrected(tmp_path, shards):
    alone = prepared(tmp_path / "alone", [["fox"]], SMALL)
    with (
        pytest.warns(UserWarning, match="one document"),
        pytest.raises(ValueError, match="yields no row"),
    ):
        pretrain(alone, OPTIONS, tmp_path / "run", SETTINGS)
    assert not (tmp_path / "run").exists()
    pretrain(shards, OPTIONS, tmp_path / "run", SETTINGS)


def test_a_finished_run_is_not_trained_further(shards, finished, copied):
    """Also if it would be done in another way: that is no other run."""
    settings = RunSettings(save_steps=1, keep=1, strategy="none")
    again, evaluation = pretrain(shards, OPTIONS, copied, settings)
    assert_same(finished[1], again)
    assert evaluation == finished[2]
    assert steps_saved(copied) == steps_saved(finished[0])


@pytest.mark.parametrize(
    "options",
    [
        {"objective": "masked_lm", "mask_unit": "span", "optimizer": "muon"},
        pytest.param(
            {"objective": "sentence_order", "mask_unit": "word"}, marks=pytest.mark.slow
        ),
        pytest.param(
            {"untied": True, "lazy_embeddings": True, "optimizer": "lamb"},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"micro_batches": 3, "decay": "cosine", "precision": "bfloat16"},
            marks=pytest.mark.slow,
        ),
    ],
    ids=str,
)
def test_every_kind_of_run_is_resumed_exactly(tmp_path, shards, options):
    options = PretrainingOptions(**SMALL_RUN, **options)
    whole, evaluation = pretrain(shards, options, tmp_path, SETTINGS)
    assert np.isfinite(evaluation.metrics["loss"])
    for name in ("step-00000006", "step-00000004"):
        (tmp_path / "checkpoints" / name / MODEL_FILE).write_bytes(b"")
    resumed, again = pretrain(shards, options, tmp_path, SETTINGS)
    assert_same(whole, resumed)
    assert again == evaluation
    has_pairs = "next_sentence_loss" in evaluation.metrics
    assert has_pairs == (options.objective != "masked_lm")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", "huge"),
        ("steps", 0),
        ("sequence_length", 4),
        ("batch_size", 0),
        ("predictions", 0),
        ("learning_rate", 0.0),
        ("dropout", 1.0),
        ("warmup_share", 1.0),
        ("objective", "nsp"),
        ("mask_unit", "letter"),
        ("precision", "int8"),
        ("optimizer", "sgd"),
        ("decay", "steps"),
        ("untied", 1),
        ("steps", True),
        ("seed", -1),
    ],
)
def test_bad_options_are_refused(name, value):
    with pytest.raises(ValueError, match=f"Received: {name}={value!r}; allowed"):
        PretrainingOptions(**{name: value})


def test_lazy_embeddings_need_a_table_of_their_own():
    with pytest.raises(ValueError, match="lazy_embeddings=True, untied=False"):
        PretrainingOptions(lazy_embeddings=True)

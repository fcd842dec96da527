"""A pretraining run on two machines. Ids in names (D10) are of the public reports."""

import json
import os
import signal
import time
from pathlib import Path

import keras
import pytest
from corpora import prepared
from oracles import SMALL
from workers import clusters, ended, finished, started

from bert_keras.training.checkpoint import Checkpoints
from bert_keras.training.strategies import versions_know_replicas

pytestmark = pytest.mark.skipif(
    not versions_know_replicas(), reason="Keras or TensorFlow is refused there: older"
)
PROGRAM = Path(__file__).with_name("worker_run.py")
NUMBERS = [str(n) for n in range(60)]


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    documents = [[number, "the quick fox.", "brown the fox"] for number in NUMBERS]
    made = prepared(tmp_path_factory.mktemp("run"), documents, [*SMALL, *NUMBERS])
    assert made.documents[1] >= 2
    return made.folder


def workers(shards, outs, steps):
    return [
        started(PROGRAM, shards, out, steps, TF_CONFIG=config)
        for out, config in zip(outs, clusters(2), strict=True)
    ]


def test_d10_only_the_chief_writes(shards, tmp_path):
    """Each has a folder of its own here, so that one can see who writes."""
    outs = [tmp_path / "chief", tmp_path / "other"]
    finished(workers(shards, outs, steps=4))
    assert [path.name for path in tmp_path.iterdir()] == ["chief"]
    newest = Checkpoints(outs[0] / "checkpoints").newest()
    assert newest.step == 4
    model = keras.saving.load_model(outs[0] / "model.keras")
    assert int(model.optimizer.iterations) == 4
    metrics = json.loads((outs[0] / "metrics.json").read_text())["metrics"]
    assert metrics["masked_lm_loss"] > 0


@pytest.mark.slow
def test_a_killed_worker_leaves_a_checkpoint_from_which_all_go_on(shards, tmp_path):
    outs = [tmp_path / "run"] * 2
    processes = workers(shards, outs, steps=12)
    records = tmp_path / "run" / "metrics.jsonl"
    try:
        until = time.monotonic() + 240
        while '"step": 5' not in (records.read_text() if records.exists() else ""):
            assert time.monotonic() < until
            assert processes[1].poll() is None, processes[1].communicate()[0][-3000:]
            time.sleep(0.01)
        os.kill(processes[1].pid, signal.SIGKILL)
    finally:
        ended(processes)
    newest = Checkpoints(tmp_path / "run" / "checkpoints").newest()
    assert 4 <= newest.step < 12
    keras.saving.load_model(newest.path)
    finished(workers(shards, outs, steps=12))
    model = keras.saving.load_model(tmp_path / "run" / "model.keras")
    assert int(model.optimizer.iterations) == 12
    steps = [json.loads(line)["step"] for line in records.read_text().splitlines()]
    assert sorted(set(steps)) == list(range(1, 13))

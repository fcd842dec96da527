"""One device, several on one machine, and several machines train the same weights."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bert_keras.training.strategies import versions_know_replicas

pytestmark = pytest.mark.skipif(
    not versions_know_replicas(), reason="Keras or TensorFlow is refused there: older"
)
PROGRAM = Path(__file__).with_name("replica_runs.py")
PATIENCE = 240  # seconds


def started(out, *arguments, **environment):
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), str(out), *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(processes):
    """Waits for all of them; ends the others where one fails."""
    try:
        for process in processes:
            said, _ = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0, said[-3000:]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def assert_equal_results(path, expected):
    found, wanted = np.load(path), np.load(expected)
    assert set(found.files) == set(wanted.files)
    for name in wanted.files:
        np.testing.assert_allclose(found[name], wanted[name], atol=1e-6, err_msg=name)


@pytest.fixture(scope="module")
def one_device(tmp_path_factory):
    out = tmp_path_factory.mktemp("one") / "one.npz"
    finished([started(out)])
    return out


@pytest.mark.parametrize("replicas", [2, 4])
def test_replicas_of_one_machine(one_device, tmp_path, replicas):
    """A batch of 3 rows on 4 replicas, and of 1 on 2, leaves some without any."""
    out = tmp_path / "found.npz"
    finished([started(out, "--replicas", str(replicas))])
    assert_equal_results(out, one_device)


@pytest.mark.parametrize("replicas", [1, 2])
def test_lazy_embeddings(tmp_path, replicas):
    """Rows that no replica has in its batch stay bit for bit; decay leaves them too."""
    out = tmp_path / "found.npz"
    finished([started(out, "--replicas", str(replicas), "--lazy")])
    found = np.load(out)
    moved = (found["table"] != found["before"]).any(axis=1)
    assert moved.tolist() == [False] * 5 + [True] * 15


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def test_two_machines(one_device, tmp_path):
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    outs = [tmp_path / f"{number}.npz" for number in range(2)]
    processes = [
        started(
            out,
            "--workers",
            TF_CONFIG=json.dumps(
                {
                    "cluster": {"worker": workers},
                    "task": {"type": "worker", "index": number},
                }
            ),
        )
        for number, out in enumerate(outs)
    ]
    finished(processes)
    for out in outs:
        assert_equal_results(out, one_device)

"""One device, several on one machine, and several machines train the same weights."""

import json
from pathlib import Path

import numpy as np
import pytest
from workers import clusters, finished, started

from bert_keras.training.strategies import versions_know_replicas

pytestmark = pytest.mark.skipif(
    not versions_know_replicas(), reason="Keras or TensorFlow is refused there: older"
)
PROGRAM = Path(__file__).with_name("replica_runs.py")


def assert_equal_results(path, expected):
    found, wanted = np.load(path), np.load(expected)
    assert set(found.files) == set(wanted.files)
    for name in wanted.files:
        np.testing.assert_allclose(found[name], wanted[name], atol=1e-6, err_msg=name)


@pytest.fixture(scope="module")
def one_device(tmp_path_factory):
    out = tmp_path_factory.mktemp("one") / "one.npz"
    finished([started(PROGRAM, out)])
    return out


@pytest.mark.parametrize("replicas", [2, 4])
def test_replicas_of_one_machine(one_device, tmp_path, replicas):
    """A batch of 3 rows on 4 replicas, and of 1 on 2, leaves some without any."""
    out = tmp_path / "found.npz"
    finished([started(PROGRAM, out, "--replicas", str(replicas))])
    assert_equal_results(out, one_device)


@pytest.mark.parametrize("replicas", [1, 2])
def test_lazy_embeddings(tmp_path, replicas):
    """Rows that no replica has in its batch stay bit for bit; decay leaves them too."""
    out = tmp_path / "found.npz"
    finished([started(PROGRAM, out, "--replicas", str(replicas), "--lazy")])
    found = np.load(out)
    moved = (found["table"] != found["before"]).any(axis=1)
    assert moved.tolist() == [False] * 5 + [True] * 15


def test_d01_two_machines(one_device, tmp_path):
    outs = [tmp_path / f"{number}.npz" for number in range(2)]
    processes = [
        started(PROGRAM, out, "--workers", TF_CONFIG=config)
        for out, config in zip(outs, clusters(2), strict=True)
    ]
    finished(processes)
    for out in outs:
        assert_equal_results(out, one_device)


@pytest.mark.slow
@pytest.mark.parametrize("jit", [[], ["--jit"]], ids=["", "jit"])
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_d05_precision_with_replicas_and_xla(
    one_device, tmp_path, dtype, replicas, jit
):
    """Every cell of README's table: the losses of float32 on one device, to 1e-3.

    Without dropout, whose random numbers XLA draws in a way of its own; and with it,
    the cell runs and learns.
    """
    arguments = ["--replicas", str(replicas), "--dtype", dtype, *jit]
    outs = [tmp_path / "without.npz", tmp_path / "with.npz"]
    finished([started(PROGRAM, outs[0], *arguments)])
    finished([started(PROGRAM, outs[1], *arguments, "--dropout", "0.1")])
    found, wanted = np.load(outs[0]), np.load(one_device)
    for name in ("fit_loss", "evaluate_loss"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-3, err_msg=name)
    dropped = np.load(outs[1])
    assert not np.allclose(dropped["fit_loss"], wanted["fit_loss"], rtol=1e-3)
    np.testing.assert_allclose(
        dropped["evaluate_loss"], wanted["evaluate_loss"], rtol=0.05
    )


@pytest.mark.slow
@pytest.mark.parametrize("jit", [[], ["--jit"]], ids=["", "jit"])
@pytest.mark.parametrize(
    "options",
    [["--micro-batches", "2"], ["--optimizer", "lamb"], ["--optimizer", "adamw"],
     ["--optimizer", "muon"], ["--lazy"]],
    ids=" ".join,
)  # fmt: skip
def test_optimizers_and_micro_batches_with_replicas_and_xla(tmp_path, options, jit):
    """The losses of one device without XLA. Adam magnifies rounding, so to 1e-3."""
    alone = tmp_path / "alone.npz"
    finished([started(PROGRAM, alone, *options)])
    for replicas in ("1", "2"):
        out = tmp_path / f"{replicas}.npz"
        finished([started(PROGRAM, out, *options, "--replicas", replicas, *jit)])
        found, wanted = np.load(out), np.load(alone)
        for name in ("fit_loss", "evaluate_loss"):
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-3)
        if "--lazy" in options:
            moved = (found["table"] != found["before"]).any(axis=1)
            assert moved.tolist() == [False] * 5 + [True] * 15


@pytest.mark.parametrize("replicas", [1, 2])
def test_d03_d06_arithmetic_by_hand(tmp_path, replicas):
    """What the public reports worked out; the same on one replica as on two."""
    out = tmp_path / "found.json"
    finished([started(PROGRAM.with_name("arithmetic.py"), out, replicas)])
    found = json.loads(out.read_text())
    assert found["mean"] == pytest.approx([69.0, -5.2, -6.6, -1.4])
    # Divided by the weights, which all lie on one replica, and not by the rows.
    assert found["weighted"] == pytest.approx([4.0, 0.6, 0.6, -0.4])
    # Rows 0 and 1 are in two of the four texts, and so move twice.
    assert found["table"] == pytest.approx([0.6] * 4 + [0.8] * 8)
    assert found["head"] == pytest.approx([0.2] * 4 + [-0.8])
    assert found["patterns of dropout"] == replicas

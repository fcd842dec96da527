"""Fine-tuning on two replicas is fine-tuning on one."""

import os
from pathlib import Path

import numpy as np
import pytest
from workers import finished, started

from bert_keras.training.strategies import versions_know_replicas

HERE = Path(__file__).parent


@pytest.mark.skipif(
    not versions_know_replicas(), reason="several replicas need newer libraries"
)
def test_two_replicas_come_to_the_weights_of_one(tmp_path):
    path = os.pathsep.join([str(HERE.parents[1]), str(HERE.parent)])
    found = []
    for replicas in (1, 2):
        out = tmp_path / str(replicas)
        program = started(HERE / "replica_run.py", out, replicas, PYTHONPATH=path)
        finished([program])
        found.append(np.load(out / "weights.npz"))
    one, two = found
    assert one.files == two.files and len(one.files) > 30
    for name in one.files:
        np.testing.assert_allclose(two[name], one[name], atol=1e-5)

"""Strategies by name."""

import json

import pytest
import tensorflow as tf

from bert_keras.training import strategies
from bert_keras.training.strategies import _found, check_strategy, strategy_named


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch):
    for name in ("TF_CONFIG", "TPU_NAME"):
        monkeypatch.delenv(name, raising=False)


def test_what_is_found(monkeypatch):
    assert _found() == "none"
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind] * 2)
    assert _found() == "mirrored"
    monkeypatch.setenv("TPU_NAME", "local")
    assert _found() == "tpu"
    for workers, expected in ((["a:1", "b:1"], "workers"), (["a:1"], "tpu")):
        task = {"type": "worker", "index": 0}
        config = {"cluster": {"worker": workers}, "task": task}
        monkeypatch.setenv("TF_CONFIG", json.dumps(config))
        assert _found() == expected


def test_by_name():
    assert strategy_named("none").num_replicas_in_sync == 1
    assert strategy_named().num_replicas_in_sync == 1
    mirrored = strategy_named("mirrored")
    assert isinstance(mirrored, tf.distribute.MirroredStrategy)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fast", "Unknown strategy. Received: 'fast'; allowed: auto, none, mirrored"),
        ("parameter_server", "Parameter servers are not supported"),
        ("workers", "TF_CONFIG"),
    ],
)
def test_what_cannot_work_is_refused(name, message):
    with pytest.raises(ValueError, match=message):
        strategy_named(name)


def test_d02_parameter_servers_are_refused_where_they_are_used():
    strategy = object.__new__(tf.distribute.experimental.ParameterServerStrategy)
    with pytest.raises(ValueError, match="Received: ParameterServerStrategy"):
        check_strategy(strategy)
    check_strategy(tf.distribute.get_strategy())


def test_libraries_that_lose_rows_are_refused(monkeypatch):
    class Two:
        num_replicas_in_sync = 2

    monkeypatch.setattr(strategies, "versions_know_replicas", lambda: False)
    with pytest.raises(
        ValueError, match=r"Keras .* allowed: Keras 3.15 and TensorFlow"
    ):
        check_strategy(Two())
    monkeypatch.setattr(strategies, "versions_know_replicas", lambda: True)
    check_strategy(Two())

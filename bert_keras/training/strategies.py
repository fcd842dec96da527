"""Which devices a run uses, by the name of a strategy."""

import os

import keras
import tensorflow as tf

STRATEGIES = ("auto", "none", "mirrored", "workers", "tpu")


def strategy_named(name: str = "auto") -> tf.distribute.Strategy:
    """Returns a `tf.distribute.Strategy`; make and compile the model in its scope.

    Args:
        name: `"none"`: one device. `"mirrored"`: all GPUs of this machine. `"workers"`:
            the machines that TF_CONFIG names. `"tpu"`: the TPU that TPU_NAME names, or
            this machine's. `"auto"`: workers where TF_CONFIG names several, a TPU where
            TPU_NAME is set, mirrored where there are several GPUs, and else none.

    Raises:
        ValueError: an unknown name, or workers without TF_CONFIG. Parameter servers are
            refused: their replicas do not take steps together, and a mean over the
            global batch has no meaning there.
    """
    if name.replace("_", "").replace("-", "") in ("parameterserver", "ps"):
        raise ValueError(
            f"Parameter servers are not supported. Received: {name!r}; allowed: "
            f"{', '.join(STRATEGIES)}."
        )
    if name not in STRATEGIES:
        raise ValueError(
            f"Unknown strategy. Received: {name!r}; allowed: {', '.join(STRATEGIES)}."
        )
    if name == "auto":
        name = _found()
    if name == "mirrored":
        return tf.distribute.MirroredStrategy()
    if name == "workers":
        if not os.environ.get("TF_CONFIG"):
            raise ValueError(
                "Workers find one another by TF_CONFIG. Received: none in the "
                "environment; allowed: a cluster of workers and this one's task."
            )
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "tpu":
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    return tf.distribute.get_strategy()


def _found() -> str:
    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver().cluster_spec()
    if len(cluster.as_dict().get("worker", [])) > 1:
        return "workers"
    if os.environ.get("TPU_NAME"):
        return "tpu"
    several = len(tf.config.list_physical_devices("GPU")) > 1
    return "mirrored" if several else "none"


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Says whether this process is the one that writes."""
    resolver = strategy.cluster_resolver
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return True
    return resolver.task_type == "chief" or (
        resolver.task_type == "worker"
        and resolver.task_id == 0
        and "chief" not in resolver.cluster_spec().as_dict()
    )


def wait_for_all(strategy: tf.distribute.Strategy) -> None:
    """Returns when every process of the strategy has come here."""
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):

        @tf.function
        def meet():
            one = strategy.run(lambda: tf.ones([]))
            return strategy.reduce(tf.distribute.ReduceOp.SUM, one, axis=None)

        meet()


def versions_know_replicas() -> bool:
    """Says whether Keras and TensorFlow share uneven batches out as they should.

    With Keras 3.9 and TensorFlow 2.18 rows of the last batches were lost.
    """
    versions = (keras.__version__, (3, 15)), (tf.__version__, (2, 21))
    return all(
        tuple(map(int, version.split(".")[:2])) >= least for version, least in versions
    )


def check_strategy(strategy: tf.distribute.Strategy) -> None:
    """Raises a `ValueError` for a strategy that would not train as one device does."""
    _refuse_parameter_servers(strategy)
    if strategy.num_replicas_in_sync > 1 and not versions_know_replicas():
        raise ValueError(
            f"Several replicas need newer libraries. Received: Keras "
            f"{keras.__version__} and TensorFlow {tf.__version__}; allowed: Keras 3.15 "
            "and TensorFlow 2.21 or newer, or one device."
        )


def _refuse_parameter_servers(strategy: tf.distribute.Strategy) -> None:
    if isinstance(strategy, tf.distribute.experimental.ParameterServerStrategy):
        raise ValueError(
            "Parameter servers are not supported: their replicas do not take steps "
            "together. Received: ParameterServerStrategy; allowed: MirroredStrategy, "
            "MultiWorkerMirroredStrategy, TPUStrategy."
        )

"""Which devices a run uses, by the name of a strategy."""

import os

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


def refuse_parameter_servers(strategy: tf.distribute.Strategy) -> None:
    """Raises a `ValueError` for a strategy whose replicas do not step together."""
    if isinstance(strategy, tf.distribute.experimental.ParameterServerStrategy):
        raise ValueError(
            "Parameter servers are not supported: their replicas do not take steps "
            "together. Received: ParameterServerStrategy; allowed: MirroredStrategy, "
            "MultiWorkerMirroredStrategy, TPUStrategy."
        )

"""Several replicas that train as one: how a global batch is cut up, and gradients meet.

Stock Keras lets tf.distribute shard a dataset, so that a batch means something else on
several workers, and averages logs in a way that fails there; and it clips gradients
before they are summed. Here a batch of the dataset *is* the global batch, whatever the
strategy.
"""

import keras
import tensorflow as tf


def cut_up(
    dataset: tf.data.Dataset, strategy: tf.distribute.Strategy
) -> tf.distribute.DistributedDataset:
    """Gives every replica its rows of each batch; some may get none.

    Of b rows and n replicas, replica r gets the rows from r b / n to (r + 1) b / n,
    both rounded down. Every worker makes every batch, and keeps what is its own.

    Args:
        dataset: of global batches; every tensor has the rows first.
        strategy: with several replicas.
    """
    replicas = strategy.num_replicas_in_sync

    def local(context: tf.distribute.InputContext) -> tf.data.Dataset:
        share = replicas // context.num_input_pipelines
        first = context.input_pipeline_id * share
        own = tf.range(first, first + share, dtype=tf.int64)

        def rows_of(batch, replica):
            size = tf.shape(tf.nest.flatten(batch)[0], tf.int64)[0]
            start, end = replica * size // replicas, (replica + 1) * size // replicas
            return tf.nest.map_structure(lambda tensor: tensor[start:end], batch)

        def pieces(batch):
            numbers = tf.data.Dataset.from_tensor_slices(own)
            return numbers.map(lambda replica: rows_of(batch, replica))

        return dataset.flat_map(pieces).prefetch(2 * share)

    return strategy.distribute_datasets_from_function(local)


def reduce_before_clipping(optimizer: keras.optimizers.Optimizer) -> None:
    """Tells an optimizer that its gradients are sums over all replicas already.

    `sum_gradients` makes them so. Else it would sum them itself, behind its clipping.
    """
    while optimizer is not None:
        optimizer._all_reduce_sum_gradients = lambda grads_and_vars: grads_and_vars
        optimizer = getattr(optimizer, "inner_optimizer", None)  # of loss scaling


def sum_gradients(gradients: list) -> list:
    """Returns the sums over all replicas; `tf.IndexedSlices` stay such."""
    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return gradients
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, gradients)

"""What every trained model shares: a step whose losses are global weighted means.

A subclass says what it predicts, as a list of `Term`s: sums, not means. The step
divides each by the weight sum of the *global* batch, so the loss and its gradient are
the same on one replica as on several, however the weights are spread.
"""

import itertools
from typing import NamedTuple

import keras
import tensorflow as tf

from bert_keras.training.replicas import (
    cut_up,
    reduce_before_clipping,
    sum_gradients,
)
from bert_keras.training.strategies import check_strategy


class Term(NamedTuple):
    """One part of the loss, summed over this replica's part of the batch.

    Attributes:
        name: name of the part, for the progress line.
        loss: float32 scalar, sum of weight * loss.
        correct: float32 scalar, sum of weight over the predictions that were right;
            nothing where a prediction is no choice, but a number.
    """

    name: str
    loss: tf.Tensor
    correct: tf.Tensor | float = 0.0


def classification_term(name, logits, labels, weights) -> Term:
    """Returns the cross-entropy term of logits `[..., classes]`, computed in float32.

    Args:
        labels: int32 `[...]`.
        weights: float32 `[...]`.
    """
    logits = tf.cast(logits, tf.float32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    is_correct = tf.argmax(logits, axis=-1, output_type=labels.dtype) == labels
    return Term(
        name=name,
        loss=tf.reduce_sum(losses * weights),
        correct=tf.reduce_sum(tf.cast(is_correct, tf.float32) * weights),
    )


class WeightedMeanTraining:
    """Training steps whose loss is a sum of global weighted means.

    A class to mix into a `keras.Model`, before it. It is no model itself: Keras changes
    the bases of a class of which functional models are made, and would change them for
    its subclassed siblings too.

    The class it is mixed into defines `terms`, `weights_of` and `term_names`.

    Attributes:
        term_names: the parts of the loss.
        kinds: what is shown of each part.
        micro_batches: parts in which a batch is worked through, one behind the other,
            where it does not fit into memory at once. The step is the same: gradients
            are added up, and divided by the weights of the whole batch.
    """

    term_names: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ("loss", "accuracy")
    micro_batches: int = 1

    def make_trackers(self) -> None:
        """Makes the running means; a subclass calls it once it is a Keras model."""
        self._means = {}
        for name in self.term_names:
            for kind in self.kinds:
                full_name = f"{name}_{kind}"
                self._means[full_name] = keras.metrics.Mean(name=full_name)

    def fit(self, x=None, *args, **kwargs):
        several = self.distribute_strategy.num_replicas_in_sync > 1
        if several and isinstance(x, tf.data.Dataset):
            x, kwargs = _with_an_end(x, kwargs)
        return super().fit(self._cut_up(x), *args, **kwargs)

    def evaluate(self, x=None, *args, **kwargs):
        return super().evaluate(self._cut_up(x), *args, **kwargs)

    def _cut_up(self, data):
        strategy = self.distribute_strategy
        check_strategy(strategy)
        is_whole = isinstance(data, tf.data.Dataset)
        if strategy.num_replicas_in_sync > 1 and is_whole:
            return cut_up(data, strategy)
        return data

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Does nothing: the model is built, and of logs Keras need know nothing."""

    def _make_function(self, step_function):
        """Returns a function that takes a step on what an iterator yields next.

        Keras's own averages the replicas' logs along a batch axis, which they lack.
        """
        strategy = self.distribute_strategy
        is_alone = strategy.num_replicas_in_sync == 1
        if self.optimizer is not None:
            with strategy.scope():  # its variables: in a step it would be too late
                if not self.optimizer.built:
                    self.optimizer.build(self.trainable_variables)
                if not is_alone:
                    reduce_before_clipping(self.optimizer)

        def step(data):
            logs = strategy.run(step_function, args=(data,))
            mean = tf.distribute.ReduceOp.MEAN  # they are the same everywhere
            return {
                name: strategy.reduce(mean, value, axis=None)
                for name, value in logs.items()
            }

        if not self.run_eagerly:
            step = tf.function(
                step,
                autograph=False,
                reduce_retracing=True,
                jit_compile=self.jit_compile and is_alone,
            )

        def steps(iterator):
            for _ in range(self.steps_per_execution):
                logs = step(iterator.get_next())
            return logs

        if not self.run_eagerly:
            steps = tf.function(steps, autograph=False, reduce_retracing=True)
        tf_iterators = (tf.data.Iterator, tf.distribute.DistributedIterator)

        def function(iterator):
            if isinstance(iterator, tf_iterators):
                return steps(iterator)
            return step(next(iter(iterator)))

        return function

    def terms(self, features: dict, training: bool) -> list[Term]:
        """Returns the parts of the loss on a batch of features and labels."""
        raise TypeError(f"{type(self).__name__} does not define terms().")

    def weights_of(self, features: dict) -> dict[str, tf.Tensor]:
        """Returns the sum of the weights of each term, float32 scalars."""
        raise TypeError(f"{type(self).__name__} does not define weights_of().")

    def train_step(self, data):
        features = _features_alone(data)
        weights = self._global_weights(features)
        parts = [self._gradients(f, weights) for f in self._micro_batches(features)]
        gradients, sums = parts[0]
        for more_gradients, more_sums in parts[1:]:
            gradients = list(map(_added, gradients, more_gradients))
            sums += more_sums
        self._count(sums, weights)
        # Without a gradient is what no term of the loss looks at.
        moved = [
            (gradient, variable)
            for gradient, variable in zip(
                gradients, self.trainable_weights, strict=True
            )
            if gradient is not None
        ]
        gradients, variables = zip(*moved, strict=True)
        gradients = sum_gradients(list(gradients))
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return self._progress()

    def test_step(self, data):
        features = _features_alone(data)
        terms = self.terms(features, training=False)
        self._count(_sums(terms), self._global_weights(features))
        return self._progress()

    def _micro_batches(self, features: dict) -> list[dict]:
        """Cuts a batch into parts, as even as can be, that fit into memory."""
        count = self.micro_batches
        if count == 1:
            return [features]
        first = next(iter(features.values()))
        rows = first.shape[0] or tf.shape(first)[0]
        edges = [number * rows // count for number in range(count + 1)]
        return [
            {name: tensor[start:end] for name, tensor in features.items()}
            for start, end in itertools.pairwise(edges)
        ]

    def _gradients(self, features: dict, weights: tf.Tensor):
        """Returns a part's share of the gradients, and of the sums of each term."""

        def compute(features, weights):
            with tf.GradientTape() as tape:
                terms = self.terms(features, training=True)
                losses = tf.stack([term.loss for term in terms])
                loss = tf.reduce_sum(tf.math.divide_no_nan(losses, weights))
                scaled = self.optimizer.scale_loss(loss)
            return tape.gradient(scaled, self.trainable_weights), _sums(terms)

        replica = tf.distribute.get_replica_context()
        if self.jit_compile and replica.num_replicas_in_sync > 1:
            # XLA compiles what a replica does alone, not what it does with the others.
            compute = tf.function(compute, jit_compile=True, autograph=False)
        return compute(features, weights)

    def _global_weights(self, features: dict) -> tf.Tensor:
        """Returns the weight sum of each term over all replicas, `[terms]`."""
        weights = self.weights_of(features)
        weights = tf.stack([weights[name] for name in self.term_names])
        return _over_replicas(weights)

    def _count(self, sums: tf.Tensor, weights: tf.Tensor) -> None:
        """Counts the global means of a batch; `sums` are this replica's."""
        means = tf.math.divide_no_nan(_over_replicas(sums), weights[:, None])
        for number, name in enumerate(self.term_names):
            for kind, mean in zip(self.kinds, tf.unstack(means[number]), strict=False):
                self._means[f"{name}_{kind}"].update_state(mean, weights[number])

    def _progress(self) -> dict:
        means = {name: mean.result() for name, mean in self._means.items()}
        return {"loss": sum(means[f"{name}_loss"] for name in self.term_names), **means}

    def save_own_variables(self, store):
        """Keeps the state of every dropout too, which Keras leaves out of its files."""
        for number, state in enumerate(self._random_states()):
            store[str(number)] = state.numpy()

    def load_own_variables(self, store):
        for number, state in enumerate(self._random_states()):
            if str(number) in store.keys():  # a model without dropout has none
                state.assign(store[str(number)])

    def _random_states(self) -> list[keras.Variable]:
        return [v for v in self.variables if v.path.endswith("seed_generator_state")]

    @property
    def metrics(self):
        return list(self._means.values())


def _with_an_end(dataset: tf.data.Dataset, arguments: dict):
    """Returns a dataset and arguments of `fit` that say how many steps an epoch has.

    Else several replicas find out by a step on rows that are not there: it has no
    gradient, but Adam's moments move the weights all the same.
    """
    if arguments.get("steps_per_epoch") is not None:
        return dataset, arguments
    steps = int(dataset.cardinality())
    if steps == tf.data.UNKNOWN_CARDINALITY:
        raise ValueError(
            "Several replicas have to know where an epoch ends. Received: a dataset of "
            "unknown length; allowed: steps_per_epoch, or a dataset with "
            "tf.data.experimental.assert_cardinality."
        )
    if steps < 0:  # without end: Keras says what it needs
        return dataset, arguments
    return dataset.repeat(), {**arguments, "steps_per_epoch": steps}


def _sums(terms: list[Term]) -> tf.Tensor:
    """Returns loss and correct answers of each term, float32 `[terms, 2]`."""
    return tf.stop_gradient(tf.stack([[term.loss, term.correct] for term in terms]))


def _over_replicas(sums: tf.Tensor) -> tf.Tensor:
    replica = tf.distribute.get_replica_context()
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, sums)


def _added(one, other):
    """Adds gradients; sparse ones stay sparse, and None stays None."""
    if one is None:
        return None
    if isinstance(one, tf.IndexedSlices):
        return tf.IndexedSlices(
            tf.concat([one.values, other.values], axis=0),
            tf.concat([one.indices, other.indices], axis=0),
            one.dense_shape,
        )
    return one + other


def _features_alone(data) -> dict:
    features, labels, weights = keras.utils.unpack_x_y_sample_weight(data)
    if labels is not None or weights is not None:
        raise ValueError(
            "Labels and weights belong into the feature dictionary. Received: y or "
            "sample_weight beside it; allowed: x alone."
        )
    for name, tensor in features.items():
        if tensor.dtype == tf.string:
            raise ValueError(
                f"A model is trained on ids. Received: {name} of strings; allowed: "
                "numbers, as a preprocessor makes them in tf.data. Strings would keep "
                "XLA from compiling, and cannot reach a TPU."
            )
    return features

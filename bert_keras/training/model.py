"""What every trained model shares: a step whose losses are global weighted means.

A subclass says what it predicts, as a list of `Term`s: sums, not means. The step
divides each by the weight sum of the *global* batch, so the loss and its gradient are
the same on one replica as on several, however the weights are spread.
"""

from typing import NamedTuple

import keras
import tensorflow as tf

from bert_keras.training.replicas import (
    cut_up,
    reduce_before_clipping,
    sum_gradients,
)


class Term(NamedTuple):
    """One part of the loss, summed over this replica's part of the batch.

    Attributes:
        name: name of the part, for the progress line.
        loss: float32 scalar, sum of weight * loss.
        correct: float32 scalar, sum of weight over the predictions that were right.
        weight: float32 scalar, sum of the weights.
    """

    name: str
    loss: tf.Tensor
    correct: tf.Tensor
    weight: tf.Tensor


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
        weight=tf.reduce_sum(weights),
    )


class WeightedMeanTraining:
    """Training steps whose loss is a sum of global weighted means.

    A class to mix into a `keras.Model`, before it. It is no model itself: Keras changes
    the bases of a class of which functional models are made, and would change them for
    its subclassed siblings too.

    The class it is mixed into defines `terms` and the attribute `term_names`.
    """

    term_names: tuple[str, ...] = ()

    def make_trackers(self) -> None:
        """Makes the running means; a subclass calls it once it is a Keras model."""
        self._means = {}
        for name in self.term_names:
            for kind in ("loss", "accuracy"):
                full_name = f"{name}_{kind}"
                self._means[full_name] = keras.metrics.Mean(name=full_name)

    def fit(self, x=None, *args, **kwargs):
        return super().fit(self._cut_up(x), *args, **kwargs)

    def evaluate(self, x=None, *args, **kwargs):
        return super().evaluate(self._cut_up(x), *args, **kwargs)

    def _cut_up(self, data):
        strategy = self.distribute_strategy
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
        # A compiler of one replica's step cannot reach into the others'.
        is_alone = strategy.num_replicas_in_sync == 1
        if not is_alone and self.optimizer is not None:
            with strategy.scope():
                reduce_before_clipping(self.optimizer, self.trainable_variables)

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

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = self._loss(self.terms(_features_alone(data), training=True))
            scaled = self.optimizer.scale_loss(loss)
        variables = self.trainable_weights
        gradients = sum_gradients(tape.gradient(scaled, variables))
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return self._progress()

    def test_step(self, data):
        self._loss(self.terms(_features_alone(data), training=False))
        return self._progress()

    def _loss(self, terms: list[Term]) -> tf.Tensor:
        """Returns this replica's share of the global loss, and counts all of it."""
        replica = tf.distribute.get_replica_context()
        share = 0.0
        for term in terms:
            sums = tf.stack([term.loss, term.correct, term.weight])
            sums = replica.all_reduce(
                tf.distribute.ReduceOp.SUM, tf.stop_gradient(sums)
            )
            loss, correct, weight = tf.unstack(sums)
            share += tf.math.divide_no_nan(term.loss, weight)
            for kind, value in (("loss", loss), ("accuracy", correct)):
                mean = tf.math.divide_no_nan(value, weight)
                self._means[f"{term.name}_{kind}"].update_state(mean, weight)
        return share

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


def _features_alone(data) -> dict:
    features, labels, weights = keras.utils.unpack_x_y_sample_weight(data)
    if labels is not None or weights is not None:
        raise ValueError(
            "Labels and weights belong into the feature dictionary. Received: y or "
            "sample_weight beside it; allowed: x alone."
        )
    return features

"""The optimizers of BERT: AdamW and LAMB, and tables of which only some rows move."""

import keras
import tensorflow as tf

from bert_keras.training.schedule import WarmupDecay

# Names of the variables that are biases or belong to a norm: never decayed.
UNDECAYED = ("bias", "gamma", "beta")


class _BertUpdates:
    """What both optimizers share; a class to mix into a Keras optimizer, before it.

    The class it is mixed into says what a step is, as `_update_whole`.

    Biases and norms never decay: Keras keeps such names out of an optimizer's config,
    so that a saved and loaded one would decay them after all; here they belong to the
    class. The gradient of a table is clipped by the norm of what it sums up to, and
    with `lazy_embeddings` only the rows that it has move.
    """

    def __init__(
        self,
        *args,
        lazy_embeddings: bool = False,
        rate_factors: dict[str, float] | None = None,
        **kwargs,
    ):
        super().__init__(*args, **kwargs)
        if self.amsgrad:
            raise ValueError("Received: amsgrad=True; allowed: False.")
        self.lazy_embeddings = lazy_embeddings
        self.rate_factors = rate_factors or {}
        self.exclude_from_weight_decay(var_names=list(UNDECAYED))
        self._lazy: set = set()

    def apply(self, grads, trainable_variables=None):
        grads = list(map(_summed, grads))
        if self.lazy_embeddings and trainable_variables is not None:
            self._lazy = {
                self._var_key(variable)
                for gradient, variable in zip(grads, trainable_variables, strict=True)
                if isinstance(gradient, tf.IndexedSlices)
            }
        super().apply(grads, trainable_variables)

    def _clip_gradients(self, grads):
        if not self.global_clipnorm:
            return super()._clip_gradients(grads)
        clipped, _ = tf.clip_by_global_norm(grads, self.global_clipnorm)
        return clipped

    def _apply_weight_decay(self, variables):
        """Does nothing: decay is a part of the steps below."""

    def update_step(self, gradient, variable, learning_rate):
        rate = tf.cast(learning_rate, variable.dtype) * self._factor_of(variable)
        if self._var_key(variable) in self._lazy:
            self._update_rows(gradient, variable, rate)
        else:
            gradient = tf.cast(tf.convert_to_tensor(gradient), variable.dtype)
            self._update_whole(gradient, variable, rate)

    def _factor_of(self, variable) -> float:
        known = self._trainable_variables[self._get_variable_index(variable)]
        layers = known.path.split("/")[:-1]
        return next(
            (self.rate_factors[name] for name in layers if name in self.rate_factors),
            1.0,
        )

    def _update_rows(self, gradient, variable, rate) -> None:
        """Moves the rows that are in the gradient, and their moments; no others.

        The bias of the moments is corrected for the steps of the run, not of the row.
        """
        rows, gradient = gradient.indices, tf.cast(gradient.values, variable.dtype)
        index = self._get_variable_index(variable)
        moments = []
        for stored, beta, value in (
            (self._momentums[index], self.beta_1, gradient),
            (self._velocities[index], self.beta_2, tf.square(gradient)),
        ):
            moment = tf.gather(stored.value, rows)
            moment += (value - moment) * (1 - tf.cast(beta, variable.dtype))
            self.assign(stored, tf.IndexedSlices(moment, rows))
            moments.append(moment)
        first, second = moments
        step = tf.cast(self.iterations + 1, variable.dtype)
        left = [
            tf.pow(tf.cast(b, step.dtype), step) for b in (self.beta_1, self.beta_2)
        ]
        update = first / (tf.sqrt(second) + self.epsilon)  # as Keras adds epsilon
        update *= tf.sqrt(1 - left[1]) / (1 - left[0])
        update += (self.weight_decay or 0.0) * tf.gather(variable, rows)
        self.assign_sub(variable, tf.IndexedSlices(rate * update, rows))

    def get_config(self):
        return {
            **super().get_config(),
            "lazy_embeddings": self.lazy_embeddings,
            "rate_factors": self.rate_factors,
        }


@keras.saving.register_keras_serializable(package="bert_keras")
class BertAdamW(_BertUpdates, keras.optimizers.AdamW):
    """AdamW that never decays biases and norms (Loshchilov and Hutter 2019).

    Args:
        lazy_embeddings: of a table whose gradient is sparse, move only the rows that
            are in the batch, with their moments and their decay.
        rate_factors: name of a layer -> what the learning rate is times for its
            weights; 1 for the layers that are not named.

    The other arguments are those of `keras.optimizers.AdamW`, without `amsgrad`.
    """

    def _update_whole(self, gradient, variable, rate):
        """Decays, then takes Adam's step in one pass over the memory, not in ten."""
        if self._use_weight_decay(variable) and self.weight_decay:
            variable.assign_sub(variable * (rate * self.weight_decay))
        index = self._get_variable_index(variable)
        step = tf.cast(self.iterations + 1, variable.dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=tf.pow(tf.cast(self.beta_1, variable.dtype), step),
            beta2_power=tf.pow(tf.cast(self.beta_2, variable.dtype), step),
            lr=rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=gradient,
        )


@keras.saving.register_keras_serializable(package="bert_keras")
class BertLamb(_BertUpdates, keras.optimizers.AdamW):
    """LAMB, for large batches (You et al. 2020, algorithm 2).

    Each variable moves by the learning rate times `|w| / |u|` times u, where u is the
    step of Adam plus the decay; biases and norms move by u alone, without decay, as in
    the authors' own code. Arguments as `BertAdamW`; lazy rows take steps of AdamW.
    """

    def _update_whole(self, gradient, variable, rate):
        index = self._get_variable_index(variable)
        first, second = self._momentums[index], self._velocities[index]
        self.assign_add(first, (gradient - first) * (1 - self.beta_1))
        self.assign_add(second, (tf.square(gradient) - second) * (1 - self.beta_2))
        step = tf.cast(self.iterations + 1, variable.dtype)
        first = first / (1 - tf.pow(tf.cast(self.beta_1, variable.dtype), step))
        second = second / (1 - tf.pow(tf.cast(self.beta_2, variable.dtype), step))
        update = first / (tf.sqrt(second) + self.epsilon)
        ratio = tf.ones([], variable.dtype)
        if self._use_weight_decay(variable):
            update += (self.weight_decay or 0.0) * variable
            lengths = tf.norm(variable), tf.norm(update)
            is_zero = tf.reduce_any([length == 0 for length in lengths])
            ratio = tf.where(is_zero, ratio, tf.math.divide_no_nan(*lengths))
        self.assign_sub(variable, rate * ratio * update)


OPTIMIZERS = {"adamw": BertAdamW, "lamb": BertLamb}


def bert_optimizer(
    learning_rate: float,
    total_steps: int,
    *,
    warmup_share: float = 0.1,
    decay: str = "linear",
    weight_decay: float = 0.01,
    clip_norm: float = 1.0,
    optimizer: str = "adamw",
    lazy_embeddings: bool = False,
    rate_factors: dict[str, float] | None = None,
    epsilon: float = 1e-6,
) -> keras.optimizers.Optimizer:
    """Returns AdamW, or LAMB, as BERT uses it.

    Weight decay on kernels and tables only, gradients clipped by their global norm,
    beta 0.9 and 0.999 (google-research/bert, `optimization.py`).

    Args:
        learning_rate: peak of the schedule.
        total_steps: steps of the whole run.
        warmup_share: share of the steps in which the rate rises.
        decay: how it falls: `"linear"`, `"cosine"` or `"constant"`.
        weight_decay: decoupled decay, times the learning rate.
        clip_norm: greatest global norm of the gradients.
        optimizer: `"adamw"` or `"lamb"`.
        lazy_embeddings: move only the rows of untied tables that are in the batch.
        rate_factors: name of a layer -> what its learning rate is times.
        epsilon: added to the square root of the second moment.

    Raises:
        ValueError: an unknown optimizer or decay.
    """
    if optimizer not in OPTIMIZERS:
        raise ValueError(
            f"Received: optimizer={optimizer!r}; allowed: "
            f"{', '.join(map(repr, OPTIMIZERS))}."
        )
    warmup_steps = int(warmup_share * total_steps)
    return OPTIMIZERS[optimizer](
        WarmupDecay(learning_rate, total_steps, warmup_steps, decay),
        weight_decay=weight_decay,
        epsilon=epsilon,
        global_clipnorm=clip_norm,
        lazy_embeddings=lazy_embeddings,
        rate_factors=rate_factors,
    )


def _summed(gradient):
    """Returns a sparse gradient with each row once; another one as it is."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)

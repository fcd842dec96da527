"""What an optimizer of BERT does to one variable, or to some rows of a table."""

import tensorflow as tf

# Names of the variables that are biases or belong to a norm: never decayed.
UNDECAYED = ("bias", "gamma", "beta")


class BertUpdates:
    """What the optimizers share; a class to mix into Keras's AdamW, before it.

    A step is that of AdamW; another kind overrides `_update_whole`.

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
        """Does nothing: decay is a part of the steps."""

    def update_step(self, gradient, variable, learning_rate):
        rate = tf.cast(learning_rate, variable.dtype) * self._factor_of(variable)
        if self._var_key(variable) in self._lazy:
            self._update_rows(gradient, variable, rate)
        else:
            gradient = tf.cast(tf.convert_to_tensor(gradient), variable.dtype)
            self._update_whole(gradient, variable, rate)

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


def _summed(gradient):
    """Returns a sparse gradient with each row once; another one as it is."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)

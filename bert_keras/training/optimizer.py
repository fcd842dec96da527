"""The optimizer and learning-rate schedule of BERT."""

import keras
import tensorflow as tf

# Names of the variables that are biases or belong to a norm: never decayed.
UNDECAYED = ("bias", "gamma", "beta")


@keras.saving.register_keras_serializable(package="bert_keras")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to the peak, then falls linearly to zero (Devlin et al., A.2).

    Step t of `total_steps` (counted from 0) has the rate
    `peak * min((t + 1) / (warmup_steps + 1), (total_steps - t) / (total_steps -
    warmup_steps))`, and 0 after the last.

    Args:
        peak: greatest learning rate.
        total_steps: steps of the whole run.
        warmup_steps: steps of the rise; fewer than `total_steps`.

    Raises:
        ValueError: a warmup that does not fit in the run.
    """

    def __init__(self, peak: float, total_steps: int, warmup_steps: int = 0):
        if not 0 <= warmup_steps < total_steps:
            raise ValueError(
                f"Received: warmup_steps={warmup_steps} of total_steps={total_steps}; "
                "allowed: 0 up to one less than total_steps."
            )
        self.peak = peak
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        step = tf.cast(step, tf.float32)
        rise = (step + 1) / (self.warmup_steps + 1)
        fall = (self.total_steps - step) / (self.total_steps - self.warmup_steps)
        return self.peak * tf.maximum(tf.minimum(rise, fall), 0.0)

    def get_config(self):
        return {
            "peak": self.peak,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
        }


@keras.saving.register_keras_serializable(package="bert_keras")
class BertAdamW(keras.optimizers.AdamW):
    """AdamW that never decays biases and norms.

    Keras keeps the names of undecayed variables out of an optimizer's config, so that a
    saved and loaded AdamW decays them after all; here they belong to the class.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.exclude_from_weight_decay(var_names=list(UNDECAYED))


def bert_optimizer(
    learning_rate: float,
    total_steps: int,
    *,
    warmup_share: float = 0.1,
    weight_decay: float = 0.01,
    clip_norm: float = 1.0,
) -> keras.optimizers.Optimizer:
    """Returns AdamW as BERT uses it.

    Weight decay on kernels and tables only, gradients clipped by their global norm,
    beta 0.9 and 0.999, epsilon 1e-6 (google-research/bert, `optimization.py`).

    Args:
        learning_rate: peak of the schedule.
        total_steps: steps of the whole run.
        warmup_share: share of the steps in which the rate rises.
        weight_decay: decoupled decay, times the learning rate.
        clip_norm: greatest global norm of the gradients.
    """
    schedule = WarmupLinearDecay(
        learning_rate, total_steps, int(warmup_share * total_steps)
    )
    return BertAdamW(
        schedule,
        weight_decay=weight_decay,
        epsilon=1e-6,
        global_clipnorm=clip_norm,
    )

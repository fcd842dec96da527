"""The learning-rate schedule: a linear warmup, and then one of three decays."""

import math

import keras
import tensorflow as tf

DECAYS = ("linear", "cosine", "constant")


@keras.saving.register_keras_serializable(package="bert_keras")
class WarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to the peak, then falls to zero (Devlin et al. 2018, A.2).

    In the rise, step t (counted from 0) has the rate `peak * (t + 1) / (warmup_steps +
    1)`. Behind it, with `x = (t - warmup_steps) / (total_steps - warmup_steps)`, at
    most 1, it is the peak times `1 - x` (linear), `(1 + cos(pi x)) / 2` (cosine) or 1
    (constant); the least of both counts where they meet.

    Args:
        peak: greatest learning rate.
        total_steps: steps of the whole run.
        warmup_steps: steps of the rise; fewer than `total_steps`.
        decay: `"linear"`, `"cosine"` or `"constant"`.

    Raises:
        ValueError: a warmup that does not fit in the run, or an unknown decay.
    """

    def __init__(
        self,
        peak: float,
        total_steps: int,
        warmup_steps: int = 0,
        decay: str = "linear",
    ):
        if not 0 <= warmup_steps < total_steps:
            raise ValueError(
                f"Received: warmup_steps={warmup_steps} of total_steps={total_steps}; "
                "allowed: 0 up to one less than total_steps."
            )
        if decay not in DECAYS:
            raise ValueError(
                f"Received: decay={decay!r}; allowed: {', '.join(map(repr, DECAYS))}."
            )
        self.peak = peak
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps
        self.decay = decay

    def __call__(self, step):
        step = tf.cast(step, tf.float32)
        rise = (step + 1) / (self.warmup_steps + 1)
        done = (step - self.warmup_steps) / (self.total_steps - self.warmup_steps)
        done = tf.clip_by_value(done, 0.0, 1.0)
        fall = {
            "linear": lambda: 1 - done,
            "cosine": lambda: (1 + tf.cos(math.pi * done)) / 2,
            "constant": lambda: tf.ones_like(done),
        }[self.decay]()
        return self.peak * tf.minimum(rise, fall)

    def get_config(self):
        return {
            "peak": self.peak,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
            "decay": self.decay,
        }

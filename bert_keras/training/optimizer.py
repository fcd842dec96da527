"""The optimizers of BERT: AdamW, LAMB and Muon."""

import keras
import tensorflow as tf

from bert_keras.training.schedule import WarmupDecay
from bert_keras.training.updates import BertUpdates


@keras.saving.register_keras_serializable(package="bert_keras")
class BertAdamW(BertUpdates, keras.optimizers.AdamW):
    """AdamW that never decays biases and norms (Loshchilov and Hutter 2019).

    Args:
        lazy_embeddings: of a table whose gradient is sparse, move only the rows that
            are in the batch, with their moments and their decay.
        rate_factors: name of a layer -> what the learning rate is times for its
            weights; 1 for the layers that are not named.

    The other arguments are those of `keras.optimizers.AdamW`, without `amsgrad`.
    """


@keras.saving.register_keras_serializable(package="bert_keras")
class BertLamb(BertUpdates, keras.optimizers.AdamW):
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


@keras.saving.register_keras_serializable(package="bert_keras")
class BertMuon(BertUpdates, keras.optimizers.AdamW):
    """Muon for the kernels of the blocks, AdamW for all else (Jordan et al. 2024).

    A kernel moves along its momentum *made orthogonal*: directions that few examples
    ask for count as much as those that all do. Its numbers move by 0.2 of the learning
    rate, in the mean of squares, as they do in AdamW, so that one rate and one decay
    suit both (Liu et al. 2025, "Muon is Scalable for LLM Training", 2.2).

    Args:
        momentum: share of the past in the mean of the gradients of those kernels.

    The other arguments are those of `BertAdamW`.
    """

    def __init__(self, *args, momentum: float = 0.95, **kwargs):
        super().__init__(*args, **kwargs)
        self.momentum = momentum

    def _update_whole(self, gradient, variable, rate):
        index = self._get_variable_index(variable)
        path = self._trainable_variables[index].path
        if not _is_kernel_of_block(path):
            super()._update_whole(gradient, variable, rate)
            return
        mean = self._momentums[index]
        self.assign_add(mean, (gradient - mean) * (1 - self.momentum))
        ahead = gradient + (mean - gradient) * self.momentum  # Nesterov
        # Queries, keys and values are three maps that share a variable.
        maps = 3 if path.endswith("query_key_value/kernel") else 1
        update = tf.concat(
            [
                orthogonal(part) * (0.2 * max(part.shape) ** 0.5)
                for part in tf.split(ahead, maps, axis=1)
            ],
            axis=1,
        )
        update += (self.weight_decay or 0.0) * variable
        self.assign_sub(variable, rate * update)

    def get_config(self):
        return {**super().get_config(), "momentum": self.momentum}


def _is_kernel_of_block(path: str) -> bool:
    *layers, name = path.split("/")
    return name == "kernel" and any(layer.startswith("block_") for layer in layers)


def orthogonal(matrix: tf.Tensor) -> tf.Tensor:
    """Returns a matrix with the same singular vectors, and all values near 1.

    Five steps of an iteration of Newton and Schulz, whose odd polynomial of degree 5
    takes values from 0.01 to 1 to between 0.7 and 1.2 (Jordan et al. 2024, "Muon").

    Args:
        matrix: float `[rows, columns]`.
    """
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = tf.math.divide_no_nan(matrix, tf.norm(matrix))
    for _ in range(5):
        square = tf.matmul(x, x, transpose_a=is_tall, transpose_b=not is_tall)
        factor = -4.775 * square + 2.0315 * tf.matmul(square, square)
        product = tf.matmul(x, factor) if is_tall else tf.matmul(factor, x)
        x = 3.4445 * x + product
    return x


OPTIMIZERS = {"adamw": BertAdamW, "lamb": BertLamb, "muon": BertMuon}


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
    """Returns AdamW, LAMB or Muon, as BERT uses it.

    Weight decay on kernels and tables only, gradients clipped by their global norm,
    beta 0.9 and 0.999 (google-research/bert, `optimization.py`).

    Args:
        learning_rate: peak of the schedule.
        total_steps: steps of the whole run.
        warmup_share: share of the steps in which the rate rises.
        decay: how it falls: `"linear"`, `"cosine"` or `"constant"`.
        weight_decay: decoupled decay, times the learning rate.
        clip_norm: greatest global norm of the gradients.
        optimizer: `"adamw"`; `"lamb"`, for large batches; or `"muon"`, which learns
            more from a step, of which it makes a longer one.
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

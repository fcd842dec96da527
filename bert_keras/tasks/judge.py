"""Which epoch of a fine-tuning run was best, and when a run has seen enough."""

import math
from collections.abc import Sequence
from pathlib import Path

import keras

from bert_keras.tasks.answers import Reader
from bert_keras.tasks.kinds import Kind
from bert_keras.tasks.options import FinetuningOptions
from bert_keras.training.checkpoint import save_model

Metrics = dict[str, float | None]


def evaluated(kind: Kind, reader: Reader, examples: Sequence) -> Metrics:
    """Returns the metrics of a model as JSON values.

    A correlation with numbers that are all the same is NaN, which JSON has not: None.
    """
    found = kind.evaluate(reader, examples)
    return {k: v if math.isfinite(v) else None for k, v in found.items()}


class Judge(keras.callbacks.Callback):
    """Evaluates after each epoch, keeps the best model, and ends a run that is done.

    Every process of several takes part, and comes to the same.

    Args:
        kind: of the task.
        dev: examples to evaluate on; without any, nothing is done.
        metric: that decides.
        patience: epochs without a better one that are enough; 0: never.
        steps_per_epoch: steps of an epoch.
        first_step: steps that were taken before.
        epochs: metrics of the epochs before.

    Attributes:
        epochs: the metrics of each epoch.
        best_file: where the best model so far is saved, if it is.
        record: told the metrics, under the names of held-out text.
    """

    def __init__(
        self,
        kind: Kind,
        dev: Sequence,
        metric: str,
        *,
        patience: int,
        steps_per_epoch: int,
        first_step: int = 0,
        epochs: Sequence[Metrics] = (),
    ):
        super().__init__()
        self.kind, self.dev, self.metric = kind, dev, metric
        self.patience, self.steps_per_epoch = patience, steps_per_epoch
        self.first_step = first_step
        self.epochs = list(epochs)
        self.best_file: Path | None = None
        self.record = lambda values: None

    @property
    def best(self) -> int:
        """Number of the best epoch, from 1: the first of equal ones; 0 before any."""
        values = [epoch[self.metric] for epoch in self.epochs]
        values = [-math.inf if value is None else value for value in values]
        return values.index(max(values)) + 1 if values else 0

    @property
    def has_enough(self) -> bool:
        """Whether the last few epochs were no better."""
        return 0 < self.patience <= len(self.epochs) - self.best

    def on_train_batch_end(self, batch, logs=None):
        step = self.first_step + batch + 1
        if step % self.steps_per_epoch or not self.dev:
            return
        found = evaluated(self.kind, self.model, self.dev)
        self.record({f"held_out_{k}": v for k, v in found.items() if v is not None})
        self.epochs.append(found)
        if self.best_file and self.best == len(self.epochs):
            save_model(self.model, self.best_file)
        self.model.stop_training = self.has_enough


def check_metric(kind: Kind, options: FinetuningOptions, dev: Sequence) -> str:
    """Returns the metric that decides which epoch was best."""
    metric = options.metric or kind.metrics[0]
    if metric not in kind.metrics:
        raise ValueError(
            f"Received: metric={metric!r}; allowed: {', '.join(kind.metrics)}."
        )
    if options.patience and not dev:
        raise ValueError(
            f"Received: patience={options.patience} without dev examples; allowed: 0."
        )
    return metric

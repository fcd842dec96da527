"""A progress line on standard error, in a terminal as well as in a log."""

import time

import keras
from tqdm import tqdm

_SHOWN = ("loss", "masked_lm_accuracy", "next_sentence_accuracy")


class ProgressLine(keras.callbacks.Callback):
    """Shows steps done, time left, tokens a second, loss and accuracies.

    Args:
        tokens_per_step: tokens in a global batch, padding included.
        label: what the line begins with.
    """

    def __init__(self, tokens_per_step: int, label: str = "pretrain"):
        super().__init__()
        self.tokens_per_step = tokens_per_step
        self.label = label

    def on_train_begin(self, logs=None):
        self._bar = tqdm(total=self.params["steps"], desc=self.label, unit="step")
        self._started = None

    def on_train_batch_end(self, batch, logs=None):
        now = time.perf_counter()
        if self._started is None:  # the first step compiles; it says nothing of speed
            self._started, self._first = now, batch
        shown = {name: f"{logs[name]:.3f}" for name in _SHOWN if name in logs}
        steps = batch - self._first
        if steps:
            rate = steps * self.tokens_per_step / (now - self._started)
            shown["tokens/s"] = f"{rate:,.0f}"
        self._bar.set_postfix(shown, refresh=False)
        self._bar.update(1)

    def on_train_end(self, logs=None):
        self._bar.close()

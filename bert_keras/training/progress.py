"""What a person sees of training: a line on standard error, and curves on disk."""

import json
import time
from pathlib import Path

import keras
import tensorflow as tf
from tqdm import tqdm

RECORDS = "metrics.jsonl"
TENSORBOARD = "tensorboard"
_SHOWN = (
    "loss",
    "masked_lm_accuracy",
    "next_sentence_accuracy",
    "label_accuracy",
    "tag_accuracy",
    "start_accuracy",
    "end_accuracy",
)


class Progress(keras.callbacks.Callback):
    """Shows steps done, time left, tokens a second, loss and accuracies; records them.

    Each record is of the steps since the last one, not of all.

    Args:
        total: steps of the whole run.
        first_step: of these, those that were taken before.
        tokens_per_step: tokens in a global batch, padding included.
        every: steps between two records.
        folder: where to append to `metrics.jsonl` and write for TensorBoard; what a
            stopped run recorded beyond `first_step` is dropped. Nowhere if None.
        name: what the run does, before the line.
    """

    def __init__(
        self,
        total: int,
        first_step: int,
        tokens_per_step: int,
        every: int = 50,
        folder: Path | None = None,
        name: str = "pretrain",
    ):
        super().__init__()
        self.name = name
        self.total, self.first_step = total, first_step
        self.tokens_per_step, self.every = tokens_per_step, every
        self.folder = folder
        self._done = first_step

    def on_train_begin(self, logs=None):
        self._bar = tqdm(
            total=self.total, initial=self.first_step, desc=self.name, unit="step"
        )
        self._since = None
        if self.folder:
            _drop_beyond(self.folder / RECORDS, self.first_step)
            self._writer = tf.summary.create_file_writer(str(self.folder / TENSORBOARD))

    def on_train_batch_end(self, batch, logs=None):
        self._done = self.first_step + batch + 1
        self._bar.update(self._done - self._bar.n)
        if self._since is None:  # the first step compiles; it says nothing of speed
            self._since = self._done, time.perf_counter()
        if self._done % self.every and self._done < self.total:
            return
        values = {name: float(value) for name, value in logs.items()}
        step, started = self._since
        now = time.perf_counter()
        if self._done > step:
            rate = (self._done - step) * self.tokens_per_step / (now - started)
            values["tokens_per_second"] = round(rate)
        self._since = self._done, now
        self._bar.set_postfix(_shown(values), refresh=False)
        rate = float(self.model.optimizer.learning_rate)
        self.record({**values, "learning_rate": rate})
        self.model.reset_metrics()

    def on_train_end(self, logs=None):
        self._bar.close()

    def record(self, values: dict[str, float]) -> None:
        """Writes down some values, now."""
        if not self.folder:
            return
        with open(self.folder / RECORDS, "a", encoding="utf-8") as file:
            file.write(json.dumps({"step": self._done, **values}) + "\n")
        # What `tf.summary.scalar` writes, which needs TensorBoard installed to write.
        metadata = tf.compat.v1.SummaryMetadata()
        metadata.plugin_data.plugin_name = "scalars"
        with self._writer.as_default():
            for name, value in values.items():
                tensor = tf.constant(value, tf.float32)
                tf.summary.write(name, tensor, step=self._done, metadata=metadata)
        self._writer.flush()


def read_records(folder: Path) -> list[dict]:
    """Returns the records of a run, the oldest first."""
    path = folder / RECORDS
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.endswith("}")]


def _drop_beyond(path: Path, step: int) -> None:
    """Keeps the records up to a step: those beyond are written anew."""
    kept = [record for record in read_records(path.parent) if record["step"] <= step]
    text = "".join(json.dumps(record) + "\n" for record in kept)
    path.write_text(text, encoding="utf-8")


def _shown(values: dict[str, float]) -> dict[str, str]:
    shown = {name: f"{values[name]:.3f}" for name in _SHOWN if name in values}
    if "tokens_per_second" in values:
        shown["tokens/s"] = f"{values['tokens_per_second']:,}"
    return shown

"""A fine-tuning run: a folder that holds all of it, and can be taken up again.

run.json        how to do it again: task, options, hashes of data and model, versions
checkpoints/    the last few: model, optimizer, random state, what was best
metrics.jsonl   loss and accuracies, and metrics on dev examples; tensorboard/ the same
best.keras      the model of the best epoch so far
model.keras     the model that is kept, when it is finished
metrics.json    the metrics of each epoch
"""

import dataclasses
import hashlib
import math
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import keras

from bert_keras.encoder.backbone import BertBackbone
from bert_keras.files import replacing, write_json
from bert_keras.tasks.kinds import KINDS, Kind, numbered
from bert_keras.tasks.model import TaskModel
from bert_keras.tasks.options import OWN, FinetuningOptions
from bert_keras.tasks.pooling import POOLER
from bert_keras.tasks.rows import Batches
from bert_keras.tokens.preprocessor import BertPreprocessor
from bert_keras.training.checkpoint import (
    MODEL_FILE,
    Checkpoints,
    SaveEvery,
    save_model,
)
from bert_keras.training.optimizer import bert_optimizer
from bert_keras.training.options import PRECISIONS
from bert_keras.training.progress import Progress
from bert_keras.training.run import (
    CHECKPOINTS,
    METRICS_FILE,
    RUN_FILE,
    RunSettings,
    refuse_another_run,
    say,
    versions,
)
from bert_keras.training.strategies import is_chief, wait_for_all

BEST_FILE = "best.keras"
_COMPILED_LENGTHS = 32  # lengths of rows are multiples of this where XLA compiles


class Finetuned(NamedTuple):
    """What a run came to.

    Attributes:
        model: the one that is kept; of several processes, those that do not write have
            the last one.
        epochs: the metrics on the dev examples after each epoch; empty without any.
        best: number of the best of these, from 1; 0 without any.
    """

    model: TaskModel
    epochs: list[dict[str, float | None]]
    best: int


def finetune(
    model: keras.Model,
    task: str,
    train: Sequence,
    dev: Sequence,
    options: FinetuningOptions,
    out: str | os.PathLike,
    settings: RunSettings = RunSettings(),
) -> Finetuned:
    """Fine-tunes an encoder for a task, saves into `out` as it goes, and evaluates.

    Called again with the same arguments it goes on where it was stopped, and ends with
    the same weights, bit for bit on the same machine.

    Args:
        model: any model of this package that carries its preprocessor. Its encoder is
            where the run begins; of a model of the same task and labels, the head too.
        task: `"classify"`, `"regress"`, `"tag"` or `"span"`.
        train: examples, as `KINDS[task].read` returns them.
        dev: examples to choose the best epoch by; may be empty.
        options: what decides the run.
        out: its folder.
        settings: how it is done.

    Raises:
        ValueError: an unknown task or metric, no examples, a label in `dev` that is not
            in `train`, rows that are longer than the position table.
        AnotherRunError: `out` holds a run of other data, options or another model.
    """
    kind = kind_named(task)
    metric = check_metric(kind, options, dev)
    _check_examples(train, model, options)
    out, strategy = Path(out), settings.found_strategy()
    is_writer = is_chief(strategy)
    wanted = {
        "options": {"task": task, **dataclasses.asdict(options)},
        "data": {
            "train": _hash(train),
            "dev": _hash(dev),
            "model": hash_of_model(model),
        },
    }
    found = Checkpoints(out / CHECKPOINTS, settings.keep, say).newest()
    if found or (out / MODEL_FILE).exists():  # one never saved is no run yet
        refuse_another_run(out, wanted)
    keras.utils.set_random_seed(options.seed)
    with strategy.scope():
        if found:
            tuned = keras.saving.load_model(found.path)
            tuned.jit_compile = settings.uses_xla
        else:
            tuned = _new_model(model, kind, train, options)
    numbered(kind.labels(dev), tuned.task.labels)  # refuses what is unknown
    batches = Batches(
        kind.rows(tuned, train, options.balanced),
        batch_size=options.batch_size,
        epochs=options.epochs,
        seed=options.seed,
        pad_id=tuned.preprocessor.tokenizer.special_ids.pad,
        multiple=_COMPILED_LENGTHS if settings.uses_xla else 1,
    )
    if not found:
        with strategy.scope():
            _compile(tuned, options, batches.steps, settings)
    step = found.step if found else 0
    judge = Judge(kind, dev, metric, options.patience, batches.steps_per_epoch, step)
    if found:
        judge.take_up(found.state)
    if step < batches.steps and not judge.has_enough:
        if is_writer:
            out.mkdir(parents=True, exist_ok=True)
            write_json({**wanted, "versions": versions()}, out / RUN_FILE)
        tuned.fit(
            batches.dataset(step),
            steps_per_epoch=batches.steps - step,
            shuffle=False,  # the rows come shuffled
            verbose=0,
            callbacks=_callbacks(
                out if is_writer else None, options, settings, batches, step, judge
            ),
        )
    if is_writer:
        _keep(tuned, out, options.kept == "best" and judge.best > 0)
        write_json({"epochs": judge.epochs, "best": judge.best}, out / METRICS_FILE)
    wait_for_all(strategy)
    if is_writer:
        tuned = keras.saving.load_model(out / MODEL_FILE, compile=False)
    return Finetuned(tuned, judge.epochs, judge.best)


class Judge(keras.callbacks.Callback):
    """Evaluates after each epoch, keeps the best model, and ends a run that is done.

    Every process of several takes part, and comes to the same.
    """

    def __init__(self, kind: Kind, dev, metric, patience, steps_per_epoch, first_step):
        super().__init__()
        self.kind, self.dev, self.metric = kind, dev, metric
        self.patience, self.steps_per_epoch = patience, steps_per_epoch
        self.first_step = first_step
        self.epochs: list[dict[str, float]] = []
        self.best = 0
        self.best_file: Path | None = None
        self.record = lambda values: None

    def take_up(self, state: dict) -> None:
        """Goes on from what `state` returned."""
        self.epochs, self.best = state["epochs"], state["best"]

    def state(self) -> dict:
        """Returns what a checkpoint has to hold."""
        return {"epochs": self.epochs, "best": self.best}

    @property
    def has_enough(self) -> bool:
        """Whether the last few epochs were no better."""
        return 0 < self.patience <= len(self.epochs) - self.best

    def on_train_batch_end(self, batch, logs=None):
        step = self.first_step + batch + 1
        if step % self.steps_per_epoch or not self.dev:
            return
        found = self.kind.evaluate(self.model, self.dev)
        # A correlation with numbers that are all the same is none; JSON has no NaN.
        found = {k: v if math.isfinite(v) else None for k, v in found.items()}
        self.record(
            {f"held_out_{k}": v for k, v in found.items() if v is not None},
        )
        before = self.epochs[self.best - 1][self.metric] if self.best else None
        self.epochs = [*self.epochs, found]
        now = found[self.metric]
        if not self.best or (now is not None and (before is None or now > before)):
            self.best = len(self.epochs)
            if self.best_file:
                save_model(self.model, self.best_file)
        self.model.stop_training = self.has_enough


def kind_named(task: str) -> Kind:
    """Returns what fine-tuning has to know of a task; a `ValueError` lists them."""
    if task not in KINDS:
        raise ValueError(
            f"Unknown task. Received: {task!r}; allowed: {', '.join(KINDS)}."
        )
    return KINDS[task]


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


def _check_examples(train: Sequence, model, options: FinetuningOptions) -> None:
    if not train:
        raise ValueError("Received: no examples to train on; allowed: some.")
    rows = model.backbone.max_sequence_length
    if options.sequence_length > rows:
        raise ValueError(
            f"Rows are longer than the position table. Received: sequence_length="
            f"{options.sequence_length}; allowed: at most {rows}."
        )


def _hash(examples: Sequence) -> str:
    digest = hashlib.sha256()
    for example in examples:
        digest.update(repr(tuple(example)).encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def hash_of_model(model: keras.Model) -> str:
    """Returns the SHA-256 of the encoder's weights and the vocabulary."""
    digest = hashlib.sha256()
    for weight in model.backbone.get_weights():
        digest.update(weight.tobytes())
    digest.update("\n".join(model.preprocessor.tokenizer.vocabulary).encode("utf-8"))
    return digest.hexdigest()


def _new_model(model, kind: Kind, train, options: FinetuningOptions) -> TaskModel:
    config = model.backbone.get_config()
    config |= {"dtype": PRECISIONS[options.precision], "dropout": options.dropout}
    backbone = BertBackbone.from_config(config)
    backbone.set_weights(model.backbone.get_weights())
    preprocessor = BertPreprocessor(
        model.preprocessor.tokenizer.copy(engine=None),
        options.sequence_length,
        pad_to_longest=True,
    )
    labels = kind.labels(train)
    before = getattr(model, "task", None)
    if before and set(before.labels) == set(labels):
        labels = before.labels
    made = kind.model(
        backbone,
        preprocessor,
        train,
        labels,
        pooling=pooling_of(model, options),
        dropout=options.dropout,
        frozen=options.frozen,
        micro_batches=options.micro_batches,
    )
    if before == made.task:
        made.head.set_weights(model.head.get_weights())
    return made


def pooling_of(model, options: FinetuningOptions) -> str:
    """Returns what the head will read: by default what was trained to be read."""
    if options.pooling != OWN:
        return options.pooling
    return getattr(model, "arguments", {}).get("pooling", POOLER)


def _compile(model: TaskModel, options: FinetuningOptions, steps: int, settings):
    optimizer = bert_optimizer(
        options.learning_rate,
        steps,
        warmup_share=options.warmup_share,
        decay=options.decay,
        weight_decay=options.weight_decay,
        clip_norm=options.clip_norm,
        optimizer=options.optimizer,
        rate_factors=rate_factors(model, options.layer_decay, options.head_rate),
        epsilon=options.epsilon,
    )
    model.compile(optimizer=optimizer, jit_compile=settings.uses_xla)


def rate_factors(model: TaskModel, decay: float, head: float) -> dict[str, float]:
    """Returns what the learning rate of each layer is times (Clark et al. 2020).

    The head has it `head` times, the pooler once, the top block `decay`, the next
    `decay ** 2`, and so on down to the embeddings.
    """
    layers = [*reversed(model.backbone.blocks), model.backbone.embeddings]
    factors = {layer.name: decay**number for number, layer in enumerate(layers, 1)}
    return {**factors, model.head.name: head}


def _callbacks(out, options, settings: RunSettings, batches, step, judge) -> list:
    """Returns what is done between steps; what writes, if `out` is given."""
    tokens = sum(map(len, next(iter(batches.rows.features.values()))))
    mean = round(tokens * options.batch_size / len(batches.rows))
    progress = Progress(
        batches.steps, step, mean, settings.record_steps, out, name="finetune"
    )
    judge.record = progress.record
    callbacks = [progress, judge]
    if out:
        judge.best_file = out / BEST_FILE
        checkpoints = Checkpoints(out / CHECKPOINTS, settings.keep)
        callbacks.append(
            SaveEvery(
                checkpoints, settings.save_steps, step, lambda step: judge.state()
            )
        )
    return callbacks


def _keep(model: TaskModel, out: Path, best: bool) -> None:
    if not best:
        save_model(model, out / MODEL_FILE)
        return
    with replacing(out / MODEL_FILE) as temporary:
        shutil.copyfile(out / BEST_FILE, temporary)

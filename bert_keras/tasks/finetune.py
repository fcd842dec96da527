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
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import keras

from bert_keras.encoder.backbone import BertBackbone
from bert_keras.files import replacing, write_json
from bert_keras.tasks.judge import Judge, check_metric
from bert_keras.tasks.kinds import KINDS, Kind, numbered
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
from bert_keras.training.encoder_model import EncoderModel
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

    model: EncoderModel
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
    _check(train, model, options)
    out, strategy = Path(out), settings.found_strategy()
    wanted = _described(model, task, train, dev, options)
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
    batches = _batches(tuned, kind, train, options, settings)
    if not found:
        with strategy.scope():
            _compile(tuned, options, batches.steps, settings)
    step = found.step if found else 0
    judge = Judge(
        kind,
        dev,
        metric,
        patience=options.patience,
        steps_per_epoch=batches.steps_per_epoch,
        first_step=step,
        epochs=found.state["epochs"] if found else (),
    )
    is_writer = is_chief(strategy)
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
        tuned = keras.saving.load_model(out / MODEL_FILE, compile=False)
    wait_for_all(strategy)
    return Finetuned(tuned, judge.epochs, judge.best)


def kind_named(task: str) -> Kind:
    """Returns what fine-tuning has to know of a task; a `ValueError` lists them."""
    if task not in KINDS:
        raise ValueError(
            f"Unknown task. Received: {task!r}; allowed: {', '.join(KINDS)}."
        )
    return KINDS[task]


def _check(train: Sequence, model, options: FinetuningOptions) -> None:
    """Refuses what no run can begin with."""
    if not train:
        raise ValueError("Received: no examples to train on; allowed: some.")
    if not isinstance(model, EncoderModel) or model.preprocessor is None:
        raise ValueError(
            f"A run begins with a model that reads text. Received: "
            f"{type(model).__name__} without a preprocessor; allowed: a model of this "
            "package with its vocabulary."
        )
    rows = model.backbone.max_sequence_length
    if options.sequence_length > rows:
        raise ValueError(
            f"Rows are longer than the position table. Received: sequence_length="
            f"{options.sequence_length}; allowed: at most {rows}."
        )


def _described(model, task: str, train, dev, options: FinetuningOptions) -> dict:
    """Returns all that decides a run, as JSON values."""
    data = {"train": _hash(train), "dev": _hash(dev), "model": hash_of_model(model)}
    return {"options": {"task": task, **dataclasses.asdict(options)}, "data": data}


def _hash(examples: Sequence) -> str:
    digest = hashlib.sha256()
    for example in examples:
        digest.update(repr(tuple(example)).encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def hash_of_model(model: EncoderModel) -> str:
    """Returns the SHA-256 of weights, vocabulary and the tokenizer's options."""
    digest = hashlib.sha256()
    for weight in model.get_weights():
        digest.update(weight.tobytes())
    tokenizer = model.preprocessor.tokenizer
    known = [list(tokenizer.vocabulary), tokenizer.settings()]
    digest.update(json.dumps(known).encode("utf-8"))
    return digest.hexdigest()


def _batches(
    model: EncoderModel, kind: Kind, train, options: FinetuningOptions, settings
) -> Batches:
    return Batches(
        kind.rows(model, train, options.balanced),
        batch_size=options.batch_size,
        epochs=options.epochs,
        seed=options.seed,
        pad_id=model.preprocessor.tokenizer.special_ids.pad,
        multiple=_COMPILED_LENGTHS if settings.uses_xla else 1,
    )


def _new_model(model, kind: Kind, train, options: FinetuningOptions) -> EncoderModel:
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
    before = model.task
    if set(before.labels) == set(labels):
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
    return model.arguments.get("pooling", POOLER)


def _compile(model: EncoderModel, options: FinetuningOptions, steps: int, settings):
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


def rate_factors(model: EncoderModel, decay: float, head: float) -> dict[str, float]:
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
                checkpoints,
                settings.save_steps,
                step,
                lambda _: {"epochs": judge.epochs},
            )
        )
    return callbacks


def _keep(model: EncoderModel, out: Path, best: bool) -> None:
    if not best:
        save_model(model, out / MODEL_FILE)
        return
    with replacing(out / MODEL_FILE) as temporary:
        shutil.copyfile(out / BEST_FILE, temporary)

"""A pretraining run: a folder that holds all of it, and can be taken up again.

run.json        how to do it again: options, hashes of the data, versions
checkpoints/    the last few: model, optimizer, random state, place in the data
metrics.jsonl   loss and accuracies, every so many steps; tensorboard/ the same
model.keras     the model, when it is finished
metrics.json    what it reached on the held-out documents
"""

import dataclasses
import math
import os
from pathlib import Path
from typing import NamedTuple

import keras
import tensorflow as tf

from bert_keras.encoder.backbone import BertBackbone
from bert_keras.files import write_json
from bert_keras.pretraining.data import Place, PretrainingData, unigram_accuracy
from bert_keras.pretraining.model import BertPretrainer
from bert_keras.pretraining.options import PretrainingOptions
from bert_keras.pretraining.pairs import texts_in_a_row
from bert_keras.pretraining.shards import Shards
from bert_keras.tokens.masker import MaskedLMMasker
from bert_keras.tokens.packer import BertPacker
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

_MOST_EVALUATED = 1 << 20  # tokens of held-out text


class Evaluation(NamedTuple):
    """What a run reached on the held-out documents.

    Attributes:
        metrics: loss, accuracies, and the masked-LM perplexity.
        unigram_accuracy: masked-LM accuracy of always answering the most frequent
            piece.
    """

    metrics: dict[str, float]
    unigram_accuracy: float


def pretrain(
    shards: Shards,
    options: PretrainingOptions,
    out: str | os.PathLike,
    settings: RunSettings = RunSettings(),
) -> tuple[BertPretrainer, Evaluation | None]:
    """Pretrains, saves into `out` as it goes, and evaluates.

    Called again with the same arguments it goes on where it was stopped, and ends with
    the same weights, bit for bit on the same machine.

    Args:
        shards: the prepared corpus, of which one document in twenty is held out.
        options: what decides the run.
        out: its folder.
        settings: how it is done.

    Returns:
        The model, and the evaluation (None where too little is held out).

    Raises:
        AnotherRunError: `out` holds a run of another corpus, vocabulary or options.
    """
    out = Path(out)
    strategy = settings.found_strategy()
    is_writer = is_chief(strategy)
    found = Checkpoints(out / CHECKPOINTS, settings.keep, say).newest()
    wanted = _described(shards, options)
    if found or (out / MODEL_FILE).exists():  # one never saved is no run yet
        refuse_another_run(out, wanted)
    keras.utils.set_random_seed(options.seed)
    place = Place(*found.state["place"]) if found else Place()
    data = _data(shards, options)
    held_out = _held_out(shards, options)
    with strategy.scope():
        if found:
            model = keras.saving.load_model(found.path)
            model.jit_compile = settings.uses_xla  # how it is done may change
        else:
            model = _new_model(shards, options, settings)
    if place.step < options.steps:
        if is_writer:
            out.mkdir(parents=True, exist_ok=True)
            write_json({**wanted, "versions": versions()}, out / RUN_FILE)
        model.fit(
            data.dataset(place),
            steps_per_epoch=options.steps - place.step,
            shuffle=False,  # the rows come shuffled
            verbose=0,
            callbacks=_callbacks(
                out if is_writer else None, options, settings, data, place, held_out
            ),
        )
        if is_writer:
            save_model(model, out / MODEL_FILE)
    evaluation = held_out and _evaluate(model, held_out)
    if evaluation and is_writer:
        write_json(evaluation._asdict(), out / METRICS_FILE)
    wait_for_all(strategy)
    return model, evaluation


def _described(shards: Shards, options: PretrainingOptions) -> dict:
    """Returns all that decides a run, as JSON values."""
    manifest = shards.manifest
    data = {
        name: manifest[name]
        for name in ("vocabulary", "tokenizer", "special_tokens", "corpus", "tokens")
    }
    return {
        "options": dataclasses.asdict(options),
        "data": {"shards": shards.digest, **data},
    }


def _new_model(
    shards: Shards, options: PretrainingOptions, settings: RunSettings
) -> BertPretrainer:
    tokenizer = shards.tokenizer
    backbone = BertBackbone.from_size(
        options.size,
        vocabulary_size=tokenizer.ids_end,
        max_sequence_length=options.sequence_length,
        dropout=options.dropout,
        dtype=PRECISIONS[options.precision],
    )
    # The model is asked by writing [MASK] in a text; the corpus is plain text.
    mask = tokenizer.vocabulary.special_tokens.mask
    preprocessor = BertPreprocessor(
        tokenizer.copy(special_tokens_in_text=[mask]),
        options.sequence_length,
        pad_to_longest=True,
    )
    model = BertPretrainer(
        backbone,
        preprocessor,
        tied=not options.untied,
        next_sentence=texts_in_a_row(options.objective) == 2,
        micro_batches=options.micro_batches,
    )
    optimizer = bert_optimizer(
        options.learning_rate,
        options.steps,
        warmup_share=options.warmup_share,
        decay=options.decay,
        weight_decay=options.weight_decay,
        clip_norm=options.clip_norm,
        optimizer=options.optimizer,
        lazy_embeddings=options.lazy_embeddings,
    )
    model.compile(optimizer=optimizer, jit_compile=settings.uses_xla)
    return model


def _data(shards: Shards, options: PretrainingOptions, held_out: bool = False):
    ids = shards.tokenizer.special_ids
    packer = BertPacker(
        options.sequence_length, cls_id=ids.cls, sep_id=ids.sep, pad_id=ids.pad
    )
    masker = MaskedLMMasker.of(
        shards.tokenizer, predictions=options.predictions, unit=options.mask_unit
    )
    return PretrainingData(
        shards,
        packer,
        masker,
        batch_size=options.batch_size,
        seed=options.seed,
        objective=options.objective,
        short_probability=options.short_probability,
        held_out=held_out,
    )


def _held_out(shards: Shards, options: PretrainingOptions) -> tf.data.Dataset | None:
    """Returns batches of held-out text, always the same; None if there is none."""
    if not shards.chunks(held_out=True):
        return None
    batches = _data(shards, options, held_out=True).dataset(epochs=1)
    tokens = options.batch_size * options.sequence_length
    batches = batches.take(-(-_MOST_EVALUATED // tokens)).cache()
    number = batches.reduce(tf.constant(0, tf.int64), lambda count, _: count + 1)
    # Keras warns of a dataset that ends and did not say when.
    return batches.apply(tf.data.experimental.assert_cardinality(number))


def _evaluate(model: BertPretrainer, held_out: tf.data.Dataset) -> Evaluation:
    reached = model.evaluate(held_out, verbose=0, return_dict=True)
    metrics = {name: float(value) for name, value in reached.items()}
    loss = min(metrics["masked_lm_loss"], 700.0)  # the greatest whose exp is finite
    metrics["masked_lm_perplexity"] = math.exp(loss)
    return Evaluation(metrics, unigram_accuracy(held_out))


class _EvaluateEvery(keras.callbacks.Callback):
    """Evaluates as training goes on; every process of several takes part."""

    def __init__(self, held_out, every: int, first_step: int, record):
        super().__init__()
        self.held_out, self.every, self.record = held_out, every, record
        self.first_step = first_step

    def on_train_batch_end(self, batch, logs=None):
        if (self.first_step + batch + 1) % self.every == 0:
            metrics = _evaluate(self.model, self.held_out).metrics
            self.record({f"held_out_{name}": value for name, value in metrics.items()})
            self.model.reset_metrics()


def _callbacks(out: Path | None, options, settings, data, place, held_out) -> list:
    """Returns what is done between steps; what writes, if `out` is given."""
    tokens = options.batch_size * options.sequence_length
    progress = Progress(options.steps, place.step, tokens, settings.record_steps, out)
    callbacks = [progress]
    if held_out and settings.evaluate_steps:
        every = settings.evaluate_steps
        callbacks.append(_EvaluateEvery(held_out, every, place.step, progress.record))
    if out:
        callbacks.append(
            SaveEvery(
                Checkpoints(out / CHECKPOINTS, settings.keep),
                settings.save_steps,
                place.step,
                lambda step: {"place": data.place(step)},
            )
        )
    return callbacks

"""A pretraining run: a folder that holds all of it, and can be taken up again."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import keras
import tensorflow as tf
from tqdm import tqdm

from bert_keras.config import size_named
from bert_keras.encoder.backbone import BertBackbone
from bert_keras.pretraining.corpus import Document
from bert_keras.pretraining.data import (
    pretraining_dataset,
    tokenize_documents,
    unigram_accuracy,
)
from bert_keras.pretraining.model import BertPretrainer
from bert_keras.pretraining.pairs import TokenizedDocument
from bert_keras.text.tokenizer import WordPieceTokenizer
from bert_keras.tokens.masker import MaskedLMMasker
from bert_keras.tokens.packer import BertPacker
from bert_keras.tokens.preprocessor import BertPreprocessor
from bert_keras.training.checkpoint import SaveEvery, write_json
from bert_keras.training.optimizer import bert_optimizer
from bert_keras.training.progress import ProgressLine

MODEL_FILE = "model.keras"
OPTIONS_FILE = "options.json"
METRICS_FILE = "metrics.json"
HELD_OUT_EVERY = 20  # each twentieth document is held out
_LEAST_HELD_OUT = 2  # a random second sentence must come from another document
_SAVE_STEPS = 500


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingOptions:
    """What decides a run, beside the corpus and the vocabulary.

    Attributes:
        size: a name of `bert_keras.config.SIZES`.
        steps: optimizer steps.
        sequence_length: tokens in a row.
        batch_size: rows in a batch.
        predictions: most masked-LM predictions in a row.
        learning_rate: peak of warmup and linear decay.
        dropout: rate of every dropout.
        seed: of weights, dropout, pairs and masks.
    """

    size: str = "tiny"
    steps: int = 10_000
    sequence_length: int = 128
    batch_size: int = 32
    predictions: int = 20
    learning_rate: float = 1e-3
    dropout: float = 0.1
    seed: int = 0

    def __post_init__(self):
        size_named(self.size)
        for name, is_allowed, allowed in (
            ("steps", self.steps >= 1, "at least 1"),
            ("sequence_length", self.sequence_length >= 5, "at least 5"),
            ("batch_size", self.batch_size >= 1, "at least 1"),
            ("predictions", self.predictions >= 1, "at least 1"),
            ("learning_rate", self.learning_rate > 0, "above 0"),
            ("dropout", 0 <= self.dropout < 1, "0 up to, but not, 1"),
            ("seed", 0 <= self.seed < 1 << 31, "0 to 2147483647"),
        ):
            if not is_allowed:
                raise ValueError(
                    f"Received: {name}={getattr(self, name)!r}; allowed: {allowed}."
                )


class AnotherRunError(ValueError):
    """A folder holds a run that is not the one asked for."""


class Evaluation(NamedTuple):
    """What a run reached on the held-out documents.

    Attributes:
        metrics: loss and accuracies.
        unigram_accuracy: masked-LM accuracy of always answering the most frequent
            piece.
    """

    metrics: dict[str, float]
    unigram_accuracy: float


def split_documents(
    documents: Sequence[Document],
) -> tuple[list[Document], list[Document]]:
    """Returns the documents to train on, and each twentieth, to be held out.

    With fewer than 40 documents none is held out.
    """
    held_out = list(documents[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY])
    if len(held_out) < _LEAST_HELD_OUT:
        return list(documents), []
    training = [
        document
        for number, document in enumerate(documents, 1)
        if number % HELD_OUT_EVERY
    ]
    return training, held_out


def pretrain(
    documents: Sequence[Document],
    tokenizer: WordPieceTokenizer,
    options: PretrainingOptions,
    out: str | os.PathLike,
) -> tuple[BertPretrainer, Evaluation | None]:
    """Pretrains, saves into `out` as it goes, and evaluates.

    Called again with the same arguments it goes on where it was stopped, with the same
    rows and masks.

    Args:
        documents: the corpus; each twentieth document is held out.
        tokenizer: cuts the text.
        options: everything else.
        out: folder for the model (`model.keras`), options and metrics.

    Returns:
        The model, and the evaluation (None with fewer than 40 documents).

    Raises:
        AnotherRunError: `out` holds a run of another corpus, vocabulary or options.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    wanted = _described(documents, tokenizer, options)
    _refuse_another_run(out, wanted)
    keras.utils.set_random_seed(options.seed)
    model = _model(out, tokenizer, options)
    done = int(model.optimizer.iterations)
    training, held_out = split_documents(documents)
    rows = _rows(tokenizer, options)
    if done < options.steps:
        dataset = pretraining_dataset(
            _tokenized(training, tokenizer, "tokenize"),
            *rows,
            batch_size=options.batch_size,
            seed=options.seed,
            first_step=done,
        )
        write_json(wanted, out / OPTIONS_FILE)
        model.fit(
            dataset,
            steps_per_epoch=options.steps - done,
            shuffle=False,  # the pairs come shuffled
            verbose=0,
            callbacks=[
                SaveEvery(out / MODEL_FILE, _SAVE_STEPS),
                ProgressLine(options.batch_size * options.sequence_length),
            ],
        )
    if not held_out:
        return model, None
    evaluation = _evaluate(model, held_out, tokenizer, rows, options)
    write_json(evaluation._asdict(), out / METRICS_FILE)
    return model, evaluation


def _described(documents, tokenizer, options: PretrainingOptions) -> dict:
    """Returns all that decides a run, as JSON values."""
    corpus = hashlib.sha256()
    for document in documents:
        corpus.update("\n".join(document).encode() + b"\n\n")
    tokens = "\n".join(tokenizer.vocabulary).encode()
    return {
        **dataclasses.asdict(options),
        "corpus": corpus.hexdigest(),
        "vocabulary": hashlib.sha256(tokens).hexdigest(),
        # What decides ids, and not how they are laid out or by which engine.
        **tokenizer.options.as_json(),
        "special_tokens": list(tokenizer.vocabulary.special_tokens),
    }


def _refuse_another_run(out: Path, wanted: dict) -> None:
    """Raises if `out` holds a model of other options; one never saved is no run yet."""
    path = out / OPTIONS_FILE
    if not (path.exists() and (out / MODEL_FILE).exists()):
        return
    found = json.loads(path.read_text(encoding="utf-8"))
    for name, value in wanted.items():
        if found.get(name) != value:
            raise AnotherRunError(
                f"{out} holds another run. Received: {name}={value!r}; allowed: "
                f"{name}={found.get(name)!r}, as it was begun, or another folder."
            )


def _model(out: Path, tokenizer, options: PretrainingOptions) -> BertPretrainer:
    """Loads the run's model, or makes it and compiles it."""
    if (out / MODEL_FILE).exists():
        return keras.saving.load_model(out / MODEL_FILE)
    backbone = BertBackbone.from_size(
        options.size,
        vocabulary_size=tokenizer.ids_end,
        max_sequence_length=options.sequence_length,
        dropout=options.dropout,
    )
    # The model is asked by writing [MASK] in a text; the corpus is plain text.
    mask = tokenizer.vocabulary.special_tokens.mask
    preprocessor = BertPreprocessor(
        tokenizer.copy(special_tokens_in_text=[mask]),
        options.sequence_length,
        pad_to_longest=True,
    )
    model = BertPretrainer(backbone, preprocessor)
    # On a CPU, XLA takes longer to compile than it saves in a run of this kind.
    has_gpu = bool(tf.config.list_physical_devices("GPU"))
    optimizer = bert_optimizer(options.learning_rate, options.steps)
    model.compile(optimizer=optimizer, jit_compile=has_gpu)
    return model


def _rows(tokenizer, options: PretrainingOptions) -> tuple[BertPacker, MaskedLMMasker]:
    ids = tokenizer.special_ids
    packer = BertPacker(
        options.sequence_length, cls_id=ids.cls, sep_id=ids.sep, pad_id=ids.pad
    )
    masker = MaskedLMMasker(
        len(tokenizer.vocabulary),
        ids,
        predictions=options.predictions,
        id_offset=tokenizer.options.id_offset,
    )
    return packer, masker


def _tokenized(documents, tokenizer, label: str) -> list[TokenizedDocument]:
    with tqdm(documents, desc=label, unit="doc") as progress:
        return list(tokenize_documents(progress, tokenizer))


def _evaluate(model, held_out, tokenizer, rows, options) -> Evaluation:
    dataset = pretraining_dataset(
        _tokenized(held_out, tokenizer, "tokenize held-out documents"),
        *rows,
        batch_size=options.batch_size,
        seed=options.seed,
        epochs=1,
    ).cache()
    baseline = unigram_accuracy(dataset)
    reached = model.evaluate(dataset, verbose=0, return_dict=True)
    metrics = {name: float(value) for name, value in reached.items()}
    return Evaluation(metrics, baseline)

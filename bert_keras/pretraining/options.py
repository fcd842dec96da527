"""What decides a pretraining run, beside its corpus."""

import dataclasses

from bert_keras.config import SIZES
from bert_keras.pretraining.pairs import OBJECTIVES
from bert_keras.tokens.units import UNITS
from bert_keras.training.optimizer import OPTIMIZERS
from bert_keras.training.schedule import DECAYS

PRECISIONS = {
    "float32": "float32",
    "bfloat16": "mixed_bfloat16",
    "float16": "mixed_float16",
}

_KINDS = {int: "an integer", float: "a number", bool: "True or False"}


def _option(default, says: str, *, least=None, most=None, below=None, choices=None):
    """A field that knows what it allows."""
    allowed = {"least": least, "most": most, "below": below, "choices": choices}
    return dataclasses.field(default=default, metadata={"says": says, **allowed})


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingOptions:
    """What decides a run, beside the corpus and the vocabulary.

    Attributes:
        size: a name of `bert_keras.config.SIZES`.
        steps: optimizer steps.
        sequence_length: tokens in a row.
        batch_size: rows in a batch, over all replicas.
        predictions: most masked-LM predictions in a row.
        objective: what is learned beside masked LM (`bert_keras.pretraining.pairs`).
        mask_unit: what masked LM hides together (`MaskedLMMasker`).
        short_probability: how often a row aims at a shorter length.
        learning_rate: peak of the schedule.
        warmup_share: share of the steps in which the rate rises.
        decay: how it falls behind.
        optimizer: `adamw` or `lamb`.
        weight_decay: decoupled decay of kernels and tables, times the learning rate.
        clip_norm: greatest global norm of the gradients.
        dropout: rate of every dropout.
        untied: masked LM has a table of its own.
        lazy_embeddings: move only the rows of untied tables that are in a batch.
        precision: what the network computes in; weights are float32.
        micro_batches: parts in which a batch is worked through.
        seed: of weights, dropout, rows and masks.
    """

    size: str = _option("tiny", "of the encoder", choices=tuple(SIZES))
    steps: int = _option(10_000, "optimizer steps", least=1)
    sequence_length: int = _option(128, "tokens in a row", least=5)
    batch_size: int = _option(32, "rows in a batch, over all replicas", least=1)
    predictions: int = _option(20, "most masked positions in a row", least=1)
    objective: str = _option(
        "next_sentence", "beside masked LM", choices=tuple(OBJECTIVES)
    )
    mask_unit: str = _option("piece", "what is hidden together", choices=UNITS)
    short_probability: float = _option(0.1, "of a shorter row", least=0, most=1)
    learning_rate: float = _option(1e-3, "its peak", least=1e-12)
    warmup_share: float = _option(0.1, "of the steps", least=0, below=1)
    decay: str = _option("linear", "of the learning rate", choices=DECAYS)
    optimizer: str = _option(
        "adamw", "LAMB is for large batches", choices=tuple(OPTIMIZERS)
    )
    weight_decay: float = _option(0.01, "of kernels and tables", least=0)
    clip_norm: float = _option(1.0, "of all gradients", least=1e-12)
    dropout: float = _option(0.1, "rate of every dropout", least=0, below=1)
    untied: bool = _option(False, "masked LM has a table of its own")
    lazy_embeddings: bool = _option(False, "move only rows in a batch; needs --untied")
    precision: str = _option("float32", "of the network", choices=tuple(PRECISIONS))
    micro_batches: int = _option(1, "parts of a batch, one after the other", least=1)
    seed: int = _option(0, "of all chance", least=0, below=1 << 31)

    def __post_init__(self):
        for field in dataclasses.fields(self):
            self._check(field)
        if self.lazy_embeddings and not self.untied:
            raise ValueError(
                "A tied table gets a gradient in every row. Received: "
                "lazy_embeddings=True, untied=False; allowed: both or neither."
            )

    def _check(self, field: dataclasses.Field) -> None:
        value, rule = getattr(self, field.name), field.metadata
        kinds = (int, float) if field.type is float else field.type
        is_allowed = isinstance(value, kinds)
        is_allowed &= isinstance(value, bool) == (field.type is bool)
        words = [] if rule["choices"] else [_KINDS[field.type]]
        for word, limit, holds in (
            ("", rule["choices"], lambda: value in rule["choices"]),
            ("at least ", rule["least"], lambda: value >= rule["least"]),
            ("at most ", rule["most"], lambda: value <= rule["most"]),
            ("below ", rule["below"], lambda: value < rule["below"]),
        ):
            if limit is not None:
                shown = ", ".join(limit) if rule["choices"] else limit
                words.append(f"{word}{shown}")
                is_allowed = is_allowed and holds()
        if not is_allowed:
            raise ValueError(
                f"Received: {field.name}={value!r}; allowed: {', '.join(words)}."
            )

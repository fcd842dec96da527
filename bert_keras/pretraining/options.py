"""What decides a pretraining run, beside its corpus."""

import dataclasses

from bert_keras.config import SIZES
from bert_keras.pretraining.pairs import OBJECTIVES
from bert_keras.tokens.units import UNITS
from bert_keras.training.optimizer import OPTIMIZERS
from bert_keras.training.options import PRECISIONS, Options, option
from bert_keras.training.schedule import DECAYS


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingOptions(Options):
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

    size: str = option("tiny", "of the encoder", choices=tuple(SIZES))
    steps: int = option(10_000, "optimizer steps", least=1)
    sequence_length: int = option(128, "tokens in a row", least=5)
    batch_size: int = option(32, "rows in a batch, over all replicas", least=1)
    predictions: int = option(20, "most masked positions in a row", least=1)
    objective: str = option(
        "next_sentence", "beside masked LM", choices=tuple(OBJECTIVES)
    )
    mask_unit: str = option("piece", "what is hidden together", choices=UNITS)
    short_probability: float = option(0.1, "of a shorter row", least=0, most=1)
    learning_rate: float = option(1e-3, "its peak", least=1e-12)
    warmup_share: float = option(0.1, "of the steps", least=0, below=1)
    decay: str = option("linear", "of the learning rate", choices=DECAYS)
    optimizer: str = option(
        "adamw", "LAMB is for large batches", choices=tuple(OPTIMIZERS)
    )
    weight_decay: float = option(0.01, "of kernels and tables", least=0)
    clip_norm: float = option(1.0, "of all gradients", least=1e-12)
    dropout: float = option(0.1, "rate of every dropout", least=0, below=1)
    untied: bool = option(False, "masked LM has a table of its own")
    lazy_embeddings: bool = option(False, "move only rows in a batch; needs --untied")
    precision: str = option("float32", "of the network", choices=tuple(PRECISIONS))
    micro_batches: int = option(1, "parts of a batch, one after the other", least=1)
    seed: int = option(0, "of all chance", least=0, below=1 << 31)

    def __post_init__(self):
        super().__post_init__()
        if self.lazy_embeddings and not self.untied:
            raise ValueError(
                "A tied table gets a gradient in every row. Received: "
                "lazy_embeddings=True, untied=False; allowed: both or neither."
            )

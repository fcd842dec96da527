"""What decides a fine-tuning run, beside its data and the model it begins with."""

import dataclasses

from bert_keras.tasks.pooling import POOLER, POOLINGS
from bert_keras.training.optimizer import OPTIMIZERS
from bert_keras.training.options import PRECISIONS, Options, option
from bert_keras.training.schedule import DECAYS

KEPT = ("best", "last")
OWN = "own"
POOLED = (OWN, POOLER, *POOLINGS)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningOptions(Options):
    """What decides a run; the defaults are those of Devlin et al. 2018, A.3.

    Attributes:
        epochs: times that every example is seen.
        sequence_length: most tokens in a row; longer texts are cut, or read in windows.
        batch_size: rows in a batch, over all replicas.
        learning_rate: peak of the schedule.
        warmup_share: share of the steps in which the rate rises.
        decay: how it falls behind.
        optimizer: `adamw` or `lamb`.
        weight_decay: decoupled decay of kernels and tables, times the learning rate.
        epsilon: added to the square root of the second moment: smaller than in
            pretraining, since gradients are, once the encoder is trained.
        clip_norm: greatest global norm of the gradients.
        dropout: rate of every dropout.
        layer_decay: what the learning rate is times from one layer to the next below:
            the top block has it once, the embeddings most often.
        head_rate: what the learning rate of the head is times: it begins with nothing,
            and the encoder with much.
        frozen: lower layers that stay as they are: 1 is the embeddings, n is these and
            n - 1 blocks.
        balanced: rows, or words, count in inverse proportion to how frequent their
            class is, with a mean of 1.
        metric: what decides which epoch was best; by default the task's first.
        patience: epochs without a better one after which training stops; 0: never.
        kept: the model that is kept: of the best epoch, or of the last.
        pooling: what the head of a classifier or regressor reads: `"own"` is an
            embedder's own pooling, and of other models the pooler.
        precision: what the network computes in; weights are float32.
        micro_batches: parts in which a batch is worked through.
        seed: of the new weights, dropout and the order of rows.
    """

    epochs: int = option(3, "times that every example is seen", least=1)
    sequence_length: int = option(128, "most tokens in a row", least=5)
    batch_size: int = option(32, "rows in a batch, over all replicas", least=1)
    learning_rate: float = option(5e-5, "its peak", least=1e-12)
    warmup_share: float = option(0.1, "of the steps", least=0, below=1)
    decay: str = option("linear", "of the learning rate", choices=DECAYS)
    optimizer: str = option("adamw", "of the steps", choices=tuple(OPTIMIZERS))
    weight_decay: float = option(0.01, "of kernels and tables", least=0)
    epsilon: float = option(1e-8, "of the optimizer", least=0)
    clip_norm: float = option(1.0, "of all gradients", least=1e-12)
    dropout: float = option(0.1, "rate of every dropout", least=0, below=1)
    layer_decay: float = option(1.0, "of the rate, layer by layer", least=0.01, most=1)
    head_rate: float = option(1.0, "times the learning rate, of the head", least=0)
    frozen: int = option(0, "lower layers that stay as they are", least=0)
    balanced: bool = option(False, "rare classes count more")
    metric: str = option("", "that decides which epoch was best")
    patience: int = option(0, "epochs without a better one; 0: no end", least=0)
    kept: str = option("best", "epoch whose model is kept", choices=KEPT)
    pooling: str = option("own", "what a head reads of a row", choices=POOLED)
    precision: str = option("float32", "of the network", choices=tuple(PRECISIONS))
    micro_batches: int = option(1, "parts of a batch, one after the other", least=1)
    seed: int = option(0, "of all chance", least=0, below=1 << 31)

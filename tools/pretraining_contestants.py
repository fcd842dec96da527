"""What `bench_pretraining.py` has race: each is a process that takes steps when told.

    python tools/pretraining_contestants.py ORDER

ORDER is JSON. Numbers of steps go to standard input; seconds come from standard output.
"""

import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

# Each imports its own library alone, in its function: there may be no other.
Steps = Callable[[int], None]
PEAK_WIDTH = 2048
PEAK_FLOPS = 10 * 2 * PEAK_WIDTH**3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """What is trained: the size of the encoder and of a batch."""

    layers: int = 6
    hidden: int = 384
    heads: int = 12
    sequence: int = 128
    batch: int = 32
    predictions: int = 20
    vocabulary: int = 30522

    @property
    def flops(self) -> int:
        """Arithmetic of all products of a step; backward has two for each forward."""
        per_token = 24 * self.hidden**2 + 4 * self.sequence * self.hidden
        head = 2 * self.hidden**2 + 2 * self.hidden * self.vocabulary
        row = self.layers * per_token * self.sequence + head * self.predictions
        return 3 * self.batch * row


def batches(setting: Setting) -> Iterator[dict[str, np.ndarray]]:
    """Yields features without end, by the names of KerasHub, with labels."""
    random = np.random.default_rng(0)
    rows = setting.batch, setting.sequence
    picked = setting.batch, setting.predictions

    def integers(end: int, shape) -> np.ndarray:
        return random.integers(0, end, shape, dtype=np.int32)

    while True:
        yield {
            "token_ids": integers(setting.vocabulary, rows),
            "segment_ids": integers(2, rows),
            "padding_mask": np.ones(rows, np.int32),
            "mask_positions": integers(setting.sequence, picked),
            "mask_ids": integers(setting.vocabulary, picked),
            "mask_weights": np.ones(picked, np.float32),
            "next_sentence": integers(2, setting.batch),
        }


def _dataset(setting: Setting):
    import tensorflow as tf

    first = next(batches(setting))
    signature = {name: tf.TensorSpec(v.shape, v.dtype) for name, v in first.items()}
    return tf.data.Dataset.from_generator(
        lambda: batches(setting), output_signature=signature
    ).prefetch(1)


def _fitting(model, dataset) -> Steps:
    return lambda steps: model.fit(
        dataset, steps_per_epoch=steps, shuffle=False, verbose=0
    )


def bert_keras_steps(setting: Setting, dtype: str, xla: bool) -> Steps:
    """`BertPretrainer`: masked LM, and next sentence too."""
    from bert_keras import BertBackbone, BertPretrainer, bert_optimizer

    backbone = BertBackbone(
        vocabulary_size=setting.vocabulary,
        num_layers=setting.layers,
        num_heads=setting.heads,
        hidden_dim=setting.hidden,
        intermediate_dim=4 * setting.hidden,
        max_sequence_length=setting.sequence,
        dtype=dtype,
    )
    model = BertPretrainer(backbone)
    model.compile(optimizer=bert_optimizer(1e-4, 10_000), jit_compile=xla)
    return _fitting(model, _dataset(setting))


def kerashub_steps(setting: Setting, dtype: str, xla: bool) -> Steps:
    """KerasHub's `BertMaskedLM`, on its own backbone."""
    import keras
    import keras_hub

    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=setting.vocabulary,
        num_layers=setting.layers,
        num_heads=setting.heads,
        hidden_dim=setting.hidden,
        intermediate_dim=4 * setting.hidden,
        max_sequence_length=setting.sequence,
        dtype=dtype,
    )
    model = keras_hub.models.BertMaskedLM(backbone, preprocessor=None)
    optimizer = keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=loss, jit_compile=xla)
    inputs = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
    dataset = _dataset(setting).map(
        lambda features: (
            {name: features[name] for name in inputs},
            features["mask_ids"],
            features["mask_weights"],
        )
    )
    return _fitting(model, dataset)


def huggingface_steps(setting: Setting, dtype: str, xla: bool) -> Steps:
    """Hugging Face's `BertForMaskedLM`; a label of -100 is none."""
    import torch
    import transformers

    device = "cuda" if torch.cuda.is_available() else "cpu"
    config = transformers.BertConfig(
        vocab_size=setting.vocabulary,
        hidden_size=setting.hidden,
        num_hidden_layers=setting.layers,
        num_attention_heads=setting.heads,
        intermediate_size=4 * setting.hidden,
        max_position_embeddings=setting.sequence,
    )
    model = transformers.BertForMaskedLM(config).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    source = batches(setting)

    def step() -> None:
        features = next(source)
        labels = np.full(features["token_ids"].shape, -100)
        picked = features["mask_positions"]
        np.put_along_axis(labels, picked, features["mask_ids"], axis=1)
        tensors = {
            "input_ids": features["token_ids"],
            "token_type_ids": features["segment_ids"],
            "attention_mask": features["padding_mask"],
            "labels": labels,
        }
        tensors = {
            name: torch.from_numpy(value).long().to(device)
            for name, value in tensors.items()
        }
        with torch.autocast(device, torch.bfloat16, enabled=dtype != "float32"):
            loss = model(**tensors).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()

    return lambda steps: [step() for _ in range(steps)]


def product_steps(setting: Setting, dtype: str, xla: bool) -> Steps:
    """A large matrix product, ten times: the speed nothing can pass."""
    import tensorflow as tf

    one, other = (tf.random.normal([PEAK_WIDTH] * 2) for _ in range(2))
    one, other = (tf.cast(x, dtype.removeprefix("mixed_")) for x in (one, other))
    multiply = tf.function(lambda: tf.matmul(one, other)[0, 0])
    # Ten in a step: one alone is too short to be timed.
    return lambda steps: [float(multiply()) for _ in range(10 * steps)]


CONTESTANTS = {
    "product": product_steps,
    "bert_keras": bert_keras_steps,
    "KerasHub": kerashub_steps,
    "Hugging Face": huggingface_steps,
}
FLOAT32, BFLOAT16 = "float32", "mixed_bfloat16"


def main() -> None:
    order = json.loads(sys.argv[1])
    setting = Setting(**order["setting"])
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # libraries print what they like
    take = CONTESTANTS[order["name"]](setting, order["dtype"], order["xla"])
    take(2)  # compiles
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        started = time.perf_counter()
        take(int(line))
        print(time.perf_counter() - started, file=answers, flush=True)


if __name__ == "__main__":
    main()

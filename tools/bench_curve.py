"""Masked LM on real prose: held-out loss against time, beside KerasHub.

    python tools/bench_curve.py FOLDER_OF_PROSE --out OUT [--minutes 20]

Size mini (4 layers, hidden 256), a vocabulary of 8,000 learned from the prose, rows of
128 tokens, 32 at once, 20 predictions, masked LM alone. Both get the same batches, in
the same order. Ours trains as `bert-keras pretrain` does, in bfloat16; KerasHub's
`BertMaskedLM` with its defaults, AdamW and each of three learning rates, which stay.
Time is that of training; evaluations stop the clock. Every contestant is a process of
its own, one after the other, and leaves OUT/NAME.jsonl; what is there is not run again.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path

import keras
import tensorflow as tf

from bert_keras import (
    BertBackbone,
    BertPacker,
    BertPretrainer,
    CorpusFormat,
    MaskedLMMasker,
    PretrainingData,
    Shards,
    WordPieceTokenizer,
    bert_optimizer,
    count_words,
    learn_vocabulary,
    prepare_corpus,
)

SEQUENCE, BATCH, PREDICTIONS, VOCABULARY = 128, 32, 20, 8000
RATES = (1e-4, 3e-4, 1e-3)
OURS = "bert_keras"
EVALUATIONS = 20
HELD_OUT_BATCHES = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("prose", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--learning-rate", type=float, default=2e-3, help="ours")
    parser.add_argument("--only", help="one contestant, in this process")
    options = parser.parse_args()
    if options.only:
        compete(options)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    prepared(options.prose, options.out / "data")
    names = [OURS, *(f"KerasHub-{rate}" for rate in RATES)]
    for name in names:
        if not (options.out / f"{name}.jsonl").exists():
            arguments = [sys.executable, *sys.argv, "--only", name]
            subprocess.run(arguments, check=True)
    report({name: curve(options.out / f"{name}.jsonl") for name in names})


def prepared(prose: Path, out: Path) -> Shards:
    """Learns the vocabulary and cuts the prose.

    Chapters of books end at three blank lines; of speeches, one a line, some hundred
    are one document then, which masked LM alone does not mind.
    """
    files = sorted(prose.glob("*.gz"))
    tokenizer = WordPieceTokenizer(learn_vocabulary(count_words(files), VOCABULARY))
    return prepare_corpus(files, tokenizer, out, corpus=CorpusFormat(blank_lines=3))


def batches(shards: Shards, held_out: bool = False) -> tf.data.Dataset:
    ids = shards.tokenizer.special_ids
    packer = BertPacker(SEQUENCE, cls_id=ids.cls, sep_id=ids.sep, pad_id=ids.pad)
    masker = MaskedLMMasker.of(shards.tokenizer, predictions=PREDICTIONS)
    data = PretrainingData(
        shards,
        packer,
        masker,
        batch_size=BATCH,
        seed=0,
        objective="masked_lm",
        held_out=held_out,
    )
    dataset = data.dataset(epochs=1 if held_out else None)
    return dataset.take(HELD_OUT_BATCHES).cache() if held_out else dataset


def compete(options: argparse.Namespace) -> None:
    """Trains one contestant for its minutes and writes its curve."""
    keras.utils.set_random_seed(0)
    shards = Shards(options.out / "data")
    training, held_out = batches(shards), batches(shards, held_out=True)
    size = {
        "vocabulary_size": shards.tokenizer.ids_end,
        "max_sequence_length": SEQUENCE,
    }
    if options.only == OURS:
        model = ours(size, training, options)
    else:
        rate = float(options.only.removeprefix("KerasHub-"))
        model = keras_hub_s(size, rate)
        training, held_out = as_keras_hub(training), as_keras_hub(held_out)
    clock = Clock(options.only, held_out, 60 * options.minutes)
    model.fit(
        training,
        steps_per_epoch=1 << 30,
        verbose=0,
        shuffle=False,
        callbacks=[clock],
    )
    lines = "".join(json.dumps(point) + "\n" for point in clock.found)
    (options.out / f"{options.only}.jsonl").write_text(lines)


class Clock(keras.callbacks.Callback):
    """Evaluates twenty times, and ends training when its time is over.

    The first step, which compiles, does not count.
    """

    def __init__(self, name: str, held_out: tf.data.Dataset, seconds: float):
        super().__init__()
        self.name, self.held_out, self.limit = name, held_out, seconds
        self.found: list[dict] = []
        self._worked = 0.0
        self._since = None

    def on_train_batch_end(self, batch, logs=None):
        now = time.perf_counter()
        if self._since is not None:
            self._worked += now - self._since
        aim = (len(self.found) + 1) * self.limit / EVALUATIONS
        if self._worked >= aim:
            point = {
                "seconds": self._worked,
                "steps": batch + 1,
                "held_out_loss": held_out_loss(self.model, self.held_out),
            }
            self.found.append(point)
            print(self.name, point, file=sys.stderr, flush=True)
            self.model.stop_training = self._worked >= self.limit
        self._since = time.perf_counter()


def ours(size: dict, training, options: argparse.Namespace) -> keras.Model:
    def made(steps: int) -> keras.Model:
        keras.utils.set_random_seed(0)
        backbone = BertBackbone.from_size("mini", dtype="mixed_bfloat16", **size)
        model = BertPretrainer(backbone, next_sentence=False)
        optimizer = bert_optimizer(options.learning_rate, steps)
        model.compile(optimizer=optimizer, jit_compile=False)
        return model

    # The schedule has to know how many steps fit in: another model finds out.
    trial = made(100)
    trial.fit(training, steps_per_epoch=5, verbose=0, shuffle=False)
    started = time.perf_counter()
    trial.fit(training, steps_per_epoch=40, verbose=0, shuffle=False)
    step = (time.perf_counter() - started) / 40
    return made(int(60 * options.minutes / step))


def keras_hub_s(size: dict, rate: float) -> keras.Model:
    import keras_hub

    backbone = keras_hub.models.BertBackbone(
        num_layers=4, num_heads=4, hidden_dim=256, intermediate_dim=1024, **size
    )
    model = keras_hub.models.BertMaskedLM(backbone, preprocessor=None)
    model.compile(
        optimizer=keras.optimizers.AdamW(rate),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return model


def as_keras_hub(dataset: tf.data.Dataset) -> tf.data.Dataset:
    inputs = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
    return dataset.map(
        lambda f: ({name: f[name] for name in inputs}, f["mask_ids"], f["mask_weights"])
    )


def held_out_loss(model: keras.Model, held_out) -> float:
    """Returns the mean cross-entropy of a prediction, in nats; the same for both."""
    total = weight = 0.0
    for batch in held_out:
        features, labels, weights = (
            batch
            if isinstance(batch, tuple)
            else (batch, batch["mask_ids"], batch["mask_weights"])
        )
        logits = model(features, training=False)
        logits = logits["masked_lm_logits"] if isinstance(logits, dict) else logits
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels, tf.cast(logits, tf.float32)
        )
        total += float(tf.reduce_sum(losses * weights))
        weight += float(tf.reduce_sum(weights))
    return total / weight


def curve(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def report(curves: dict[str, list[dict]]) -> None:
    """Prints the curves, and when ours was where the best of the others ended."""
    print(f"{'seconds':>8}", *(f"{name:>18}" for name in curves))
    for points in zip(*curves.values(), strict=False):
        losses = (f"{point['held_out_loss']:18.3f}" for point in points)
        print(f"{points[0]['seconds']:8.0f}", *losses)
    print("steps   ", *(f"{points[-1]['steps']:18}" for points in curves.values()))
    others = {name: points[-1] for name, points in curves.items() if name != OURS}
    best = min(others, key=lambda name: others[name]["held_out_loss"])
    aim = others[best]["held_out_loss"]
    reached = next(
        (p["seconds"] for p in curves[OURS] if p["held_out_loss"] <= aim), math.inf
    )
    share = reached / others[best]["seconds"]
    print(f"ours reached the {aim:.3f} of {best} after {share:.2f} of its time")


if __name__ == "__main__":
    main()

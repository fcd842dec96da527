"""Masked LM on real prose: held-out loss against time, beside KerasHub.

    python tools/bench_curve.py FOLDER_OF_PROSE --out OUT [--minutes 20]

Size mini (4 layers, hidden 256), a vocabulary of 8,000 learned from the prose, rows of
128 tokens, 32 at once, 20 predictions, masked LM alone. Both get the same batches, in
the same order. KerasHub's `BertMaskedLM` trains with its defaults (Adam, XLA) at the
best of three learning rates, which a quarter of the time each decides. Ours trains as
`bert-keras pretrain` does, in bfloat16: once for the whole time, and once with a
schedule that ends after a quarter of it.

First the seconds of a step are measured, in turns, on a machine that should do nothing
else. After that a contestant takes as many steps as fit into its minutes, and seconds
are steps times that; so other work on the machine changes nothing. Every contestant is
a process of its own and leaves OUT/NAME.jsonl; what is there is not run again.
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
OURS, OURS_SHORT, THEIRS = "bert_keras", "bert_keras-short", "KerasHub"
EVALUATIONS = 10
STEP_SECONDS = "step_seconds.json"
HELD_OUT_BATCHES = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("prose", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--learning-rate", type=float, default=1e-3, help="ours")
    parser.add_argument("--only", help="one contestant, in this process")
    parser.add_argument("--rate", type=float, help="of that one, if it is KerasHub")
    parser.add_argument("--measure", action="store_true", help="its step, and no more")
    options = parser.parse_args()
    if options.only:
        compete(options)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    prepared(options.prose, options.out / "data")
    measure_steps(options)
    whole, quarter = options.minutes, options.minutes / 4
    trials = {rate: f"{THEIRS}-{rate}-short" for rate in RATES}
    for rate, name in trials.items():
        run(name, options, quarter, rate)
    best = min(RATES, key=lambda rate: losses(options.out, trials[rate])[-1])
    for name, minutes in ((OURS_SHORT, quarter), (THEIRS, whole), (OURS, whole)):
        run(name, options, minutes, best)
    print("after a quarter of the time, KerasHub at each rate:")
    for rate, name in trials.items():
        print(f"{rate:8} {losses(options.out, name)[-1]:.3f}")
    names = (OURS_SHORT, THEIRS, OURS)
    report({name: curve(options.out, name) for name in names})


def measure_steps(options: argparse.Namespace) -> None:
    """Writes the seconds of a step of either: the least, and so least disturbed."""
    path = options.out / STEP_SECONDS
    if path.exists():
        return
    found: dict[str, list[float]] = {OURS: [], THEIRS: []}
    for name in [OURS, THEIRS] * 3:
        answer = alone(name, options, 1, RATES[0], "--measure", stdout=subprocess.PIPE)
        found[name].append(float(answer.stdout))
        print(f"{name}: {found[name][-1]:.3f} s a step", file=sys.stderr)
    path.write_text(json.dumps({n: min(t) for n, t in found.items()}))


def run(name: str, options: argparse.Namespace, minutes: float, rate: float) -> None:
    """Lets one contestant train, if it has not."""
    if not (options.out / f"{name}.jsonl").exists():
        alone(name, options, minutes, rate)


def alone(name: str, options, minutes: float, rate: float, *more: str, **kwargs):
    """Runs one contestant in a process of its own."""
    return subprocess.run(
        [
            *(sys.executable, __file__, str(options.prose), "--out", str(options.out)),
            *("--minutes", str(minutes), "--only", name, "--rate", str(rate)),
            *("--learning-rate", str(options.learning_rate), *more),
        ],
        check=True,
        **kwargs,
    )


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
    is_ours = options.only in (OURS, OURS_SHORT)
    seconds, steps = math.nan, 1000
    if not options.measure:
        measured = json.loads((options.out / STEP_SECONDS).read_text())
        seconds = measured[OURS if is_ours else THEIRS]
        steps = int(60 * options.minutes / seconds)
    if is_ours:
        model = ours(size, options.learning_rate, steps)
    else:
        model = keras_hub_s(size, options.rate)
        training, held_out = as_keras_hub(training), as_keras_hub(held_out)
    if options.measure:
        print(step_seconds(model, training))
        return
    curve = Curve(options.only, held_out, steps, seconds)
    fit(model, training, steps, [curve])
    lines = "".join(json.dumps(point) + "\n" for point in curve.found)
    (options.out / f"{options.only}.jsonl").write_text(lines)


def fit(model: keras.Model, training, steps: int, callbacks=()) -> None:
    model.fit(
        training,
        steps_per_epoch=steps,
        verbose=0,
        shuffle=False,
        callbacks=list(callbacks),
    )


def step_seconds(model: keras.Model, training, steps: int = 60) -> float:
    fit(model, training, 5)
    started = time.perf_counter()
    fit(model, training, steps)
    return (time.perf_counter() - started) / steps


class Curve(keras.callbacks.Callback):
    """Evaluates ten times in a run."""

    def __init__(self, name: str, held_out: tf.data.Dataset, steps: int, seconds):
        super().__init__()
        self.name, self.held_out = name, held_out
        self.steps, self.seconds = steps, seconds
        self.found: list[dict] = []

    def on_train_batch_end(self, batch, logs=None):
        done = batch + 1
        if done * EVALUATIONS // self.steps > batch * EVALUATIONS // self.steps:
            point = {
                "seconds": done * self.seconds,
                "steps": done,
                "held_out_loss": held_out_loss(self.model, self.held_out),
            }
            self.found.append(point)
            print(self.name, point, file=sys.stderr, flush=True)


def ours(size: dict, learning_rate: float, steps: int) -> keras.Model:
    # A run this short does not overfit: no dropout (Geiping and Goldstein 2022).
    backbone = BertBackbone.from_size(
        "mini", dropout=0.0, dtype="mixed_bfloat16", **size
    )
    model = BertPretrainer(backbone, next_sentence=False)
    model.compile(optimizer=bert_optimizer(learning_rate, steps), jit_compile=False)
    return model


def keras_hub_s(size: dict, rate: float) -> keras.Model:
    import keras_hub

    backbone = keras_hub.models.BertBackbone(
        num_layers=4, num_heads=4, hidden_dim=256, intermediate_dim=1024, **size
    )
    model = keras_hub.models.BertMaskedLM(backbone, preprocessor=None)
    model.compile(optimizer=keras.optimizers.Adam(rate))
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


def curve(out: Path, name: str) -> list[dict]:
    lines = (out / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def losses(out: Path, name: str) -> list[float]:
    return [point["held_out_loss"] for point in curve(out, name)]


def report(curves: dict[str, list[dict]]) -> None:
    """Prints the curves, and when ours was where KerasHub ended."""
    for name, points in curves.items():
        print(f"{name}, {points[-1]['steps']} steps: held-out loss after seconds")
        found = (f"{p['held_out_loss']:.3f} ({p['seconds']:.0f})" for p in points)
        print("  " + "  ".join(found))
    end = curves[THEIRS][-1]
    for name in (OURS_SHORT, OURS):
        reached = next(
            (p for p in curves[name] if p["held_out_loss"] <= end["held_out_loss"]),
            {"seconds": math.inf},
        )
        share = reached["seconds"] / end["seconds"]
        print(f"{name} was where KerasHub ended after {share:.2f} of its time")


if __name__ == "__main__":
    main()

"""Speed of a pretraining step beside its peers, in one run.

    python tools/bench_pretraining.py [--torch-python PYTHON] [--growth]
    python tools/bench_pretraining.py --size base --sequence 512 --batch 8

Every contestant is a process of its own, and only one works at a time. First each takes
a few steps alone; then the best setting of each package takes steps in turn with ours,
round by round, so that they see the same machine; the best round of each counts. A step
has fresh random inputs, dropout, clipping and AdamW.

Torch and transformers are no dependency of this project: `--torch-python` names a
Python that has them. A contestant that cannot start is said to be missing. On a GPU,
all use it.

A share of the peak is the arithmetic of a step's matrix products, over the time of the
step and the speed of one large product in the same dtype and run. `--growth` measures
this package alone, with 4,096 tokens in a batch: time beside arithmetic.
"""

import argparse
import dataclasses
import itertools
import json
import subprocess
import sys
import tempfile

import pretraining_contestants as contestants
from pretraining_contestants import BFLOAT16, FLOAT32, PEAK_FLOPS, Setting

GROWTH_TOKENS = 4096
SIZES = {"bench": (6, 384, 12), "small": (4, 512, 8), "base": (12, 768, 12)}
PRODUCTS = [("product", FLOAT32, False), ("product", BFLOAT16, False)]
OURS = [("bert_keras", FLOAT32, False), ("bert_keras", BFLOAT16, False)]
PEERS = [
    *itertools.product(["KerasHub"], [FLOAT32, BFLOAT16], [False, True]),
    *itertools.product(["Hugging Face"], [FLOAT32, BFLOAT16], [False]),
]


class Contestant:
    """A process that takes steps when it is told to.

    Attributes:
        label: its name, as it is printed.
        seconds: of a step in its best round; None where it has taken none.
        problem: the last line it said, where it cannot start or has ended.
    """

    def __init__(self, name: str, dtype: str, xla: bool, setting: Setting, python: str):
        self.key = name, dtype, xla
        self.label = f"{name}, {dtype}{', XLA' * xla}"
        self.seconds = self.problem = None
        self._log = tempfile.TemporaryFile("w+")
        order = {"name": name, "dtype": dtype, "xla": xla}
        order["setting"] = dataclasses.asdict(setting)
        print(f"starting {self.label}", file=sys.stderr, flush=True)
        self._process = subprocess.Popen(
            [python, contestants.__file__, json.dumps(order)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._answer()

    def _answer(self) -> str:
        answer = self._process.stdout.readline().strip()
        if not answer:
            self._log.seek(0)
            lines = self._log.read().strip().splitlines()
            self.problem = f"exit {self._process.wait()}, {lines[-1] if lines else ''}"
        return answer

    def take(self, steps: int) -> None:
        """Has it take a round of steps."""
        if self.problem is None:
            print(steps, file=self._process.stdin, flush=True)
            if answer := self._answer():
                taken = float(answer) / steps
                self.seconds = min(taken, self.seconds or taken)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()


def race(started: list[Contestant], rounds: int, steps: int) -> list[Contestant]:
    """Has each take its steps in turn, round by round; returns them, sent home."""
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for contestant in started:
            contestant.take(steps)
    for contestant in started:
        contestant.close()
    return started


def print_race(setting: Setting, options: argparse.Namespace) -> None:
    """Prints the heats, then the final, and how far ahead of its peers ours is."""

    def start(name: str, dtype: str, xla: bool) -> Contestant:
        python = options.torch_python if name == "Hugging Face" else sys.executable
        return Contestant(name, dtype, xla, setting, python)

    print(f"{setting}, {setting.flops / 1e12:.3f} TFLOP a step\n")
    print("Each alone: tokens/s of the best round")
    tokens = setting.batch * setting.sequence
    best: dict[str, Contestant] = {}
    for entry in PEERS:
        (one,) = race([start(*entry)], 2, options.steps)
        said = f"{tokens / one.seconds:8,.0f}" if one.seconds else "missing: "
        print(f"{one.label:36}{said}{one.problem or ''}", flush=True)
        if one.seconds and one.seconds < getattr(best.get(entry[0]), "seconds", 1e9):
            best[entry[0]] = one
    entries = [*PRODUCTS, *OURS, *(one.key for one in best.values())]
    final = race([start(*entry) for entry in entries], options.rounds, options.steps)
    print("\nIn turn:                             tokens/s  of the peak")
    peaks, speeds = {}, {}
    for one in final:
        name, dtype, _ = one.key
        if one.problem:
            print(f"{one.label:36}missing: {one.problem}")
        elif name == "product":
            peaks[dtype] = PEAK_FLOPS / one.seconds
            print(f"{one.label:36}{peaks[dtype] / 1e9:8,.0f} GFLOP/s")
        else:
            speed, share = (n / one.seconds for n in (tokens, setting.flops))
            print(f"{one.label:36}{speed:8,.0f} {share / peaks[dtype]:10.0%}")
            speeds[name] = max(speed, speeds.get(name, 0.0))
    for name, speed in speeds.items():
        if name == "bert_keras":
            continue
        print(f"bert_keras's best beside {name}'s: {speeds['bert_keras'] / speed:.2f}")


def print_growth(setting: Setting, options: argparse.Namespace) -> None:
    """Prints how time grows beside arithmetic, with the length and with the layers."""
    families = {
        "sequence": [
            dataclasses.replace(setting, sequence=n, batch=GROWTH_TOKENS // n)
            for n in (128, 256, 512)
        ],
        "layers": [dataclasses.replace(setting, layers=n) for n in (2, 4, 8)],
    }
    print(f"{'':24} tokens/s   time  arithmetic, a token")
    for name, settings in families.items():
        started = [
            Contestant("bert_keras", options.dtype, False, one, sys.executable)
            for one in settings
        ]
        for one in race(started, options.rounds, options.steps):
            if one.problem:
                sys.exit(f"{one.label}: {one.problem}")
        per_token = [one.batch * one.sequence for one in settings]
        times = [c.seconds / n for c, n in zip(started, per_token, strict=True)]
        flops = [s.flops / n for s, n in zip(settings, per_token, strict=True)]
        for one, seconds, work in zip(settings, times, flops, strict=True):
            label = f"{name} {getattr(one, name)}"
            print(
                f"{label:24} {1 / seconds:8,.0f} {seconds / times[0]:6.2f} "
                f"{work / flops[0]:11.2f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--size", choices=SIZES, default="bench")
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2, help="of a round")
    parser.add_argument("--torch-python", default=sys.executable)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--dtype", default=BFLOAT16, help="of --growth")
    options = parser.parse_args()
    layers, hidden, heads = SIZES[options.size]
    setting = Setting(
        layers=layers,
        hidden=hidden,
        heads=heads,
        sequence=options.sequence,
        batch=options.batch,
    )
    (print_growth if options.growth else print_race)(setting, options)


if __name__ == "__main__":
    main()

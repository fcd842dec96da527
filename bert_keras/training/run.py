"""What every run shares: how it is done, and what its folder says of it."""

import dataclasses
import sys
from importlib.metadata import version
from pathlib import Path

import tensorflow as tf

from bert_keras.files import AnotherRunError, read_json
from bert_keras.training.strategies import strategy_named

RUN_FILE = "run.json"
METRICS_FILE = "metrics.json"
CHECKPOINTS = "checkpoints"
_LIBRARIES = ("tensorflow", "keras", "keras-nlp", "numpy")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How a run is done; it ends the same way, but for the rounding.

    Attributes:
        strategy: the devices; see `strategy_named`.
        jit: compile the step with XLA; by default on GPUs and TPUs. On a CPU it takes
            longer to compile than it saves in a short run.
        save_steps: steps between two checkpoints.
        keep: checkpoints that stay.
        record_steps: steps between two records.
        evaluate_steps: steps between two evaluations; at the end only if None.
    """

    strategy: str | tf.distribute.Strategy = "auto"
    jit: bool | None = None
    save_steps: int = 500
    keep: int = 3
    record_steps: int = 50
    evaluate_steps: int | None = None

    @property
    def uses_xla(self) -> bool:
        """Whether the step is compiled."""
        if self.jit is None:
            return any(map(tf.config.list_physical_devices, ("GPU", "TPU")))
        return self.jit

    def found_strategy(self) -> tf.distribute.Strategy:
        """Returns the strategy, by its name if need be."""
        if isinstance(self.strategy, str):
            return strategy_named(self.strategy)
        return self.strategy


def versions() -> dict[str, str]:
    """Returns the versions of the libraries that decide numbers."""
    return {name: version(name) for name in _LIBRARIES}


def refuse_another_run(out: Path, wanted: dict) -> None:
    """Raises `AnotherRunError` if `out` holds a run of other options or data."""
    found = read_json(out / RUN_FILE)
    for part, values in wanted.items():
        for name, value in values.items():
            if found[part].get(name) != value:
                raise AnotherRunError(
                    f"{out} holds another run. Received: {name}={value!r}; allowed: "
                    f"{name}={found[part].get(name)!r}, as it was begun, or another "
                    "folder."
                )
    if found["versions"] != versions():
        say(
            "the run was begun with other versions, and will not be the same bit for "
            f"bit: {found['versions']}"
        )


def say(message: str) -> None:
    """Tells a person something, on standard error."""
    print(message, file=sys.stderr)

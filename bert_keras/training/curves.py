"""The curves of a run, as a picture."""

import os
from pathlib import Path

from bert_keras.files import replacing
from bert_keras.training.progress import read_records

_HELD_OUT = "held_out_"
_LEFT_OUT = ("step", "tokens_per_second")


def plot_curves(run: str | os.PathLike, path: str | os.PathLike) -> None:
    """Draws what a run recorded against its steps, held-out text beside training.

    Args:
        run: folder of the run.
        path: of the picture; its suffix is the format, such as ".png".

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: nothing was recorded.
    """
    records = read_records(Path(run))
    if not records:
        raise ValueError(f"{run} holds no records of training, and nothing to plot.")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            'A plot needs matplotlib: pip install "bert-keras[plot]"'
        ) from error
    names = {name.removeprefix(_HELD_OUT) for record in records for name in record}
    names = sorted(names - set(_LEFT_OUT))
    figure = Figure(figsize=(6, 2.2 * len(names)), layout="constrained")
    for axes, name in zip(
        figure.subplots(len(names), squeeze=False), names, strict=True
    ):
        for key, label in ((name, "training"), (_HELD_OUT + name, "held out")):
            points = [(r["step"], r[key]) for r in records if key in r]
            if points:
                axes[0].plot(*zip(*points, strict=True), label=label, marker=".")
        axes[0].set(title=name.replace("_", " "), xlabel="step")
        axes[0].legend()
    with replacing(path) as temporary:
        figure.savefig(temporary)

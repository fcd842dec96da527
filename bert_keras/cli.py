"""The command `bert-keras`.

Text goes to standard input and results to standard output, as JSON lines; progress and
logs go to standard error. The exit status is 0, or 2 with one line that says what is
wrong; `check` exits with 1 if artefacts differ.
"""

import argparse
import contextlib
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn, TextIO

import numpy as np
from tqdm import tqdm

from bert_keras import demo
from bert_keras.config import SIZES
from bert_keras.export.artefacts import Text, load_keras, open_artefact
from bert_keras.export.exporter import FORMATS, export_model
from bert_keras.export.masks import fill_masks
from bert_keras.export.onnx import NAMES, ExportError
from bert_keras.export.parity import compare
from bert_keras.features import SEQUENCE_OUTPUT, TOKEN_IDS
from bert_keras.pretraining.corpus import read_documents, read_lines
from bert_keras.pretraining.run import PretrainingOptions, pretrain
from bert_keras.text.learner import count_words, learn_vocabulary
from bert_keras.text.rules import WORD_LIMITS
from bert_keras.text.tokenizer import COUNTS, OFFSETS, WordPieceTokenizer
from bert_keras.text.vocabulary import Vocabulary

_LINES_AT_ONCE = 256


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns the exit status."""
    options = _parser().parse_args(arguments)
    results = sys.stdout
    if hasattr(results, "reconfigure"):
        results.reconfigure(encoding="utf-8")  # whatever the locale
    try:
        # Whatever a library prints must not get among the results.
        with contextlib.redirect_stdout(sys.stderr):
            return options.command(options, results) or 0
    except (ValueError, OSError, ExportError) as error:
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            sys.stderr.close()
            return 0
        print(f"bert-keras: error: {_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bert-keras: interrupted", file=sys.stderr)
        return 130


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="bert-keras", description="BERT in Keras, from text to loss.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, function, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(command=function)
        return command

    add_demo = add("demo", _demo, "the whole path on the text that is on every machine")
    add_demo.add_argument("--out", type=Path, default=Path("saved_models/demo"))

    vocab = add("vocab", _vocab, "learn a vocabulary from a corpus")
    _add_corpus(vocab)
    vocab.add_argument("--size", type=int, required=True, help="most tokens")
    vocab.add_argument("--out", type=Path, required=True, metavar="vocab.txt")

    tokenize = add("tokenize", _tokenize, "JSON strings in, JSON arrays of ids out")
    source = tokenize.add_mutually_exclusive_group(required=True)
    source.add_argument("--vocab", type=Path, metavar="FILE")
    source.add_argument("--model", type=Path)
    _add_rules(tokenize)
    tokenize.add_argument(
        "--special-tokens", action="store_true", help="recognise them inside text"
    )
    tokenize.add_argument(
        "--offsets", action="store_true", help="print tokens and their places too"
    )

    train = add("pretrain", _pretrain, "pretrain; the same command again resumes")
    _add_corpus(train)
    train.add_argument("--vocab", type=Path, required=True, metavar="FILE")
    train.add_argument("--out", type=Path, required=True, metavar="RUN")
    train.add_argument("--size", choices=SIZES, default=PretrainingOptions.size)
    train.add_argument("--steps", type=_positive, default=PretrainingOptions.steps)
    for name in ("sequence_length", "batch_size", "predictions"):
        default = getattr(PretrainingOptions, name)
        flag = "--" + name.replace("_", "-")
        train.add_argument(flag, type=_positive, default=default)
    train.add_argument(
        "--learning-rate", type=float, default=PretrainingOptions.learning_rate
    )
    train.add_argument("--dropout", type=float, default=PretrainingOptions.dropout)
    train.add_argument("--seed", type=int, default=PretrainingOptions.seed)

    export = add("export", _export, "make a SavedModel and ONNX files, each checked")
    export.add_argument("model", type=Path, metavar="MODEL", help="a .keras file")
    export.add_argument("--out", type=Path, required=True, metavar="DIR")
    export.add_argument(
        "--to", default=",".join(FORMATS), help=f"some of {','.join(FORMATS)}"
    )
    export.add_argument("--names", choices=NAMES, default="kerashub")

    embed = add("embed", _embed, "JSON strings or pairs in, vectors out")
    embed.add_argument("--model", type=Path, required=True)
    embed.add_argument("--pooling", choices=("mean", "cls"), default="mean")

    fill = add("fill-mask", _fill_mask, "what stands in the place of [MASK]?")
    fill.add_argument("--model", type=Path, required=True)
    fill.add_argument("--top", type=_positive, default=5, help="pieces for each mask")

    check = add("check", _check, "do all artefacts in a folder give the same answers?")
    check.add_argument("folder", type=Path, metavar="DIR")
    return parser


def _add_corpus(command: argparse.ArgumentParser) -> None:
    command.add_argument("corpus", type=Path, nargs="+", metavar="CORPUS")
    _add_rules(command)


def _add_rules(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cased", action="store_true", help="do not lower-case")
    command.add_argument(
        "--keep-accents", action="store_true", help="do not strip accents"
    )
    command.add_argument("--rules", choices=WORD_LIMITS, default="huggingface")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 1")
    return int(text)


def _switches(options) -> dict:
    strips = not (options.cased or options.keep_accents)
    return {
        "lowercase": not options.cased,
        "strip_accents": strips,
        "rules": options.rules,
    }


def _demo(options, results: TextIO) -> None:
    demo.run(options.out, results)


def _vocab(options, results: TextIO) -> None:
    if options.out.is_dir() or not options.out.absolute().parent.is_dir():
        raise ValueError(
            f"The vocabulary cannot be written to {options.out}: it must be a file in "
            "a folder that exists."
        )
    lines = itertools.chain.from_iterable(map(read_lines, options.corpus))
    words = count_words(tqdm(lines, "count words", unit="line"), **_switches(options))
    with tqdm(total=options.size, desc="join pieces", unit="piece") as bar:
        vocabulary = learn_vocabulary(
            words, options.size, progress=lambda size: bar.update(size - bar.n)
        )
    vocabulary.write(options.out)


def _tokenize(options, results: TextIO) -> None:
    if options.vocab:
        vocabulary, settings = Vocabulary.read(options.vocab), _switches(options)
    else:
        tokenizer = open_artefact(options.model).preprocessor.tokenizer
        vocabulary, settings = tokenizer.vocabulary, tokenizer.get_config()
    if options.special_tokens:
        settings["special_tokens_in_text"] = True
    settings["offsets"] = options.offsets
    tokenizer = WordPieceTokenizer(vocabulary, **settings)
    for texts in _batches(pairs=False):
        answer = {name: value.numpy() for name, value in tokenizer(texts).items()}
        for number, count in enumerate(answer[COUNTS]):
            ids = answer[TOKEN_IDS][number, :count].tolist()
            if options.offsets:
                ids = {
                    "ids": ids,
                    "tokens": [vocabulary[i] for i in ids],
                    "offsets": answer[OFFSETS][number, :count].tolist(),
                }
            _write(ids, results)


def _pretrain(options, results: TextIO) -> None:
    tokenizer = WordPieceTokenizer(Vocabulary.read(options.vocab), **_switches(options))
    names = PretrainingOptions.__dataclass_fields__
    documents = list(tqdm(read_documents(options.corpus), "read documents", unit="doc"))
    if not documents:
        raise ValueError(
            f"The corpus has no text. Received: {', '.join(map(str, options.corpus))}"
        )
    settings = PretrainingOptions(**{name: getattr(options, name) for name in names})
    _, evaluation = pretrain(documents, tokenizer, settings, options.out)
    if evaluation:
        _write({**evaluation.metrics, "unigram": evaluation.unigram_accuracy}, results)


def _export(options, results: TextIO) -> None:
    model = load_keras(options.model)
    formats = [name for name in options.to.split(",") if name]
    differences = export_model(
        model, options.out, to=formats, names=options.names, progress=demo.say
    )
    for name, difference in differences.items():
        _write({"made": str(options.out / name), **difference._asdict()}, results)


def _embed(options, results: TextIO) -> None:
    artefact = open_artefact(options.model)
    pad = artefact.preprocessor.tokenizer.vocabulary.special_ids.pad
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


def _fill_mask(options, results: TextIO) -> None:
    artefact = open_artefact(options.model)
    for texts in _batches(pairs=True):
        for masks in fill_masks(artefact, texts, options.top):
            _write(
                {"masks": [[found._asdict() for found in mask] for mask in masks]},
                results,
            )


def _check(options, results: TextIO) -> int:
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
    print(f"{'artefact':24} {'texts':>5} {'wrong ids':>9} {'largest':>9}", file=results)
    all_equal = True
    for path in found[1:]:
        difference = compare(reference, open_artefact(path))
        all_equal &= difference.is_equal
        print(
            f"{path.name:24} {difference.texts:5} {difference.wrong_ids:9} "
            f"{difference.largest:9.1e} {'' if difference.is_equal else 'DIFFERS'}",
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


if __name__ == "__main__":
    sys.exit(main())

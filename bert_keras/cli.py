"""The command `bert-keras`.

Text goes to standard input and results to standard output, as JSON lines; progress and
logs go to standard error. The exit status is 0, or 2 with one line that says what is
wrong; `check` exits with 1 if artefacts differ.
"""

import argparse
import contextlib
import dataclasses
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import tensorflow as tf

from bert_keras.commands import answers, text, train
from bert_keras.export.exporter import FORMATS
from bert_keras.export.onnx import NAMES, ExportError
from bert_keras.pretraining.corpus import FORMATS as CORPUS_FORMATS
from bert_keras.pretraining.options import PretrainingOptions
from bert_keras.pretraining.run import RunSettings
from bert_keras.text.learner import OBJECTIVES
from bert_keras.text.options import WORD_LIMITS
from bert_keras.training.strategies import STRATEGIES


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns the exit status."""
    options = _parser().parse_args(arguments)
    results = sys.stdout
    if hasattr(results, "reconfigure"):
        results.reconfigure(encoding="utf-8")  # whatever the locale
    try:
        # Whatever a library prints must not get among the results.
        with contextlib.redirect_stdout(sys.stderr), _warnings_in_one_line():
            return options.command(options, results) or 0
    except (ValueError, OSError, ImportError, ExportError, tf.errors.OpError) as error:
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            sys.stderr.close()
            return 0
        print(f"bert-keras: error: {_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bert-keras: interrupted", file=sys.stderr)
        return 130


@contextlib.contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    def show(message, category, filename, lineno, file=None, line=None):
        print(f"bert-keras: warning: {_one_line(message)}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    text = str(error)
    # Keras wraps an error of a layer in words of its own, around the bold original.
    wrapped = re.search(r"\x1b\[1m(.*)\x1b\[0m", text, re.DOTALL)
    return " ".join((wrapped.group(1) if wrapped else text).split())


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="bert-keras", description="BERT in Keras, from text to loss.")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, function, does: str) -> argparse.ArgumentParser:
        command = subparsers.add_parser(name, help=does, description=does)
        command.set_defaults(command=function)
        return command

    add_demo = add(
        "demo", train.demo, "the whole path on the text that is on every machine"
    )
    add_demo.add_argument("--out", type=Path, default=Path("saved_models/demo"))

    vocab = add("vocab", text.vocab, "learn a vocabulary from a corpus")
    _add_corpus(vocab)
    vocab.add_argument("--size", type=int, required=True, help="most tokens")
    vocab.add_argument("--out", type=Path, required=True, metavar="vocab.txt")
    vocab.add_argument("--objective", choices=OBJECTIVES, default="count")
    vocab.add_argument(
        "--min-count", type=_positive, default=1, help="of a pair that may be joined"
    )
    vocab.add_argument(
        "--alphabet", type=_positive, default=1000, help="most characters"
    )
    vocab.add_argument("--never-split", nargs="+", default=(), metavar="WORD")
    vocab.add_argument(
        "--held-out", nargs="+", type=Path, default=(), metavar="FILE",
        help="text to measure the vocabulary on",
    )  # fmt: skip
    vocab.add_argument(
        "--counts", action="store_true", help=".tsv files hold lines word, tab, count"
    )
    vocab.add_argument(
        "--write-counts", type=Path, metavar="FILE.tsv", help="keep the counts, as such"
    )
    _add_runner(vocab)

    tokenize = add("tokenize", text.tokenize, "JSON strings in, JSON arrays of ids out")
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
    tokenize.add_argument(
        "--engine", choices=("stock", "tf_text"), help="the same ids either way"
    )

    prepare = add(
        "prepare", train.prepare, "cut a corpus into pieces; the same again resumes"
    )
    _add_corpus(prepare)
    prepare.add_argument("--vocab", type=Path, required=True, metavar="FILE")
    prepare.add_argument("--out", type=Path, required=True, metavar="DIR")
    _add_runner(prepare)

    pretrain = add(
        "pretrain", train.pretrain, "pretrain; the same command again resumes"
    )
    _add_corpus(pretrain)
    pretrain.add_argument("--vocab", type=Path, metavar="FILE")
    pretrain.add_argument("--out", type=Path, required=True, metavar="RUN")
    _add_run(pretrain)

    export = add(
        "export", answers.export, "make a SavedModel and ONNX files, each checked"
    )
    export.add_argument("model", type=Path, metavar="MODEL", help="a .keras file")
    export.add_argument("--out", type=Path, required=True, metavar="DIR")
    export.add_argument(
        "--to", default=",".join(FORMATS), help=f"some of {','.join(FORMATS)}"
    )
    export.add_argument(
        "--int8", action="store_true", help="an ONNX file with int8 weights too"
    )
    export.add_argument("--names", choices=NAMES, default="kerashub")

    embed = add("embed", answers.embed, "JSON strings or pairs in, vectors out")
    embed.add_argument("--model", type=Path, required=True)
    embed.add_argument("--pooling", choices=("mean", "cls"), default="mean")

    fill = add("fill-mask", answers.fill_mask, "what stands in the place of [MASK]?")
    fill.add_argument("--model", type=Path, required=True)
    fill.add_argument("--top", type=_positive, default=5, help="pieces for each mask")

    check = add(
        "check", answers.check, "do all artefacts in a folder give the same answers?"
    )
    check.add_argument("folder", type=Path, metavar="DIR")
    return parser


def _add_run(command: argparse.ArgumentParser) -> None:
    """Adds what decides a run, and then how it is done."""
    for field in dataclasses.fields(PretrainingOptions):
        flag, says = "--" + field.name.replace("_", "-"), field.metadata["says"]
        if field.type is bool:
            command.add_argument(flag, action="store_true", help=says)
        else:
            command.add_argument(
                flag,
                type=field.type,
                default=field.default,
                choices=field.metadata["choices"],
                help=f"{says} (default: {field.default})",
            )
    command.add_argument(
        "--strategy", choices=STRATEGIES, default="auto", help="which devices"
    )
    command.add_argument(
        "--jit",
        action=argparse.BooleanOptionalAction,
        help="compile the step with XLA (default: on GPUs and TPUs)",
    )
    for name, says in (
        ("save_steps", "between two checkpoints"),
        ("keep", "checkpoints that stay"),
        ("record_steps", "between two records of loss and accuracies"),
        ("evaluate_steps", "between two evaluations on held-out documents"),
    ):
        default = getattr(RunSettings, name)
        flag = "--" + name.replace("_", "-")
        command.add_argument(flag, type=_positive, default=default, help=says)
    command.add_argument("--plot", type=Path, metavar="FILE.png", help="the curves")


def _add_corpus(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "corpus", type=Path, nargs="+", metavar="CORPUS", help="file, folder or pattern"
    )
    command.add_argument(
        "--format",
        choices=CORPUS_FORMATS,
        help="of the files; by default by name",
    )
    command.add_argument(
        "--blank-lines", type=_positive, default=1, help="that end a document"
    )
    command.add_argument(
        "--text-field", default="text", help="where the text of a JSON line stands"
    )
    command.add_argument(
        "--processes", type=_positive, default=1, help="that read the corpus"
    )
    _add_rules(command)


def _add_runner(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--runner", metavar="NAME",
        help="of Apache Beam, to read the corpus on a cluster that shares its folders: "
        "FlinkRunner, SparkRunner, DataflowRunner ...; DirectRunner runs here",
    )  # fmt: skip
    command.add_argument(
        "--runner-options", nargs="+", default=(), metavar="NAME=VALUE",
        help="for Beam, such as flink_master=host:8081 parallelism=8",
    )  # fmt: skip


def _add_rules(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cased", action="store_true", help="do not lower-case")
    command.add_argument(
        "--keep-accents", action="store_true", help="do not strip accents"
    )
    command.add_argument("--rules", choices=WORD_LIMITS)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())

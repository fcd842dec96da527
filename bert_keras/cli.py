"""The command `bert-keras`.

Text goes to standard input and results to standard output, as JSON lines; progress and
logs go to standard error. The exit status is 0, or 2 with one line that says what is
wrong; `check` exits with 1 if artefacts differ.
"""

import argparse
import contextlib
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import tensorflow as tf

from bert_keras.commands import answers, arguments, text, train, tune
from bert_keras.export.exporter import FORMATS
from bert_keras.export.onnx import NAMES, ExportError
from bert_keras.pretraining.options import PretrainingOptions
from bert_keras.text.learner import OBJECTIVES
from bert_keras.text.options import WORD_LIMITS
from bert_keras.training.run import RunSettings


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns the exit status."""
    options = _parser().parse_args(argv)
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
    arguments.add_corpus(vocab)
    vocab.add_argument("--size", type=int, required=True, help="most tokens")
    vocab.add_argument("--out", type=Path, required=True, metavar="vocab.txt")
    vocab.add_argument("--objective", choices=OBJECTIVES, default="count")
    vocab.add_argument(
        "--min-count",
        type=arguments.positive,
        default=1,
        help="of a pair that may be joined",
    )
    vocab.add_argument(
        "--alphabet", type=arguments.positive, default=1000, help="most characters"
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
    arguments.add_runner(vocab)

    tokenize = add("tokenize", text.tokenize, "JSON strings in, JSON arrays of ids out")
    source = tokenize.add_mutually_exclusive_group(required=True)
    source.add_argument("--vocab", type=Path, metavar="FILE")
    source.add_argument("--model", type=Path)
    arguments.add_rules(tokenize)
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
    arguments.add_corpus(prepare)
    prepare.add_argument("--vocab", type=Path, required=True, metavar="FILE")
    prepare.add_argument("--out", type=Path, required=True, metavar="DIR")
    arguments.add_runner(prepare)

    pretrain = add(
        "pretrain", train.pretrain, "pretrain; the same command again resumes"
    )
    arguments.add_corpus(pretrain)
    pretrain.add_argument("--vocab", type=Path, metavar="FILE")
    pretrain.add_argument("--out", type=Path, required=True, metavar="RUN")
    arguments.add_options(pretrain, PretrainingOptions)
    arguments.add_settings(pretrain)
    pretrain.add_argument(
        "--evaluate-steps", type=arguments.positive, default=RunSettings.evaluate_steps,
        help="between two evaluations on held-out documents",
    )  # fmt: skip

    finetune = add(
        "finetune",
        tune.finetune,
        "fine-tune for a task; the same command again resumes",
    )
    arguments.add_finetune(finetune)

    convert = add("convert", tune.convert, "checkpoints in and out")
    convert.add_argument(
        "source", type=Path, metavar="SRC", help="any model but exports"
    )
    convert.add_argument("target", type=Path, metavar="DST")
    convert.add_argument(
        "--to", choices=("keras", "huggingface", "kerashub"), default="keras"
    )
    convert.add_argument(
        "--rules", choices=WORD_LIMITS, help="in place of the origin's, which Hugging "
        "Face cannot state for Google's checkpoints",
    )  # fmt: skip

    export = add(
        "export", answers.export, "make a SavedModel and ONNX files, each checked"
    )
    export.add_argument(
        "model", type=Path, metavar="MODEL", help="a .keras file or a checkpoint"
    )
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
    embed.add_argument(
        "--pooling", choices=("mean", "cls"), help="of a pretrained model; else its own"
    )

    fill = add("fill-mask", answers.fill_mask, "what stands in the place of [MASK]?")
    fill.add_argument("--model", type=Path, required=True)
    fill.add_argument(
        "--top", type=arguments.positive, default=5, help="pieces for each mask"
    )

    for name, function, does in (
        ("classify", answers.classify, "the class or the number of texts or pairs"),
        ("tag", answers.tag, "tags of words, and entities"),
        ("answer", answers.answer, "pairs of question and text in, answers out"),
    ):
        add(name, function, does).add_argument("--model", type=Path, required=True)

    check = add(
        "check", answers.check, "do all artefacts in a folder give the same answers?"
    )
    check.add_argument("folder", type=Path, metavar="DIR")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""The arguments that several commands share."""

import argparse
import dataclasses
import re
from pathlib import Path

import tensorflow as tf

from bert_keras.pretraining.corpus import FORMATS as CORPUS_FORMATS
from bert_keras.tasks.kinds import KINDS
from bert_keras.tasks.options import FinetuningOptions
from bert_keras.tasks.records import FORMATS as RECORD_FORMATS
from bert_keras.text.options import WORD_LIMITS
from bert_keras.training.options import Options
from bert_keras.training.run import RunSettings
from bert_keras.training.strategies import STRATEGIES


def add_finetune(command: argparse.ArgumentParser) -> None:
    command.add_argument("task", choices=KINDS, metavar="TASK", help=", ".join(KINDS))
    command.add_argument("--model", type=Path, required=True, help="to begin with")
    command.add_argument("--train", type=Path, required=True, metavar="FILE")
    command.add_argument("--dev", type=Path, metavar="FILE", help="chooses the epoch")
    command.add_argument("--test", type=Path, metavar="FILE", help="asked at the end")
    command.add_argument("--out", type=Path, required=True, metavar="RUN")
    for name, says in (
        ("text", "of the text"),
        ("second", "of the second text of a pair"),
        ("label", "of the label"),
        ("word", "of the word, in CoNLL's columns"),
        ("tag", "of its tag"),
    ):
        command.add_argument(
            f"--{name}-column", type=column, metavar="COLUMN", help=says
        )
    command.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="the first row holds names (default: if it does)",
    )
    command.add_argument(
        "--format", choices=RECORD_FORMATS, help="of the files; by default by name"
    )
    command.add_argument("--encoding", help="of the files (default: utf-8)")
    add_options(command, FinetuningOptions)
    add_settings(command)


def add_options(command: argparse.ArgumentParser, options: type[Options]) -> None:
    """Adds what decides a run."""
    for field in dataclasses.fields(options):
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


def add_settings(command: argparse.ArgumentParser) -> None:
    """Adds how a run is done."""
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
    ):
        default = getattr(RunSettings, name)
        flag = "--" + name.replace("_", "-")
        command.add_argument(flag, type=positive, default=default, help=says)
    command.add_argument("--plot", type=Path, metavar="FILE.png", help="the curves")


def add_corpus(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "corpus", type=Path, nargs="+", metavar="CORPUS", help="file, folder or pattern"
    )
    command.add_argument(
        "--format",
        choices=CORPUS_FORMATS,
        help="of the files; by default by name",
    )
    command.add_argument(
        "--blank-lines", type=positive, default=1, help="that end a document"
    )
    command.add_argument(
        "--text-field", default="text", help="where the text of a JSON line stands"
    )
    command.add_argument(
        "--processes", type=positive, default=1, help="that read the corpus"
    )
    add_rules(command)


def add_runner(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--runner", metavar="NAME",
        help="of Apache Beam, to read the corpus on a cluster that shares its folders: "
        "FlinkRunner, SparkRunner, DataflowRunner ...; DirectRunner runs here",
    )  # fmt: skip
    command.add_argument(
        "--runner-options", nargs="+", default=(), metavar="NAME=VALUE",
        help="for Beam, such as flink_master=host:8081 parallelism=8",
    )  # fmt: skip


def add_rules(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cased", action="store_true", help="do not lower-case")
    command.add_argument(
        "--keep-accents", action="store_true", help="do not strip accents"
    )
    command.add_argument("--rules", choices=WORD_LIMITS)


def settings_of(options, strategy: tf.distribute.Strategy) -> RunSettings:
    """Returns how a run is done, of the parsed options that the command has."""
    names = [field.name for field in dataclasses.fields(RunSettings)]
    given = {name: getattr(options, name) for name in names if hasattr(options, name)}
    return RunSettings(**{**given, "strategy": strategy})


def column(text: str) -> str | int:
    """A column by its name, or by its number from 0, or from the end with -1."""
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 1")
    return int(text)

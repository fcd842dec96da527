"""The commands about weights: finetune and convert."""

from typing import TextIO

from bert_keras.checkpoints.save import save_checkpoint
from bert_keras.commands.arguments import settings_of
from bert_keras.commands.lines import write
from bert_keras.commands.models import load_model
from bert_keras.demo import say
from bert_keras.tasks.finetune import finetune as run_finetuning
from bert_keras.tasks.finetune import kind_named
from bert_keras.tasks.judge import evaluated
from bert_keras.tasks.kinds import texts_of
from bert_keras.tasks.metrics import confusion_matrix, plot_confusion, report
from bert_keras.tasks.options import FinetuningOptions
from bert_keras.training.checkpoint import save_model
from bert_keras.training.curves import plot_curves
from bert_keras.training.strategies import is_chief, strategy_named

_COLUMNS = {
    "classify": ("text", "second", "label", "header", "format", "encoding"),
    "regress": ("text", "second", "label", "header", "format", "encoding"),
    "tag": ("word", "tag", "encoding"),
    "span": (),
}


def finetune(options, results: TextIO) -> None:
    strategy = strategy_named(options.strategy)
    names = FinetuningOptions.__dataclass_fields__
    decided = FinetuningOptions(**{name: getattr(options, name) for name in names})
    kind = kind_named(options.task)
    columns = _columns(options)
    train, dev, test = (
        kind.read(path, **columns) if path else []
        for path in (options.train, options.dev, options.test)
    )
    settings = settings_of(options, strategy)
    model = load_model(options.model)
    tuned = run_finetuning(
        model, options.task, train, dev, decided, options.out, settings
    )
    if not is_chief(strategy):
        return
    shown = test or dev
    answer = {"epochs": tuned.epochs, "best": tuned.best}
    if test:
        answer["test"] = evaluated(kind, tuned.model, test)
    if options.task == "classify" and shown:
        labels = tuned.model.task.labels
        right = [example.label for example in shown]
        found = [one.label for one in tuned.model.classify(texts_of(shown))]
        matrix = confusion_matrix(right, found, labels)
        answer |= {"report": report(right, found, labels), "confusion": matrix.tolist()}
        if options.plot:
            plot_confusion(matrix, labels, options.plot)
    elif options.plot:
        plot_curves(options.out, options.plot)
    write(answer, results)


def _columns(options) -> dict:
    """Returns where to look in the files: what was given, and only for its task."""
    asked = ("text", "second", "label", "header", "format", "encoding", "word", "tag")
    given = {name: getattr(options, f"{name}_column", None) for name in asked}
    given |= {name: getattr(options, name) for name in ("header", "format", "encoding")}
    given = {name: value for name, value in given.items() if value is not None}
    allowed = _COLUMNS[options.task]
    for name in given:
        if name not in allowed:
            raise ValueError(
                f"Files to {options.task} have no such thing. Received: {name}="
                f"{given[name]!r}; allowed: {', '.join(allowed) or 'none'}."
            )
    for name in ("word", "tag"):
        if name in given and not isinstance(given[name], int):
            raise ValueError(
                f"Received: --{name}-column {given[name]}; allowed: a number."
            )
    return given


def convert(options, results: TextIO) -> None:
    model = load_model(options.source, options.rules)
    if options.to == "keras":
        save_model(model, options.target)
    else:
        save_checkpoint(model, options.target, options.to)
    say(f"made {options.target}")
    kind = type(model).__name__
    write({"made": str(options.target), "to": options.to, "model": kind}, results)

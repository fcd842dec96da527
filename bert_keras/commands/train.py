"""The commands that make a model: prepare, pretrain and demo."""

from pathlib import Path
from typing import TextIO

from tqdm import tqdm

from bert_keras.commands.arguments import settings_of
from bert_keras.commands.lines import write
from bert_keras.commands.text import corpus_format, runner, switches
from bert_keras.demo import run as run_demo
from bert_keras.pretraining import run
from bert_keras.pretraining.beam import prepare_on_beam
from bert_keras.pretraining.options import PretrainingOptions
from bert_keras.pretraining.prepare import hash_of_vocabulary, prepare_corpus
from bert_keras.pretraining.shards import MANIFEST, Shards
from bert_keras.text.tokenizer import WordPieceTokenizer
from bert_keras.text.vocabulary import Vocabulary
from bert_keras.training.curves import plot_curves
from bert_keras.training.strategies import is_chief, strategy_named, wait_for_all

PREPARED = "data"


def demo(options, results: TextIO) -> None:
    run_demo(options.out, results)


def prepare(options, results: TextIO) -> None:
    beam = runner(options)
    if beam:
        shards = prepare_on_beam(
            options.corpus,
            _tokenizer(options),
            options.out,
            corpus=corpus_format(options),
            **beam,
        )
    else:
        shards = _prepare(options, options.out)
    names = ("shards", "documents", "held_out_documents", "sentences", "tokens")
    write({name: shards.manifest[name] for name in names}, results)


def pretrain(options, results: TextIO) -> None:
    # First of all: several workers find one another before anything is computed.
    strategy = strategy_named(options.strategy)
    names = PretrainingOptions.__dataclass_fields__
    decided = PretrainingOptions(**{name: getattr(options, name) for name in names})
    shards = _prepared(options)
    if shards is None:
        if is_chief(strategy):
            _prepare(options, options.out / PREPARED)
        wait_for_all(strategy)
        shards = Shards(options.out / PREPARED)
    settings = settings_of(options, strategy)
    _, evaluation = run.pretrain(shards, decided, options.out, settings)
    if not is_chief(strategy):
        return
    if options.plot:
        plot_curves(options.out, options.plot)
    if evaluation:
        write({**evaluation.metrics, "unigram": evaluation.unigram_accuracy}, results)


def _prepared(options) -> Shards | None:
    """Returns the corpus if it is a prepared one."""
    if len(options.corpus) != 1 or not (options.corpus[0] / MANIFEST).exists():
        return None
    shards = Shards(options.corpus[0])
    if options.vocab:
        tokenizer = _tokenizer(options)
        asked, there = hash_of_vocabulary(tokenizer), shards.manifest["vocabulary"]
        if asked != there or tokenizer.options != shards.tokenizer.options:
            raise ValueError(
                f"{options.corpus[0]} was prepared with another vocabulary or other "
                f"options. Received: {options.vocab}; allowed: the one it was prepared "
                "with, or none: it is kept there."
            )
    return shards


def _prepare(options, out: Path) -> Shards:
    if not options.vocab:
        raise ValueError(
            "A corpus of text needs a vocabulary. Received: no --vocab; allowed: a "
            "vocabulary file, or one folder that `bert-keras prepare` made."
        )
    with tqdm(desc="prepare", unit="B", unit_scale=True) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        return prepare_corpus(
            options.corpus,
            _tokenizer(options),
            out,
            corpus=corpus_format(options),
            processes=options.processes,
            progress=progress,
        )


def _tokenizer(options) -> WordPieceTokenizer:
    return WordPieceTokenizer(Vocabulary.read(options.vocab), **switches(options))

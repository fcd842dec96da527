"""The commands that need no model: vocab and tokenize."""

from pathlib import Path
from typing import TextIO

from tqdm import tqdm

from bert_keras.commands.lines import batches, write
from bert_keras.commands.models import open_model
from bert_keras.features import TOKEN_IDS
from bert_keras.pretraining.beam import count_words_on_beam
from bert_keras.pretraining.corpus import CorpusFormat, corpus_files, read_documents
from bert_keras.text.layout import COUNTS, OFFSETS
from bert_keras.text.learner import learn_vocabulary
from bert_keras.text.report import vocabulary_report
from bert_keras.text.tokenizer import WordPieceTokenizer
from bert_keras.text.vocabulary import Vocabulary
from bert_keras.text.word_counts import (
    WordCounts,
    count_words,
    read_word_counts,
    write_word_counts,
)


def vocab(options, results: TextIO) -> None:
    _check_file("vocabulary", options.out)
    if options.write_counts:
        _check_file("table of counts", options.write_counts)
    words = _count(options.corpus, options, "count words")
    if options.write_counts:
        write_word_counts(words, options.write_counts)
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
    write(report, results)


def _check_file(what: str, path: Path) -> None:
    """Says at once what would else be said when all is counted."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise ValueError(
            f"The {what} cannot be written to {path}: it must be a file in a folder "
            "that exists."
        )


def _count(paths: list[Path], options, said: str) -> WordCounts:
    """Counts the words of a corpus; of word-count tables, if there may be such."""
    settings = {**switches(options), "never_split": options.never_split}
    words = count_words({}, **settings)
    if not paths:
        return words
    corpus, files = corpus_format(options), corpus_files(paths)
    tables = [path for path in files if options.counts and path.suffix == ".tsv"]
    texts = [path for path in files if path not in tables]
    beam = runner(options)
    if beam and texts:
        scratch = options.out.parent
        words = count_words_on_beam(texts, scratch, corpus=corpus, **beam, **settings)
        texts = []
    objects = [path for path in texts if corpus.of(path) == "jsonl"]
    plain = [path for path in texts if path not in objects]
    if plain:
        size = sum(path.stat().st_size for path in plain)
        with tqdm(total=size, desc=said, unit="B", unit_scale=True) as bar:
            words.update(_count_with(bar, plain, options, settings))
    if objects:
        found = (" ".join(document) for document in read_documents(objects, corpus))
        with tqdm(desc=said, unit=" documents") as bar:
            words.update(_count_with(bar, found, options, settings))
    for path in tables:
        words.update(count_words(read_word_counts(path), **settings))
    return words


def _count_with(bar: tqdm, corpus, options, settings: dict) -> WordCounts:
    return count_words(
        corpus,
        processes=options.processes,
        progress=lambda done: bar.update(done - bar.n),
        **settings,
    )


def corpus_format(options) -> CorpusFormat:
    """Returns how documents stand in the files of the corpus."""
    return CorpusFormat(options.format, options.blank_lines, options.text_field).check()


def runner(options) -> dict:
    """Returns the runner of Apache Beam that was asked for, and what it is told."""
    if not options.runner and options.runner_options:
        raise ValueError(
            f"Received: --runner-options {' '.join(options.runner_options)}; allowed: "
            "none without --runner."
        )
    asked = {"runner": options.runner, "runner_options": options.runner_options}
    return asked if options.runner else {}


def tokenize(options, results: TextIO) -> None:
    if options.vocab:
        vocabulary, settings = Vocabulary.read(options.vocab), switches(options)
    else:
        tokenizer = open_model(options.model).preprocessor.tokenizer
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
    for texts in batches(pairs=False):
        answer = {name: value.numpy() for name, value in tokenizer(texts).items()}
        for number, count in enumerate(answer[COUNTS]):
            ids = answer[TOKEN_IDS][number, :count].tolist()
            if options.offsets:
                ids = {
                    "ids": ids,
                    "tokens": [vocabulary[i - first] for i in ids],
                    "offsets": answer[OFFSETS][number, :count].tolist(),
                }
            write(ids, results)


def switches(options) -> dict:
    """Returns the tokenizer's options that were given; the rest is as stored."""
    return {
        "lowercase": False if options.cased else None,
        "strip_accents": False if options.cased or options.keep_accents else None,
        "rules": options.rules,
    }

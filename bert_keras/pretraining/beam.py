"""Corpora past one machine: words counted, and shards made, on Apache Beam.

Beam hands the parts of a corpus to workers: in this program (DirectRunner), or on a
Flink, Spark or Dataflow cluster. What is done with a part is what is done with it on
one machine, and so is what comes of it, byte for byte.

All workers must have this package, and find the corpus and the folder that is written
to under the same paths as this program: on a file system that they share.
"""

import contextlib
import functools
import io
import json
import logging
import os
import re
import shutil
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bert_keras.pretraining.corpus import (
    CorpusFormat,
    corpus_files,
    cut_at_documents,
    read_stretches,
)
from bert_keras.pretraining.prepare import Plan, ShardMaker
from bert_keras.pretraining.shards import Shards
from bert_keras.text.counter import WordCounter
from bert_keras.text.lines import Span, read_lines, spans
from bert_keras.text.options import TokenizerOptions
from bert_keras.text.tokenizer import WordPieceTokenizer
from bert_keras.text.word_counts import WordCounts, count_words, read_word_counts

PART = 1 << 25
"""Bytes of a file that are counted at a time; of larger parts fewer counts travel."""

_COUNTED, _WRONG = "counted", "wrong"
_MOST_SAID = 300  # characters of what a runner says


def count_words_on_beam(
    paths: Iterable[str | os.PathLike],
    scratch: str | os.PathLike,
    *,
    runner: str,
    runner_options: Sequence[str] = (),
    corpus: CorpusFormat = CorpusFormat(),
    **settings,
) -> WordCounts:
    """Counts the words of files, as `count_words` does; of JSON lines, of their texts.

    This program holds the distinct words, and none of the text.

    Args:
        paths: files, folders and patterns (`corpus_files`).
        scratch: a folder that all workers share. The counts stand there on their way
            back, and are removed.
        runner: DirectRunner, FlinkRunner, SparkRunner, DataflowRunner or another that
            Beam knows.
        runner_options: for Beam, such as "flink_master=host:8081" or "parallelism=8".
        corpus: the format of the files.
        settings: the options of `count_words`, from `lowercase` to `special_tokens`.

    Raises:
        ImportError: Apache Beam is not installed, or not what the runner needs.
        ValueError: as `count_words` and `read_stretches`; a runner or an option that
            Beam does not know.
        FileNotFoundError: as `corpus_files`.
        ChildProcessError: the runner gave up.
    """
    pipeline = _pipeline(runner, runner_options)
    words = count_words({}, **settings)
    names = (*words.special_tokens, *words.options.never_split)
    corpus.check()
    parts = (span for file in corpus_files(paths) for span in _parts(file, corpus))
    arguments = (corpus, words.options, names)
    words.update(_done(pipeline, _count, arguments, enumerate(parts), Path(scratch)))
    return words


def prepare_on_beam(
    paths: Iterable[str | os.PathLike],
    tokenizer: WordPieceTokenizer,
    out: str | os.PathLike,
    *,
    runner: str,
    runner_options: Sequence[str] = (),
    corpus: CorpusFormat = CorpusFormat(),
) -> Shards:
    """Cuts a corpus into pieces and writes them as shards, as `prepare_corpus` does.

    Called again it makes what is missing yet; also of what `prepare_corpus` began.

    Args:
        paths, tokenizer, corpus: as `prepare_corpus`.
        out: the folder; all workers share it.
        runner, runner_options: as `count_words_on_beam`.

    Raises:
        As `prepare_corpus` and `count_words_on_beam`. If something is wrong with one
        part of the corpus, the shards of the others are made all the same.
    """
    pipeline = _pipeline(runner, runner_options)
    out = Path(out)
    plan = Plan(paths, tokenizer, out, corpus)
    if plan.is_finished():
        return Shards(out)
    missing = plan.begin()
    with plan.cleaning_up():
        arguments = (out.absolute(), corpus, plan.made_with)
        _done(pipeline, _make_shard, arguments, missing, out)
        return plan.finish()


def _parts(file: Path, corpus: CorpusFormat) -> list[Span]:
    if corpus.of(file) == "jsonl":
        return cut_at_documents(file, PART, corpus)
    return spans(file, PART)


def _count(
    number: int,
    span: Span,
    corpus: CorpusFormat,
    options: TokenizerOptions,
    names: tuple[str, ...],
) -> Mapping[str, int]:
    """Counts the words of a part."""
    counter = WordCounter(options, names)
    if corpus.of(span.path) == "jsonl":
        for stretch in read_stretches(span, corpus):
            counter.add(" ".join(stretch.sentences))
    else:
        counter.work(span)
    return counter.result()


def _make_shard(
    number: int, span: Span, folder: Path, corpus: CorpusFormat, made_with: str
) -> Mapping[str, int]:
    """Makes the shard of a part; there is nothing to count."""
    _maker(folder, corpus, made_with).work((number, span))
    return {}


@functools.lru_cache(maxsize=1)
def _maker(*arguments) -> ShardMaker:
    """Returns the maker of a worker: one for all of its parts."""
    return ShardMaker(*arguments)


def _outcome(
    part: tuple[int, str, int, int], work: Callable[..., Mapping], arguments: tuple
) -> Iterator:
    """Yields what was counted in a part or, set apart, what is wrong with the part.

    That is not raised: runners would try again, in vain, and some of them do not say
    what it was.
    """
    from apache_beam.pvalue import TaggedOutput

    number, path, start, end = part
    try:
        counted = work(number, Span(Path(path), start, end), *arguments)
    except ValueError as error:
        yield TaggedOutput(_WRONG, json.dumps([number, str(error)]))
    else:
        yield from counted.items()


def _pipeline(runner: str, runner_options: Sequence[str]):
    """Returns an empty pipeline of Beam."""
    logging.basicConfig()  # as Beam does, but not while standard error is put aside
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)  # that Google's services are not installed
    try:
        import apache_beam as beam
        from apache_beam.options.pipeline_options import PipelineOptions
    except ImportError as error:
        raise ImportError(
            "Runners are those of Apache Beam. Received: "
            f'{error}; allowed: what `pip install "bert-keras[beam]"` installs.'
        ) from error
    finally:
        logging.disable(disabled)
    flags = ["--" + option.lstrip("-") for option in runner_options]
    try:
        with contextlib.redirect_stderr(io.StringIO()) as said:
            options = PipelineOptions([f"--runner={runner}", *flags])
            options.get_all_options()  # where it reads them, and would end the program
    except SystemExit as stop:
        reason = said.getvalue().rpartition("error: ")[2].strip()
        raise ValueError(f"Received: {reason}; allowed: options of Beam.") from stop
    return beam.Pipeline(options=options)


def _done(
    pipeline,
    work: Callable[..., Mapping[str, int]],
    arguments: tuple,
    parts: Iterable[tuple[int, Span]],
    folder: Path,
) -> Mapping[str, int]:
    """Has all parts worked on, and returns the sums of what was counted.

    Args:
        pipeline: an empty one.
        work: called with the number of a part, the part, and `arguments`.
        folder: where a folder for what comes back is made, and removed.
    """
    import apache_beam as beam

    # As plain values: Beam would make rows of a table of named tuples.
    places = [(n, str(span.path.absolute()), *span[1:]) for n, span in parts]
    if not places:
        return {}
    with _folder_in(folder) as scratch:
        works = beam.FlatMap(_outcome, work, arguments)
        counted, wrong = (
            pipeline
            | "Parts" >> beam.Create(places)
            | "To all workers" >> beam.Reshuffle()
            | "Work" >> works.with_outputs(_WRONG, main=_COUNTED)
        )
        (
            counted
            | "Sums" >> beam.CombinePerKey(sum)
            | "Lines" >> beam.MapTuple(lambda word, count: f"{word}\t{count}")
            | "Write" >> beam.io.WriteToText(str(scratch / _COUNTED))
        )
        wrong | "Write what is wrong" >> beam.io.WriteToText(str(scratch / _WRONG))
        _run(pipeline)
        return _sums(scratch)


def _run(pipeline) -> None:
    """Runs a pipeline to its end."""
    try:
        state = pipeline.run().wait_until_finish()
        if state != "DONE":
            raise RuntimeError(f"the pipeline is {state}")
    except Exception as error:
        said = "".join(traceback.format_exception_only(error))
        raise ChildProcessError(
            f"Apache Beam gave up. Received: {_gist(said)}. Do all workers have this "
            "package, and find the files where this program does?"
        ) from error


def _gist(said: str) -> str:
    """Returns the line to show of an error, which may hold stacks of two languages."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    named = re.compile(r"(Caused by: )?[\w.]+(Error|Exception)\b")
    line = next(filter(named.match, reversed(lines)), lines[-1])
    line = re.sub(r" \[while running .*?\]", "", line).removeprefix("RuntimeError: ")
    return line[:_MOST_SAID]


def _sums(scratch: Path) -> Counter[str]:
    """Reads what was counted; raises what is wrong with the first part that is."""
    files = scratch.glob(f"{_WRONG}-*")
    errors = [json.loads(line) for path in files for line in read_lines(path)]
    if errors:
        raise ValueError(min(errors)[1])
    sums: Counter[str] = Counter()
    for path in scratch.glob(f"{_COUNTED}-*"):
        sums.update(read_word_counts(path))
    return sums


@contextlib.contextmanager
def _folder_in(folder: Path) -> Iterator[Path]:
    """Makes a folder, open to other users as `tempfile`'s are not, and removes it."""
    made = folder.absolute() / f".on-beam-{uuid.uuid4().hex}"
    made.mkdir()
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)

"""Corpus files -> shards: the text is cut into pieces once, before training.

The corpus is cut into parts, always the same ones, and each becomes a shard; so the
bytes are the same for any number of processes, and what was interrupted goes on with
the parts that are missing.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from bert_keras.files import AnotherRunError, read_json, write_json
from bert_keras.pretraining.corpus import (
    CorpusFormat,
    Stretch,
    corpus_files,
    cut_at_documents,
    read_stretches,
)
from bert_keras.pretraining.shards import (
    MANIFEST,
    VERSION,
    Shards,
    is_held_out,
    shard_path,
    write_shard,
)
from bert_keras.text.lines import Span
from bert_keras.text.options import check_integer
from bert_keras.text.processes import in_processes
from bert_keras.text.tokenizer import VOCABULARY_FILE, WordPieceTokenizer
from bert_keras.text.vocabulary import options_path

PART = 1 << 25
"""Bytes of a file that become one shard; a gzipped file becomes one, as it is."""

_SENTENCES_AT_ONCE = 1000
_MARGIN = 1 << 20  # bytes at either end of a file that its fingerprint is made of


class ShardMaker:
    """Makes shards of parts of a corpus; also in other processes and on a cluster.

    Args:
        folder: where the vocabulary is, and the shards go.
        corpus: the format of the files.
        made_with: kept with each shard, as of what was decided.
    """

    def __init__(self, folder: Path, corpus: CorpusFormat, made_with: str):
        self.folder = folder
        self.corpus = corpus
        self.made_with = made_with
        self._tokenizer = WordPieceTokenizer(str(folder / VOCABULARY_FILE))

    def work(self, part: tuple[int, Span]) -> int:
        """Makes the shard of one part; returns the bytes of the part."""
        number, span = part
        stretches = read_stretches(span, self.corpus)
        tokenized = _tokenized(stretches, self._tokenizer)
        source = {**source_of(span), "made_with": self.made_with}
        write_shard(self.folder, number, tokenized, source)
        return span.end - span.start

    def result(self) -> None:
        """There is none but the files."""


def prepare_corpus(
    paths: Iterable[str | os.PathLike],
    tokenizer: WordPieceTokenizer,
    out: str | os.PathLike,
    *,
    corpus: CorpusFormat = CorpusFormat(),
    processes: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Shards:
    """Cuts a corpus into pieces and writes them as shards.

    Called again with the same arguments it makes what is missing yet.

    Args:
        paths: files, folders and patterns (`corpus_files`).
        tokenizer: cuts the text; its vocabulary and options are kept with the shards.
        out: the folder.
        corpus: the format of the files.
        processes: how many work at once; the result is the same for any number.
        progress: called with the bytes of text that are done, and of all text.

    Raises:
        AnotherRunError: `out` holds another corpus.
        ValueError: the corpus is empty, or as `read_stretches`.
        FileNotFoundError: as `corpus_files`.
    """
    check_integer("processes", processes, 1)
    plan = Plan(paths, tokenizer, Path(out), corpus)
    if plan.is_finished():
        return Shards(out)
    missing = plan.begin()
    total = sum(span.end - span.start for span in plan.spans)
    done = total - sum(span.end - span.start for _, span in missing)
    progress(done, total)

    def count(size: int) -> None:
        nonlocal done
        done += size
        progress(done, total)

    arguments = (Path(out), corpus, plan.made_with)
    with plan.cleaning_up():
        if min(processes, len(missing)) > 1:
            for _ in in_processes(ShardMaker, arguments, missing, processes, count):
                pass
        elif missing:
            maker = ShardMaker(*arguments)
            for part in missing:
                count(maker.work(part))
        return plan.finish()


class Plan:
    """What is to be made of a corpus, and what of it there is; arguments as above.

    Attributes:
        spans: the parts of files, one for each shard.
        made_with: a hash of all that decides what becomes of a part.
    """

    def __init__(
        self, paths, tokenizer: WordPieceTokenizer, out: Path, corpus: CorpusFormat
    ):
        corpus.check()
        self._tokenizer, self._out = tokenizer, out
        self.spans = [
            span
            for file in corpus_files(paths)
            for span in cut_at_documents(file, PART, corpus)
        ]
        decided = {
            "version": VERSION,
            "vocabulary": hash_of_vocabulary(tokenizer),
            "tokenizer": tokenizer.options.as_json(),
            "special_tokens": list(tokenizer.vocabulary.special_tokens),
            "corpus": corpus._asdict(),
        }
        self.made_with = hashlib.sha256(json.dumps(decided).encode()).hexdigest()
        self._wanted = {**decided, "sources": list(map(source_of, self.spans))}

    def is_finished(self) -> bool:
        """Says whether all is made; raises an `AnotherRunError` if it is other work."""
        if not (self._out / MANIFEST).exists():
            return False
        found = read_json(self._out / MANIFEST)
        for name, value in self._wanted.items():
            if found.get(name) != value:
                received, allowed = str(value)[:200], str(found.get(name))[:200]
                raise AnotherRunError(
                    f"{self._out} holds another prepared corpus. Received: {name}="
                    f"{received}; allowed: {name}={allowed}, as it was made, or "
                    "another folder."
                )
        return True

    def begin(self) -> list[tuple[int, Span]]:
        """Makes the folder; returns the parts whose shards are missing."""
        self._out.mkdir(parents=True, exist_ok=True)
        vocabulary = self._tokenizer.vocabulary.with_options(self._tokenizer.options)
        vocabulary.write(self._out / VOCABULARY_FILE)
        return [part for part in enumerate(self.spans) if not self._is_made(*part)]

    def finish(self) -> Shards:
        """Writes the manifest of shards that are all there, and returns them.

        Raises:
            ValueError: the corpus has no text; nothing of it is left.
        """
        about = [read_json(self._about(number)) for number in range(len(self.spans))]
        manifest = {
            **self._wanted,
            "shards": len(about),
            "documents": sum(sum(shard["documents"]) for shard in about),
            "held_out_documents": sum(shard["documents"][1] for shard in about),
            "sentences": sum(shard["sentences"] for shard in about),
            "tokens": sum(chunk[3] for shard in about for chunk in shard["chunks"]),
        }
        if not manifest["tokens"]:
            for number in range(len(about)):
                self._about(number).unlink()
            names = ", ".join(sorted({span.path.name for span in self.spans}))
            raise ValueError(
                f"The corpus has no text. Received: {names or 'empty files'}; allowed: "
                "files in which there is a word."
            )
        write_json(manifest, self._out / MANIFEST)
        return Shards(self._out)

    def _is_made(self, number: int, span: Span) -> bool:
        about = self._about(number)
        source = {**source_of(span), "made_with": self.made_with}
        return about.exists() and read_json(about)["source"] == source

    @contextlib.contextmanager
    def cleaning_up(self) -> Iterator[None]:
        """Removes what was made, if work fails before a shard is whole."""
        try:
            yield
        except BaseException:
            if not any(self._about(n).exists() for n in range(len(self.spans))):
                self._remove()
            raise

    def _remove(self) -> None:
        vocabulary = self._out / VOCABULARY_FILE
        made = [vocabulary, options_path(vocabulary)]
        for number in range(len(self.spans)):
            made += [self._about(number), shard_path(self._out, number)]
        for path in made:
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # there is something else in it
            self._out.rmdir()

    def _about(self, number: int) -> Path:
        return shard_path(self._out, number).with_suffix(".json")


def hash_of_vocabulary(tokenizer: WordPieceTokenizer) -> str:
    """Returns the SHA-256 of the tokens, one a line."""
    return hashlib.sha256("\n".join(tokenizer.vocabulary).encode()).hexdigest()


def source_of(span: Span) -> dict:
    """Says which part of which file: by what is in it, wherever it lies now."""
    size = span.path.stat().st_size
    with open(span.path, "rb") as file:
        ends = file.read(_MARGIN)
        file.seek(max(size - _MARGIN, 0))
        ends += file.read()
    return {
        "file": span.path.name,
        "size": size,
        "ends_sha256": hashlib.sha256(ends).hexdigest(),
        "part": [span.start, span.end],
    }


def _tokenized(
    stretches: Iterable[Stretch], tokenizer: WordPieceTokenizer
) -> Iterator[tuple[bool, bool, list[np.ndarray]]]:
    """Yields of each stretch: does a document begin, is it held out, its sentences.

    Sentences without tokens are left out.
    """
    batch: list[tuple[bool, bool, list[str]]] = []
    waiting = 0
    held_out = False
    for sentences, begins in stretches:
        held_out = is_held_out(sentences[0]) if begins else held_out
        batch.append((begins, held_out, sentences))
        waiting += len(sentences)
        if waiting >= _SENTENCES_AT_ONCE:
            yield from _tokenized_batch(batch, tokenizer)
            batch, waiting = [], 0
    yield from _tokenized_batch(batch, tokenizer)


def _tokenized_batch(batch, tokenizer):
    texts = [sentence for *_, sentences in batch for sentence in sentences]
    if not texts:
        return
    tokens = tokenizer(texts)
    counts = tokens["counts"].numpy()
    rows = iter(
        row[:count].copy()
        for row, count in zip(tokens["token_ids"].numpy(), counts, strict=True)
    )
    for begins, held_out, sentences in batch:
        ids = (next(rows) for _ in sentences)
        yield begins, held_out, [row for row in ids if len(row)]

"""A tokenized corpus on disk: a folder of TFRecord shards and their manifest.

A record is a *chunk*, some 65,536 tokens, as a `tf.train.Example` of int64 lists

| feature            | holds                                                          |
|--------------------|----------------------------------------------------------------|
| `token_ids`        | the ids of all its sentences, one behind the other             |
| `sentence_lengths` | tokens of each sentence                                        |
| `stretch_lengths`  | sentences of each stretch: those of one document in a row      |
| `documents`        | of each stretch: the number of its document in the shard       |

so any TensorFlow program can read it. Beside each shard stands where its chunks begin,
so that training can take them in any order without reading what is before them. One
document in twenty is held out, in chunks of its own: which, its first sentence decides.
"""

import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_keras.files import read_json, replacing, write_json
from bert_keras.text.tokenizer import VOCABULARY_FILE, WordPieceTokenizer

CHUNK = 1 << 16
"""Tokens of a chunk, about."""

HELD_OUT_EVERY = 20
_LEAST_HELD_OUT = 2  # a random second sentence must come from another document
MANIFEST = "manifest.json"
VERSION = 1
_HEADER, _FOOTER = 12, 4  # bytes of a TFRecord around its data


class TokenizedStretch(NamedTuple):
    """Sentences of one document that follow one another, as ids.

    Attributes:
        document: the number of the document, another for each in the corpus.
        sentences: int32 ids, none empty.
    """

    document: int
    sentences: list[np.ndarray]


class Chunk(NamedTuple):
    """Where a chunk stands, and what is in it.

    Attributes:
        shard: number of the shard.
        offset, length: place of its data in the file, in bytes.
        crc: CRC-32 of the data.
        tokens: how many.
        held_out: not to be trained on.
    """

    shard: int
    offset: int
    length: int
    crc: int
    tokens: int
    held_out: bool


def is_held_out(first_sentence: str) -> bool:
    """Says whether the document that begins so is held out.

    The same one always is, wherever it stands and whoever reads it; and a copy with it.
    """
    return zlib.crc32(first_sentence.encode("utf-8")) % HELD_OUT_EVERY == 0


def shard_path(folder: Path, number: int) -> Path:
    return folder / f"shard-{number:05d}.tfrecord"


def write_shard(
    folder: Path,
    number: int,
    stretches: Iterable[tuple[bool, bool, list[np.ndarray]]],
    source: dict,
) -> None:
    """Writes a shard, and then what is in it: a shard without that is not whole.

    Args:
        stretches: of each: does a document begin, is it held out, its sentences.
        source: what the shard was made of; kept with it.
    """
    path = shard_path(folder, number)
    about = {"source": source, "documents": [0, 0], "sentences": 0, "chunks": []}
    digest = hashlib.sha256()
    with replacing(path) as temporary, tf.io.TFRecordWriter(str(temporary)) as file:
        offset = 0
        for held_out, chunk in _chunks(stretches, about):
            data = _example(chunk)
            file.write(data)
            digest.update(data)
            tokens = sum(len(s) for stretch in chunk for s in stretch.sentences)
            place = Chunk(
                number, offset + _HEADER, len(data), zlib.crc32(data), tokens, held_out
            )
            about["chunks"].append(place[1:])
            offset += _HEADER + len(data) + _FOOTER
    about["sha256"] = digest.hexdigest()
    write_json(about, path.with_suffix(".json"), indent=None)


def _chunks(stretches, about: dict) -> Iterator[tuple[bool, list[TokenizedStretch]]]:
    """Gathers stretches, those held out and the others; counts them into `about`."""
    gathered: dict[bool, list] = {False: [], True: []}
    tokens = {False: 0, True: 0}
    document, is_new = -1, False
    for begins, held_out, sentences in stretches:
        is_new |= begins
        if not sentences:
            continue
        document += is_new
        about["documents"][held_out] += is_new
        is_new = False
        about["sentences"] += len(sentences)
        gathered[held_out].append(TokenizedStretch(document, sentences))
        tokens[held_out] += sum(map(len, sentences))
        if tokens[held_out] >= CHUNK:
            yield held_out, gathered[held_out]
            gathered[held_out], tokens[held_out] = [], 0
    yield from ((held_out, chunk) for held_out, chunk in gathered.items() if chunk)


def _example(chunk: list[TokenizedStretch]) -> bytes:
    sentences = [s for stretch in chunk for s in stretch.sentences]
    features = {
        "token_ids": np.concatenate(sentences),
        "sentence_lengths": [len(s) for s in sentences],
        "stretch_lengths": [len(stretch.sentences) for stretch in chunk],
        "documents": [stretch.document for stretch in chunk],
    }
    example = tf.train.Example()
    for name, values in features.items():
        example.features.feature[name].int64_list.value.extend(values)
    return example.SerializeToString(deterministic=True)


class Shards:
    """A prepared corpus: what `prepare` made.

    Args:
        folder: where it stands.

    Attributes:
        manifest: what it was made of, as JSON values.
        tokenizer: what its ids come from.
        documents: how many may be trained on, and how many are held out; none, where
            there would be less than two, or none to train on.
        digest: of all ids; another for another corpus.

    Raises:
        ValueError: there is no whole prepared corpus of this version.
    """

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        if not (self.folder / MANIFEST).exists():
            raise ValueError(
                f"{self.folder} is no prepared corpus. Received: a folder without "
                f"{MANIFEST}; allowed: what `prepare` has finished."
            )
        self.manifest = read_json(self.folder / MANIFEST)
        if self.manifest.get("version") != VERSION:
            raise ValueError(
                f"{self.folder} was prepared by another version. Received: "
                f"{self.manifest.get('version')!r}; allowed: {VERSION}."
            )
        self.tokenizer = WordPieceTokenizer(str(self.folder / VOCABULARY_FILE))
        self._chunks: list[Chunk] = []
        self.documents = [0, 0]
        digest = hashlib.sha256()
        for number in range(self.manifest["shards"]):
            about = read_json(shard_path(self.folder, number).with_suffix(".json"))
            self._chunks += [Chunk(number, *place) for place in about["chunks"]]
            self.documents = [
                a + b for a, b in zip(self.documents, about["documents"], strict=True)
            ]
            digest.update(bytes.fromhex(about["sha256"]))
        self.digest = digest.hexdigest()
        trained, held_out = self.documents
        if held_out < _LEAST_HELD_OUT or not trained:
            self._chunks = [chunk._replace(held_out=False) for chunk in self._chunks]
            self.documents = [trained + held_out, 0]

    def chunks(self, held_out: bool = False) -> list[Chunk]:
        """Returns where the chunks are that may be trained on, or those held out."""
        return [chunk for chunk in self._chunks if chunk.held_out == held_out]

    def read(self, chunk: Chunk) -> list[TokenizedStretch]:
        """Reads a chunk.

        Raises:
            ValueError: the file is not what was written; it names the place.
        """
        path = shard_path(self.folder, chunk.shard)
        with open(path, "rb") as file:
            file.seek(chunk.offset)
            data = file.read(chunk.length)
        if zlib.crc32(data) != chunk.crc:
            raise ValueError(
                f"{path} is damaged. Received: other bytes than were written, from "
                f"{chunk.offset} on; prepare the corpus again, into another folder."
            )
        features = tf.train.Example.FromString(data).features.feature
        ids, lengths, counts, documents = (
            np.array(features[name].int64_list.value)
            for name in (
                *("token_ids", "sentence_lengths"),
                *("stretch_lengths", "documents"),
            )
        )
        sentences = np.split(ids.astype(np.int32), np.cumsum(lengths)[:-1])
        ends = np.cumsum(counts).tolist()
        starts = [0, *ends[:-1]]
        first = chunk.shard << 32
        return [
            TokenizedStretch(first + document, sentences[start:end])
            for document, start, end in zip(
                documents.tolist(), starts, ends, strict=True
            )
        ]

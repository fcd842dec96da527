"""Corpus files -> shards."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from corpora import SENTENCES, files, prepared, write
from oracles import SMALL

from bert_keras import Shards, Vocabulary, WordPieceTokenizer, prepare_corpus
from bert_keras.files import AnotherRunError
from bert_keras.pretraining import prepare, shards
from bert_keras.pretraining.shards import is_held_out, shard_path

DOCUMENTS = [["the fox.", "\u200b", "brown."], ["quick fox"], ["the", "."]] * 30


@pytest.fixture
def tokenizer():
    return WordPieceTokenizer(SMALL)


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(prepare, "PART", 200)


def documents_of(found, held_out=False):
    """Returns the sentences of each document, as lists of ids."""
    documents: dict = {}
    for chunk in found.chunks(held_out):
        for stretch in found.read(chunk):
            documents.setdefault(stretch.document, []).extend(
                sentence.tolist() for sentence in stretch.sentences
            )
    return [documents[number] for number in sorted(documents)]


def test_documents_keep_their_sentences_and_lose_empty_ones(tmp_path):
    """the=5 qu=6 ##ick=7 br=8 ##own=9 fox=10 .=11"""
    found = prepared(tmp_path, [*DOCUMENTS, [" ", "\u200b"]], SMALL)
    one, two, three = [[5, 10, 11], [8, 9, 11]], [[6, 7, 10]], [[5], [11]]
    assert documents_of(found) == [one, two, three] * 30
    assert found.documents == [90, 0]
    manifest = json.loads((tmp_path / "shards" / "manifest.json").read_text())
    expected = {"documents": 90, "sentences": 150, "tokens": 330, "shards": 1}
    assert {name: manifest[name] for name in expected} == expected
    assert found.tokenizer.vocabulary.tokens == tuple(SMALL)


def test_any_tensorflow_program_can_read_a_shard(tmp_path):
    prepared(tmp_path, DOCUMENTS, SMALL)
    records = tf.data.TFRecordDataset(str(tmp_path / "shards/shard-00000.tfrecord"))
    (record,) = records.as_numpy_iterator()
    names = ("token_ids", "sentence_lengths", "stretch_lengths", "documents")
    row = tf.io.parse_single_example(
        record, {name: tf.io.VarLenFeature(tf.int64) for name in names}
    )
    ids, lengths, counts, documents = (row[name].values.numpy() for name in names)
    assert ids[:7].tolist() == [5, 10, 11, 8, 9, 11, 6]
    assert lengths[:4].tolist() == [3, 3, 3, 1]
    assert counts.tolist() == [2, 1, 2] * 30
    assert documents.tolist() == list(range(90))


def test_one_document_in_twenty_is_held_out_by_its_first_sentence(tmp_path):
    tokens = [*SMALL, *map(str, range(2000))]
    documents = [[str(n), "fox"] for n in range(2000)]
    found = prepared(tmp_path, documents, tokens)
    held_out = documents_of(found, held_out=True)
    numbers = {document[0][0] - len(SMALL) for document in held_out}
    assert numbers == {n for n in range(2000) if is_held_out(str(n))}
    assert 70 < len(numbers) < 130  # 100 +- 3 standard deviations
    trained = documents_of(found)
    assert len(trained) + len(held_out) == 2000
    assert found.documents == [len(trained), len(held_out)]


def test_the_bytes_are_the_same_for_any_number_of_processes(
    tmp_path, tokenizer, small_parts
):
    path = write(tmp_path / "c.txt", DOCUMENTS)
    for processes in (1, 3):
        prepare_corpus(
            [path],
            tokenizer,
            tmp_path / str(processes),
            corpus=SENTENCES,
            processes=processes,
        )
    assert files(tmp_path / "1") == files(tmp_path / "3")
    assert len(files(tmp_path / "1")) > 10


def test_what_was_interrupted_goes_on_with_what_is_missing(
    tmp_path, tokenizer, small_parts, monkeypatch
):
    path = write(tmp_path / "c.txt", DOCUMENTS)
    whole = prepare_corpus([path], tokenizer, tmp_path / "a", corpus=SENTENCES)
    made = []

    def stops(folder, number, stretches, source):
        if number == 3:
            next(iter(stretches))
            raise KeyboardInterrupt
        made.append(number)
        shards.write_shard(folder, number, stretches, source)

    def watches(folder, number, stretches, source):
        made.append(number)
        shards.write_shard(folder, number, stretches, source)

    monkeypatch.setattr(prepare, "write_shard", stops)
    with pytest.raises(KeyboardInterrupt):
        prepare_corpus([path], tokenizer, tmp_path / "b", corpus=SENTENCES)
    assert made == [0, 1, 2]
    with pytest.raises(ValueError, match="is no prepared corpus"):
        Shards(tmp_path / "b")
    monkeypatch.setattr(prepare, "write_shard", watches)
    seen = []
    again = prepare_corpus(
        [path],
        tokenizer,
        tmp_path / "b",
        corpus=SENTENCES,
        progress=lambda *done: seen.append(done),
    )
    assert made == list(range(again.manifest["shards"]))
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert whole.digest == again.digest
    size = path.stat().st_size
    assert 0 < seen[0][0] < size
    assert seen[-1] == (size, size)


def test_what_is_finished_is_not_made_again_nor_overwritten(tmp_path, tokenizer):
    path = write(tmp_path / "c.txt", DOCUMENTS)
    arguments = {"corpus": SENTENCES, "out": tmp_path / "s"}
    prepare_corpus([path], tokenizer, **arguments)
    before = files(tmp_path / "s")
    prepare_corpus([path], tokenizer, **arguments)
    for change, said in (
        ({"tokenizer": WordPieceTokenizer([*SMALL, "more"])}, "vocabulary="),
        ({"tokenizer": tokenizer.copy(strip_accents=False)}, "tokenizer="),
        ({"corpus": SENTENCES._replace(blank_lines=2)}, "corpus="),
        ({"paths": [write(tmp_path / "d.txt", DOCUMENTS[1:])]}, "sources="),
    ):
        other = {"paths": [path], "tokenizer": tokenizer, **arguments, **change}
        with pytest.raises(AnotherRunError, match=f"Received: {said}"):
            prepare_corpus(**other)
    assert files(tmp_path / "s") == before


def test_the_same_text_elsewhere_is_the_same_corpus(tmp_path, tokenizer):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        path = write(tmp_path / folder / "c.txt", DOCUMENTS)
        prepare_corpus([path], tokenizer, tmp_path / "s", corpus=SENTENCES)


def test_a_corpus_without_text_leaves_nothing(tmp_path, tokenizer):
    (tmp_path / "empty.txt").write_text(" \n\n\u200b\n")
    with pytest.raises(ValueError, match="no text. Received: empty.txt"):
        prepare_corpus([tmp_path / "empty.txt"], tokenizer, tmp_path / "s")
    assert [path.name for path in tmp_path.iterdir()] == ["empty.txt"]


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_in_the_text_comes_through(
    tmp_path, tokenizer, small_parts, processes
):
    path = write(tmp_path / "c.txt", DOCUMENTS)
    path.write_bytes(path.read_bytes() + b"\n\xff\n")
    with pytest.raises(ValueError, match="c.txt is not UTF-8"):
        prepare_corpus(
            [path], tokenizer, tmp_path / "s", corpus=SENTENCES, processes=processes
        )
    write(path, DOCUMENTS)  # corrected, it may be prepared in the same folder
    prepare_corpus([path], tokenizer, tmp_path / "s", corpus=SENTENCES)


def test_a_damaged_shard_is_named(tmp_path):
    found = prepared(tmp_path, DOCUMENTS, SMALL)
    path = shard_path(tmp_path / "shards", 0)
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(bytes(data))
    (chunk,) = found.chunks()
    with pytest.raises(ValueError, match="shard-00000.tfrecord is damaged"):
        found.read(chunk)


def test_stretches_of_a_long_document_are_one_document(tmp_path):
    found = prepared(tmp_path, [["the fox ."] * 30_000, ["fox"]], SMALL)
    assert len(found.chunks()) == 2
    numbers = [s.document for chunk in found.chunks() for s in found.read(chunk)]
    assert len(numbers) > 3
    assert sorted(set(numbers)) == [0, 1]
    long, short = documents_of(found)
    assert long == [[5, 10, 11]] * 30_000
    assert short == [[10]]


def test_ids_are_those_of_the_tokenizer_with_its_options(tmp_path):
    vocabulary = Vocabulary([*SMALL, "Fox"])
    found = prepared(
        tmp_path, [["Fox fox"], ["Fox"]], vocabulary, lowercase=False, id_offset=3
    )
    assert documents_of(found) == [[[15, 13]], [[15]]]
    assert not found.tokenizer.options.lowercase


_PEAK = """
import resource, sys
from pathlib import Path
from bert_keras import *
path, out = Path(sys.argv[1]), Path(sys.argv[2])
tokenizer = WordPieceTokenizer(out.parent / "vocab.txt")
shards = prepare_corpus([path], tokenizer, out)
ids = tokenizer.special_ids
packer = BertPacker(128, cls_id=ids.cls, sep_id=ids.sep, pad_id=ids.pad)
masker = MaskedLMMasker.of(tokenizer, predictions=20)
data = PretrainingData(shards, packer, masker, batch_size=32, seed=0)
rows = sum(len(batch["token_ids"]) for batch in data.dataset(epochs=1))
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_m06_memory_does_not_grow_with_the_corpus(tmp_path):
    """The same lines, 1 MB and 100 MB of them, prepared and then read as batches."""
    random = np.random.default_rng(0)
    words = ["the", "fox", "quick", "brown", "."]
    Vocabulary([*SMALL]).write(tmp_path / "vocab.txt")
    lines = [" ".join(random.choice(words, 40)) for _ in range(5000)]
    text = "\n\n".join("\n".join(lines[n : n + 10]) for n in range(0, 5000, 10))
    peaks = []
    for times in (1, 100):
        path = tmp_path / f"{times}.txt"
        with open(path, "w") as file:
            for _ in range(times):
                file.write(text + "\n\n")
        assert path.stat().st_size / times > 0.8e6
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, path, tmp_path / str(times)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        )
        rows, peak = map(int, done.stdout.split())
        peaks.append(peak / 1024)  # Linux says kilobytes
        assert rows > 1000 * times
    assert peaks[1] - peaks[0] < 100

"""Speed of the tokenizer beside its peers, in one run.

    python tools/bench_tokenizer.py --data ../shared/data [--lines 20000]

Prints megabytes of UTF-8 a second, in batches of 1,000 lines, for English and for mixed
languages, and the latency of one sentence. Each engine reads the same lines under the
uncased vocabulary. This machine may be noisy: compare within one run only.
"""

import argparse
import gzip
import json
import time
from collections.abc import Callable
from pathlib import Path

import keras_nlp
import tensorflow as tf
import tensorflow_text
import tokenizers

from bert_keras import Vocabulary, WordPieceTokenizer
from bert_keras.export.artefacts import codepoints_of
from bert_keras.export.onnx import session, to_onnx

BATCH = 1000
SENTENCE = "The quick brown fox jumps over."
Engine = Callable[[list[str]], object]


def english(data: Path, count: int) -> list[str]:
    """Returns the first lines of the novels that are not blank."""
    lines = []
    for name in ("austen", "moby-dick"):
        text = gzip.decompress((data / "prose" / f"{name}.txt.gz").read_bytes())
        lines += [line for line in text.decode().split("\n") if line]
    return (lines * (1 + count // len(lines)))[:count]


def mixed(data: Path, count: int) -> list[str]:
    """Returns paragraphs and questions in four languages, in turn."""
    by_language = []
    for path in sorted((data / "multilingual").glob("*.json")):
        paragraphs = [
            paragraph
            for article in json.loads(path.read_bytes())["data"]
            for paragraph in article["paragraphs"]
        ]
        texts = [paragraph["context"] for paragraph in paragraphs]
        texts += [q["question"] for p in paragraphs for q in p["qas"]]
        by_language.append(texts)
    lines = [text for texts in zip(*by_language, strict=False) for text in texts]
    return (lines * (1 + count // len(lines)))[:count]


def engines(vocabulary_path: Path) -> dict[str, Engine]:
    """Returns each engine as a function of a batch of lines."""
    vocabulary = Vocabulary.read(vocabulary_path)
    ours = WordPieceTokenizer(vocabulary, ragged=True)
    lane = WordPieceTokenizer(vocabulary, ragged=True, engine="tf_text")
    dense = WordPieceTokenizer(vocabulary)
    signature = [tf.TensorSpec([None, None], tf.int32, name="codepoints")]
    text_in = session(to_onnx(lambda x: dense(x), signature).SerializeToString())
    fast = tensorflow_text.FastBertTokenizer(
        list(vocabulary),
        support_detokenization=False,
        lower_case_nfd_strip_accents=True,
    )
    plain = tensorflow_text.BertTokenizer(str(vocabulary_path), lower_case=True)
    hub = keras_nlp.tokenizers.BertTokenizer(list(vocabulary), lowercase=True)
    reference = tokenizers.BertWordPieceTokenizer(str(vocabulary_path), lowercase=True)
    strings = [tf.TensorSpec([None], tf.string)]

    def graph(function) -> Engine:
        traced = tf.function(function, input_signature=strings, autograph=False)
        return lambda lines: traced(tf.constant(lines))

    return {
        "bert_keras, tf.function": graph(lambda x: ours(x)["token_ids"]),
        "bert_keras, fast lane": graph(lambda x: lane(x)["token_ids"]),
        "bert_keras, text-in ONNX": lambda lines: text_in.run(
            ["token_ids"], {"codepoints": codepoints_of(lines)}
        ),
        "tf-text FastBertTokenizer": graph(fast.tokenize),
        "tf-text BertTokenizer": graph(plain.tokenize),
        "KerasHub BertTokenizer": graph(hub.tokenize),
        "tokenizers encode_batch": lambda lines: reference.encode_batch(
            lines, add_special_tokens=False
        ),
    }


def megabytes_a_second(engine: Engine, lines: list[str]) -> float:
    """Returns the speed over all lines, after a first batch that compiles."""
    batches = [lines[start : start + BATCH] for start in range(0, len(lines), BATCH)]
    engine(batches[0])
    started = time.perf_counter()
    for batch in batches:
        engine(batch)
    taken = time.perf_counter() - started
    return sum(len(line.encode()) for line in lines) / taken / 1e6


def milliseconds(engine: Engine, repeats: int = 300) -> float:
    """Returns the mean time for one sentence."""
    engine([SENTENCE])
    started = time.perf_counter()
    for _ in range(repeats):
        engine([SENTENCE])
    return 1e3 * (time.perf_counter() - started) / repeats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=60_000)
    options = parser.parse_args()
    made = engines(options.data / "vocab" / "bert-base-uncased-vocab.txt")
    corpora = {
        "English": english(options.data, options.lines),
        "mixed": mixed(options.data, options.lines),
    }
    print(f"{'engine':28}", *(f"{name:>8} MB/s" for name in corpora), "  sentence")
    for name, engine in made.items():
        speeds = (megabytes_a_second(engine, lines) for lines in corpora.values())
        columns = (f"{speed:13.1f}" for speed in speeds)
        print(f"{name:28}", *columns, f"{milliseconds(engine):7.2f} ms", flush=True)


if __name__ == "__main__":
    main()

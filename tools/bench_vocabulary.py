"""Time and quality of the vocabulary learner beside Hugging Face's, in one run.

    python tools/bench_vocabulary.py --data ../shared/data [--times 10]

Both learn 30,000 tokens from nine tenths of the prose, by the same rules; the peer on
all processors, ours on one process and on two. Pieces per word are those of the other
tenth, drawn by line, and measured by one function. Then both learn from all the prose
that often. This machine may be noisy: compare within one run only.
"""

import argparse
import gzip
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tokenizers

from bert_keras import SpecialTokens, Vocabulary, count_words, learn_vocabulary
from bert_keras.text.report import vocabulary_report

SIZE = 30_000
ALPHABET = 1000
MIN_COUNT = 200  # for the likelihood, which runs out of pairs then
SEED = 1


def prose(data: Path) -> list[str]:
    """Returns the lines of all prose."""
    paths = sorted((data / "prose").glob("*.txt.gz"))
    texts = [gzip.decompress(path.read_bytes()).decode() for path in paths]
    return "\n".join(texts).split("\n")


def split(lines: list[str]) -> tuple[list[str], list[str]]:
    """Returns nine tenths of the lines, and a random tenth."""
    held_out = set(random.Random(SEED).sample(range(len(lines)), len(lines) // 10))
    return (
        [line for number, line in enumerate(lines) if number not in held_out],
        [lines[number] for number in sorted(held_out)],
    )


def theirs(path: Path) -> Vocabulary:
    """Learns with the peer, as its BERT recipe does."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=SIZE,
        limit_alphabet=ALPHABET,
        special_tokens=list(SpecialTokens()),
        show_progress=False,
    )
    tokenizer.train([str(path)], trainer)
    return Vocabulary(sorted(tokenizer.get_vocab(), key=tokenizer.token_to_id))


def ours(processes: int, **options) -> Callable[[Path], Vocabulary]:
    """Returns a function that learns with `bert_keras`."""

    def learn(path: Path) -> Vocabulary:
        words = count_words([path], processes=processes)
        return learn_vocabulary(words, SIZE, alphabet_size=ALPHABET, **options)

    return learn


ENGINES = {
    "tokenizers": theirs,
    "bert_keras, 1 process": ours(1),
    "bert_keras, 2 processes": ours(2),
}


def measure(
    engines: dict[str, Callable[[Path], Vocabulary]], lines: list[str], held_out
) -> None:
    """Prints a line for each engine; ratios are to the first."""
    first = None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.txt"
        path.write_text("\n".join(lines), encoding="utf-8")
        print(f"{path.stat().st_size / 1e6:.1f} MB, {SIZE:,} tokens")
        columns = f"{'tokens':>8}{'seconds':>9}{'ratio':>8}{'pieces/word':>13}"
        print(f"{'':26}{columns}{'ratio':>9}")
        for name, learn in engines.items():
            started = time.perf_counter()
            vocabulary = learn(path)
            taken = time.perf_counter() - started
            pieces = vocabulary_report(vocabulary, held_out).pieces_per_word
            first = first or (taken, pieces)
            print(
                f"{name:26}{len(vocabulary):8,}{taken:9.2f}{taken / first[0]:8.2f}"
                f"{pieces:13.4f}{pieces / first[1]:9.4f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--likelihood", action="store_true", help="that objective too")
    options = parser.parse_args()
    engines = dict(ENGINES)
    if options.likelihood:
        name = "bert_keras, likelihood"
        engines[name] = ours(1, objective="likelihood", min_count=MIN_COUNT)
    lines = prose(options.data)
    learned, held_out = split(lines)
    held_out = count_words(held_out)
    measure(engines, learned, held_out)
    if options.times > 1:
        measure(ENGINES, lines * options.times, held_out)


if __name__ == "__main__":
    main()

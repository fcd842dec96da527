"""Speed of the input alone: text to shards, and shards to batches.

    python tools/bench_input.py VOCAB FILE... [--processes 2]

Tokens a second: of text, cut into pieces and written; and of rows of 128, masked and
padded, in batches of 32, for each objective and masking unit.
"""

import argparse
import itertools
import tempfile
import time
from pathlib import Path

from bert_keras import (
    BertPacker,
    MaskedLMMasker,
    PretrainingData,
    Shards,
    WordPieceTokenizer,
    prepare_corpus,
)
from bert_keras.pretraining.pairs import OBJECTIVES
from bert_keras.tokens.units import UNITS

SEQUENCE, BATCH, BATCHES = 128, 32, 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("vocab", type=Path)
    parser.add_argument("corpus", type=Path, nargs="+")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    tokenizer = WordPieceTokenizer(options.vocab)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        shards = prepare_corpus(
            options.corpus, tokenizer, folder, processes=options.processes
        )
        seconds = time.perf_counter() - started
        tokens = shards.manifest["tokens"]
        print(f"text to shards{tokens / seconds:25,.0f} tokens/s")
        for objective, unit in itertools.product(OBJECTIVES, UNITS):
            speed, share = measured(shards, objective, unit)
            print(
                f"{objective:15} {unit:6} {speed:16,.0f} tokens/s, of them "
                f"{share:.0%} text",
                flush=True,
            )


def measured(shards: Shards, objective: str, unit: str) -> tuple[float, float]:
    """Returns tokens a second, padding included, and the share that is none."""
    ids = shards.tokenizer.special_ids
    packer = BertPacker(SEQUENCE, cls_id=ids.cls, sep_id=ids.sep, pad_id=ids.pad)
    masker = MaskedLMMasker.of(shards.tokenizer, predictions=20, unit=unit)
    data = PretrainingData(
        shards, packer, masker, batch_size=BATCH, seed=0, objective=objective
    )
    batches = iter(data.dataset())
    next(batches)
    started, real = time.perf_counter(), 0
    for batch in itertools.islice(batches, BATCHES):
        real += int(batch["padding_mask"].numpy().sum())
    tokens = BATCHES * BATCH * SEQUENCE
    return tokens / (time.perf_counter() - started), real / tokens


if __name__ == "__main__":
    main()

"""Measures which initial scale lets each small size leave the unigram plateau.

    python tools/measure_initial_scale.py --sizes tiny mini --scales 0.02 0.05

For each size and standard deviation: a run on the default corpus (vocabulary 2,000,
sequence 32, batch 64, 5 predictions, no dropout), and the masked-LM accuracy on
held-out documents, beside that of always answering the most frequent piece. The values
in `bert_keras/config.py` come from here. Measured on two cores (accuracy in percent;
the most frequent piece has 4.4):

| size, steps, learning rate | 0.02 | 0.03 | 0.04 | 0.05 | 0.07 |
|----------------------------|------|------|------|------|------|
| tiny, 400, 2e-3            | 15.8 | 17.1 | 18.4 | 18.9 | 18.7 |
| mini, 300, 1e-3            | 16.6 | 17.0 | 16.6 | 13.1 |  8.1 |
| small, 200, 1e-3           |  4.2 |  6.7 |  6.9 |      |      |

With rows of 64 tokens, 32 at once, the same number of tokens a step, mini at 0.02 was
still on the plateau (4.3) after 400 steps at 2e-3, and tiny reached 15.9 after 500.
"""

import argparse
import tempfile
from pathlib import Path

import keras

from bert_keras import (
    BertBackbone,
    BertPacker,
    BertPretrainer,
    CorpusFormat,
    MaskedLMMasker,
    PretrainingData,
    Shards,
    WordPieceTokenizer,
    bert_optimizer,
    count_words,
    learn_vocabulary,
    prepare_corpus,
)
from bert_keras.demo import read_corpus, write_corpus
from bert_keras.pretraining.data import unigram_accuracy

SEQUENCE_LENGTH = 32
BATCH_SIZE = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sizes", nargs="+", default=["tiny", "mini", "small"])
    scales = [0.02, 0.03, 0.04, 0.05, 0.07]
    parser.add_argument("--scales", nargs="+", type=float, default=scales)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(prepared(Path(folder)), options)


def prepared(folder: Path) -> Shards:
    """Prepares the default corpus with a vocabulary of 2,000."""
    documents = read_corpus(4_000_000)
    write_corpus(documents, folder / "corpus.txt")
    words = count_words(sentence for document in documents for sentence in document)
    tokenizer = WordPieceTokenizer(learn_vocabulary(words, 2000))
    return prepare_corpus(
        [folder / "corpus.txt"],
        tokenizer,
        folder / "data",
        corpus=CorpusFormat("sentences"),
    )


def batches(shards: Shards, held_out: bool) -> PretrainingData:
    ids = shards.tokenizer.special_ids
    packer = BertPacker(SEQUENCE_LENGTH, cls_id=ids.cls, sep_id=ids.sep, pad_id=ids.pad)
    masker = MaskedLMMasker.of(shards.tokenizer, predictions=5)
    return PretrainingData(
        shards, packer, masker, batch_size=BATCH_SIZE, seed=0, held_out=held_out
    )


def measure(shards: Shards, options: argparse.Namespace) -> None:
    """Prints what each size reaches at each scale."""
    training = batches(shards, held_out=False).dataset()
    evaluation = batches(shards, held_out=True).dataset(epochs=1).cache()
    print(f"most frequent piece: {unigram_accuracy(evaluation):.1%}", flush=True)
    print("size   scale  masked-LM accuracy  loss", flush=True)
    for size in options.sizes:
        for scale in options.scales:
            keras.utils.set_random_seed(0)
            backbone = BertBackbone.from_size(
                size,
                shards.tokenizer.ids_end,
                max_sequence_length=SEQUENCE_LENGTH,
                initializer_range=scale,
                dropout=0.0,
            )
            model = BertPretrainer(backbone)
            model.compile(
                optimizer=bert_optimizer(options.learning_rate, options.steps),
                jit_compile=False,
            )
            model.fit(training, steps_per_epoch=options.steps, shuffle=False, verbose=0)
            reached = model.evaluate(evaluation, verbose=0, return_dict=True)
            print(
                f"{size:5}  {scale:<5}  {reached['masked_lm_accuracy']:18.1%}  "
                f"{reached['masked_lm_loss']:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()

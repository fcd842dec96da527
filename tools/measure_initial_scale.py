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

import keras

from bert_keras.encoder.backbone import BertBackbone
from bert_keras.pretraining.data import (
    pretraining_dataset,
    tokenize_documents,
    unigram_accuracy,
)
from bert_keras.pretraining.default_corpus import default_documents
from bert_keras.pretraining.model import BertPretrainer
from bert_keras.pretraining.run import split_documents
from bert_keras.text.learner import learn_vocabulary
from bert_keras.text.tokenizer import WordPieceTokenizer
from bert_keras.text.word_counts import count_words
from bert_keras.tokens.masker import MaskedLMMasker
from bert_keras.tokens.packer import BertPacker
from bert_keras.training.optimizer import bert_optimizer

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

    training, held_out = split_documents(list(default_documents(4_000_000)))
    words = count_words(sentence for document in training for sentence in document)
    tokenizer = WordPieceTokenizer(learn_vocabulary(words, 2000))
    ids = tokenizer.special_ids
    rows = (
        BertPacker(SEQUENCE_LENGTH, cls_id=ids.cls, sep_id=ids.sep, pad_id=ids.pad),
        MaskedLMMasker(len(tokenizer.vocabulary), ids, predictions=5),
    )
    batches = pretraining_dataset(
        list(tokenize_documents(training, tokenizer)),
        *rows,
        batch_size=BATCH_SIZE,
        seed=0,
    )
    evaluation = pretraining_dataset(
        list(tokenize_documents(held_out, tokenizer)),
        *rows,
        batch_size=BATCH_SIZE,
        seed=0,
        epochs=1,
    ).cache()
    print(f"most frequent piece: {unigram_accuracy(evaluation):.1%}", flush=True)
    print("size   scale  masked-LM accuracy  loss", flush=True)
    for size in options.sizes:
        for scale in options.scales:
            keras.utils.set_random_seed(0)
            backbone = BertBackbone.from_size(
                size,
                len(tokenizer.vocabulary),
                max_sequence_length=SEQUENCE_LENGTH,
                initializer_range=scale,
                dropout=0.0,
            )
            model = BertPretrainer(backbone)
            model.compile(
                optimizer=bert_optimizer(options.learning_rate, options.steps),
                jit_compile=False,
            )
            model.fit(batches, steps_per_epoch=options.steps, shuffle=False, verbose=0)
            reached = model.evaluate(evaluation, verbose=0, return_dict=True)
            print(
                f"{size:5}  {scale:<5}  {reached['masked_lm_accuracy']:18.1%}  "
                f"{reached['masked_lm_loss']:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()

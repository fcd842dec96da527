"""Models of a few lines, and a reader that answers what a test says."""

import numpy as np
import tensorflow as tf
from oracles import SMALL

from bert_keras import BertBackbone, BertPreprocessor, Vocabulary, WordPieceTokenizer
from bert_keras.features import TOKEN_IDS, Task
from bert_keras.tokens.preprocessor import features_of


def preprocessor(sequence_length: int = 16) -> BertPreprocessor:
    tokenizer = WordPieceTokenizer(Vocabulary(SMALL))
    return BertPreprocessor(tokenizer, sequence_length, pad_to_longest=True)


def backbone(**changes) -> BertBackbone:
    size = {
        "vocabulary_size": len(SMALL),
        "num_layers": 2,
        "num_heads": 2,
        "hidden_dim": 8,
        "intermediate_dim": 16,
        "max_sequence_length": 16,
        "initializer_range": 0.3,
    }
    return BertBackbone(**{**size, **changes})


class Said:
    """A reader whose logits are a function of its token ids `[batch, sequence]`."""

    def __init__(self, task: Task, answer, sequence_length: int = 16):
        self.task = task
        self.preprocessor = preprocessor(sequence_length)
        self._answer = answer
        self.read: list = []

    def run(self, texts):
        self.read += texts
        ids = features_of(self.preprocessor, texts)[TOKEN_IDS].numpy()
        return {TOKEN_IDS: ids, **self._answer(ids)}


def features(rows: int, length: int, random: np.random.Generator) -> dict:
    mask = np.ones((rows, length), np.int32)
    mask[0, length // 2 :] = 0
    segments = np.zeros_like(mask)
    segments[:, length // 2 :] = 1
    ids = random.integers(5, len(SMALL), (rows, length)).astype("int32")
    found = {"token_ids": ids, "segment_ids": segments * mask, "padding_mask": mask}
    return {name: tf.constant(value) for name, value in found.items()}

"""Fixtures that several rooms use."""

import runpy
from pathlib import Path

# Else its notices of the machine would stand behind pytest's summary.
QUIET = Path(__file__).parents[1] / "bert_keras" / "quiet.py"
runpy.run_path(str(QUIET))["import_tensorflow_quietly"]()

import keras
import numpy as np
import pytest
from oracles import SMALL, vocabulary_path

from bert_keras import (
    BertBackbone,
    BertPreprocessor,
    BertPretrainer,
    Vocabulary,
    WordPieceTokenizer,
)


@pytest.fixture(autouse=True)
def _seeded():
    keras.utils.set_random_seed(1234)


@pytest.fixture
def random():
    return np.random.default_rng(1234)


@pytest.fixture
def small_vocabulary():
    return Vocabulary(SMALL)


@pytest.fixture(scope="session")
def uncased():
    return Vocabulary.read(vocabulary_path("uncased"))


@pytest.fixture
def small_backbone():
    return BertBackbone(
        vocabulary_size=len(SMALL),
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=16,
        max_sequence_length=16,
        initializer_range=0.3,
    )


@pytest.fixture
def small_pretrainer(small_backbone, small_vocabulary):
    tokenizer = WordPieceTokenizer(small_vocabulary, special_tokens_in_text=["[MASK]"])
    return BertPretrainer(small_backbone, BertPreprocessor(tokenizer, 16))


@pytest.fixture
def batch(random):
    """Returns a function that makes features for the small backbone."""

    def make(rows: int, length: int, tokens: int | None = None) -> dict:
        mask = np.zeros((rows, length), np.int32)
        mask[:, : length if tokens is None else tokens] = 1
        return {
            "token_ids": random.integers(5, len(SMALL), (rows, length)).astype("int32"),
            "segment_ids": random.integers(0, 2, (rows, length)).astype("int32"),
            "padding_mask": mask,
        }

    return make

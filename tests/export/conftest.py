"""One exported model for all tests of exports."""

import keras
import numpy as np
import pytest
from oracles import SMALL

from bert_keras import (
    BertBackbone,
    BertPreprocessor,
    BertPretrainer,
    Vocabulary,
    WordPieceTokenizer,
)
from bert_keras.export.exporter import export_model


@pytest.fixture(scope="session")
def model():
    keras.utils.set_random_seed(5)
    letters = [prefix + c for prefix in ("", "##") for c in "abcdefilmnorstuwy"]
    vocabulary = Vocabulary([*SMALL, *letters, "'", "-", "中", "ᄋ", "##ᅡ", "##ᆫ"])
    tokenizer = WordPieceTokenizer(vocabulary, special_tokens_in_text=["[MASK]"])
    backbone = BertBackbone(
        vocabulary_size=len(vocabulary) + 2,  # rows beyond the vocabulary are allowed
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=32,
        max_sequence_length=32,
        initializer_range=0.3,
    )
    made = BertPretrainer(backbone, BertPreprocessor(tokenizer, 32))
    for weight in made.weights:  # biases and norms start at 0 and 1: not here
        noise = np.random.default_rng(7).normal(size=weight.shape) / 10
        weight.assign_add(noise.astype("float32"))
    return made


@pytest.fixture(scope="session")
def exported(model, tmp_path_factory):
    """Returns the folder of every artefact, and what the exporter measured."""
    folder = tmp_path_factory.mktemp("exported")
    model.save(folder / "model.keras")
    return folder, export_model(model, folder)

"""Small models of every kind, with weights that are all different."""

import keras
import numpy as np

from bert_keras import (
    BertBackbone,
    BertPreprocessor,
    BertPretrainer,
    Vocabulary,
    WordPieceTokenizer,
)
from bert_keras.tasks.classifier import BertClassifier
from bert_keras.tasks.embedder import BertEmbedder
from bert_keras.tasks.regressor import BertRegressor
from bert_keras.tasks.span_finder import BertSpanFinder
from bert_keras.tasks.tagger import BertTagger

TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] the qu ##ick br ##own fox . é ##é [unused0]"
TOKENS = [*TOKENS.split(), "\u2028", "中", "a", "##a"]
SIZES = {
    "vocabulary_size": len(TOKENS),
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 16,
    "max_sequence_length": 16,
    "num_segments": 3,
    "dropout": 0.2,
    "initializer_range": 0.05,
}
TEXTS = ("The quick fox.", "brown Fox é 中中 quick's [SEP] \u2028 a" + 120 * "a", "")


def preprocessor(sequence_length: int = 12, **options) -> BertPreprocessor:
    tokenizer = WordPieceTokenizer(Vocabulary(TOKENS), **options)
    return BertPreprocessor(tokenizer, sequence_length, pad_to_longest=True)


def backbone(**changes) -> BertBackbone:
    return BertBackbone(**{**SIZES, **changes})


def _numbered(model: keras.Model) -> keras.Model:
    """Returns the model with another number in every place."""
    random = np.random.default_rng(2018)
    for variable in model.weights:
        variable.assign(random.normal(0, 0.2, variable.shape))
    return model


MAKERS = {
    "pretrainer": lambda b, p: BertPretrainer(b, p),
    "masked_lm": lambda b, p: BertPretrainer(b, p, next_sentence=False),
    "untied": lambda b, p: BertPretrainer(b, p, tied=False),
    "classifier": lambda b, p: BertClassifier(
        b, ["no", "yes", "ja"], p, dropout=0.3, text_pairs=True
    ),
    "regressor": lambda b, p: BertRegressor(b, p, dropout=0.4),
    "tagger": lambda b, p: BertTagger(b, ["O", "B", "I"], p, dropout=0.0),
    "span_finder": lambda b, p: BertSpanFinder(b, p),
    "embedder": lambda b, p: BertEmbedder(b, p, pooling="cls", normalize=True),
}


def model_of(kind: str, *, text: dict | None = None, **sizes) -> keras.Model:
    """Returns a small model; `text` holds the tokenizer's options."""
    made = MAKERS[kind](backbone(**sizes), preprocessor(**(text or {})))
    return _numbered(made)


def check_same_weights(first: keras.Model, second: keras.Model) -> None:
    """Fails unless all weights are equal, bit for bit."""
    assert type(first) is type(second)
    pairs = zip(first.weights, second.weights, strict=True)
    for one, other in pairs:
        assert one.path == other.path
        np.testing.assert_array_equal(one.numpy(), other.numpy(), err_msg=one.path)


def check_same_text(first: keras.Model, second: keras.Model) -> None:
    """Fails unless two models make the same features of a text."""
    one, other = (model.preprocessor.tokenizer for model in (first, second))
    assert one.vocabulary == other.vocabulary
    assert one.options == other.options
    lengths = {m.preprocessor.sequence_length for m in (first, second)}
    assert len(lengths) == 1

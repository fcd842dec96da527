"""BERT in Keras: the public names, in the order in which text meets them."""

import sys
from pathlib import Path

if Path(sys.argv[0]).stem == "bert-keras":  # run as the command, not as a library
    from bert_keras.quiet import import_tensorflow_quietly

    import_tensorflow_quietly()

# Everything that a .keras file may hold is imported here: Keras finds only classes that
# are registered.
from bert_keras.checkpoints.extend import extend_model
from bert_keras.checkpoints.load import load_checkpoint
from bert_keras.checkpoints.save import save_checkpoint
from bert_keras.config import SIZES, EncoderSize
from bert_keras.embeddings import BertEmbeddings, TokenTable
from bert_keras.encoder.backbone import BertBackbone
from bert_keras.encoder.block import TransformerBlock
from bert_keras.features import SpecialTokens
from bert_keras.pretraining.beam import count_words_on_beam, prepare_on_beam
from bert_keras.pretraining.corpus import CorpusFormat
from bert_keras.pretraining.data import PretrainingData
from bert_keras.pretraining.heads import MaskedLMHead
from bert_keras.pretraining.model import BertPretrainer
from bert_keras.pretraining.options import PretrainingOptions
from bert_keras.pretraining.prepare import prepare_corpus
from bert_keras.pretraining.run import pretrain
from bert_keras.pretraining.shards import Shards
from bert_keras.tasks.classifier import BertClassifier
from bert_keras.tasks.embedder import BertEmbedder
from bert_keras.tasks.finetune import finetune
from bert_keras.tasks.options import FinetuningOptions
from bert_keras.tasks.regressor import BertRegressor
from bert_keras.tasks.span_finder import BertSpanFinder
from bert_keras.tasks.tagger import BertTagger
from bert_keras.text.learner import learn_vocabulary
from bert_keras.text.report import vocabulary_report
from bert_keras.text.tokenizer import WordPieceTokenizer
from bert_keras.text.vocabulary import Vocabulary
from bert_keras.text.word_counts import (
    WordCounts,
    count_words,
    read_word_counts,
    write_word_counts,
)
from bert_keras.tokens.masker import MaskedLMMasker
from bert_keras.tokens.packer import BertPacker
from bert_keras.tokens.preprocessor import BertPreprocessor
from bert_keras.training.optimizer import BertAdamW, BertLamb, BertMuon, bert_optimizer
from bert_keras.training.run import RunSettings
from bert_keras.training.schedule import WarmupDecay
from bert_keras.training.strategies import strategy_named

__all__ = [
    "SpecialTokens",
    "Vocabulary",
    "count_words",
    "count_words_on_beam",
    "WordCounts",
    "read_word_counts",
    "write_word_counts",
    "learn_vocabulary",
    "vocabulary_report",
    "WordPieceTokenizer",
    "BertPacker",
    "MaskedLMMasker",
    "BertPreprocessor",
    "TokenTable",
    "BertEmbeddings",
    "TransformerBlock",
    "EncoderSize",
    "SIZES",
    "BertBackbone",
    "MaskedLMHead",
    "BertPretrainer",
    "CorpusFormat",
    "prepare_corpus",
    "prepare_on_beam",
    "Shards",
    "PretrainingData",
    "PretrainingOptions",
    "RunSettings",
    "pretrain",
    "BertClassifier",
    "BertRegressor",
    "BertTagger",
    "BertSpanFinder",
    "BertEmbedder",
    "FinetuningOptions",
    "finetune",
    "load_checkpoint",
    "save_checkpoint",
    "extend_model",
    "strategy_named",
    "WarmupDecay",
    "BertAdamW",
    "BertLamb",
    "BertMuon",
    "bert_optimizer",
]
__version__ = "0.1.0"

"""What stands on the encoder of a Hugging Face folder: heads <-> our models."""

from collections.abc import Mapping
from pathlib import Path

import keras
import numpy as np

from bert_keras.checkpoints.huggingface_config import refuse
from bert_keras.checkpoints.names import HUGGINGFACE_TWINS
from bert_keras.encoder.backbone import BertBackbone
from bert_keras.pretraining.model import BertPretrainer
from bert_keras.tasks.classifier import BertClassifier
from bert_keras.tasks.embedder import BertEmbedder
from bert_keras.tasks.regressor import BertRegressor
from bert_keras.tasks.span_finder import BertSpanFinder
from bert_keras.tasks.tagger import BertTagger
from bert_keras.tokens.preprocessor import BertPreprocessor

_MASKED_LM = "cls.predictions."
_NEXT_SENTENCE = "cls.seq_relationship."
_CLASSIFIER = "classifier.weight"
_SPANS = "qa_outputs.weight"
_USUAL_LABEL = "LABEL_"

_SEQUENCES = "BertForSequenceClassification"
_TOKENS = "BertForTokenClassification"

_ARCHITECTURES = (
    (BertEmbedder, "BertModel"),
    (BertClassifier, _SEQUENCES),
    (BertRegressor, _SEQUENCES),
    (BertTagger, _TOKENS),
    (BertSpanFinder, "BertForQuestionAnswering"),
)


def has_masked_lm(tensors: Mapping[str, np.ndarray]) -> bool:
    """Whether a checkpoint has a masked-LM head."""
    return any(name.startswith(_MASKED_LM) for name in tensors)


def model_with_head(
    backbone: BertBackbone,
    preprocessor: BertPreprocessor | None,
    config: dict,
    tensors: Mapping[str, np.ndarray],
    path: Path,
) -> keras.Model:
    """Returns a new model with the heads that a checkpoint has.

    Args:
        backbone, preprocessor: its parts.
        config: the fields of `config.json`.
        tensors: by the names of the table.
        path: of `config.json`, for messages.

    Raises:
        ValueError: `config.json` does not say, or not rightly, what a head is for.
    """
    if has_masked_lm(tensors):
        decoder = HUGGINGFACE_TWINS[0][0]
        return BertPretrainer(
            backbone,
            preprocessor,
            tied=decoder not in tensors,
            next_sentence=any(name.startswith(_NEXT_SENTENCE) for name in tensors),
        )
    if _SPANS in tensors:
        return BertSpanFinder(backbone, preprocessor)
    if _CLASSIFIER not in tensors:
        return BertEmbedder(backbone, preprocessor)

    architecture = (config.get("architectures") or [None])[0]
    if architecture not in (_SEQUENCES, _TOKENS):
        refuse(path, "architectures", architecture, _SEQUENCES, _TOKENS)
    outputs = tensors[_CLASSIFIER].shape[0]
    arguments = {"dropout": config.get("classifier_dropout")}
    if arguments["dropout"] is None:
        arguments["dropout"] = backbone.dropout
    if architecture == _TOKENS:
        labels = _labels(config, outputs, path)
        return BertTagger(backbone, labels, preprocessor, **arguments)
    arguments["text_pairs"] = config.get("text_pairs", False)
    problem = config.get("problem_type")
    if outputs == 1 and problem in (None, "regression"):
        return BertRegressor(backbone, preprocessor, **arguments)
    if problem not in (None, "single_label_classification"):
        refuse(path, "problem_type", problem, "'single_label_classification'")
    labels = _labels(config, outputs, path)
    return BertClassifier(backbone, labels, preprocessor, **arguments)


def fields_of_head(model: keras.Model) -> dict:
    """Returns the fields of `config.json` that say what a model is for."""
    if isinstance(model, BertPretrainer):
        kind = "BertForPreTraining" if model.next_sentence else "BertForMaskedLM"
        return {"architectures": [kind]}
    fields = {"architectures": [dict(_ARCHITECTURES)[type(model)]]}
    if "dropout" in model.arguments:
        fields["classifier_dropout"] = model.arguments["dropout"]
    if "text_pairs" in model.arguments:  # known to this package only
        fields["text_pairs"] = model.arguments["text_pairs"]
    labels = model.arguments.get("labels", ())
    if isinstance(model, BertClassifier):
        fields["problem_type"] = "single_label_classification"
    if isinstance(model, BertRegressor):
        fields["problem_type"] = "regression"
        labels = (f"{_USUAL_LABEL}0",)
    if labels:
        fields["id2label"] = {str(n): label for n, label in enumerate(labels)}
        fields["label2id"] = {label: n for n, label in enumerate(labels)}
    return fields


def _labels(config: dict, outputs: int, path: Path) -> list[str]:
    """Returns the names of the classes; those that only count them count for nothing.

    A config may well have two of these where the head has more outputs.
    """
    named = config.get("id2label") or {}
    if all(str(label).startswith(_USUAL_LABEL) for label in named.values()):
        return [f"{_USUAL_LABEL}{number}" for number in range(outputs)]
    numbers = [str(number) for number in range(outputs)]
    if sorted(named) != sorted(numbers):
        refuse(path, "id2label", named, f"names of classes 0 to {outputs - 1}")
    return [str(named[number]) for number in numbers]

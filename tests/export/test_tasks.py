"""Exports of the models of tasks: the same answers, from text, in every artefact."""

import json

import numpy as np
import onnx
import pytest
from tasks.readers import backbone, preprocessor

from bert_keras import (
    BertClassifier,
    BertEmbedder,
    BertRegressor,
    BertSpanFinder,
    BertTagger,
)
from bert_keras.export.artefacts import KerasArtefact, open_artefact
from bert_keras.export.exporter import export_model
from bert_keras.tasks.answers import classify, embed, regress
from bert_keras.tasks.spans import find_spans
from bert_keras.tasks.tags import tag

# The parity check has texts of some hundred tokens; 24 positions cut them.
ENCODER = {"max_sequence_length": 24, "initializer_range": 0.5}
PAIRS = [("the fox", "the quick brown fox. " * 9), ("brown", "quick"), ("", "fox")]
TEXTS = ["the quick fox", "", "brown. " * 40]


def made(name: str):
    encoder, reader = backbone(**ENCODER), preprocessor(24)
    return {
        "classifier": lambda: BertClassifier(encoder, ["a", "b", "c"], reader),
        "pairs": lambda: BertClassifier(encoder, ["a", "b"], reader, text_pairs=True),
        "regressor": lambda: BertRegressor(encoder, reader, text_pairs=True),
        "tagger": lambda: BertTagger(encoder, ["O", "B-x"], reader),
        "span finder": lambda: BertSpanFinder(encoder, reader),
        "embedder": lambda: BertEmbedder(encoder, reader, normalize=True),
    }[name]()


ASKED = {
    "classifier": (classify, TEXTS),
    "pairs": (classify, PAIRS),
    "regressor": (regress, PAIRS),
    "tagger": (tag, TEXTS),
    "span finder": (find_spans, PAIRS),
    "embedder": (embed, TEXTS),
}


def rounded(answers) -> str:
    """Answers without the last bits of their numbers."""
    if isinstance(answers, np.ndarray):
        answers = answers.tolist()
    return json.dumps(
        json.loads(json.dumps(answers), parse_float=lambda s: f"{float(s):.3f}")
    )


@pytest.mark.parametrize(
    "name",
    [
        "pairs",
        "embedder",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("classifier", "regressor", "tagger", "span finder")
        ),
    ],
)
def test_every_artefact_gives_the_same_answers(name, tmp_path):
    model = made(name)
    int8 = name in ("classifier", "embedder")
    differences = export_model(model, tmp_path, int8=int8)
    names = ["saved_model", "text_model.onnx", "model.onnx"]
    assert list(differences) == [*names, *(["text_model.int8.onnx"] * int8)]
    function, asked = ASKED[name]
    expected = function(KerasArtefact(model), asked)
    assert len(expected) == 3
    for artefact in names:
        opened = open_artefact(tmp_path / artefact)
        assert opened.task == model.task
        assert rounded(function(opened, asked)) == rounded(expected)


@pytest.mark.slow
def test_a_file_for_pairs_reads_two_texts(tmp_path):
    export_model(made("pairs"), tmp_path, to=["onnx"], names="huggingface")
    inputs = onnx.load(tmp_path / "text_model.onnx").graph.input
    assert [node.name for node in inputs] == ["codepoints", "second_codepoints"]
    outputs = onnx.load(tmp_path / "model.onnx").graph.output
    assert {node.name for node in outputs} == {"logits", "probabilities"}
    with pytest.raises(ValueError, match="This text-in ONNX file reads pairs"):
        open_artefact(tmp_path / "text_model.onnx").run(["one"])

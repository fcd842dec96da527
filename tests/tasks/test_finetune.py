"""Fine-tuning runs: they learn, stop, resume and keep what was best."""

import json
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from tasks.readers import backbone, preprocessor

from bert_keras import (
    BertClassifier,
    BertPretrainer,
    FinetuningOptions,
    RunSettings,
    finetune,
)
from bert_keras.files import AnotherRunError
from bert_keras.tasks.finetune import BEST_FILE, rate_factors
from bert_keras.tasks.kinds import KINDS
from bert_keras.tasks.records import Example
from bert_keras.tasks.squad import Answer, Question
from bert_keras.tasks.tagged import TaggedSentence
from bert_keras.training.checkpoint import MODEL_FILE
from bert_keras.training.optimizer import bert_optimizer

OPTIONS = FinetuningOptions(
    epochs=3, batch_size=4, sequence_length=16, learning_rate=0.01, dropout=0.1
)
run_module = sys.modules["bert_keras.tasks.finetune"]  # `finetune` hides its name
WORDS = ("the", "quick", "brown", "fox")
FOXES = [
    Example(f"{one} {two} {three}", None, "fox" if "fox" in (one, two) else "none")
    for one in WORDS
    for two in WORDS
    for three in WORDS[:3]
]


@pytest.fixture
def pretrained():
    keras.utils.set_random_seed(7)
    return BertPretrainer(backbone(), preprocessor())


def classify(model, out, options=OPTIONS, settings=RunSettings(), dev=FOXES, **more):
    options = FinetuningOptions(**{**options.__dict__, **more})
    return finetune(model, "classify", FOXES, dev, options, out, settings)


def test_a_classifier_learns(pretrained, tmp_path):
    found = classify(pretrained, tmp_path / "run", epochs=12)
    assert found.epochs[found.best - 1]["accuracy"] > 0.95  # 21 of 48 are foxes
    kept = keras.saving.load_model(tmp_path / "run" / MODEL_FILE)
    assert kept.task.labels == ("fox", "none")
    assert kept.classify(["the fox"])[0].label == "fox"
    stored = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert stored == {"epochs": found.epochs, "best": found.best}


def test_a_regressor_learns(pretrained, tmp_path):
    numbers = [Example(e.text, "fox", float(e.label == "fox")) for e in FOXES]
    options = FinetuningOptions(**{**OPTIONS.__dict__, "epochs": 12})
    found = finetune(pretrained, "regress", numbers, numbers, options, tmp_path / "run")
    assert found.epochs[-1]["pearson"] > 0.8
    assert found.model.task.text_pairs


def test_a_tagger_learns(pretrained, tmp_path):
    tags = {"the": "O", "quick": "B-x", "brown": "I-x", "fox": "O"}
    sentences = [
        TaggedSentence(words, tuple(tags[word] for word in words))
        for words in ((one, two, "the", three) for one in WORDS for two in WORDS
                      for three in WORDS[1:])
    ]  # fmt: skip
    options = FinetuningOptions(**{**OPTIONS.__dict__, "epochs": 6})
    found = finetune(pretrained, "tag", sentences, sentences, options, tmp_path / "run")
    assert found.epochs[-1]["word_accuracy"] > 0.95
    (answer,) = found.model.tag(["quick brown fox"])
    assert [(e.text, e.label) for e in answer.entities] == [("quick brown", "x")]


@pytest.mark.slow
def test_a_span_finder_learns(pretrained, tmp_path):
    questions = []
    for before in range(6):
        for behind in range(6):
            text = "the " * before + "quick brown" + " the" * behind
            answers = (Answer("quick brown", 4 * before),)
            number = f"{before} {behind}"
            questions.append(Question(number, "fox", text, answers, False))
    options = FinetuningOptions(**{**OPTIONS.__dict__, "epochs": 8})
    found = finetune(
        pretrained, "span", questions, questions[:9], options, tmp_path / "run"
    )
    assert found.epochs[-1]["f1"] > 0.8
    assert not found.model.task.may_abstain


class Killed(Exception):
    pass


def test_a_run_goes_on_where_it_was_stopped(pretrained, tmp_path, monkeypatch):
    """In the middle of an epoch: the weights are the same as without a stop."""
    settings = RunSettings(save_steps=5, record_steps=4)
    whole = classify(pretrained, tmp_path / "whole", settings=settings)

    taken = []

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            taken.append(batch)
            if len(taken) == 18:
                raise Killed

    made = run_module._callbacks
    monkeypatch.setattr(run_module, "_callbacks", lambda *a: [*made(*a), Stop()])
    with pytest.raises(Killed):
        classify(pretrained, tmp_path / "run", settings=settings)
    assert not (tmp_path / "run" / MODEL_FILE).exists()
    taken.append(-1)  # no further stop
    rest = classify(pretrained, tmp_path / "run", settings=settings)
    assert 0 < len(taken) - 19 < 36
    assert rest.epochs == whole.epochs
    for one, other in zip(
        rest.model.get_weights(), whole.model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    again = classify(pretrained, tmp_path / "run", settings=settings)
    assert again.epochs == whole.epochs


def test_another_run_is_refused(pretrained, tmp_path):
    classify(pretrained, tmp_path / "run", epochs=1)
    with pytest.raises(AnotherRunError, match="Received: epochs=2; allowed: epochs=1"):
        classify(pretrained, tmp_path / "run", epochs=2)
    with pytest.raises(AnotherRunError, match="Received: dev="):
        classify(pretrained, tmp_path / "run", epochs=1, dev=FOXES[:5])


def test_the_best_epoch_is_kept(pretrained, tmp_path, monkeypatch):
    """Accuracies are said to be 0.5, 0.9, 0.7, 0.9, 0.8: the second was best first."""
    said = iter([0.5, 0.9, 0.7, 0.9, 0.8])
    kind = KINDS["classify"]
    monkeypatch.setattr(
        type(kind), "evaluate", lambda *_: {"accuracy": next(said), "macro_f1": 0.0}
    )
    found = classify(pretrained, tmp_path / "run", epochs=5)
    assert found.best == 2
    best = keras.saving.load_model(tmp_path / "run" / BEST_FILE)
    last = classify_last(tmp_path / "run")
    for one, other in zip(best.get_weights(), found.model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert any(
        (one != other).any()
        for one, other in zip(best.get_weights(), last.get_weights(), strict=True)
    )


def classify_last(run):
    (newest,) = sorted((run / "checkpoints").iterdir())[-1:]
    return keras.saving.load_model(newest / MODEL_FILE)


def test_training_stops_when_it_does_not_get_better(pretrained, tmp_path, monkeypatch):
    said = iter([0.5, 0.9, 0.7, float("nan"), 0.8])
    monkeypatch.setattr(
        type(KINDS["classify"]), "evaluate", lambda *_: {"accuracy": next(said)}
    )
    found = classify(pretrained, tmp_path / "run", epochs=5, patience=2)
    assert [e["accuracy"] for e in found.epochs] == [0.5, 0.9, 0.7, None]
    assert found.best == 2
    again = classify(pretrained, tmp_path / "run", epochs=5, patience=2)
    assert len(again.epochs) == 4


def test_frozen_layers_stay(pretrained, tmp_path):
    before = pretrained.backbone.get_weights()
    found = classify(pretrained, tmp_path / "run", frozen=2, epochs=1)
    after = found.model.backbone
    for layer, is_frozen in (
        ("embeddings", True),
        ("block_0", True),
        ("block_1", False),
    ):
        for variable in after.get_layer(layer).weights:
            number = [v.path for v in after.weights].index(variable.path)
            same = np.array_equal(before[number], variable.numpy())
            assert same == is_frozen, variable.path


def test_lower_layers_move_less_with_a_decay():
    """SGD-like: the first step of AdamW moves every weight by its rate alone."""
    model = BertClassifier(backbone(dropout=0.0), ["a", "b"], dropout=0.0)
    factors = rate_factors(model, 0.5, head=3)
    blocks = {"block_1": 0.5, "block_0": 0.25, "embeddings": 0.125}
    assert factors == {**blocks, "classifier": 3}
    optimizer = bert_optimizer(
        0.01, 10, warmup_share=0, weight_decay=0, clip_norm=1e9, rate_factors=factors,
        epsilon=1e-12,
    )  # fmt: skip
    restored = type(optimizer).from_config(optimizer.get_config())
    assert restored.rate_factors == factors
    before = {v.path: v.numpy() for v in model.trainable_variables}
    gradients = [tf.ones(v.shape) for v in model.trainable_variables]
    restored.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    for variable in model.trainable_variables:
        factor = factors.get(variable.path.split("/")[0], 1)
        moved = before[variable.path] - variable.numpy()
        np.testing.assert_allclose(moved, 0.01 * factor, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_it_learns_in_every_precision(pretrained, tmp_path, precision):
    found = classify(pretrained, tmp_path / "run", epochs=8, precision=precision)
    assert found.epochs[found.best - 1]["accuracy"] > 0.8
    assert found.model.backbone.dtype_policy.name == f"mixed_{precision}"


@pytest.mark.slow
def test_a_head_of_the_same_task_is_gone_on_with(pretrained, tmp_path):
    first = classify(pretrained, tmp_path / "one", epochs=12).model
    options = {"epochs": 1, "learning_rate": 1e-9}
    second = classify(first, tmp_path / "two", **options)
    assert second.epochs[0]["accuracy"] > 0.9
    np.testing.assert_allclose(
        second.model.head.get_weights()[0], first.head.get_weights()[0], atol=1e-6
    )


def test_balance_is_a_weight_for_each_row(pretrained):
    kind = KINDS["classify"]
    model = BertClassifier(backbone(), ["fox", "none"], preprocessor())
    weights = kind.rows(model, FOXES, balanced=True).labels["label_weight"]
    labels = np.array([e.label for e in FOXES])
    sums = [weights[labels == name].sum() for name in ("fox", "none")]
    assert sums == pytest.approx([24, 24])  # a half of 48 each


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"metric": "f1"}, "metric='f1'; allowed: accuracy, macro_f1, matthews"),
        ({"sequence_length": 17}, "sequence_length=17; allowed: at most 16"),
        ({"epochs": 0}, "epochs=0; allowed: an integer, at least 1"),
        ({"kept": "first"}, "kept='first'; allowed: best, last"),
    ],
)
def test_options_are_checked(pretrained, tmp_path, changes, shown):
    with pytest.raises(ValueError, match=shown):
        classify(pretrained, tmp_path / "run", **changes)
    assert not (tmp_path / "run").exists()


def test_examples_are_checked(pretrained, tmp_path):
    out = tmp_path / "run"
    with pytest.raises(ValueError, match="no examples to train on"):
        finetune(pretrained, "classify", [], [], OPTIONS, out)
    with pytest.raises(ValueError, match="BertPretrainer without a preprocessor"):
        finetune(BertPretrainer(backbone()), "classify", FOXES, [], OPTIONS, out)
    with pytest.raises(ValueError, match="patience=2 without dev"):
        classify(pretrained, out, dev=[], patience=2)
    with pytest.raises(ValueError, match="Unknown task. Received: 'rank'; allowed: cl"):
        finetune(pretrained, "rank", FOXES, [], OPTIONS, out)
    with pytest.raises(ValueError, match="Received: 'wolf'; allowed: 'fox', 'none'"):
        classify(pretrained, out, dev=[Example("the", None, "wolf")])
    with pytest.raises(ValueError, match="balanced=True for numbers"):
        numbers = [Example("the", None, 1.0)]
        options = FinetuningOptions(**{**OPTIONS.__dict__, "balanced": True})
        finetune(pretrained, "regress", numbers, [], options, out)
    assert not (out / MODEL_FILE).exists()

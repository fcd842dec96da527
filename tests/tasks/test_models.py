"""The models of tasks: outputs, losses, files."""

import keras
import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from tasks.readers import backbone, features, preprocessor

from bert_keras import (
    BertClassifier,
    BertEmbedder,
    BertRegressor,
    BertSpanFinder,
    BertTagger,
)
from bert_keras.tasks.pooling import Pooling

MODELS = {
    "classifier": lambda **more: BertClassifier(
        backbone(), ["no", "yes", "maybe"], preprocessor(), dropout=0.3, **more
    ),
    "regressor": lambda **more: BertRegressor(
        backbone(), preprocessor(), dropout=0.3, text_pairs=True, pooling="mean", **more
    ),
    "tagger": lambda **more: BertTagger(
        backbone(), ["O", "B-x", "I-x"], preprocessor(), dropout=0.3, **more
    ),
    "span finder": lambda **more: BertSpanFinder(
        backbone(), preprocessor(), may_abstain=True, **more
    ),
    "embedder": lambda **more: BertEmbedder(
        backbone(), preprocessor(), pooling="cls", normalize=True, **more
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_one_file_holds_all_of_it(name, tmp_path, random):
    model = MODELS[name](frozen=2, micro_batches=3)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    assert loaded.task == model.task
    assert (loaded.frozen, loaded.micro_batches) == (2, 3)
    texts = ["the quick fox", "brown"]
    if model.task.text_pairs:
        texts = [(text, "a fox.") for text in texts]
    expected, answered = model.run(texts), loaded.run(texts)
    assert expected.keys() == answered.keys()
    for key, value in expected.items():
        np.testing.assert_array_equal(answered[key], value)


@pytest.mark.parametrize("name", MODELS)
def test_in_float32_it_has_the_same_weights(name, random):
    made = MODELS[name]()
    config = made.backbone.get_config() | {"dtype": "mixed_bfloat16"}
    model = type(made)(
        type(made.backbone).from_config(config), preprocessor=None, **made.arguments
    )
    full = model.in_float32()
    assert full.backbone.dtype_policy.compute_dtype == "float32"
    for one, other in zip(full.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert made.in_float32() is made


def test_logits_are_a_linear_map_of_the_encoder(random):
    inputs = features(3, 6, random)
    for name, output, encoded, axis in (
        ("classifier", "label_logits", "pooled_output", None),
        ("tagger", "tag_logits", "sequence_output", None),
        ("span finder", "start_logits", "sequence_output", 0),
        ("span finder", "end_logits", "sequence_output", 1),
    ):
        model = MODELS[name]()
        kernel, bias = model.head.get_weights()
        bias = bias + np.arange(len(bias))
        model.head.set_weights([kernel, bias])
        expected = model.backbone(inputs)[encoded].numpy() @ kernel + bias
        if axis is not None:
            expected = expected[..., axis]
        found = model.encode(inputs)[output].numpy()
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_head_may_read_the_mean_of_the_tokens(random):
    inputs = features(3, 6, random)
    model = MODELS["regressor"]()
    hidden = model.backbone(inputs)["sequence_output"].numpy()
    mask = inputs["padding_mask"].numpy()[..., None]
    mean = (hidden * mask).sum(axis=1) / mask.sum(axis=1)
    kernel, bias = model.head.get_weights()
    expected = (mean @ kernel + bias)[:, 0]
    np.testing.assert_allclose(model.encode(inputs)["value"], expected, atol=1e-6)
    with pytest.raises(ValueError, match="pooling='max'; allowed: 'pooler', 'mean'"):
        BertRegressor(backbone(), pooling="max")


def test_probabilities_are_the_softmax_of_logits(random):
    outputs = MODELS["classifier"]().encode(features(3, 6, random))
    logits, found = (outputs[f"label_{n}"].numpy() for n in ("logits", "probabilities"))
    np.testing.assert_allclose(found, softmax(logits, axis=-1), atol=1e-6)


def evaluated(model, batch: dict) -> dict:
    model.compile(optimizer="sgd")
    return {n: float(v) for n, v in model.test_step(batch).items()}


def test_the_loss_of_a_classifier_is_a_weighted_mean(random):
    model = MODELS["classifier"]()
    batch = features(3, 6, random)
    labels, weights = np.array([0, 2, 1], np.int32), np.array([1, 3, 0.5], np.float32)
    logits = model.encode(batch)["label_logits"].numpy()
    losses = -log_softmax(logits, axis=-1)[np.arange(3), labels]
    right = (logits.argmax(axis=-1) == labels) * weights
    found = evaluated(model, {**batch, "label": labels, "label_weight": weights})
    assert found["loss"] == pytest.approx((losses * weights).sum() / 4.5, abs=1e-6)
    assert found["label_accuracy"] == pytest.approx(right.sum() / 4.5, abs=1e-6)


def test_the_loss_of_a_regressor_is_the_mean_square(random):
    model = MODELS["regressor"]()
    batch = features(3, 6, random)
    values, weights = np.array([0.5, -1, 2], np.float32), np.ones(3, np.float32)
    errors = model.encode(batch)["value"].numpy() - values
    found = evaluated(model, {**batch, "label": values, "label_weight": weights})
    assert found["loss"] == pytest.approx((errors**2).mean(), abs=1e-6)
    assert found.keys() == {"loss", "value_loss"}  # no accuracy of a number


def test_the_loss_of_a_tagger_counts_what_has_a_weight(random):
    model = MODELS["tagger"]()
    batch = features(2, 4, random)
    tags = np.array([[0, 1, 2, 0], [0, 2, 2, 0]], np.int32)
    weights = np.array([[0, 1, 0, 0], [0, 1, 1, 0]], np.float32)
    losses = -np.take_along_axis(
        log_softmax(model.encode(batch)["tag_logits"].numpy(), axis=-1),
        tags[..., None],
        axis=-1,
    )[..., 0]
    found = evaluated(model, {**batch, "tags": tags, "tag_weights": weights})
    assert found["loss"] == pytest.approx((losses * weights).sum() / 3, abs=1e-6)


def test_the_answer_is_chosen_among_the_tokens_of_the_text(random):
    """Neither the question (segment 0) nor padding takes part; [CLS] is no answer."""
    model = MODELS["span finder"]()
    batch = features(2, 6, random)
    starts, ends = np.array([0, 3], np.int32), np.array([0, 5], np.int32)
    outputs = model.encode(batch)
    total = 0.0
    for name, places in (("start_logits", starts), ("end_logits", ends)):
        logits = outputs[name].numpy()
        # Row 0 has no text: its second half is padding. Of row 1, [CLS] and 3 to 5.
        for row, allowed in ((0, [0]), (1, [0, 3, 4, 5])):
            chosen = allowed.index(places[row])
            total -= log_softmax(logits[row, allowed])[chosen] / 2
    found = evaluated(model, {**batch, "span_start": starts, "span_end": ends})
    assert found["loss"] == pytest.approx(total, abs=1e-5)


def test_pooling_by_hand():
    hidden = np.array([[[1, 2], [3, 4], [9, 9]]], np.float32)
    mask = np.array([[1, 1, 0]], np.int32)
    assert Pooling("mean")(hidden, mask).numpy().tolist() == [[2, 3]]
    assert Pooling("cls")(hidden, mask).numpy().tolist() == [[1, 2]]
    length = 13**0.5  # of (2, 3)
    found = Pooling("mean", normalize=True)(hidden, mask).numpy()
    np.testing.assert_allclose(found, [[2 / length, 3 / length]], atol=1e-6)
    nothing = Pooling("mean", normalize=True)(hidden, np.zeros_like(mask)).numpy()
    assert np.isfinite(nothing).all()


def test_answers_do_not_depend_on_the_neighbours():
    model = MODELS["embedder"]()
    texts = ["fox", "the quick brown fox . " * 3, "", "quick fox"]
    together = model.embed(texts)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(model.embed([text])[0], vector, atol=1e-6)
    assert together.shape == (4, 8)


def test_frozen_layers_are_not_trained():
    model = BertClassifier(backbone(), ["a", "b"], frozen=2)
    trained = {variable.path for variable in model.trainable_variables}
    names = {path.split("/")[0] for path in trained}
    assert names == {"block_1", "pooler", "classifier"}
    with pytest.raises(ValueError, match="frozen=4; allowed: .* at most 3"):
        BertClassifier(backbone(), ["a", "b"], frozen=4)


@pytest.mark.parametrize(
    ("labels", "shown"),
    [("ab", "'ab'"), (["a"], r"\['a'\]"), (["a", "a"], "each once"), ([1, 2], "names")],
)
def test_labels_are_names(labels, shown):
    with pytest.raises(ValueError, match=shown):
        BertClassifier(backbone(), labels)


def test_other_errors():
    with pytest.raises(ValueError, match="pooling='max'; allowed: 'mean', 'cls'"):
        BertEmbedder(backbone(), pooling="max")
    with pytest.raises(ValueError, match="preprocessor=None"):
        BertEmbedder(backbone()).embed(["x"])
    with pytest.raises(ValueError, match="Received: 12 tokens and 11 rows"):
        BertEmbedder(backbone(vocabulary_size=11), preprocessor())
    with pytest.raises(ValueError, match="reads a pair of texts at once"):
        MODELS["regressor"]().regress(["one"])
    with pytest.raises(ValueError, match="reads a text at once. Received: a pair"):
        MODELS["classifier"]().classify([("one", "two")])

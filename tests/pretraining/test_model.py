"""The encoder with both heads."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracles import SMALL

from bert_keras import (
    BertBackbone,
    BertPreprocessor,
    BertPretrainer,
    WordPieceTokenizer,
    bert_optimizer,
)


@pytest.fixture
def labelled(batch, random):
    """Returns a function that makes features with the labels of both objectives."""

    def make(rows: int, length: int = 6, predictions: int = 2) -> dict:
        shape = (rows, predictions)
        positions = random.integers(1, length, shape).astype("int32")
        return {
            **batch(rows, length),
            "mask_positions": positions,
            "mask_ids": random.integers(5, len(SMALL), shape).astype("int32"),
            "mask_weights": np.ones(shape, np.float32),
            "next_sentence": random.integers(0, 2, rows).astype("int32"),
        }

    return make


def test_heads_by_hand(small_pretrainer, labelled):
    """Logits: LayerNorm(gelu(dense(vector))) times the token table, plus a bias."""
    features = labelled(3)
    outputs = small_pretrainer({n: features[n] for n in small_pretrainer.input})
    names = ("token_ids", "segment_ids", "padding_mask")
    vectors = small_pretrainer.backbone({name: features[name] for name in names})
    hidden = vectors["sequence_output"].numpy()
    picked = hidden[np.arange(3)[:, None], features["mask_positions"]]
    head = small_pretrainer.masked_lm_head
    head.bias.assign(np.arange(12.0))
    kernel, bias = head._dense.get_weights()
    wide = tf.nn.gelu(picked @ kernel + bias).numpy()
    centred = wide - wide.mean(-1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(-1, keepdims=True))
    table = small_pretrainer.backbone.token_embedding.embeddings.numpy()
    np.testing.assert_allclose(outputs["masked_lm_logits"], normed @ table.T, atol=1e-4)
    assert outputs["next_sentence_logits"].shape == (3, 2)
    everywhere = small_pretrainer.encode({name: features[name] for name in names})
    at_masks = everywhere["masked_lm_logits"].numpy()[
        np.arange(3)[:, None], features["mask_positions"]
    ]
    np.testing.assert_allclose(at_masks, normed @ table.T + np.arange(12), atol=1e-4)


def test_labels_beside_the_features_change_nothing(small_pretrainer, labelled):
    """Called on a batch as it comes from the data, in whatever order its names are."""
    features = labelled(3)
    expected = small_pretrainer({n: features[n] for n in small_pretrainer.input})
    answer = small_pretrainer(dict(reversed(features.items())))
    for name, values in expected.items():
        np.testing.assert_array_equal(answer[name], values)


def test_e08_the_head_is_the_token_table_before_and_after_saving(
    small_pretrainer, labelled, tmp_path
):
    count = len(small_pretrainer.weights)
    small_pretrainer.save(tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    assert len(loaded.weights) == count
    for model in (small_pretrainer, loaded):
        table = model.backbone.token_embedding.embeddings
        assert model.masked_lm_head.token_embedding.embeddings is table
        features = {name: labelled(1)[name] for name in model.input}
        before = model(features)["masked_lm_logits"].numpy()
        changed = table.numpy()
        changed[5] = 7.0
        table.assign(changed)
        features["token_ids"][features["token_ids"] == 5] = 6
        after = model(features)["masked_lm_logits"].numpy()
        assert np.abs(after[..., 5] - before[..., 5]).max() > 1e-3


@pytest.mark.parametrize("tied", [True, False])
def test_e04_only_a_tied_table_has_a_dense_gradient(small_backbone, labelled, tied):
    model = BertPretrainer(small_backbone, tied=tied)
    features = labelled(4)
    with tf.GradientTape() as tape:
        loss = sum(term.loss for term in model.terms(features, training=False))
    gradient = tape.gradient(loss, small_backbone.token_embedding.embeddings)
    assert isinstance(gradient, tf.IndexedSlices) != tied
    moved = np.abs(tf.convert_to_tensor(gradient)).sum(axis=1) > 0
    present = np.isin(np.arange(12), features["token_ids"])
    assert moved.all() if tied else (moved == present).all()


def test_the_loss_by_hand(small_pretrainer, labelled):
    features = labelled(5)
    features["mask_weights"][2:] = 0
    small_pretrainer.compile(optimizer="sgd")
    dataset = tf.data.Dataset.from_tensors(features)
    reached = small_pretrainer.evaluate(dataset, verbose=0, return_dict=True)
    logits = small_pretrainer({n: features[n] for n in small_pretrainer.input})

    def mean(logits, labels, weights):
        logits = np.asarray(logits, float)
        logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        picked = np.take_along_axis(logs, labels[..., None], -1)[..., 0]
        return -(picked * weights).sum() / weights.sum()

    masked = mean(
        logits["masked_lm_logits"], features["mask_ids"], features["mask_weights"]
    )
    following = mean(
        logits["next_sentence_logits"], features["next_sentence"], np.ones(5)
    )
    assert float(reached["masked_lm_loss"]) == pytest.approx(masked, rel=1e-5)
    assert float(reached["next_sentence_loss"]) == pytest.approx(following, rel=1e-5)
    assert float(reached["loss"]) == pytest.approx(masked + following, rel=1e-5)


def test_trained_saved_and_loaded_under_another_seed(
    small_pretrainer, labelled, tmp_path
):
    """A smoke test: it learns a batch by heart, and the file holds all of it."""
    features = labelled(8)
    dataset = tf.data.Dataset.from_tensors(features).repeat()
    small_pretrainer.compile(optimizer=bert_optimizer(2e-2, 60))
    history = small_pretrainer.fit(
        dataset, steps_per_epoch=30, epochs=2, shuffle=False, verbose=0
    ).history
    assert history["loss"][1] < 0.8 * history["loss"][0]
    assert set(history) == {
        "loss",
        "masked_lm_loss",
        "masked_lm_accuracy",
        "next_sentence_loss",
        "next_sentence_accuracy",
    }
    small_pretrainer.save(tmp_path / "m.keras")
    keras.utils.set_random_seed(99)
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    assert type(loaded) is BertPretrainer
    for mine, theirs in zip(small_pretrainer.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg=mine.path)
    assert int(loaded.optimizer.iterations) == 60
    text = "the quick [MASK]"
    np.testing.assert_array_equal(
        loaded.preprocessor(text)["token_ids"],
        small_pretrainer.preprocessor(text)["token_ids"],
    )


def test_jit_compiled_it_gives_the_same_loss(small_backbone, labelled):
    dataset = tf.data.Dataset.from_tensors(labelled(4)).repeat()
    losses = []
    weights = small_backbone.get_weights()
    for jit in (False, True):
        keras.utils.set_random_seed(1)
        small_backbone.set_weights(weights)
        model = BertPretrainer(small_backbone)
        model.compile(optimizer=keras.optimizers.SGD(0.0), jit_compile=jit)
        fitted = model.evaluate(dataset, steps=1, verbose=0, return_dict=True)
        losses.append(float(fitted["loss"]))
        assert model.jit_compile is jit
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_weights_of_a_model_without_dropout_go_on_with_it(small_vocabulary, tmp_path):
    def made(dropout):
        backbone = BertBackbone(12, 1, 1, 4, 4, dropout, max_sequence_length=8)
        return BertPretrainer(backbone)

    still = made(0.0)
    still.save_weights(tmp_path / "still.weights.h5")
    moving = made(0.1)
    moving.load_weights(tmp_path / "still.weights.h5")
    for mine, theirs in zip(still.weights, moving.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_loss_of_a_float16_model_is_scaled():
    backbone = BertBackbone(12, 1, 1, 4, 4, dtype="mixed_float16")
    model = BertPretrainer(backbone)
    model.compile(optimizer=bert_optimizer(1e-3, 10))
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)


def test_train_on_batch_takes_a_dictionary_and_refuses_labels_beside_it(
    small_pretrainer, labelled
):
    small_pretrainer.compile(optimizer="sgd")
    small_pretrainer.train_on_batch(labelled(4))
    with pytest.raises(ValueError, match="belong into the feature dictionary"):
        small_pretrainer.train_on_batch(labelled(4), np.zeros(4))


@pytest.mark.parametrize(("rows", "fits"), [(10, False), (12, True), (16, True)])
def test_v06_the_vocabulary_must_fit_the_table(rows, fits):
    backbone = BertBackbone(rows, 1, 1, 4, 4, max_sequence_length=8)
    preprocessor = BertPreprocessor(WordPieceTokenizer(SMALL), 8)
    if fits:
        BertPretrainer(backbone, preprocessor)
        return
    with pytest.raises(ValueError, match="12 tokens and 10 rows"):
        BertPretrainer(backbone, preprocessor)

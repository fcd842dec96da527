"""The step whose losses are means over the global batch."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_keras import BertPretrainer
from bert_keras.training.model import (
    Term,
    WeightedMeanTraining,
    classification_term,
)


def test_a_term_by_hand():
    """Logits (0, ln 3): probabilities 1/4 and 3/4. Weights 2, 1, 0."""
    logits = np.tile(np.array([[0.0, np.log(3.0)]], np.float32), (3, 1))
    term = classification_term(
        "x", logits, np.array([1, 0, 0]), np.array([2.0, 1.0, 0.0], np.float32)
    )
    expected = 2 * -np.log(0.75) + 1 * -np.log(0.25)
    assert float(term.loss) == pytest.approx(expected, rel=1e-6)
    assert float(term.correct) == 2.0


class Linear(WeightedMeanTraining, keras.Model):
    """y = x w + b with a weighted squared error."""

    term_names = ("square",)

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(
            1, kernel_initializer="ones", bias_initializer="zeros"
        )
        self.dense.build((None, 2))
        self.built = True
        self.make_trackers()

    def terms(self, features, training):
        error = self.dense(features["x"])[:, 0] ** 2
        weights = features["weights"]
        weighted = tf.reduce_sum(error * weights)
        return [Term("square", weighted, tf.zeros([]))]

    def weights_of(self, features):
        return {"square": tf.reduce_sum(features["weights"])}


def fitted(x, weights, batch_size=4):
    model = Linear()
    model.compile(optimizer=keras.optimizers.SGD(0.1))
    data = {"x": x.astype(np.float32), "weights": np.array(weights, np.float32)}
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(batch_size)
    history = model.fit(dataset, shuffle=False, verbose=0).history
    return history, *(weight.ravel() for weight in model.dense.get_weights())


def test_a_batch_without_weight_changes_nothing():
    history, weights, _ = fitted(np.ones((4, 2)), [0, 0, 0, 0])
    assert history["loss"][0] == 0.0
    np.testing.assert_array_equal(weights, [1.0, 1.0])


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_the_loss_of_several_batches_is_their_weighted_mean():
    """A dataset of unknown length ends inside a step: nothing must be counted twice."""
    model = Linear()
    model.compile(optimizer="sgd")
    data = {"x": np.ones((3, 2), np.float32), "weights": np.array([1.0, 3.0, 0.0])}
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(1).filter(lambda _: True)
    dataset = dataset.map(
        lambda row: {**row, "weights": tf.cast(row["weights"], "float32")}
    )
    reached = model.evaluate(dataset, verbose=0, return_dict=True)
    assert float(reached["loss"]) == pytest.approx(4.0)
    assert float(model.metrics[0].total) == pytest.approx(16.0)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("parts", [2, 3, 5])
def test_micro_batches_make_the_same_step(small_backbone, batch, random, tied, parts):
    """The weights fall unevenly on the parts, and 4 rows in 5 parts leave one empty."""
    features = batch(4, 6)
    features |= {
        "mask_positions": random.integers(0, 6, (4, 2)).astype(np.int32),
        "mask_ids": random.integers(5, 12, (4, 2)).astype(np.int32),
        "mask_weights": np.array([[1, 1], [0, 1], [0, 0], [0, 0]], np.float32),
        "next_sentence": np.array([0, 1, 1, 0], np.int32),
    }
    config = {**small_backbone.get_config(), "dropout": 0.0}
    start, reached, logs = None, [], []
    for count in (1, parts):
        backbone = type(small_backbone).from_config(config)
        model = BertPretrainer(backbone, tied=tied, micro_batches=count)
        start = start or model.get_weights()
        model.set_weights(start)
        model.compile(optimizer=keras.optimizers.SGD(0.1), jit_compile=False)
        dataset = tf.data.Dataset.from_tensors(features)
        logs.append(model.fit(dataset, epochs=2, shuffle=False, verbose=0).history)
        reached.append(model.get_weights())
    for one, other in zip(*reached, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    for name, values in logs[0].items():
        np.testing.assert_allclose(values, logs[1][name], rtol=1e-5, err_msg=name)


def test_d07_a_model_of_ids_stays_compiled_and_text_is_refused(
    small_pretrainer, batch, random
):
    features = batch(4, 6)
    features |= {
        "mask_positions": random.integers(0, 6, (4, 2)).astype(np.int32),
        "mask_ids": random.integers(5, 12, (4, 2)).astype(np.int32),
        "mask_weights": np.ones((4, 2), np.float32),
        "next_sentence": np.array([0, 1, 1, 0], np.int32),
    }
    small_pretrainer.compile(optimizer="sgd", jit_compile=True)
    dataset = tf.data.Dataset.from_tensors(features)
    small_pretrainer.fit(dataset, shuffle=False, verbose=0)
    assert small_pretrainer.jit_compile is True
    text = tf.data.Dataset.from_tensors({"token_ids": ["the fox"] * 4})
    with pytest.raises(ValueError, match="Received: token_ids of strings; allowed"):
        small_pretrainer.fit(text, shuffle=False, verbose=0)

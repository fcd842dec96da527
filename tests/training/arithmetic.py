"""Three steps of SGD that can be done by hand; run as a program by tests.

python arithmetic.py OUT.json REPLICAS
"""

import json
import sys

import keras
import numpy as np
import tensorflow as tf
from replica_runs import strategy_of

from bert_keras.dropout import Dropout
from bert_keras.training.model import Term, WeightedMeanTraining


class Squared(WeightedMeanTraining, keras.Model):
    """The weighted mean of the squares of what a layer answers."""

    term_names = ("square",)

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.built = True
        self.make_trackers()

    def terms(self, features, training):
        squares = tf.square(self.layer(features["x"])[:, 0])
        weighted = tf.reduce_sum(squares * features["weights"])
        return [Term("square", weighted, tf.zeros([]))]

    def weights_of(self, features):
        return {"square": tf.reduce_sum(features["weights"])}


def ones(width):
    """Returns a linear layer of ones."""
    layer = keras.layers.Dense(1, kernel_initializer="ones")
    layer.build((None, width))
    return layer


def stepped(strategy, make, x, weights):
    """Takes a step; returns the loss and the weights behind it."""
    with strategy.scope():
        model = Squared(make())
        model.compile(optimizer=keras.optimizers.SGD(0.1))
    features = {"x": x, "weights": np.array(weights, np.float32)}
    dataset = tf.data.Dataset.from_tensor_slices(features).batch(4)
    (loss,) = model.fit(dataset, shuffle=False, verbose=0).history["loss"]
    return loss, [weight.ravel().tolist() for weight in model.get_weights()]


def embedding():
    """A 6 x 2 table of ones, two rows behind one another, a linear layer of ones."""
    table = keras.layers.Embedding(6, 2, embeddings_initializer="ones")
    layer = keras.Sequential([table, keras.layers.Flatten(), ones(4)])
    layer.build((None, 2))
    return layer


def main() -> None:
    out, replicas = sys.argv[1], int(sys.argv[2])

    class Options:
        workers = False

    Options.replicas = replicas
    strategy = strategy_of(Options)
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    found = {}
    loss, (kernel, bias) = stepped(strategy, lambda: ones(2), x, [1, 1, 1, 1])
    found["mean"] = [loss, *kernel, *bias]
    x = np.ones((4, 2), np.float32)
    loss, (kernel, bias) = stepped(strategy, lambda: ones(2), x, [1, 0, 0, 0])
    found["weighted"] = [loss, *kernel, *bias]
    ids = np.array([[0, 1], [2, 3], [0, 1], [4, 5]])
    _, (table, kernel, bias) = stepped(strategy, embedding, ids, [1, 1, 1, 1])
    found["table"], found["head"] = table, [*kernel, *bias]
    with strategy.scope():
        dropout = Dropout(0.5)
    kept = strategy.run(lambda: dropout(tf.ones([100]), training=True))
    kept = strategy.experimental_local_results(kept)
    found["patterns of dropout"] = len({one.numpy().tobytes() for one in kept})
    with open(out, "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()

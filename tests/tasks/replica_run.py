"""Fine-tunes a small classifier on some replicas; run as a program by a test.

python replica_run.py OUT REPLICAS
"""

import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from tasks.readers import backbone, preprocessor

from bert_keras import BertPretrainer, FinetuningOptions, RunSettings, finetune
from bert_keras.tasks.records import Example

WORDS = ("the", "quick", "brown", "fox")
FOXES = [
    Example(f"{one} {two}", None, "fox" if "fox" in (one, two) else "none")
    for one in WORDS
    for two in WORDS
][:15]  # batches of 4, 4, 4 and 3


def main(out: Path, replicas: int) -> None:
    (cpu,) = tf.config.list_physical_devices("CPU")
    device = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(cpu, [device] * replicas)
    strategy = "none"
    if replicas > 1:
        names = [f"CPU:{number}" for number in range(replicas)]
        strategy = tf.distribute.MirroredStrategy(names)
    keras.utils.set_random_seed(3)
    model = BertPretrainer(backbone(dropout=0.0), preprocessor())
    # With a small epsilon the noise in gradients of almost zero would decide.
    options = FinetuningOptions(
        epochs=2, batch_size=4, sequence_length=16, dropout=0.0, balanced=True,
        learning_rate=0.01, epsilon=0.01,
    )  # fmt: skip
    settings = RunSettings(strategy=strategy)
    found = finetune(model, "classify", FOXES, FOXES, options, out, settings)
    accuracies = [epoch["accuracy"] for epoch in found.epochs]
    np.savez(out / "weights.npz", *found.model.get_weights(), accuracies=accuracies)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

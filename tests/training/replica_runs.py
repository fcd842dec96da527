"""Trains one small model on the replicas it is told of; run as a program by tests.

    python replica_runs.py OUT.npz [--replicas N] [--workers] [--lazy]
        [--dtype NAME] [--jit] [--dropout RATE] [--optimizer NAME]
        [--micro-batches N]

The batches have 4, 4, 3 and 1 rows, so that replicas share them unevenly, and all loss
weights of the first two rows are zero. No row holds a piece below 5. With --lazy the
token table is untied, and AdamW moves only its rows that are in a batch.
"""

import argparse
import itertools

import keras
import numpy as np
import tensorflow as tf

SIZES = (4, 4, 3, 1)
ROWS = sum(SIZES)


def features() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    weights = (random.random((ROWS, 3)) < 0.5).astype(np.float32)
    weights[:2] = 0
    ids = {
        "token_ids": random.integers(5, 20, (ROWS, 6)),
        "segment_ids": random.integers(0, 2, (ROWS, 6)),
        "padding_mask": np.ones((ROWS, 6)),
        "mask_positions": random.integers(0, 6, (ROWS, 3)),
        "mask_ids": random.integers(5, 20, (ROWS, 3)),
        "next_sentence": random.integers(0, 2, ROWS),
    }
    return {**{name: v.astype(np.int32) for name, v in ids.items()},
            "mask_weights": weights}  # fmt: skip


def batches() -> tf.data.Dataset:
    rows = features()
    edges = np.cumsum((0, *SIZES))

    def each():
        for start, end in itertools.pairwise(edges):
            yield {name: values[start:end] for name, values in rows.items()}

    signature = {
        name: tf.TensorSpec([None, *values.shape[1:]], values.dtype)
        for name, values in rows.items()
    }
    dataset = tf.data.Dataset.from_generator(each, output_signature=signature)
    return dataset.apply(tf.data.experimental.assert_cardinality(len(SIZES)))


def strategy_of(options) -> tf.distribute.Strategy:
    if options.workers:
        return tf.distribute.MultiWorkerMirroredStrategy()
    if options.replicas == 1:
        return tf.distribute.get_strategy()
    (cpu,) = tf.config.list_physical_devices("CPU")
    one = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(cpu, [one] * options.replicas)
    devices = [f"CPU:{number}" for number in range(options.replicas)]
    return tf.distribute.MirroredStrategy(devices)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--workers", action="store_true")
    parser.add_argument("--lazy", action="store_true")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--optimizer", default="sgd")
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--jit", action="store_true")
    parser.add_argument("--dropout", type=float, default=0.0)
    options = parser.parse_args()
    strategy = strategy_of(options)

    from bert_keras import BertBackbone, BertPretrainer, bert_optimizer

    keras.utils.set_random_seed(1)
    with strategy.scope():
        backbone = BertBackbone(
            vocabulary_size=20,
            num_layers=1,
            num_heads=2,
            hidden_dim=8,
            intermediate_dim=16,
            max_sequence_length=16,
            dropout=options.dropout,
            dtype=options.dtype,
            initializer_range=0.3,
        )
        model = BertPretrainer(
            backbone, tied=not options.lazy, micro_batches=options.micro_batches
        )
        optimizer = keras.optimizers.SGD(0.1, global_clipnorm=1.0)
        if options.lazy or options.optimizer != "sgd":
            name = "adamw" if options.optimizer == "sgd" else options.optimizer
            optimizer = bert_optimizer(
                1e-3, 100, optimizer=name, lazy_embeddings=options.lazy
            )
        if options.dtype == "mixed_float16":
            # The usual first scale, 32,768, is too much, and costs the first steps.
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer, 256.0)
        model.compile(optimizer=optimizer, jit_compile=options.jit)
    table = backbone.token_embedding.embeddings
    before = table.numpy()
    fitted = model.fit(batches(), epochs=2, shuffle=False, verbose=0).history
    evaluated = model.evaluate(batches(), verbose=0, return_dict=True)
    results = {f"fit_{name}": values for name, values in fitted.items()}
    results |= {f"evaluate_{name}": value for name, value in evaluated.items()}
    weights = {f"weight_{n}": value for n, value in enumerate(model.get_weights())}
    np.savez(options.out, before=before, table=table.numpy(), **results, **weights)


if __name__ == "__main__":
    main()

"""The schedule and the optimizer."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_keras import (
    BertAdamW,
    BertLamb,
    BertMuon,
    BertPretrainer,
    WarmupDecay,
    bert_optimizer,
)
from bert_keras.training.optimizer import orthogonal


def test_the_schedule_by_hand():
    """Peak 1, 4 steps of warmup of 12: rises by fifths, falls by eighths."""
    rates = [float(WarmupDecay(1.0, 12, 4)(step)) for step in range(14)]
    rise, fall = [0.2, 0.4, 0.6, 0.8], [1 - n / 8 for n in range(9)]
    np.testing.assert_allclose(rates, [*rise, *fall, 0.0], atol=1e-6)


def test_without_warmup_it_starts_at_the_peak():
    assert float(WarmupDecay(0.5, 10)(0)) == 0.5


@pytest.mark.parametrize("warmup", [-1, 10, 11])
def test_a_warmup_that_does_not_fit_is_refused(warmup):
    with pytest.raises(ValueError, match=f"warmup_steps={warmup} of total_steps=10"):
        WarmupDecay(1.0, 10, warmup)


@pytest.mark.parametrize("name", ["adamw", "lamb", "muon"])
def test_serialization_keeps_every_option(name):
    optimizer = bert_optimizer(
        3e-4,
        100,
        warmup_share=0.2,
        decay="cosine",
        weight_decay=0.3,
        clip_norm=0.7,
        optimizer=name,
        lazy_embeddings=True,
    )
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(again) is type(optimizer)
    assert again.get_config() == optimizer.get_config()
    assert again.lazy_embeddings
    schedule = keras.saving.deserialize_keras_object(
        again.get_config()["learning_rate"]
    )
    assert schedule.get_config() == {
        "peak": 3e-4,
        "total_steps": 100,
        "warmup_steps": 20,
        "decay": "cosine",
    }
    assert again.weight_decay == 0.3
    assert again.global_clipnorm == 0.7


def test_the_other_decays_by_hand():
    """Peak 2, no warmup, 4 steps: cos of 0, 45, 90 and 135 degrees; and no decay."""
    cosine = [float(WarmupDecay(2.0, 4, decay="cosine")(step)) for step in range(6)]
    half = 2**-0.5
    np.testing.assert_allclose(cosine, [2, 1 + half, 1, 1 - half, 0, 0], atol=1e-6)
    constant = [float(WarmupDecay(2.0, 4, 1, "constant")(step)) for step in range(6)]
    np.testing.assert_allclose(constant, [1, 2, 2, 2, 2, 2], atol=1e-6)
    with pytest.raises(ValueError, match="decay='step'; allowed: 'linear', 'cosine'"):
        WarmupDecay(1.0, 4, decay="step")


def test_lamb_by_hand():
    """One step from w = (3, 4) with gradients (1, -2), decay 0.1, rate 0.5.

    The first step of Adam is the sign, (1, -1) but for epsilon; with decay u = (1.3,
    -0.6). |w| = 5, |u| = sqrt(2.05): w -= 0.5 * 5 / sqrt(2.05) * u. A bias moves by
    0.5 * sign.
    """
    optimizer = BertLamb(0.5, weight_decay=0.1, epsilon=1e-12)
    kernel = keras.Variable(np.array([3.0, 4.0], np.float32), name="kernel")
    bias = keras.Variable(np.array([3.0, 4.0], np.float32), name="bias")
    gradient = np.array([1.0, -2.0], np.float32)
    optimizer.apply([gradient, gradient], [kernel, bias])
    ratio = 5 / 2.05**0.5
    expected = [3 - 0.5 * ratio * 1.3, 4 + 0.5 * ratio * 0.6]
    np.testing.assert_allclose(kernel.numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(bias.numpy(), [2.5, 4.5], rtol=1e-5)


def test_lamb_moves_a_weight_that_is_zero():
    optimizer = BertLamb(0.5, weight_decay=0.1)
    kernel = keras.Variable(np.zeros(2, np.float32), name="kernel")
    optimizer.apply([np.array([1.0, 0.0], np.float32)], [kernel])
    np.testing.assert_allclose(kernel.numpy(), [-0.5, 0.0], atol=1e-5)


@pytest.mark.parametrize("shape", [(6, 6), (5, 9), (9, 5)])
def test_what_is_orthogonal_by_singular_values(random, shape):
    """The vectors stay; the values, from 0.02 to 1 of the norm, all come near 1.

    The polynomial of degree 5, five times, by NumPy on the values that its SVD finds.
    """
    left, _, right = np.linalg.svd(random.normal(size=shape), full_matrices=False)
    values = np.geomspace(0.02, 1, min(shape))
    wanted = values / np.linalg.norm(values)
    for _ in range(5):
        wanted = 3.4445 * wanted - 4.775 * wanted**3 + 2.0315 * wanted**5
    assert ((wanted > 0.65) & (wanted < 1.25)).all()
    found = orthogonal(tf.constant(7 * (left * values) @ right, tf.float32)).numpy()
    np.testing.assert_allclose(found, (left * wanted) @ right, atol=2e-4)


def test_of_nothing_orthogonal_is_nothing():
    assert not orthogonal(tf.zeros([3, 2])).numpy().any()


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("shape", [(4, 8), (8, 4)])
def test_muon_takes_the_steps_of_keras(random, shape, jit):
    """On a kernel of a block; Keras sums gradients where ours takes their mean."""
    theirs_class = getattr(keras.optimizers, "Muon", None)
    if theirs_class is None:
        pytest.skip("this Keras has no Muon")
    start = random.normal(size=shape).astype(np.float32)
    gradients = tf.constant(random.normal(size=(4, *shape)), tf.float32)

    def reached(optimizer):
        layer = keras.layers.Dense(shape[1], name="block_0")
        layer.build((None, shape[0]))
        kernel = layer.kernel
        kernel.assign(start)
        optimizer.build([kernel])

        @tf.function(jit_compile=jit, autograph=False)
        def step(gradient):
            optimizer.apply([gradient], [kernel])

        for gradient in gradients:
            step(gradient)
        return kernel.numpy()

    settings = {"weight_decay": 0.5, "global_clipnorm": 1.0}
    ours = reached(BertMuon(0.1, **settings))
    theirs = reached(theirs_class(0.1, **settings))
    np.testing.assert_allclose(ours, theirs, atol=2e-5)
    assert abs(ours - start).max() > 0.05


def test_muon_learns_queries_keys_and_values_apart(random):
    """Three maps in one kernel: each moves as a block's kernel of its own."""
    gradients = [random.normal(size=(4, 4)).astype(np.float32) for _ in range(3)]

    def moved(name, gradient):
        layer = keras.layers.Dense(gradient.shape[1], use_bias=False, name=name)
        block = keras.Sequential([layer], name="block_0")
        block.build((None, 4))
        start = layer.kernel.numpy()
        BertMuon(0.1, weight_decay=0.0).apply([gradient], [layer.kernel])
        return layer.kernel.numpy() - start

    together = moved("query_key_value", np.concatenate(gradients, axis=1))
    apart = [moved("output", gradient) for gradient in gradients]
    np.testing.assert_allclose(together, np.concatenate(apart, axis=1), atol=1e-5)


def test_muon_is_adamw_but_for_the_kernels_of_blocks(small_pretrainer, random):
    """Heads, pooler, tables, biases and norms take Adam's step."""
    variables = small_pretrainer.trainable_variables
    start = [variable.numpy() for variable in variables]
    gradients = [random.normal(size=v.shape).astype(np.float32) for v in variables]

    def reached(optimizer):
        for variable, value in zip(variables, start, strict=True):
            variable.assign(value)
        optimizer.apply(gradients, variables)
        return [variable.numpy() for variable in variables]

    muon, adamw = (
        reached(kind(0.1, weight_decay=0.5)) for kind in (BertMuon, BertAdamW)
    )
    differing = {
        variable.path.split("/", 1)[1]
        for variable, one, other in zip(variables, muon, adamw, strict=True)
        if not np.array_equal(one, other)
    }
    assert differing == {
        f"{name}/kernel"
        for name in ("query_key_value", "attention_output", "intermediate", "output")
    }


def sparse(rows, values):
    values = np.array(values, np.float32)
    return tf.IndexedSlices(tf.constant(values), tf.constant(rows), tf.constant([5, 2]))


def dense(gradient):
    return tf.convert_to_tensor(gradient)


class TestLazyEmbeddings:
    # Row 3 twice, as a piece that stands twice in a batch gives it.
    steps = (
        sparse([1, 3, 3], [[1, 2], [3, 4], [-1, 1]]),
        sparse([3, 4], [[1, 1], [2, 0.5]]),
        sparse([0], [[-3, 1]]),
    )

    def table(self):
        values = np.arange(10, dtype=np.float32).reshape(5, 2) / 10
        return keras.Variable(values, name="embeddings")

    def run(self, optimizer, prepare=lambda gradient: gradient):
        table, seen = self.table(), []
        for gradient in self.steps:
            optimizer.apply([prepare(gradient)], [table])
            moments = optimizer._momentums[0], optimizer._velocities[0]
            seen.append([value.numpy() for value in (table, *moments)])
        return seen

    @pytest.mark.parametrize("kind", [BertAdamW, BertLamb, BertMuon])
    def test_rows_that_are_not_in_the_batch_stay_bit_for_bit(self, kind):
        optimizer = kind(
            0.1, weight_decay=0.5, global_clipnorm=1.0, lazy_embeddings=True
        )
        before = [self.table().numpy(), np.zeros((5, 2)), np.zeros((5, 2))]
        for gradient, after in zip(self.steps, self.run(optimizer), strict=True):
            present = np.unique(gradient.indices.numpy())
            absent = np.setdiff1d(np.arange(5), present)
            for old, new in zip(before, after, strict=True):
                np.testing.assert_array_equal(new[absent], old[absent])
                assert (new[present] != old[present]).any(axis=1).all()
            before = after

    def test_the_first_step_is_that_of_adamw_on_the_rows_present(self):
        """Moments are zero before it, so nothing but the decay of others differs."""
        settings = {"weight_decay": 0.5, "global_clipnorm": 1.0}
        lazy = self.run(BertAdamW(0.1, lazy_embeddings=True, **settings))[0]
        full = self.run(BertAdamW(0.1, **settings), dense)[0]
        for one, other in zip(lazy, full, strict=True):
            np.testing.assert_allclose(one[[1, 3]], other[[1, 3]], rtol=1e-5)

    def test_without_it_sparse_and_dense_gradients_do_the_same(self):
        """Clipping too: the norm is that of the sums of the rows."""
        settings = {"weight_decay": 0.5, "global_clipnorm": 1.0}
        for kind in (BertAdamW, BertLamb, BertMuon):
            one = self.run(kind(0.1, **settings))
            other = self.run(kind(0.1, **settings), dense)
            for a, b in zip(one, other, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)

    def test_an_untied_pretrainer_moves_only_rows_in_the_batch(
        self, small_backbone, batch
    ):
        model = BertPretrainer(small_backbone, tied=False)
        optimizer = bert_optimizer(0.1, 10, warmup_share=0, lazy_embeddings=True)
        model.compile(optimizer=optimizer, jit_compile=False)
        features = batch(4, 6)
        features["token_ids"] = np.where(
            features["token_ids"] == 7, 8, features["token_ids"]
        )
        features |= {
            "mask_positions": np.ones((4, 2), np.int32),
            "mask_ids": np.full((4, 2), 7, np.int32),
            "mask_weights": np.ones((4, 2), np.float32),
            "next_sentence": np.zeros(4, np.int32),
        }
        table = small_backbone.token_embedding.embeddings
        before = table.numpy()
        model.fit(tf.data.Dataset.from_tensors(features), shuffle=False, verbose=0)
        moved = np.flatnonzero((table.numpy() != before).any(axis=1))
        assert moved.tolist() == np.unique(features["token_ids"]).tolist()
        assert 7 not in moved  # a label moves its row of the output table alone


@pytest.mark.parametrize("jit", [False, True])
def test_the_step_is_that_of_keras(random, jit):
    """Adam's step is taken by an operation of TensorFlow's own; moments are kept."""
    settings = {"weight_decay": 0.5, "epsilon": 1e-6, "global_clipnorm": 1.0}
    start = random.normal(size=(4, 3)).astype(np.float32)
    gradients = tf.constant(random.normal(size=(3, 4, 3)), tf.float32)

    def reached(optimizer):
        kernel = keras.Variable(start, name="kernel")
        optimizer.build([kernel])

        @tf.function(jit_compile=jit, autograph=False)
        def step(gradient):
            optimizer.apply([gradient], [kernel])

        for gradient in gradients:
            step(gradient)
        return [variable.numpy() for variable in (kernel, *optimizer.variables)]

    ours = reached(BertAdamW(0.1, **settings))
    theirs = reached(keras.optimizers.AdamW(0.1, **settings))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=3e-5, atol=1e-7)


@pytest.mark.parametrize("kind", [BertAdamW, BertLamb, BertMuon])
def test_amsgrad_is_refused(kind):
    with pytest.raises(ValueError, match="amsgrad=True"):
        kind(0.1, amsgrad=True)


def test_biases_and_norms_do_not_decay():
    """With zero gradients, AdamW moves a weight by decay alone."""
    model = keras.Sequential([keras.layers.Dense(3), keras.layers.LayerNormalization()])
    model.build((None, 2))
    for weight in model.trainable_variables:
        weight.assign(np.ones(weight.shape))
    optimizer = bert_optimizer(0.1, 10, warmup_share=0, weight_decay=0.5)
    variables = model.trainable_variables
    optimizer.apply([np.zeros(v.shape, np.float32) for v in variables], variables)
    after = {
        variable.path.rsplit("/", 1)[-1]: variable.numpy() for variable in variables
    }
    np.testing.assert_allclose(after.pop("kernel"), 1 - 0.1 * 0.5, rtol=1e-6)
    assert set(after) == {"bias", "gamma", "beta"}
    for name, value in after.items():
        assert (value == 1).all(), name


def test_decay_stays_off_after_saving(small_pretrainer, batch, tmp_path):
    """Keras's config does not hold the names that do not decay."""
    optimizer = bert_optimizer(0.1, 10, weight_decay=0.5)
    optimizer.build(small_pretrainer.trainable_variables)
    small_pretrainer.compile(optimizer=optimizer)
    small_pretrainer.save(tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    norm = next(w for w in loaded.trainable_variables if w.path.endswith("gamma"))
    kernel = next(w for w in loaded.trainable_variables if w.path.endswith("kernel"))
    assert loaded.optimizer._use_weight_decay(kernel)
    assert not loaded.optimizer._use_weight_decay(norm)

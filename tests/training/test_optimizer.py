"""The schedule and the optimizer."""

import keras
import numpy as np
import pytest

from bert_keras import WarmupLinearDecay, bert_optimizer


def test_the_schedule_by_hand():
    """Peak 1, 4 steps of warmup of 12: rises by fifths, falls by eighths."""
    rates = [float(WarmupLinearDecay(1.0, 12, 4)(step)) for step in range(14)]
    rise, fall = [0.2, 0.4, 0.6, 0.8], [1 - n / 8 for n in range(9)]
    np.testing.assert_allclose(rates, [*rise, *fall, 0.0], atol=1e-6)


def test_without_warmup_it_starts_at_the_peak():
    assert float(WarmupLinearDecay(0.5, 10)(0)) == 0.5


@pytest.mark.parametrize("warmup", [-1, 10, 11])
def test_a_warmup_that_does_not_fit_is_refused(warmup):
    with pytest.raises(ValueError, match=f"warmup_steps={warmup} of total_steps=10"):
        WarmupLinearDecay(1.0, 10, warmup)


def test_serialization_keeps_every_option():
    optimizer = bert_optimizer(
        3e-4, 100, warmup_share=0.2, weight_decay=0.3, clip_norm=0.7
    )
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert again.get_config() == optimizer.get_config()
    schedule = keras.saving.deserialize_keras_object(
        again.get_config()["learning_rate"]
    )
    assert schedule.get_config() == {
        "peak": 3e-4,
        "total_steps": 100,
        "warmup_steps": 20,
    }
    assert again.weight_decay == 0.3
    assert again.global_clipnorm == 0.7


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

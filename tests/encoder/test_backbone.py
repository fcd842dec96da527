"""The encoder as a Keras model, and as a KerasHub backbone."""

import keras
import numpy as np
import pytest
from keras_nlp import models

from bert_keras import SIZES, BertBackbone
from bert_keras.config import size_named

OPTIONS = {
    "vocabulary_size": 20,
    "num_layers": 1,
    "num_heads": 4,
    "hidden_dim": 8,
    "intermediate_dim": 12,
    "dropout": 0.3,
    "max_sequence_length": 9,
    "num_segments": 3,
    "activation": "gelu_tanh",
    "initializer_range": 0.4,
    "layer_norm_epsilon": 1e-7,
}


def test_outputs(small_backbone, batch):
    outputs = small_backbone(batch(3, 5))
    assert outputs["sequence_output"].shape == (3, 5, 8)
    assert outputs["pooled_output"].shape == (3, 8)
    kernel, bias = small_backbone.pooler.get_weights()
    first = outputs["sequence_output"][:, 0].numpy()
    np.testing.assert_allclose(
        outputs["pooled_output"], np.tanh(first @ kernel + bias), atol=1e-6
    )


def test_padding_does_not_change_the_tokens(small_backbone, batch):
    padded = batch(4, 12, tokens=7)
    short = {name: value[:, :7] for name, value in padded.items()}
    long, alone = small_backbone(padded), small_backbone(short)
    np.testing.assert_allclose(
        long["sequence_output"][:, :7], alone["sequence_output"], atol=1e-5
    )
    np.testing.assert_allclose(long["pooled_output"], alone["pooled_output"], atol=1e-5)


def test_it_learns_where_a_word_stands(small_backbone, batch):
    """Exchanging two tokens changes the vectors by more than the exchange."""
    features = batch(1, 6)
    features["segment_ids"][:] = 0
    features["token_ids"][0] = [5, 6, 7, 8, 9, 10]
    swapped = {**features, "token_ids": features["token_ids"][:, [0, 2, 1, 3, 4, 5]]}
    before = small_backbone(features)["sequence_output"].numpy()
    after = small_backbone(swapped)["sequence_output"].numpy()
    assert np.abs(before - after[:, [0, 2, 1, 3, 4, 5]]).max() > 1e-2


def test_serialization_keeps_every_option(tmp_path, batch):
    backbone = BertBackbone(**OPTIONS)
    backbone.save(tmp_path / "b.keras")
    loaded = keras.saving.load_model(tmp_path / "b.keras")
    assert type(loaded) is BertBackbone
    config = loaded.get_config()
    assert {name: config[name] for name in OPTIONS} == OPTIONS
    features = batch(2, 4)
    np.testing.assert_array_equal(
        loaded(features)["pooled_output"], backbone(features)["pooled_output"]
    )


def test_a_preset_of_kerashub(tmp_path, batch):
    backbone = BertBackbone(**OPTIONS)
    backbone.save_to_preset(tmp_path / "preset")
    loaded = models.Backbone.from_preset(str(tmp_path / "preset"))
    assert isinstance(loaded, BertBackbone)
    features = batch(2, 4)
    np.testing.assert_array_equal(
        loaded(features)["pooled_output"], backbone(features)["pooled_output"]
    )


def test_kerashub_s_own_backbone_gives_the_same(batch):
    """The same weights in KerasHub's BertBackbone, which has the tanh form of GELU."""
    options = {**OPTIONS, "num_segments": 2, "layer_norm_epsilon": 1e-12}
    ours = BertBackbone(**options)
    peer = models.BertBackbone(
        vocabulary_size=20,
        num_layers=1,
        num_heads=4,
        hidden_dim=8,
        intermediate_dim=12,
        dropout=0.0,
        max_sequence_length=9,
        num_segments=2,
    )
    mine = {w.path: w.numpy() for w in ours.weights}
    names = {
        "token_embedding/embeddings": "embeddings/token_embedding/embeddings",
        "position_embedding/embeddings": "embeddings/position_embeddings",
        "segment_embedding/embeddings": "embeddings/segment_embeddings",
        "embeddings_layer_norm/": "embeddings/layer_norm/",
        "/self_attention_layer_norm/": "block_0/attention_norm/",
        "/attention_output/": "block_0/attention_output/",
        "/feedforward_intermediate_dense/": "block_0/intermediate/",
        "/feedforward_output_dense/": "block_0/output/",
        "/feedforward_layer_norm/": "block_0/output_norm/",
        "pooled_dense/": "pooler/",
    }
    for weight in peer.weights:
        leaf = weight.path.rsplit("/", 1)[-1]
        for number, part in enumerate(("query", "key", "value")):
            if f"/{part}/" in weight.path:
                fused = mine[f"block_0/query_key_value/{leaf}"]
                value = np.split(fused, 3, axis=-1)[number]
                break
        else:
            (name,) = (new for old, new in names.items() if old in weight.path)
            value = mine[name if name in mine else name + leaf]
        weight.assign(value.reshape(weight.shape))
    features = batch(3, 6, tokens=4)
    expected, answer = peer(features), ours(features)
    np.testing.assert_allclose(
        answer["pooled_output"], expected["pooled_output"], atol=1e-5
    )
    np.testing.assert_allclose(
        answer["sequence_output"], expected["sequence_output"], atol=1e-5
    )


def test_mixed_precision_computes_in_half_and_keeps_float32(batch):
    backbone = BertBackbone(**OPTIONS, dtype="mixed_bfloat16")
    assert backbone(batch(2, 4))["pooled_output"].dtype == "bfloat16"
    assert {weight.dtype for weight in backbone.weights} == {"float32"}


@pytest.mark.parametrize(
    ("name", "millions"), [("tiny", 4.4), ("mini", 11.2), ("small", 28.8)]
)
def test_sizes_are_the_published_ones(name, millions):
    """Parameters of Turc et al. 2019, table 1: 4.4, 11.3 and 29.1 M with all heads."""
    backbone = BertBackbone.from_size(name, 30522)
    assert backbone.count_params() / 1e6 == pytest.approx(millions, abs=0.05)


def test_base_and_large_keep_the_usual_scale():
    assert {SIZES[name].initializer_range for name in ("base", "large")} == {0.02}
    assert all(size.initializer_range >= 0.02 for size in SIZES.values())
    with pytest.raises(ValueError, match="'huge'.*tiny, mini, small, base, large"):
        size_named("huge")


def test_the_initial_scale_is_the_one_asked_for():
    backbone = BertBackbone(**{**OPTIONS, "vocabulary_size": 5000})
    table = backbone.token_embedding.embeddings.numpy()
    # A normal distribution cut at two deviations has 0.8796 of its deviation.
    assert table.std() == pytest.approx(0.4 * 0.8796, rel=0.02)
    kernels = [w.numpy() for w in backbone.weights if w.path.endswith("kernel")]
    assert len({kernel.flat[0] for kernel in kernels}) == len(kernels)

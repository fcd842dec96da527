"""The tables of names: complete, read both ways, and strict."""

import keras_nlp
import numpy as np
import pytest
from checkpoints.models import MAKERS, SIZES, check_same_weights, model_of

from bert_keras.checkpoints.mapping import fill, places, tensors_of, view
from bert_keras.checkpoints.names import GOOGLE, HUGGINGFACE, KERASHUB, Part

ENCODERS = {"huggingface": HUGGINGFACE, "google": GOOGLE, "kerashub": KERASHUB}
# The kinds of model whose heads each origin has a place for.
KINDS = [
    *(("huggingface", kind) for kind in MAKERS),
    *(("google", k) for k in MAKERS if k not in ("untied", "regressor", "tagger")),
    *(("kerashub", kind) for kind in ("embedder", "classifier")),
]
POOLER = "pooler.dense.weight"


@pytest.mark.parametrize(("origin", "kind"), KINDS)
def test_every_number_of_the_model_has_one_place(origin, kind):
    model, table = model_of(kind), ENCODERS[origin]
    counts = {v.path: np.zeros(v.shape, int) for v in model.weights}
    for place in places(model, table).values():
        part = view(counts[place.path], place.part, model.backbone.num_heads)
        assert np.shares_memory(part, counts[place.path])
        part += 1
    for path, count in counts.items():
        np.testing.assert_array_equal(count, 1, err_msg=path)


@pytest.mark.parametrize(("origin", "kind"), KINDS)
def test_out_and_in_again_is_the_identity(origin, kind):
    model, other = model_of(kind), model_of(kind)
    for variable in other.weights:
        variable.assign(np.zeros(variable.shape))
    fill(other, tensors_of(model, ENCODERS[origin]), ENCODERS[origin], "here")
    check_same_weights(model, other)


def test_the_names_of_kerashub_are_its_own():
    theirs = keras_nlp.models.BertBackbone(
        **{name: value for name, value in SIZES.items() if name != "initializer_range"}
    )
    made = tensors_of(model_of("embedder"), KERASHUB)
    assert {v.path: tuple(v.shape) for v in theirs.weights} == {
        name: array.shape for name, array in made.items()
    }


def test_views():
    array = np.arange(24).reshape(4, 6)
    np.testing.assert_array_equal(view(array, Part(third=1), 2), array[:, 2:4])
    key = view(array, Part(third=1, is_transposed=True), 2)
    np.testing.assert_array_equal(key, array[:, 2:4].T)
    np.testing.assert_array_equal(view(array, Part(heads=0), 2), array.reshape(2, 2, 6))
    heads = view(array, Part(third=2, heads=-1), 2)
    np.testing.assert_array_equal(heads, array[:, 4:].reshape(4, 2, 1))
    flipped = view(array[:, :2], Part(is_reversed=True, is_transposed=True), 2)
    np.testing.assert_array_equal(flipped, array[:, [1, 0]].T)


@pytest.fixture
def model():
    return model_of("pretrainer")


@pytest.fixture
def tensors(model):
    return tensors_of(model, HUGGINGFACE)


def test_all_that_does_not_fit_is_named(model, tensors):
    for name in ("encoder.layer.1.output.dense.bias", "cls.predictions.bias"):
        del tensors[name]
    tensors |= {"extra.one": np.zeros(2), "extra.two": np.zeros(2)}
    with pytest.raises(ValueError, match="here does not fit the model") as caught:
        fill(model, tensors, HUGGINGFACE, "here")
    message = str(caught.value)
    assert "tensors that have no place: extra.one, extra.two;" in message
    assert "no values for: encoder.layer.1.output.dense.bias, cls.pred" in message
    allow = ["extra.*", "cls.predictions.bias", "encoder.layer.?.output.dense.bias"]
    before = model.masked_lm_head.bias.numpy()
    fill(model, tensors, HUGGINGFACE, "here", allow=allow)
    np.testing.assert_array_equal(model.masked_lm_head.bias.numpy(), before)


def test_names_are_those_of_the_file(model, tensors):
    del tensors["pooler.dense.bias"]
    message = r"no values for: bert\.pooler\.dense\.bias; allowed"
    with pytest.raises(ValueError, match=message):
        fill(model, tensors, HUGGINGFACE, "here", shown=lambda name: f"bert.{name}")


@pytest.mark.parametrize("kind", ["masked_lm", "tagger", "span_finder", "embedder"])
def test_a_pooler_that_nothing_depends_on_may_be_missing(kind):
    model = model_of(kind)
    tensors = tensors_of(model, HUGGINGFACE)
    del tensors["pooler.dense.weight"], tensors["pooler.dense.bias"]
    fill(model, tensors, HUGGINGFACE, "here")


@pytest.mark.parametrize("kind", ["pretrainer", "classifier", "regressor"])
def test_a_pooler_that_is_used_may_not(kind):
    model = model_of(kind)
    tensors = tensors_of(model, HUGGINGFACE)
    del tensors[POOLER]
    with pytest.raises(ValueError, match=f"no values for: {POOLER}"):
        fill(model, tensors, HUGGINGFACE, "here")


def test_position_ids_hold_nothing(model, tensors):
    tensors["embeddings.position_ids"] = np.arange(16)[None]
    fill(model, tensors, HUGGINGFACE, "here")


def test_shapes_that_differ_are_both_named(model, tensors):
    before = model.backbone.pooler.kernel.numpy()
    tensors[POOLER] = np.zeros((8, 8))
    tensors["pooler.dense.bias"] = np.zeros(7)
    tensors["cls.predictions.transform.dense.weight"] = np.zeros((8, 9))
    with pytest.raises(ValueError, match="tensors of other shapes") as caught:
        fill(model, tensors, HUGGINGFACE, "here")
    assert "dense.bias (7,) for (8,)" in str(caught.value)
    assert "transform.dense.weight (8, 9) for (8, 8)" in str(caught.value)
    np.testing.assert_array_equal(model.backbone.pooler.kernel.numpy(), before)


def test_numbers_that_are_no_floats(model, tensors):
    tensors[POOLER] = tensors[POOLER].astype("int8")
    with pytest.raises(ValueError, match=f"Received: {POOLER} int8; allowed: float"):
        fill(model, tensors, HUGGINGFACE, "here")


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_floats_are_cast(model, tensors, dtype):
    cast = {name: array.astype(dtype) for name, array in tensors.items()}
    fill(model, cast, HUGGINGFACE, "here")
    for name, array in tensors_of(model, HUGGINGFACE).items():
        np.testing.assert_array_equal(array, cast[name].astype("float32"))

"""The check itself, the exporter that relies on it, and what is read back."""

import os

import keras
import numpy as np
import onnx
import pytest

from bert_keras import BertPretrainer
from bert_keras.export import exporter
from bert_keras.export.artefacts import KerasArtefact, open_artefact
from bert_keras.export.exporter import export_model
from bert_keras.export.masks import fill_masks
from bert_keras.export.onnx import ExportError
from bert_keras.export.parity import BATCHES, TEXTS, compare


class Changed:
    """An artefact whose answers are changed a little."""

    kind = "changed"

    def __init__(self, artefact, change, is_quantized=False):
        self.is_quantized = is_quantized
        self.preprocessor = artefact.preprocessor
        self._artefact, self._change = artefact, change

    def run(self, texts):
        outputs = {k: np.array(v) for k, v in self._artefact.run(texts).items()}
        self._change(outputs)
        return outputs


def test_every_artefact_gives_the_model_s_answers(exported):
    _, differences = exported
    assert set(differences) == {"saved_model", "text_model.onnx", "model.onnx"}
    for difference in differences.values():
        assert difference.wrong_ids == 0
        assert difference.largest < 1e-5
        assert difference.texts == sum(map(len, BATCHES)) > 2 * len(TEXTS)


def test_ids_and_floats_that_differ_are_seen(model):
    reference = KerasArtefact(model)

    def one_id(outputs):
        outputs["token_ids"][0, 0] += 1

    def one_float(outputs):
        outputs["pooled_output"][0, 0] += 2e-5

    def not_a_number(outputs):
        outputs["pooled_output"][0, 0] = np.nan

    def one_shape(outputs):
        outputs["token_ids"] = outputs["token_ids"][:, :-1]

    def one_less(outputs):
        del outputs["next_sentence_logits"]

    batches = [TEXTS[:3]]
    assert compare(reference, reference, batches).passes
    for change in (one_id, one_float, not_a_number, one_shape, one_less):
        difference = compare(reference, Changed(reference, change), batches)
        assert not difference.passes, change.__name__
    assert compare(reference, Changed(reference, one_id), batches).wrong_ids == 1


def test_int8_may_be_a_little_off(model):
    reference = KerasArtefact(model)

    def passes(change):
        other = Changed(reference, change, is_quantized=True)
        return compare(reference, other, [TEXTS]).passes

    def a_little(outputs):
        outputs["pooled_output"] += 1e-2

    def other_direction(outputs):
        outputs["pooled_output"][0] *= -1

    def other_pieces(outputs):
        outputs["masked_lm_logits"][0] *= -1

    def one_id(outputs):
        outputs["token_ids"][0, 0] += 1

    assert passes(a_little)
    for change in (other_direction, other_pieces, one_id):
        assert not passes(change), change.__name__


@pytest.fixture
def decided(model):
    """The model with a bias that decides its pieces: untrained, it is of two minds."""
    bias = model.masked_lm_head.bias
    before = bias.numpy()
    bias.assign(np.linspace(0, 20, len(before)))
    yield model
    bias.assign(before)


def test_int8_is_made_of_standard_ops_and_agrees(decided, tmp_path):
    model = decided
    differences = export_model(model, tmp_path, to=["onnx"], int8=True)
    difference = differences["text_model.int8.onnx"]
    assert difference.is_quantized
    assert difference.least_cosine >= 0.98
    graph = onnx.load(tmp_path / "text_model.int8.onnx").graph
    assert {node.domain for node in graph.node} == {""}
    tables = [array for array in graph.initializer if array.dims == [54, 16]]
    eight_bits = {onnx.TensorProto.INT8, onnx.TensorProto.UINT8}
    assert {array.data_type for array in tables} <= eight_bits
    assert len(tables) == 1
    assert open_artefact(tmp_path / "text_model.int8.onnx").is_quantized
    with pytest.raises(ValueError, match="int8 is a form of ONNX"):
        export_model(model, tmp_path, to=["saved-model"], int8=True)


def test_an_artefact_that_differs_is_not_kept(model, tmp_path, monkeypatch):
    def wrong(path):
        artefact = open_artefact(path)
        return Changed(artefact, lambda o: o["pooled_output"].__iadd__(1e-3))

    (tmp_path / "model.onnx").write_text("what was there before")
    monkeypatch.setattr(exporter, "open_artefact", wrong)
    with pytest.raises(ExportError, match="does not give the model's answers"):
        export_model(model, tmp_path, to=["onnx"])
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    assert (tmp_path / "model.onnx").read_text() == "what was there before"


def test_what_is_there_is_replaced(model, tmp_path):
    for _ in range(2):
        export_model(model, tmp_path, to=["saved-model"])
    assert os.listdir(tmp_path) == ["saved_model"]


@pytest.mark.parametrize(
    "policy",
    [pytest.param("mixed_float16", marks=pytest.mark.slow), "mixed_bfloat16"],
)
def test_o14_a_model_trained_in_half_precision_is_exported_in_float32(
    model, policy, tmp_path
):
    config = {**model.backbone.get_config(), "dtype": policy}
    half = BertPretrainer(type(model.backbone).from_config(config), model.preprocessor)
    half.set_weights(model.get_weights())
    export_model(half, tmp_path, to=["onnx"])
    difference = compare(KerasArtefact(model), open_artefact(tmp_path / "model.onnx"))
    assert difference.passes


@pytest.mark.parametrize("to", [["tflite"], []])
def test_unknown_formats_are_refused(model, tmp_path, to):
    with pytest.raises(ValueError, match="allowed: saved-model, onnx"):
        export_model(model, tmp_path, to=to)


def test_a_model_that_cannot_read_text_is_refused(model, tmp_path):
    with pytest.raises(ValueError, match="preprocessor=None"):
        export_model(BertPretrainer(model.backbone), tmp_path)


@pytest.mark.parametrize(
    "name", ["model.keras", "saved_model", "model.onnx", "text_model.onnx"]
)
class TestOpened:
    def test_by_content(self, exported, name):
        kinds = {
            "model.keras": "Keras",
            "saved_model": "SavedModel",
            "model.onnx": "ONNX from ids",
            "text_model.onnx": "ONNX from text",
        }
        assert open_artefact(exported[0] / name).kind == kinds[name]

    def test_it_fills_masks_as_the_model_does(self, model, exported, name):
        texts = ["the [MASK] fox", "no mask", "[MASK] [MASK]"]
        filled = fill_masks(open_artefact(exported[0] / name), texts, most=3)
        assert [len(masks) for masks in filled] == [1, 0, 2]
        features = model.preprocessor(texts[0])
        features = {key: value[None] for key, value in features.items()}
        logits = model.encode(features)["masked_lm_logits"][0, 2].numpy()
        logits = logits[: len(model.preprocessor.tokenizer.vocabulary)]
        best = np.argsort(-logits)[:3]
        shares = np.exp(logits) / np.exp(logits).sum()
        vocabulary = model.preprocessor.tokenizer.vocabulary
        assert [found.token for found in filled[0][0]] == [vocabulary[i] for i in best]
        for found, number in zip(filled[0][0], best, strict=True):
            assert found.probability == pytest.approx(shares[number], abs=1e-5)

    def test_a_pair(self, model, exported, name):
        artefact = open_artefact(exported[0] / name)
        if name == "text_model.onnx":
            with pytest.raises(ValueError, match="reads single texts"):
                artefact.run([("the", "fox")])
            return
        outputs = artefact.run([("the", "fox"), ("the quick", "")])
        ids = [[2, 5, 3, 10, 3, 0], [2, 5, 6, 7, 3, 3]]
        assert outputs["token_ids"].tolist() == ids
        expected = model.encode(model.preprocessor(["the", "the quick"], ["fox", ""]))
        np.testing.assert_allclose(
            outputs["pooled_output"], expected["pooled_output"], atol=1e-5
        )


def test_what_is_no_model_is_named(tmp_path):
    (tmp_path / "text.onnx").write_text("not a graph")
    (tmp_path / "notes.txt").write_text("notes")
    keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]).save(
        tmp_path / "other.keras"
    )
    with pytest.raises(FileNotFoundError, match="absent"):
        open_artefact(tmp_path / "absent")
    with pytest.raises(ValueError, match=r"text.onnx is not a whole ONNX file"):
        open_artefact(tmp_path / "text.onnx")
    with pytest.raises(ValueError, match=r"notes.txt is no model. Allowed: a .keras"):
        open_artefact(tmp_path / "notes.txt")
    with pytest.raises(ValueError, match="Only a model that carries its preprocessor"):
        open_artefact(tmp_path / "other.keras")

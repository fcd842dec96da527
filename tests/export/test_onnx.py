"""ONNX. Ids in the names (O01 ...) are those of the public reports."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import tensorflow as tf
from oracles import needs_data, reference_tokenizer

from bert_keras import BertPreprocessor, WordPieceTokenizer
from bert_keras.export.artefacts import codepoints_of
from bert_keras.export.onnx import ExportError, session, to_onnx, write_ids_onnx
from bert_keras.export.parity import TEXTS
from bert_keras.export.parts import ServedModel

FILES = ("model.onnx", "text_model.onnx")


@pytest.mark.parametrize("name", FILES)
def test_o01_o07_standard_ops_only(exported, name):
    folder, _ = exported
    made = onnx.load(folder / name)
    onnx.checker.check_model(made)
    assert {node.domain for node in made.graph.node} == {""}
    assert {opset.domain for opset in made.opset_import if opset.version > 0} <= {
        "",
        "ai.onnx.ml",
    }
    onnxruntime.InferenceSession(folder / name, providers=["CPUExecutionProvider"])


def test_o04_both_dimensions_are_free(model, exported):
    folder, _ = exported
    runtime = session(str(folder / "model.onnx"))
    inputs = {node.name: node for node in runtime.get_inputs()}
    assert set(inputs) == {"token_ids", "segment_ids", "padding_mask"}
    assert {node.type for node in inputs.values()} == {"tensor(int32)"}
    random = np.random.default_rng(0)
    for shape in ((1, 3), (4, 16), (3, 1)):
        feeds = {
            "token_ids": random.integers(0, 50, shape).astype(np.int32),
            "segment_ids": random.integers(0, 2, shape).astype(np.int32),
            "padding_mask": np.ones(shape, np.int32),
        }
        expected = model.encode(feeds)
        names = [node.name for node in runtime.get_outputs()]
        for output, value in zip(names, runtime.run(None, feeds), strict=True):
            np.testing.assert_allclose(value, expected[output], atol=1e-5)


@pytest.mark.parametrize("wrong", [-1, 54])
@pytest.mark.parametrize("name", ["token_ids", "segment_ids"])
def test_e01_an_id_outside_its_table_is_an_error_there_too(exported, wrong, name):
    runtime = session(str(exported[0] / "model.onnx"))
    names = ("token_ids", "segment_ids", "padding_mask")
    feeds = {key: np.zeros((1, 3), np.int32) for key in names}
    runtime.run(None, feeds)
    feeds[name][0, 1] = wrong
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument):
        runtime.run(None, feeds)


def test_o02_three_texts_at_once_are_three_texts_one_by_one(exported):
    folder, _ = exported
    runtime = session(str(folder / "text_model.onnx"))
    texts = ["the quick fox", "it's 안", "brown [MASK] the the the"]
    assert [node.name for node in runtime.get_inputs()] == ["codepoints"]
    together = runtime.run(
        ["token_ids", "pooled_output"], {"codepoints": codepoints_of(texts)}
    )
    for number, text in enumerate(texts):
        ids, pooled = runtime.run(
            ["token_ids", "pooled_output"], {"codepoints": codepoints_of([text])}
        )
        np.testing.assert_array_equal(together[0][number, : ids.shape[1]], ids[0])
        np.testing.assert_allclose(together[1][number], pooled[0], atol=1e-5)


@needs_data
def test_the_tokenizer_alone_gives_the_reference_s_ids(uncased):
    tokenizer = WordPieceTokenizer(uncased)
    signature = [tf.TensorSpec([None, None], tf.int32, name="codepoints")]
    made = to_onnx(lambda codepoints: tokenizer(codepoints), signature)
    assert made.ByteSize() < 2_000_000
    runtime = session(made.SerializeToString())
    expected = reference_tokenizer(uncased, lowercase=True)
    for texts in (TEXTS, TEXTS[:1], ["", ""], ["x"]):
        counts, ids = runtime.run(
            ["counts", "token_ids"], {"codepoints": codepoints_of(texts)}
        )
        encodings = expected.encode_batch(list(texts), add_special_tokens=False)
        for row, count, encoding in zip(ids, counts, encodings, strict=True):
            assert row[:count].tolist() == encoding.ids


def test_huggingface_names(model, tmp_path):
    path = tmp_path / "hf.onnx"
    write_ids_onnx(ServedModel.of(model), path, names="huggingface")
    runtime = session(str(path))
    assert {(node.name, node.type) for node in runtime.get_inputs()} == {
        (name, "tensor(int64)")
        for name in ("input_ids", "token_type_ids", "attention_mask")
    }
    names = {node.name for node in runtime.get_outputs()}
    assert {"last_hidden_state", "pooler_output"} <= names
    with pytest.raises(ValueError, match="names='bert'.*'kerashub', 'huggingface'"):
        write_ids_onnx(ServedModel.of(model), path, names="bert")


def test_o01_an_op_without_a_standard_form_is_an_error_and_leaves_no_file(
    model, tmp_path
):
    class Strange:
        preprocessor = model.preprocessor
        task = model.task

        def encode(self, features):
            # A matrix function that ONNX does not have.
            square = tf.cast(features["token_ids"], tf.float32)
            return {"sequence_output": tf.linalg.expm(square)}

    path = tmp_path / "strange.onnx"
    served = ServedModel(Strange(), BertPreprocessor(model.preprocessor.tokenizer, 9))
    with pytest.raises(ExportError):
        write_ids_onnx(served, path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", FILES)
def test_the_vocabulary_is_inside_the_file(model, exported, name):
    folder, _ = exported
    properties = {p.key: p.value for p in onnx.load(folder / name).metadata_props}
    stored = json.loads(properties["bert_keras"])
    assert stored["vocabulary"] == list(model.preprocessor.tokenizer.vocabulary)

"""SavedModel. Ids in the names (S01 ...) are those of the public reports."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

TEXTS = ["the quick fox.", "", "brown [MASK] zzz", "안 중 中"]

# Loads a SavedModel where no package but TensorFlow can be imported.
CHILD = """
import json, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        blocked = "tensorflow_text", "bert_keras", "keras_nlp", "keras_hub", "tf_keras"
        if name.split(".")[0] in blocked:
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
import tensorflow as tf
loaded = tf.saved_model.load(sys.argv[1])
text = tf.constant(json.loads(sys.argv[2]))
outputs = loaded.signatures["serving_default"](text=text)
print(json.dumps({name: value.numpy().tolist() for name, value in outputs.items()}))
assert not {"tensorflow_text", "bert_keras"} & set(sys.modules)
"""


def test_s01_it_loads_where_tensorflow_text_cannot_be_imported(model, exported):
    folder, _ = exported
    path = str(folder / "saved_model")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, path, json.dumps(TEXTS)],
        capture_output=True,
        check=True,
        text=True,
    )
    answer = json.loads(done.stdout)
    features = model.preprocessor(TEXTS)
    ids = features["token_ids"].numpy()
    ids = ids[:, : features["padding_mask"].numpy().sum(axis=1).max()]
    assert answer["token_ids"] == ids.tolist()
    assert set(answer) == {
        "token_ids",
        "sequence_output",
        "pooled_output",
        "masked_lm_logits",
        "next_sentence_logits",
    }
    expected = model.encode(model.preprocessor(TEXTS))["pooled_output"]
    np.testing.assert_allclose(answer["pooled_output"], expected, atol=1e-5)


def test_s01_every_op_is_built_into_tensorflow(exported):
    """Stock ops are those whose kernels TensorFlow's own library registers."""
    folder, _ = exported
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((folder / "saved_model" / "saved_model.pb").read_bytes())
    (meta_graph,) = saved.meta_graphs
    ops = {node.op for node in meta_graph.graph_def.node}
    for function in meta_graph.graph_def.library.function:
        ops |= {node.op for node in function.node_def}
    functions = {f.signature.name for f in meta_graph.graph_def.library.function}
    code = (
        "import sys; from tensorflow.python.framework import op_def_registry as r\n"
        "assert 'tensorflow_text' not in sys.modules\n"
        "print(*[op for op in sys.argv[1:] if r.get(op) is None])"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import tensorflow\n{code}", *sorted(ops - functions)],
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout.split() == []
    assert len(ops) > 30
    assert not any("PyFunc" in op or op.startswith("Lookup") for op in ops)


def test_s07_both_signatures_give_the_same(exported):
    folder, _ = exported
    loaded = tf.saved_model.load(str(folder / "saved_model"))
    text, ids = (loaded.signatures[n] for n in ("serving_default", "encode"))
    (spec,) = text.structured_input_signature[1].values()
    assert (spec.dtype, spec.shape.as_list()) == (tf.string, [None])
    specs = ids.structured_input_signature[1]
    assert {n: (s.dtype, s.shape.as_list()) for n, s in specs.items()} == {
        name: (tf.int32, [None, None])
        for name in ("token_ids", "segment_ids", "padding_mask")
    }
    answer = text(text=tf.constant(["the quick fox"]))
    features = {
        "token_ids": tf.constant([[2, 5, 6, 7, 10, 3]]),
        "segment_ids": tf.zeros([1, 6], tf.int32),
        "padding_mask": tf.ones([1, 6], tf.int32),
    }
    np.testing.assert_array_equal(answer["token_ids"], features["token_ids"])
    for name, value in ids(**features).items():
        np.testing.assert_allclose(answer[name], value, atol=1e-6)


def test_the_vocabulary_lies_beside_the_graph(model, exported):
    folder, _ = exported
    metadata = (folder / "saved_model" / "assets.extra" / "bert_keras.json").read_text()
    stored = json.loads(metadata)
    assert stored["vocabulary"] == list(model.preprocessor.tokenizer.vocabulary)
    assert stored["tokenizer"]["special_tokens_in_text"] == ["[MASK]"]
    assert stored["sequence_length"] == 32


def test_e01_p05_bad_ids_are_errors_there_too(exported):
    folder, _ = exported
    encode = tf.saved_model.load(str(folder / "saved_model")).signatures["encode"]

    def features(ids):
        ids = tf.constant(ids)
        return {
            "token_ids": ids,
            "segment_ids": tf.zeros_like(ids),
            "padding_mask": tf.ones_like(ids),
        }

    with pytest.raises(tf.errors.InvalidArgumentError, match="54 rows"):
        encode(**features([[2, 54, 3]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="position table"):
        encode(**features([[5] * 33]))

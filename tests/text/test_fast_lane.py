"""The fast lane: used where it may be, exact, and never exported."""

import keras
import pytest
import tensorflow as tf
from fuzz import fuzzed
from oracles import SMALL

from bert_keras import BertPreprocessor, BertPretrainer, WordPieceTokenizer
from bert_keras.export.parts import ServedModel
from bert_keras.text import fast_lane

pytest.importorskip("tensorflow_text")
TEXTS = ["The quick fox.", "", "brown quickz", "é the\u200b", "the\x00 fox\tthe", "\n"]
IDS = [[5, 6, 7, 10, 11], [], [8, 9, 1], [1, 5], [5, 10, 5], []]  # by hand, in SMALL


def ops_of(function):
    """Returns the types of all ops, those of functions that are called included."""
    graph = function.get_concrete_function().graph.as_graph_def()
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    return {node.op for node in nodes}


def ops_in_tf_data(tokenizer):
    found = []

    def record(text):
        answer = tokenizer(text)
        graph = tf.compat.v1.get_default_graph().as_graph_def()
        nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
        found.extend(node.op for node in nodes)
        return answer

    tf.data.Dataset.from_tensors(TEXTS).map(record)
    return set(found)


def is_fast(ops):
    return any("FastWordpiece" in op for op in ops)


def test_it_is_chosen_in_tf_data_alone(small_vocabulary):
    tokenizer = WordPieceTokenizer(small_vocabulary)
    in_graph = tf.function(lambda: tokenizer(tf.constant(TEXTS)))
    assert is_fast(ops_in_tf_data(tokenizer))
    assert not is_fast(ops_of(in_graph))
    asked = tokenizer.copy(engine="tf_text")
    assert is_fast(ops_of(tf.function(lambda: asked(tf.constant(TEXTS)))))
    assert not is_fast(ops_in_tf_data(tokenizer.copy(engine="stock")))


@pytest.mark.parametrize("engine", [None, "stock", "tf_text"])
def test_every_engine_gives_the_same(engine, small_vocabulary):
    tokenizer = WordPieceTokenizer(small_vocabulary, ragged=True, engine=engine)
    assert tokenizer(TEXTS)["token_ids"].to_list() == IDS
    for batch in (1, 2, 6):
        dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(batch).map(tokenizer)
        rows = [row for answer in dataset for row in answer["token_ids"].to_list()]
        assert rows == IDS
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).map(tokenizer)
    assert [row["token_ids"].numpy().tolist() for row in dataset] == IDS


@pytest.mark.parametrize(
    "options",
    [
        {"offsets": True},
        {"special_tokens_in_text": True},
        {"never_split": ["fox"]},
        {"split_unknown_characters": True},
    ],
    ids=str,
)
def test_options_that_it_does_not_know_use_the_stock_engine(options, small_vocabulary):
    tokenizer = WordPieceTokenizer(small_vocabulary, engine="tf_text", **options)
    assert not is_fast(ops_of(tf.function(lambda: tokenizer(tf.constant(TEXTS)))))


@pytest.mark.parametrize(
    "options",
    [
        {"lowercase": False},
        {"rules": "google", "id_offset": 7},
        {"max_characters_per_word": 4},
        {"sequence_length": 2, "special_tokens_mask": True},
        {"normalization": "NFC", "strip_accents": False},
    ],
    ids=str,
)
def test_options_that_it_knows(options):
    tokens = [*SMALL, *"abcdefghij-!~[", *("##" + c for c in "abcdefghij")]
    texts = [*TEXTS, *fuzzed(300, seed=11, limit=4)]
    tokenizer = WordPieceTokenizer(tokens, **options)
    expected = tokenizer(texts)
    answer = tokenizer.copy(engine="tf_text")(texts)
    assert is_fast(ops_in_tf_data(tokenizer))
    for name, value in expected.items():
        assert answer[name].numpy().tolist() == value.numpy().tolist()


def test_blank_tokens_and_tokens_with_spaces_never_match():
    tokens = [*SMALL, "", " ", "", "\t", "a b", "a"]
    tokenizer = WordPieceTokenizer(tokens, ragged=True, engine="tf_text")
    assert tokenizer(["a b", " \t ", "the"])["token_ids"].to_list() == [
        [17, 1],
        [],
        [5],
    ]


def test_it_is_never_exported(small_backbone, small_vocabulary, tmp_path):
    tokenizer = WordPieceTokenizer(small_vocabulary, engine="tf_text")
    model = BertPretrainer(small_backbone, BertPreprocessor(tokenizer, 16))
    served = ServedModel.of(model)
    assert served.preprocessor.tokenizer.engine == "stock"
    graph = tf.function(lambda: served.from_text(tf.constant(TEXTS)))
    assert not is_fast(ops_of(graph))


def test_a_plain_export_holds_stock_ops_only(small_vocabulary, tmp_path):
    text = keras.Input((), dtype="string")
    model = keras.Model(text, WordPieceTokenizer(small_vocabulary)(text))
    model.export(tmp_path / "saved", verbose=False)
    stored = (tmp_path / "saved" / "saved_model.pb").read_bytes()
    assert b"FastWordpiece" not in stored


def test_without_tensorflow_text(monkeypatch, small_vocabulary):
    monkeypatch.setattr(fast_lane, "is_installed", lambda: False)
    with pytest.raises(ValueError, match="tensorflow_text is not installed"):
        WordPieceTokenizer(small_vocabulary, engine="tf_text")
    tokenizer = WordPieceTokenizer(small_vocabulary)
    assert not is_fast(ops_in_tf_data(tokenizer))

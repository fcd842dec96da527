"""Hugging Face folders, old and new, of every kind of model; and back."""

import json

import numpy as np
import pytest
from checkpoints.models import (
    MAKERS,
    TEXTS,
    TOKENS,
    check_same_text,
    check_same_weights,
    model_of,
)
from checkpoints.torch_files import state_of, write_legacy, write_zip
from safetensors.numpy import load_file, save_file

from bert_keras.checkpoints.load import is_checkpoint, load_checkpoint
from bert_keras.checkpoints.save import save_checkpoint

WEIGHTS, CONFIG = "model.safetensors", "config.json"
ARCHITECTURES = {
    "pretrainer": "BertForPreTraining",
    "masked_lm": "BertForMaskedLM",
    "untied": "BertForPreTraining",
    "classifier": "BertForSequenceClassification",
    "regressor": "BertForSequenceClassification",
    "tagger": "BertForTokenClassification",
    "span_finder": "BertForQuestionAnswering",
    "embedder": "BertModel",
}


@pytest.fixture
def written(tmp_path):
    """Returns a function that makes a folder, and tensors that may be changed."""

    def write(kind: str, **options):
        model = model_of(kind, **options)
        save_checkpoint(model, tmp_path / "folder")
        return model, tmp_path / "folder", load_file(tmp_path / "folder" / WEIGHTS)

    return write


def change(path, **fields):
    """Changes fields of a JSON file; None takes a field away."""
    found = json.loads(path.read_text("utf-8")) | fields
    found = {name: value for name, value in found.items() if value is not None}
    path.write_text(json.dumps(found), "utf-8")


@pytest.mark.parametrize("kind", MAKERS)
def test_out_and_in_again(written, kind):
    names = ["[MASK]"] if kind in ("pretrainer", "masked_lm", "untied") else False
    text = {"lowercase": False, "special_tokens_in_text": names}
    model, folder, _ = written(kind, text=text, activation="gelu_tanh")
    assert is_checkpoint(folder)
    again = load_checkpoint(folder)
    check_same_weights(model, again)
    check_same_text(model, again)
    old, new = model.backbone.get_config(), again.backbone.get_config()
    assert {**old, "name": ""} == {**new, "name": ""}
    if kind not in ("pretrainer", "masked_lm", "untied"):
        assert model.arguments == again.arguments
        assert model.task == again.task
    else:
        assert (model.tied, model.next_sentence) == (again.tied, again.next_sentence)


@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_written(written, kind):
    model, folder, tensors = written(kind)
    config = json.loads((folder / CONFIG).read_text("utf-8"))
    assert config["architectures"] == [ARCHITECTURES[kind]]
    expected = {
        "model_type": "bert",
        "vocab_size": len(TOKENS),
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.2,
        "attention_probs_dropout_prob": 0.2,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 16,
        "type_vocab_size": 3,
        "initializer_range": 0.05,
        "pad_token_id": 0,
        "tie_word_embeddings": kind != "untied",
    }
    assert expected.items() <= config.items()
    prefix = "" if kind == "embedder" else "bert."
    block = model.backbone.blocks[1]
    kernel, bias = (v.numpy() for v in block._query_key_value.weights)
    name = f"{prefix}encoder.layer.1.attention.self.key"
    np.testing.assert_array_equal(tensors[f"{name}.weight"], kernel[:, 8:16].T)
    np.testing.assert_array_equal(tensors[f"{name}.bias"], bias[8:16])
    assert ("cls.predictions.decoder.weight" in tensors) == (kind == "untied")
    if kind == "pretrainer":
        ours = model.next_sentence_head.bias.numpy()
        theirs = tensors["cls.seq_relationship.bias"]
        np.testing.assert_array_equal(theirs, ours[::-1])
    labels = {"classifier": ["no", "yes", "ja"], "regressor": ["LABEL_0"]}.get(kind)
    if labels:
        assert config["id2label"] == {str(n): label for n, label in enumerate(labels)}
        assert config["label2id"] == {label: n for n, label in enumerate(labels)}
    if kind == "regressor":
        assert config["problem_type"] == "regression"


@pytest.mark.parametrize("write", [write_zip, write_legacy])
def test_old_names_in_an_old_file(written, write):
    model, folder, tensors = written("pretrainer")
    old = {}
    for name, array in tensors.items():
        if "LayerNorm" in name:
            name = name.replace("weight", "gamma").replace("bias", "beta")
        old[name] = array
    table = tensors["bert.embeddings.word_embeddings.weight"]
    old["cls.predictions.decoder.weight"] = table.copy()
    old["bert.embeddings.position_ids"] = np.arange(16)[None]
    (folder / WEIGHTS).unlink()
    write(state_of(old), folder / "pytorch_model.bin")
    change(folder / CONFIG, model_type=None, architectures=None)
    check_same_weights(model, load_checkpoint(folder))


@pytest.mark.parametrize("kind", ["classifier", "embedder"])
def test_with_the_prefix_and_without(written, kind):
    model, folder, tensors = written(kind)
    other = {
        name.removeprefix("bert.")
        if name.startswith("bert.")
        else f"bert.{name}"
        if kind == "embedder"
        else name: array
        for name, array in tensors.items()
    }
    save_file(other, folder / WEIGHTS)
    check_same_weights(model, load_checkpoint(folder))


def test_a_tensor_under_two_names(written):
    _, folder, tensors = written("classifier")
    tensors["pooler.dense.bias"] = tensors["bert.pooler.dense.bias"]
    save_file(tensors, folder / WEIGHTS)
    message = "Received: (bert.)?pooler.dense.bias and (bert.)?pooler.dense.bias; allow"
    with pytest.raises(ValueError, match=message):
        load_checkpoint(folder)


def test_twins_that_are_equal_are_tied(written):
    model, folder, tensors = written("pretrainer")
    table = tensors["bert.embeddings.word_embeddings.weight"]
    tensors["cls.predictions.decoder.weight"] = table.copy()
    bias = tensors.pop("cls.predictions.bias")
    tensors["cls.predictions.decoder.bias"] = bias
    save_file(tensors, folder / WEIGHTS)
    again = load_checkpoint(folder)
    check_same_weights(model, again)
    assert again.masked_lm_head.token_embedding is again.backbone.token_embedding


def test_the_output_table_alone_is_the_token_table(written):
    model, folder, tensors = written("masked_lm")
    table = tensors.pop("bert.embeddings.word_embeddings.weight")
    tensors["cls.predictions.decoder.weight"] = table
    save_file(tensors, folder / WEIGHTS)
    check_same_weights(model, load_checkpoint(folder))


def test_twins_that_differ_are_not_tied(written):
    _, folder, tensors = written("pretrainer")
    other = tensors["bert.embeddings.word_embeddings.weight"] + 1
    tensors["cls.predictions.decoder.weight"] = other
    save_file(tensors, folder / WEIGHTS)
    again = load_checkpoint(folder)
    assert not again.tied
    table = again.masked_lm_head.token_embedding.embeddings
    np.testing.assert_array_equal(table.numpy(), other)
    tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"] + 1
    save_file(tensors, folder / WEIGHTS)
    with pytest.raises(ValueError, match="two biases of the masked-LM head"):
        load_checkpoint(folder)


def test_a_missing_tensor_has_the_name_of_the_file(written):
    _, folder, tensors = written("classifier")
    del tensors["bert.encoder.layer.0.attention.self.value.bias"]
    save_file(tensors, folder / WEIGHTS)
    name = r"bert\.encoder\.layer\.0\.attention\.self\.value\.bias"
    with pytest.raises(ValueError, match=f"no values for: {name}; allowed"):
        load_checkpoint(folder)
    load_checkpoint(folder, allow=["bert.encoder.layer.0.attention.self.value.bias"])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model_type", "roberta"),
        ("position_embedding_type", "relative_key"),
        ("is_decoder", True),
        ("add_cross_attention", True),
        ("pruned_heads", {"0": [1]}),
        ("hidden_act", "relu"),
        ("hidden_size", "8"),
        ("num_hidden_layers", 0),
        ("vocab_size", None),
        ("layer_norm_eps", -1.0),
        ("problem_type", "multi_label_classification"),
        ("problem_type", "regression"),
        ("architectures", ["BertForMultipleChoice"]),
        ("architectures", None),
        ("id2label", {"0": "no", "1": "yes"}),
    ],
)
def test_what_cannot_be_loaded_is_named(written, field, value):
    _, folder, _ = written("classifier")
    change(folder / CONFIG, **{field: value})
    with pytest.raises(ValueError, match=f"config.json .*Received: {field}=.*; allow"):
        load_checkpoint(folder)


@pytest.mark.parametrize("name", ["gelu_new", "gelu_pytorch_tanh"])
def test_the_tanh_form_of_gelu(written, name):
    _, folder, _ = written("tagger")
    change(folder / CONFIG, hidden_act=name)
    assert load_checkpoint(folder).backbone.activation == "gelu_tanh"


def test_two_rates_of_dropout(written):
    _, folder, _ = written("tagger")
    change(folder / CONFIG, attention_probs_dropout_prob=0.5)
    message = "hidden_dropout_prob=0.2, attention_.*=0.5; used for both: 0.2"
    with pytest.warns(UserWarning, match=message):
        model = load_checkpoint(folder)
    assert model.backbone.dropout == 0.2


def test_labels_that_only_count(written):
    _, folder, _ = written("classifier")
    change(folder / CONFIG, id2label={"0": "LABEL_0", "1": "LABEL_1"})
    assert load_checkpoint(folder).task.labels == ("LABEL_0", "LABEL_1", "LABEL_2")


def test_a_head_of_one_output_is_a_regressor(written):
    model, folder, _ = written("regressor")
    change(folder / CONFIG, problem_type=None, id2label=None, classifier_dropout=None)
    again = load_checkpoint(folder)
    check_same_weights(model, again)
    assert again.arguments["dropout"] == 0.2  # the encoder's


@pytest.mark.parametrize("name", [CONFIG, "tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", ["{", "[1]"])
def test_a_damaged_json_file(written, name, content):
    _, folder, _ = written("classifier")
    (folder / name).write_text(content, "utf-8")
    with pytest.raises(ValueError, match=name):
        load_checkpoint(folder)


def test_labels_of_a_wrong_type(written):
    _, folder, _ = written("classifier")
    change(folder / CONFIG, id2label=["a", "b", "c"])
    with pytest.raises(ValueError, match="folder holds a malformed file"):
        load_checkpoint(folder)


class TestPooling:
    """What sentence-transformers writes beside the encoder."""

    def test_without_it_the_mean(self, written):
        _, folder, _ = written("embedder")
        (folder / "modules.json").unlink()
        arguments = {"pooling": "mean", "normalize": False}
        assert load_checkpoint(folder).arguments == arguments

    def test_an_encoder_in_a_folder_of_its_own(self, written, tmp_path):
        model, folder, _ = written("embedder")
        modules = json.loads((folder / "modules.json").read_text("utf-8"))
        modules[0]["path"] = "0_Transformer"
        outer = tmp_path / "outer"
        outer.mkdir()
        (outer / "modules.json").write_text(json.dumps(modules), "utf-8")
        (folder / "1_Pooling").rename(outer / "1_Pooling")
        folder.rename(outer / "0_Transformer")
        assert is_checkpoint(outer)
        check_same_weights(model, load_checkpoint(outer))

    @pytest.mark.parametrize("name", ["Dense", "Pooling", "WeightedLayerPooling"])
    def test_a_module_that_is_not_there(self, written, name):
        _, folder, _ = written("embedder")
        modules = json.loads((folder / "modules.json").read_text("utf-8"))
        modules[2]["type"] = f"sentence_transformers.models.{name}"
        (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
        with pytest.raises(ValueError, match=rf"type='sentence\S*{name}'; allowed: T"):
            load_checkpoint(folder)

    @pytest.mark.parametrize(
        "modes", [{"max_tokens": True}, {"mean_tokens": True, "cls_token": True}, {}]
    )
    def test_a_pooling_that_is_not_there(self, written, modes):
        _, folder, _ = written("embedder")
        fields = {f"pooling_mode_{name}": value for name, value in modes.items()}
        (folder / "1_Pooling" / CONFIG).write_text(json.dumps(fields), "utf-8")
        with pytest.raises(ValueError, match="allowed: mean_tokens, cls_token"):
            load_checkpoint(folder)

    def test_its_length_counts(self, written):
        _, folder, _ = written("embedder")
        change(folder / "sentence_bert_config.json", max_seq_length=9)
        assert load_checkpoint(folder).preprocessor.sequence_length == 9


def test_v06_more_tokens_than_rows(written):
    _, folder, tensors = written("tagger")
    name = "bert.embeddings.word_embeddings.weight"
    save_file({**tensors, name: tensors[name][:10]}, folder / WEIGHTS)
    change(folder / CONFIG, vocab_size=10)
    with pytest.raises(ValueError, match=rf"{len(TOKENS)} tokens and 10 rows"):
        load_checkpoint(folder)


def test_e08_tied_is_one_variable(written):
    _, folder, _ = written("pretrainer")
    model = load_checkpoint(folder)
    table = model.backbone.token_embedding.embeddings
    assert sum(v is table for v in model.weights) == 1
    features = model.preprocessor(list(TEXTS))
    before = model.encode(features)["masked_lm_logits"].numpy()
    values = table.numpy()
    values[13] = 7.0  # in none of the texts
    table.assign(values)
    after = model.encode(features)["masked_lm_logits"].numpy()
    assert (before[..., 13] != after[..., 13]).all()
    np.testing.assert_array_equal(before[..., :13], after[..., :13])


class TestSaving:
    def test_a_model_without_text(self, tmp_path):
        model = model_of("tagger")
        model.preprocessor = None
        save_checkpoint(model, tmp_path / "folder")
        names = {path.name for path in (tmp_path / "folder").iterdir()}
        assert names == {CONFIG, WEIGHTS}
        assert load_checkpoint(tmp_path / "folder").preprocessor is None

    def test_an_empty_folder_is_replaced(self, tmp_path):
        save_checkpoint(model_of("tagger"), tmp_path)
        assert is_checkpoint(tmp_path)

    def test_a_folder_that_is_not_empty_is_not(self, tmp_path):
        (tmp_path / "mine").write_text("", "utf-8")
        with pytest.raises(ValueError, match="There is something already. Received: "):
            save_checkpoint(model_of("tagger"), tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["mine"]

    def test_of_a_failure_nothing_is_left(self, tmp_path):
        model = model_of("tagger", text={"rules": "google"})
        with pytest.raises(ValueError, match="Received: rules='google'; allowed: rul"):
            save_checkpoint(model, tmp_path / "folder")
        assert not list(tmp_path.iterdir())

    def test_an_unknown_format(self, tmp_path):
        with pytest.raises(ValueError, match="to='onnx'; allowed: 'huggingface', 'ker"):
            save_checkpoint(model_of("tagger"), tmp_path / "folder", to="onnx")

    def test_a_model_of_others(self, small_backbone, tmp_path):
        with pytest.raises(ValueError, match="Received: BertBackbone; allowed: BertPr"):
            save_checkpoint(small_backbone, tmp_path / "folder")


class TestLoading:
    def test_nothing_is_there(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="There is no checkpoint"):
            load_checkpoint(tmp_path / "none")
        assert not is_checkpoint(tmp_path / "none")

    def test_something_else_is_there(self, tmp_path):
        (tmp_path / "saved_model.pb").write_bytes(b"")
        with pytest.raises(
            ValueError, match="is no checkpoint. Allowed: a folder with"
        ):
            load_checkpoint(tmp_path)
        assert not is_checkpoint(tmp_path)

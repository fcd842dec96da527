"""Checkpoints of 2018: `bert_config.json`, `vocab.txt`, `bert_model.ckpt`."""

import json

import numpy as np
import pytest
import tensorflow as tf
from checkpoints.models import SIZES, TOKENS, check_same_weights, model_of

from bert_keras import BertPretrainer, Vocabulary
from bert_keras.checkpoints.load import is_checkpoint, load_checkpoint
from bert_keras.checkpoints.mapping import tensors_of
from bert_keras.checkpoints.names import GOOGLE
from bert_keras.checkpoints.save import save_checkpoint

FIELDS = {
    "attention_probs_dropout_prob": 0.2,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.2,
    "hidden_size": SIZES["hidden_dim"],
    "initializer_range": SIZES["initializer_range"],
    "intermediate_size": SIZES["intermediate_dim"],
    "max_position_embeddings": SIZES["max_sequence_length"],
    "num_attention_heads": SIZES["num_heads"],
    "num_hidden_layers": SIZES["num_layers"],
    "type_vocab_size": SIZES["num_segments"],
    "vocab_size": SIZES["vocabulary_size"],
}
OPTIMIZER = {"global_step": np.int64(7)}


def save(folder, tensors: dict, name: str = "bert_model.ckpt") -> None:
    """Writes variables as TensorFlow 1 did."""
    names, values = zip(*tensors.items(), strict=True)
    tf.raw_ops.SaveV2(
        prefix=str(folder / name),
        tensor_names=list(names),
        shape_and_slices=[""] * len(names),
        tensors=list(values),
    )


@pytest.fixture
def made(tmp_path):
    """Returns a function that makes a model and its folder of 2018."""

    def make(kind="pretrainer", drop=(), extra=None, tokens=TOKENS, **fields):
        model = model_of(kind)
        tensors = tensors_of(model, GOOGLE)
        slots = {
            f"{name}/{slot}": np.zeros_like(array)
            for name, array in tensors.items()
            for slot in ("adam_m", "adam_v")
        }
        tensors = slots | OPTIMIZER | tensors | (extra or {})
        folder = tmp_path / "folder"
        folder.mkdir()
        save(folder, {n: a for n, a in tensors.items() if n not in drop})
        text = json.dumps(FIELDS | fields)
        (folder / "bert_config.json").write_text(text, "utf-8")
        Vocabulary(tokens).write(folder / "vocab.txt")
        return model, folder

    return make


@pytest.mark.parametrize(
    "kind", ["pretrainer", "masked_lm", "span_finder", "classifier"]
)
def test_e10_everything_is_used(made, kind):
    model, folder = made(kind)
    assert is_checkpoint(folder)
    again = load_checkpoint(folder)
    check_same_weights(model, again)
    assert again.backbone.dropout == 0.2
    assert again.backbone.activation == "gelu"


def test_the_encoder_alone(made):
    model, folder = made("embedder")
    again = load_checkpoint(folder)
    check_same_weights(model, again)
    assert again.arguments == {"pooling": "mean", "normalize": False}


def test_e10_what_is_missing_is_named(made):
    name = "bert/encoder/layer_1/attention/output/LayerNorm/beta"
    _, folder = made(drop=[name], extra={"bert/odd": np.zeros(2, "float32")})
    message = f"bert_model.ckpt .*no place: bert/odd; no values for: {name}; allowed"
    with pytest.raises(ValueError, match=message):
        load_checkpoint(folder)
    load_checkpoint(folder, allow=[name, "bert/odd"])


def test_e10_base_has_199_variables():
    model = BertPretrainer(model_of("embedder", num_layers=12).backbone)
    names = tensors_of(model, GOOGLE)
    assert sum(name.startswith("bert/") for name in names) == 199
    assert len(names) == 206


def test_classes_are_next_sentence_the_other_way_round(made):
    model, folder = made()
    reader = tf.train.load_checkpoint(str(folder / "bert_model.ckpt"))
    theirs = reader.get_tensor("cls/seq_relationship/output_bias")
    ours = load_checkpoint(folder).next_sentence_head.bias.numpy()
    np.testing.assert_array_equal(ours, theirs[::-1])
    np.testing.assert_array_equal(ours, model.next_sentence_head.bias.numpy())


@pytest.mark.filterwarnings("ignore:The vocabulary looks cased")
@pytest.mark.parametrize(
    ("tokens", "fields", "lowercase"),
    [
        (TOKENS, {}, True),
        ([*TOKENS[:-2], "The", "Fox"], {}, False),
        (TOKENS, {"do_lower_case": False}, False),
        ([*TOKENS[:-2], "The", "Fox"], {"do_lower_case": True}, True),
    ],
)
def test_n19_the_casing(made, tokens, fields, lowercase):
    """Not that of the folder's name, which says nothing of what is in it."""
    _, folder = made(tokens=tokens, **fields)
    renamed = folder.rename(folder.with_name("uncased_L-2_H-8_A-2"))
    options = load_checkpoint(renamed).preprocessor.tokenizer.options
    assert (options.lowercase, options.strip_accents) == (lowercase, lowercase)
    assert options.rules == "google"
    assert options.max_characters_per_word == 200
    assert options.special_tokens_in_text == ("[MASK]",)


def test_the_latest_of_several(made):
    model, folder = made()
    for path in folder.glob("bert_model.ckpt.*"):
        path.rename(path.with_name(path.name.replace("bert_model", "model.ckpt-20")))
    names = {path.name for path in folder.iterdir()}
    assert "model.ckpt-20.ckpt.index" in names
    save(folder, {"other": np.zeros(2)}, "model.ckpt-10")
    with pytest.raises(ValueError, match=r"Received: model.ckpt-10, model.ckpt-20"):
        load_checkpoint(folder)
    state = 'model_checkpoint_path: "model.ckpt-20.ckpt"\n'
    (folder / "checkpoint").write_text(state, "utf-8")
    check_same_weights(model, load_checkpoint(folder))


def test_there_is_no_checkpoint(made):
    _, folder = made()
    (folder / "bert_model.ckpt.index").unlink()
    with pytest.raises(ValueError, match="must hold one checkpoint. Received: none"):
        load_checkpoint(folder)


@pytest.mark.parametrize("end", ["index", "data-00000-of-00001"])
@pytest.mark.parametrize("share", [0, 0.5, 0.99])
def test_a_file_that_is_cut_off(made, end, share):
    _, folder = made()
    path = folder / f"bert_model.ckpt.{end}"
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ValueError, match="bert_model.ckpt is no whole checkpoint: "):
        load_checkpoint(folder)


def test_the_data_are_gone(made):
    _, folder = made()
    (folder / "bert_model.ckpt.data-00000-of-00001").unlink()
    with pytest.raises(ValueError, match="bert_model.ckpt is no whole checkpoint: "):
        load_checkpoint(folder)


def test_to_hugging_face(made, tmp_path):
    """Rules of 2018 are not those of Hugging Face: that must be said to be meant."""
    model, folder = made()
    loaded = load_checkpoint(folder)
    with pytest.raises(ValueError, match="rules='google'"):
        save_checkpoint(loaded, tmp_path / "out")
    loaded = load_checkpoint(folder, rules="huggingface")
    options = loaded.preprocessor.tokenizer.options
    assert (options.rules, options.max_characters_per_word) == ("huggingface", 100)
    assert options.special_tokens_in_text == ("[MASK]",)
    assert loaded.preprocessor.sequence_length == 16
    save_checkpoint(loaded, tmp_path / "out")
    check_same_weights(model, load_checkpoint(tmp_path / "out"))

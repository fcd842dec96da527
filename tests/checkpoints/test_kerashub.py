"""Preset folders: KerasHub's loaded here, and ours loaded there."""

import json
import subprocess
import sys

import keras_nlp
import numpy as np
import pytest
from checkpoints.models import SIZES, TEXTS, TOKENS, check_same_weights, model_of
from oracles import needs_data, vocabulary_path

from bert_keras import BertPreprocessor, Vocabulary, WordPieceTokenizer
from bert_keras.checkpoints.load import is_checkpoint, load_checkpoint
from bert_keras.checkpoints.save import save_checkpoint
from bert_keras.tasks.classifier import BertClassifier
from bert_keras.tasks.embedder import BertEmbedder

CLOSE = {"rtol": 0, "atol": 1e-5}

# Runs where this package is not imported; its classes are KerasHub's own.
CHILD = """
import sys
import numpy as np
import keras_nlp

folder, features, out, kind = sys.argv[1:]
features = dict(np.load(features))
backbone = keras_nlp.models.Backbone.from_preset(folder)
tokenizer = keras_nlp.models.Tokenizer.from_preset(folder)
assert type(backbone).__module__.startswith("keras_hub."), type(backbone)
assert type(tokenizer).__name__ == "BertTokenizer"
outputs = dict(backbone(features))
if kind == "classifier":
    classifier = keras_nlp.models.TextClassifier.from_preset(folder)
    outputs["label_logits"] = classifier(features)
texts = ["the quick fox.", "quick brown"]
outputs["first"], outputs["second"] = (np.array(tokenizer(t)) for t in texts)
np.savez(out, **{name: np.array(value) for name, value in outputs.items()})
assert not any(name.split(".")[0] == "bert_keras" for name in sys.modules)
"""


def their_backbone() -> keras_nlp.models.BertBackbone:
    sizes = {name: n for name, n in SIZES.items() if name != "initializer_range"}
    made = keras_nlp.models.BertBackbone(**sizes)
    random = np.random.default_rng(1)
    for variable in made.weights:
        variable.assign(random.normal(0, 0.2, variable.shape))
    return made


def their_tokenizer(**options) -> keras_nlp.models.BertTokenizer:
    return keras_nlp.models.BertTokenizer(TOKENS, **options)


def features_of(model) -> dict:
    features = model.preprocessor(list(TEXTS))
    return {name: value.numpy() for name, value in features.items()}


def check_same_answers(ours, theirs, features: dict) -> None:
    """Fails unless two encoders agree where there is a token."""
    one, other = ours.backbone(features), theirs(features)
    for name, is_kept in (
        ("sequence_output", features["padding_mask"] == 1),
        ("pooled_output", slice(None)),
    ):
        found, expected = one[name].numpy()[is_kept], other[name].numpy()[is_kept]
        np.testing.assert_allclose(found, expected, **CLOSE)


def test_a_backbone_and_its_tokenizer(tmp_path):
    theirs = their_backbone()
    theirs.save_to_preset(str(tmp_path))
    tokenizer = their_tokenizer(lowercase=True, special_tokens_in_strings=True)
    tokenizer.save_to_preset(str(tmp_path))
    assert is_checkpoint(tmp_path)
    model = load_checkpoint(tmp_path)
    assert isinstance(model, BertEmbedder)
    assert model.backbone.activation == "gelu_tanh"
    assert model.backbone.dropout == 0.2
    check_same_answers(model, theirs, features_of(model))
    options = model.preprocessor.tokenizer.options
    assert (options.lowercase, options.strip_accents) == (True, False)  # it holds é
    assert options.special_tokens_in_text is True
    assert model.preprocessor.sequence_length == 16
    # KerasHub itself would read the line that is U+2028 as a blank one.
    assert model.preprocessor.tokenizer.vocabulary.tokens == tuple(TOKENS)


@pytest.mark.parametrize("activation", [None, "softmax"])
def test_a_classifier(tmp_path, activation):
    preprocessor = keras_nlp.models.BertTextClassifierPreprocessor(
        their_tokenizer(), sequence_length=9
    )
    theirs = keras_nlp.models.BertTextClassifier(
        their_backbone(), 3, preprocessor=preprocessor, activation=activation
    )
    theirs.save_to_preset(str(tmp_path))
    model = load_checkpoint(tmp_path)
    assert isinstance(model, BertClassifier)
    assert model.task.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert model.preprocessor.sequence_length == 9
    assert not model.preprocessor.tokenizer.options.lowercase
    features = features_of(model)
    name = "label_probabilities" if activation else "label_logits"
    found = model.encode(features)[name].numpy()
    np.testing.assert_allclose(found, theirs(features).numpy(), **CLOSE)


def test_a_classifier_with_another_activation(tmp_path):
    theirs = keras_nlp.models.BertTextClassifier(
        their_backbone(), 3, activation="sigmoid"
    )
    theirs.save_to_preset(str(tmp_path))
    with pytest.raises(ValueError, match="Received: activation='sigmoid'; allowed: 'l"):
        load_checkpoint(tmp_path)


def test_a_masked_lm_head_is_another_one(tmp_path):
    """Its norm has an epsilon of its own, and its GELU is not the encoder's."""
    keras_nlp.models.BertMaskedLM(their_backbone()).save_to_preset(str(tmp_path))
    with pytest.raises(ValueError, match=r"task.json.*='keras_hub>BertMaskedLM'; allo"):
        load_checkpoint(tmp_path)


@needs_data
def test_n01_accents_go_where_the_vocabulary_has_none(tmp_path):
    tokens = list(Vocabulary.read(vocabulary_path("uncased")))
    backbone = keras_nlp.models.BertBackbone(len(tokens), 1, 1, 2, 2)
    backbone.save_to_preset(str(tmp_path))
    tokenizer = keras_nlp.models.BertTokenizer(tokens, lowercase=True)
    tokenizer.save_to_preset(str(tmp_path))
    with pytest.warns(UserWarning, match="Accents are removed, as in 2018"):
        model = load_checkpoint(tmp_path)
    ids = model.preprocessor.tokenizer("café naïve")["token_ids"].numpy().tolist()
    assert ids == [7668, 15743]


@pytest.mark.parametrize("kind", ["embedder", "classifier"])
def test_in_a_process_without_this_package(tmp_path, kind):
    model = model_of(kind, text={"lowercase": False}, activation="gelu_tanh")
    save_checkpoint(model, tmp_path / "preset", to="kerashub")
    features = features_of(model)
    np.savez(tmp_path / "features.npz", **features)
    arguments = [tmp_path / name for name in ("preset", "features.npz", "out.npz")]
    command = [sys.executable, "-c", CHILD, *map(str, arguments), kind]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = dict(np.load(tmp_path / "out.npz"))
    check_same_answers(model, lambda _: _Arrays(answers), features)
    assert answers["first"].tolist() == [5, 6, 7, 10, 11]
    assert answers["second"].tolist() == [6, 7, 8, 9]
    if kind == "classifier":
        found = model.encode(features)["label_logits"].numpy()
        np.testing.assert_allclose(found, answers["label_logits"], **CLOSE)


class _Arrays(dict):
    """Arrays that are asked as tensors are."""

    def __getitem__(self, name):
        array = super().__getitem__(name)
        return type("Tensor", (), {"numpy": lambda self: array})()


@pytest.mark.parametrize("kind", ["embedder", "classifier"])
def test_out_and_in_again(tmp_path, kind):
    text = {"lowercase": True, "strip_accents": False}
    model = model_of(kind, text=text, activation="gelu_tanh")
    save_checkpoint(model, tmp_path / "preset", to="kerashub")
    again = load_checkpoint(tmp_path / "preset")
    check_same_weights(model, again)
    options = again.preprocessor.tokenizer.options
    assert options == model.preprocessor.tokenizer.options
    if kind == "classifier":
        assert again.arguments["dropout"] == 0.3
        assert again.preprocessor.sequence_length == 12


def test_the_exact_gelu_is_said_to_be_lost(tmp_path):
    model = model_of("embedder")
    with pytest.warns(UserWarning, match="computes the tanh form of GELU. Received: "):
        save_checkpoint(model, tmp_path / "preset", to="kerashub")
    again = load_checkpoint(tmp_path / "preset")
    check_same_weights(model, again)


def test_a_head_is_said_to_be_left_out(tmp_path):
    model = model_of("tagger", activation="gelu_tanh")
    with pytest.warns(UserWarning, match="no place for the head of a BertTagger: only"):
        save_checkpoint(model, tmp_path / "preset", to="kerashub")
    again = load_checkpoint(tmp_path / "preset")
    check_same_weights(model.backbone, again.backbone)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("split_on_cjk", False),
        ("split_unknown_characters", True),
        ("normalization", "NFC"),
        ("id_offset", 1),
        ("never_split", ("fox",)),
    ],
)
def test_what_kerashub_cannot_do(tmp_path, option, value):
    sizes = {"vocabulary_size": 99, "activation": "gelu_tanh"}
    text = {option: list(value) if option == "never_split" else value}
    model = model_of("embedder", text=text, **sizes)
    with pytest.raises(ValueError, match="KerasHub cannot .*allowed: ") as caught:
        save_checkpoint(model, tmp_path / "preset", to="kerashub")
    assert f"Received: {option}={value!r};" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_another_epsilon(tmp_path):
    model = model_of("embedder", layer_norm_epsilon=1e-6)
    with pytest.raises(ValueError, match="layer_norm_epsilon=1e-06; allowed: .*1e-12"):
        save_checkpoint(model, tmp_path / "preset", to="kerashub")


@needs_data
def test_v02_lines_that_are_only_spaces(tmp_path):
    """The Chinese vocabulary has such; ids behind them must not move."""
    vocabulary = Vocabulary.read(vocabulary_path("chinese"))
    preprocessor = BertPreprocessor(WordPieceTokenizer(vocabulary), 8)
    model = model_of("embedder", vocabulary_size=21128, activation="gelu_tanh")
    model.preprocessor = preprocessor
    save_checkpoint(model, tmp_path / "preset", to="kerashub")
    path = tmp_path / "preset" / "assets" / "tokenizer" / "vocabulary.txt"
    lines = path.read_bytes().decode().split("\n")
    assert lines[:-1] == list(vocabulary)
    again = load_checkpoint(tmp_path / "preset")
    assert again.preprocessor.tokenizer.vocabulary == preprocessor.tokenizer.vocabulary


@pytest.mark.parametrize(
    "registered", ["keras_hub>GPT2Backbone", None, "x>BertBackbone"]
)
def test_a_preset_of_another_model(tmp_path, registered):
    their_backbone().save_to_preset(str(tmp_path))
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    config["registered_name"] = registered
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(ValueError, match="allowed: 'keras_hub>BertBackbone'"):
        load_checkpoint(tmp_path)


def test_weights_that_are_cut_off(tmp_path):
    their_backbone().save_to_preset(str(tmp_path))
    path = tmp_path / "model.weights.h5"
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(ValueError, match=f"{tmp_path} is no whole preset: "):
        load_checkpoint(tmp_path)

"""`config.json` of a Hugging Face folder <-> the arguments of the encoder."""

import os
import warnings
from pathlib import Path

from bert_keras.encoder.backbone import BertBackbone
from bert_keras.files import read_json

CONFIG = "config.json"

# Their name, our argument, its type, and their default where they have one.
_SIZES = (
    ("vocab_size", "vocabulary_size", int, None),
    ("num_hidden_layers", "num_layers", int, None),
    ("num_attention_heads", "num_heads", int, None),
    ("hidden_size", "hidden_dim", int, None),
    ("intermediate_size", "intermediate_dim", int, None),
    ("hidden_dropout_prob", "dropout", float, 0.1),
    ("max_position_embeddings", "max_sequence_length", int, 512),
    ("type_vocab_size", "num_segments", int, 2),
    ("initializer_range", "initializer_range", float, 0.02),
    ("layer_norm_eps", "layer_norm_epsilon", float, 1e-12),
)

_ACTIVATIONS = (
    ("gelu", "gelu"),
    ("gelu_pytorch_tanh", "gelu_tanh"),
    ("gelu_new", "gelu_tanh"),
)
"""Their names of the activation, and ours; the first of two is the one to write."""

_ONLY = (
    ("model_type", ("bert",)),
    ("position_embedding_type", ("absolute",)),
    ("is_decoder", (False,)),
    ("add_cross_attention", (False,)),
    ("pruned_heads", ({},)),
    ("hidden_act", tuple(theirs for theirs, _ in _ACTIVATIONS)),
)
"""Fields that must have one of some values, where they are given."""


def read_config(path: Path) -> dict:
    """Reads `config.json`, or `bert_config.json`, and checks it.

    Raises:
        ValueError: naming the file and the field: no such model can be built here.

    Warns:
        UserWarning: two rates of dropout, of which only one is used.
    """
    config = read_json(path)
    if not isinstance(config, dict):
        raise ValueError(f"{os.fspath(path)} does not hold the fields of a model.")
    for field, allowed in _ONLY:
        if config.get(field, allowed[0]) not in (*allowed, None):
            refuse(path, field, config[field], *map(repr, allowed))
    for field, _, kind, default in _SIZES:
        value = config.get(field, default)
        if kind is int and (type(value) is not int or value < 1):
            refuse(path, field, value, "an integer of at least 1")
        if kind is float and (type(value) not in (int, float) or value < 0):
            refuse(path, field, value, "a number that is not below 0")
    hidden = config.get("hidden_dropout_prob", 0.1)
    attention = config.get("attention_probs_dropout_prob", 0.1)
    if hidden != attention:
        warnings.warn(
            f"{os.fspath(path)} has two rates of dropout. Received: "
            f"hidden_dropout_prob={hidden}, attention_probs_dropout_prob={attention}; "
            f"used for both: {hidden}.",
            stacklevel=2,
        )
    return config


def backbone_of(config: dict) -> BertBackbone:
    """Returns a new encoder of the sizes in a checked config."""
    arguments = {ours: config.get(theirs, old) for theirs, ours, _, old in _SIZES}
    activation = dict(_ACTIVATIONS)[config.get("hidden_act") or "gelu"]
    return BertBackbone(**arguments, activation=activation)


def config_of(backbone: BertBackbone) -> dict:
    """Returns the fields that describe an encoder."""
    names = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS)}
    return {
        "model_type": "bert",
        **{theirs: getattr(backbone, ours) for theirs, ours, *_ in _SIZES},
        "attention_probs_dropout_prob": backbone.dropout,
        "hidden_act": names[backbone.activation],
        "position_embedding_type": "absolute",
    }


def refuse(path: Path, field: str, value, *allowed: str) -> None:
    """Raises the `ValueError` about a field of a file."""
    raise ValueError(
        f"{os.fspath(path)} describes what cannot be loaded. Received: {field}="
        f"{value!r}; allowed: {', '.join(allowed)}."
    )

"""Preset folders of KerasHub: its `BertBackbone`, `BertTokenizer` and classifier."""

import warnings
from collections.abc import Iterable
from pathlib import Path

import keras
import keras_nlp

from bert_keras.checkpoints.huggingface_config import refuse
from bert_keras.checkpoints.mapping import fill, tensors_of
from bert_keras.checkpoints.names import KERASHUB
from bert_keras.checkpoints.vocabularies import holds_accents
from bert_keras.embeddings import LAYER_NORM_EPSILON
from bert_keras.encoder.backbone import BertBackbone
from bert_keras.features import SpecialTokens
from bert_keras.files import read_json
from bert_keras.tasks.classifier import BertClassifier
from bert_keras.tasks.embedder import BertEmbedder
from bert_keras.text.tokenizer import WordPieceTokenizer
from bert_keras.text.vocabulary import Vocabulary
from bert_keras.tokens.preprocessor import BertPreprocessor

CONFIG = "config.json"
REGISTERED = "registered_name"
_TASK = "task.json"
_TOKENIZER = "tokenizer.json"
_PREPROCESSOR = "preprocessor.json"
_VOCABULARY = Path("assets", "tokenizer", "vocabulary.txt")
_PACKAGES = ("keras_hub", "keras_nlp")  # its name now and before

_SIZES = (
    *("vocabulary_size", "num_layers", "num_heads", "hidden_dim", "intermediate_dim"),
    *("dropout", "max_sequence_length", "num_segments"),
)
"""What its `BertBackbone` and ours are both told; the rest of ours it cannot choose."""

_ACTIVATION = "gelu_tanh"


def load_kerashub(folder: Path, allow: Iterable[str] = ()) -> keras.Model:
    """Loads a preset folder; see `load_checkpoint`.

    Warns:
        UserWarning: the preset keeps accents, of which its vocabulary holds none.
    """
    _check_class(folder / CONFIG, "BertBackbone")
    is_classifier = (folder / _TASK).exists()
    if is_classifier:
        _check_class(folder / _TASK, "BertTextClassifier", "BertClassifier")
    kind = (
        keras_nlp.models.TextClassifier if is_classifier else keras_nlp.models.Backbone
    )
    try:
        theirs = kind.from_preset(str(folder.resolve()))
    except Exception as error:  # Keras raises whatever its parts raise
        reason = str(error).strip().split("\n", 1)[0]
        raise ValueError(f"{folder} is no whole preset: {reason}") from error
    their_backbone = theirs.backbone if is_classifier else theirs
    sizes = {name: getattr(their_backbone, name) for name in _SIZES}
    backbone = BertBackbone(**sizes, activation=_ACTIVATION)
    preprocessor = _read_preprocessor(folder, backbone.max_sequence_length)
    if is_classifier:
        activation = keras.activations.serialize(theirs.activation)
        if activation not in ("linear", "softmax"):
            refuse(folder / _TASK, "activation", activation, "'linear'", "'softmax'")
        labels = [f"LABEL_{number}" for number in range(theirs.num_classes)]
        model = BertClassifier(backbone, labels, preprocessor, dropout=theirs.dropout)
    else:
        model = BertEmbedder(backbone, preprocessor)
    tensors = {variable.path: variable.numpy() for variable in theirs.weights}
    fill(model, tensors, KERASHUB, str(folder), allow=allow)
    return model


def write_kerashub(model: keras.Model, folder: Path) -> None:
    """Writes a preset folder; see `save_checkpoint`.

    Raises:
        ValueError: naming an option that KerasHub does not have.

    Warns:
        UserWarning: it will compute another GELU, or a head has no place there.
    """
    backbone = model.backbone
    if backbone.layer_norm_epsilon != LAYER_NORM_EPSILON:
        _cannot("layer_norm_epsilon", backbone.layer_norm_epsilon, LAYER_NORM_EPSILON)
    if backbone.activation != _ACTIVATION:
        _warn(
            "KerasHub's BertBackbone computes the tanh form of GELU. Received: "
            f"activation={backbone.activation!r}; its answers will differ by about "
            "0.001."
        )
    sizes = {name: getattr(backbone, name) for name in _SIZES}
    theirs = keras_nlp.models.BertBackbone(**sizes, dtype="float32")
    tokenizer = None
    if model.preprocessor is not None:
        tokenizer = _their_tokenizer(model.preprocessor.tokenizer)
    if isinstance(model, BertClassifier):
        theirs = _their_classifier(model, theirs, tokenizer)
    elif not isinstance(model, BertEmbedder):
        _warn(
            f"KerasHub has no place for the head of a {type(model).__name__}: only the "
            "encoder and the tokenizer are written."
        )
    tensors = tensors_of(model, KERASHUB)
    for variable in theirs.weights:
        variable.assign(tensors[variable.path])
    theirs.save_to_preset(str(folder))
    if tokenizer is not None:
        tokenizer.save_to_preset(str(folder))


def _their_tokenizer(tokenizer: WordPieceTokenizer) -> keras_nlp.models.BertTokenizer:
    """Returns KerasHub's tokenizer, as near to ours as it can be.

    It has rules of its own: its words are at most 100 bytes long, not characters.
    """
    options, vocabulary = tokenizer.options, tokenizer.vocabulary
    names = tuple(SpecialTokens())
    for name, value, allowed in (
        ("special_tokens", tuple(vocabulary.special_tokens), names),
        ("split_unknown_characters", options.split_unknown_characters, False),
        ("split_on_cjk", options.split_on_cjk, True),  # a preset forgets it
        ("normalization", options.normalization, None),
        ("id_offset", options.id_offset, 0),
        ("never_split", options.never_split, ()),
    ):
        if value != allowed:
            _cannot(name, value, allowed)
    return keras_nlp.models.BertTokenizer(
        list(vocabulary),
        lowercase=options.lowercase,
        strip_accents=options.strip_accents,
        special_tokens_in_strings=bool(options.special_tokens_in_text),
    )


def _their_classifier(model: BertClassifier, backbone, tokenizer):
    preprocessor = None
    if tokenizer is not None:
        preprocessor = keras_nlp.models.BertTextClassifierPreprocessor(
            tokenizer, sequence_length=model.preprocessor.sequence_length
        )
    return keras_nlp.models.BertTextClassifier(
        backbone,
        len(model.arguments["labels"]),
        preprocessor=preprocessor,
        dropout=model.arguments["dropout"],
    )


def _read_preprocessor(
    folder: Path, max_sequence_length: int
) -> BertPreprocessor | None:
    """Reads the files themselves: KerasHub would lose lines that are only spaces."""
    if not (folder / _TOKENIZER).exists():
        return None
    _check_class(folder / _TOKENIZER, "BertTokenizer")
    config = read_json(folder / _TOKENIZER)["config"]
    vocabulary = Vocabulary.read(folder / _VOCABULARY)
    lowercase = config.get("lowercase", False)
    strip_accents = config.get("strip_accents", False)
    if lowercase and not strip_accents and not holds_accents(vocabulary):
        strip_accents = True
        _warn(
            f"{folder} lower-cases and keeps accents, but its vocabulary holds none: "
            "accented words would be unknown. Accents are removed, as in 2018."
        )
    tokenizer = WordPieceTokenizer(
        vocabulary,
        rules="huggingface",
        lowercase=lowercase,
        strip_accents=strip_accents,
        split_on_cjk=config.get("split_on_cjk", True),
        special_tokens_in_text=config.get("special_tokens_in_strings", False),
    )
    length = max_sequence_length
    if (folder / _PREPROCESSOR).exists():
        stored = read_json(folder / _PREPROCESSOR)["config"].get("sequence_length")
        length = min(length, stored or length)
    return BertPreprocessor(tokenizer, length, pad_to_longest=True)


def _check_class(path: Path, *allowed: str) -> None:
    registered = read_json(path).get(REGISTERED)
    package, _, name = str(registered).partition(">")
    if package not in _PACKAGES or name not in allowed:
        refuse(path, REGISTERED, registered, *(f"'keras_hub>{n}'" for n in allowed))


def _cannot(option: str, value, allowed) -> None:
    raise ValueError(
        f"KerasHub cannot do what the model does. Received: {option}={value!r}; "
        f"allowed: {option}={allowed!r}."
    )


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=4)

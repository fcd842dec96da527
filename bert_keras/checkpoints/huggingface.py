"""Hugging Face folders: weights and config, in and out, for every kind of model."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import keras
import numpy as np

from bert_keras.checkpoints.huggingface_config import (
    CONFIG,
    backbone_of,
    config_of,
    read_config,
)
from bert_keras.checkpoints.huggingface_heads import (
    fields_of_head,
    has_masked_lm,
    model_with_head,
)
from bert_keras.checkpoints.huggingface_tokenizer import read_preprocessor
from bert_keras.checkpoints.huggingface_tokenizer_out import write_preprocessor
from bert_keras.checkpoints.mapping import fill, tensors_of
from bert_keras.checkpoints.names import (
    HUGGINGFACE,
    HUGGINGFACE_ENCODER,
    HUGGINGFACE_OLD_ENDS,
    HUGGINGFACE_PREFIX,
    HUGGINGFACE_TWINS,
)
from bert_keras.checkpoints.sentences import read_pooling, write_pooling
from bert_keras.checkpoints.tensors import SAFETENSORS, read_weights, write_safetensors
from bert_keras.files import write_json
from bert_keras.tasks.embedder import BertEmbedder


def load_huggingface(folder: Path, allow: Iterable[str] = ()) -> keras.Model:
    """Loads a Hugging Face folder; see `load_checkpoint`.

    A folder of sentence-transformers is one with `modules.json` in it.
    """
    pooling = read_pooling(folder)
    if pooling is not None:
        folder = pooling.encoder
    config = read_config(folder / CONFIG)
    in_file = read_weights(folder)
    names = _canonical_names(in_file, folder)
    tensors = {name: in_file[names[name]] for name in names}
    _join_twins(tensors, folder)
    backbone = backbone_of(config)
    in_text = ("mask",) if has_masked_lm(tensors) and pooling is None else ()
    preprocessor = read_preprocessor(folder, backbone.max_sequence_length, in_text)
    if pooling is not None:
        model = BertEmbedder(backbone, preprocessor, **pooling.arguments)
    else:
        model = model_with_head(
            backbone, preprocessor, config, tensors, folder / CONFIG
        )
    has_prefix = any(name.startswith(HUGGINGFACE_PREFIX) for name in in_file)

    def shown(name: str) -> str:
        return names.get(name, _prefixed(name) if has_prefix else name)

    fill(model, tensors, HUGGINGFACE, str(folder), allow=allow, shown=shown)
    return model


def write_huggingface(model: keras.Model, folder: Path) -> None:
    """Writes a Hugging Face folder; see `save_checkpoint`."""
    tensors = tensors_of(model, HUGGINGFACE)
    if not isinstance(model, BertEmbedder):
        tensors = {_prefixed(name): array for name, array in tensors.items()}
    (decoder, _), (decoder_bias, bias) = HUGGINGFACE_TWINS
    if decoder in tensors:  # not tied: neither is its bias
        tensors[decoder_bias] = tensors[bias]
    pad_id = 0
    if model.preprocessor is not None:
        write_preprocessor(model.preprocessor, folder)
        pad_id = model.preprocessor.tokenizer.special_ids.pad
    config = {
        **config_of(model.backbone),
        **fields_of_head(model),
        "pad_token_id": pad_id,
        "tie_word_embeddings": decoder not in tensors,
        "torch_dtype": "float32",
    }
    write_json(config, folder / CONFIG)
    write_safetensors(tensors, folder / SAFETENSORS)
    if isinstance(model, BertEmbedder):
        write_pooling(model, folder)


def _canonical_names(names: Iterable[str], source: Path) -> dict[str, str]:
    """Returns the names of the table -> those in a file, old or new, long or short."""
    found: dict[str, str] = {}
    for name in names:
        canonical = name.removeprefix(HUGGINGFACE_PREFIX)
        for old, new in HUGGINGFACE_OLD_ENDS:
            if canonical.endswith(old):
                canonical = canonical.removesuffix(old) + new
        if canonical in found:
            raise ValueError(
                f"{source} holds a tensor twice. Received: {found[canonical]} and "
                f"{name}; allowed: one of them."
            )
        found[canonical] = name
    return found


def _prefixed(name: str) -> str:
    """Returns the long name of a tensor of the encoder; others have only one."""
    is_encoder = name.startswith(HUGGINGFACE_ENCODER)
    return HUGGINGFACE_PREFIX + name if is_encoder else name


def _join_twins(tensors: dict[str, np.ndarray], source: Path) -> None:
    """Leaves of two equal tensors that are one in the model the one with our name.

    Output tables that differ from the token table stay: the model is not tied.
    """
    decoder_bias, bias = HUGGINGFACE_TWINS[1]
    for twin, name in HUGGINGFACE_TWINS:
        if twin in tensors and _are_equal(tensors, twin, name):
            tensors[name] = tensors.pop(twin)
    if decoder_bias in tensors:
        raise ValueError(
            f"{source} holds two biases of the masked-LM head. Received: {bias} and "
            f"{decoder_bias}, which differ; allowed: equal ones, or one of them."
        )


def _are_equal(tensors: Mapping[str, np.ndarray], twin: str, name: str) -> bool:
    return name not in tensors or np.array_equal(tensors[twin], tensors[name])

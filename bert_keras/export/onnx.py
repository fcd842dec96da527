"""ONNX: files of standard `ai.onnx` ops only, from ids and from text."""

import json
import logging
import os
from collections.abc import Callable

import onnx
import onnxruntime
import tensorflow as tf
import tf2onnx
from onnxruntime.quantization import QuantType, quantize_dynamic

from bert_keras.export.parts import ServedModel, metadata_of, named
from bert_keras.features import (
    EMBEDDING,
    ENCODER_INPUTS,
    LABEL_LOGITS,
    LABEL_PROBABILITIES,
    MASKED_LM_LOGITS,
    NEXT_SENTENCE_LOGITS,
    PADDING_MASK,
    POOLED_OUTPUT,
    SEGMENT_IDS,
    SEQUENCE_OUTPUT,
    TAG_LOGITS,
    TOKEN_IDS,
    VALUE,
)

OPSET = 17
TEXT_INPUTS = ("codepoints", "second_codepoints")
METADATA_KEY = "bert_keras"
OUTPUTS = "outputs"

HUGGINGFACE_NAMES = {
    TOKEN_IDS: "input_ids",
    SEGMENT_IDS: "token_type_ids",
    PADDING_MASK: "attention_mask",
    SEQUENCE_OUTPUT: "last_hidden_state",
    POOLED_OUTPUT: "pooler_output",
    MASKED_LM_LOGITS: "prediction_logits",
    NEXT_SENTENCE_LOGITS: "seq_relationship_logits",
    LABEL_LOGITS: "logits",
    LABEL_PROBABILITIES: "probabilities",
    VALUE: "logits",
    TAG_LOGITS: "logits",
    EMBEDDING: "sentence_embedding",
}
NAMES = {"kerashub": {}, "huggingface": HUGGINGFACE_NAMES}


class ExportError(RuntimeError):
    """An artefact could not be made, or does not give the model's answers."""


def write_ids_onnx(
    model: ServedModel, path: str | os.PathLike, names: str = "kerashub"
) -> None:
    """Writes a file from ids to outputs; both dimensions of every input are free.

    Args:
        model: the model, with its preprocessor.
        path: the file to write.
        names: `"kerashub"`: inputs `token_ids`, `segment_ids`, `padding_mask`, int32;
            `"huggingface"`: `input_ids`, `token_type_ids`, `attention_mask`, int64.

    Raises:
        ExportError: an op has no standard ONNX form; no file is left.
        ValueError: unknown names.
    """
    if names not in NAMES:
        raise ValueError(
            f"Unknown names. Received: names={names!r}; allowed: "
            f"{', '.join(map(repr, NAMES))}."
        )
    renamed = NAMES[names]
    dtype = tf.int64 if names == "huggingface" else tf.int32
    originals: dict[str, str] = {}  # output -> its name in this package

    def encode(token_ids, segment_ids, padding_mask):
        values = map(_no_negative, (token_ids, segment_ids, padding_mask))
        outputs = model.from_features(dict(zip(ENCODER_INPUTS, values, strict=True)))
        originals.update({renamed.get(name, name): name for name in outputs})
        return named({new: outputs[name] for new, name in originals.items()})

    signature = [
        tf.TensorSpec([None, None], dtype, name=renamed.get(name, name))
        for name in ENCODER_INPUTS
    ]
    _write(encode, signature, path, {**metadata_of(model), OUTPUTS: originals})


def _no_negative(ids: tf.Tensor) -> tf.Tensor:
    """Makes a negative id one that no table has: ONNX would count it from the end."""
    return tf.where(ids < 0, tf.int32.max, tf.cast(ids, tf.int32))


def write_text_onnx(model: ServedModel, path: str | os.PathLike) -> None:
    """Writes a file from text to outputs.

    Its one input is `codepoints`, int32 `[batch, length]`, padded with 0: any language
    makes that from a string, and ONNX's own string ops cannot take one apart. A model
    for pairs has a second one, `second_codepoints`.

    Raises:
        ExportError: an op has no standard ONNX form; no file is left.
    """
    names = TEXT_INPUTS[: 1 + model.keras_model.task.text_pairs]
    signature = [tf.TensorSpec([None, None], tf.int32, name=name) for name in names]
    _write(model.from_text, signature, path, metadata_of(model))


def write_int8_onnx(made: str | os.PathLike, path: str | os.PathLike) -> None:
    """Writes a file with int8 weights, the token table included.

    Weights are scaled channel by channel; activations are quantized as they come, by
    standard ops (DynamicQuantizeLinear, MatMulInteger). About a quarter of the size.

    Args:
        made: a file of `write_text_onnx` or `write_ids_onnx`.
        path: the file to write.
    """
    logging.getLogger().addFilter(_is_no_advice)
    try:
        quantize_dynamic(
            os.fspath(made),
            os.fspath(path),
            weight_type=QuantType.QInt8,
            op_types_to_quantize=["MatMul", "Gather"],
            per_channel=True,
        )
    finally:
        logging.getLogger().removeFilter(_is_no_advice)
    quantized = onnx.load(os.fspath(path))
    properties = {entry.key: entry.value for entry in quantized.metadata_props}
    metadata = {**json.loads(properties[METADATA_KEY]), "is_quantized": True}
    onnx.helper.set_model_props(quantized, {METADATA_KEY: json.dumps(metadata)})
    onnx.save(quantized, os.fspath(path))


def _is_no_advice(record: logging.LogRecord) -> bool:
    """Filters the quantizer's advice to preprocess, which the converter has done."""
    return "pre-processing before quantization" not in record.getMessage()


def _write(
    function: Callable, signature: list, path: str | os.PathLike, metadata: dict
) -> None:
    made = to_onnx(function, signature)
    onnx.helper.set_model_props(made, {METADATA_KEY: json.dumps(metadata)})
    onnx.save(made, os.fspath(path))


def to_onnx(function: Callable, signature: list[tf.TensorSpec]) -> onnx.ModelProto:
    """Converts a function and checks that ONNX Runtime opens what came of it.

    The converter only logs an op that it does not know and writes it out in a domain of
    its own, or in the standard one, where no runtime knows it.

    Raises:
        ExportError: names the ops that have no standard form, or what the runtime said.
    """
    traced = tf.function(function, input_signature=signature, autograph=False)
    logging.getLogger("tf2onnx").setLevel(logging.CRITICAL)
    try:
        made, _ = tf2onnx.convert.from_function(
            traced, input_signature=signature, opset=OPSET
        )
    except Exception as error:  # the converter raises whatever its parts raise
        raise ExportError(f"The model cannot be converted: {error}") from error
    foreign = {
        f"{node.domain}.{node.op_type}" for node in made.graph.node if node.domain
    }
    if foreign:
        raise ExportError(
            f"Ops without a standard ONNX form: {', '.join(sorted(foreign))}."
        )
    try:
        onnx.checker.check_model(made)
        session(made.SerializeToString())
    except Exception as error:  # each library has its own types
        raise ExportError(f"The converted model is not valid: {error}") from error
    return made


def session(model: str | bytes) -> onnxruntime.InferenceSession:
    """Opens a file or its bytes in ONNX Runtime on the CPU, logging errors only."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"]
    )

"""What the tensors are called elsewhere: a table for each origin, read both ways.

A row names one of their tensors, our variable that holds it, and which part of our
variable it is. `{n}` is the number of a block. The model decides which rows count:
those whose variable it has.
"""

from typing import NamedTuple


class Part(NamedTuple):
    """Which part of one of our arrays is theirs, and how they hold it.

    Attributes:
        third: of our last axis: 0 the query, 1 the key, 2 the value.
        is_reversed: their last axis counts the other way round: next-sentence class 0
            is "B follows A" with them, and class 1 with us.
        is_transposed: the axes are the other way round.
        heads: which axis they split in heads: 0, or -1 for the last.
    """

    third: int | None = None
    is_reversed: bool = False
    is_transposed: bool = False
    heads: int | None = None


class Row(NamedTuple):
    """One line of a table: their name, the path of our variable, and the part."""

    theirs: str
    ours: str
    part: Part


WHOLE = Part()
TRANSPOSED = Part(is_transposed=True)
REVERSED = Part(is_reversed=True)
REVERSED_TRANSPOSED = Part(is_reversed=True, is_transposed=True)
THIRDS = tuple(Part(third=number) for number in range(3))
THIRDS_TRANSPOSED = tuple(part._replace(is_transposed=True) for part in THIRDS)
THIRDS_IN_HEADS = tuple(part._replace(heads=-1) for part in THIRDS)
FROM_HEADS = Part(heads=0)

_QUERY_KEY_VALUE = "block_{n}/query_key_value"

_HF_BLOCK = "encoder.layer.{n}"
_HF_SELF = f"{_HF_BLOCK}.attention.self"

HUGGINGFACE = (
    Row(
        "embeddings.word_embeddings.weight",
        "embeddings/token_embedding/embeddings",
        WHOLE,
    ),
    Row(
        "embeddings.position_embeddings.weight",
        "embeddings/position_embeddings",
        WHOLE,
    ),
    Row(
        "embeddings.token_type_embeddings.weight",
        "embeddings/segment_embeddings",
        WHOLE,
    ),
    Row("embeddings.LayerNorm.weight", "embeddings/layer_norm/gamma", WHOLE),
    Row("embeddings.LayerNorm.bias", "embeddings/layer_norm/beta", WHOLE),
    Row(f"{_HF_SELF}.query.weight", f"{_QUERY_KEY_VALUE}/kernel", THIRDS_TRANSPOSED[0]),
    Row(f"{_HF_SELF}.key.weight", f"{_QUERY_KEY_VALUE}/kernel", THIRDS_TRANSPOSED[1]),
    Row(f"{_HF_SELF}.value.weight", f"{_QUERY_KEY_VALUE}/kernel", THIRDS_TRANSPOSED[2]),
    Row(f"{_HF_SELF}.query.bias", f"{_QUERY_KEY_VALUE}/bias", THIRDS[0]),
    Row(f"{_HF_SELF}.key.bias", f"{_QUERY_KEY_VALUE}/bias", THIRDS[1]),
    Row(f"{_HF_SELF}.value.bias", f"{_QUERY_KEY_VALUE}/bias", THIRDS[2]),
    Row(
        f"{_HF_BLOCK}.attention.output.dense.weight",
        "block_{n}/attention_output/kernel",
        TRANSPOSED,
    ),
    Row(
        f"{_HF_BLOCK}.attention.output.dense.bias",
        "block_{n}/attention_output/bias",
        WHOLE,
    ),
    Row(
        f"{_HF_BLOCK}.attention.output.LayerNorm.weight",
        "block_{n}/attention_norm/gamma",
        WHOLE,
    ),
    Row(
        f"{_HF_BLOCK}.attention.output.LayerNorm.bias",
        "block_{n}/attention_norm/beta",
        WHOLE,
    ),
    Row(
        f"{_HF_BLOCK}.intermediate.dense.weight",
        "block_{n}/intermediate/kernel",
        TRANSPOSED,
    ),
    Row(f"{_HF_BLOCK}.intermediate.dense.bias", "block_{n}/intermediate/bias", WHOLE),
    Row(f"{_HF_BLOCK}.output.dense.weight", "block_{n}/output/kernel", TRANSPOSED),
    Row(f"{_HF_BLOCK}.output.dense.bias", "block_{n}/output/bias", WHOLE),
    Row(f"{_HF_BLOCK}.output.LayerNorm.weight", "block_{n}/output_norm/gamma", WHOLE),
    Row(f"{_HF_BLOCK}.output.LayerNorm.bias", "block_{n}/output_norm/beta", WHOLE),
    Row("pooler.dense.weight", "pooler/kernel", TRANSPOSED),
    Row("pooler.dense.bias", "pooler/bias", WHOLE),
    Row("cls.predictions.bias", "masked_lm/bias", WHOLE),
    Row("cls.predictions.transform.dense.weight", "masked_lm/dense/kernel", TRANSPOSED),
    Row("cls.predictions.transform.dense.bias", "masked_lm/dense/bias", WHOLE),
    Row("cls.predictions.transform.LayerNorm.weight", "masked_lm/norm/gamma", WHOLE),
    Row("cls.predictions.transform.LayerNorm.bias", "masked_lm/norm/beta", WHOLE),
    Row(
        "cls.predictions.decoder.weight",
        "masked_lm/output_table/embeddings",
        WHOLE,
    ),
    Row("cls.seq_relationship.weight", "next_sentence/kernel", REVERSED_TRANSPOSED),
    Row("cls.seq_relationship.bias", "next_sentence/bias", REVERSED),
    Row("classifier.weight", "classifier/kernel", TRANSPOSED),
    Row("classifier.bias", "classifier/bias", WHOLE),
    Row("classifier.weight", "regressor/kernel", TRANSPOSED),
    Row("classifier.bias", "regressor/bias", WHOLE),
    Row("classifier.weight", "tagger/kernel", TRANSPOSED),
    Row("classifier.bias", "tagger/bias", WHOLE),
    Row("qa_outputs.weight", "span_finder/kernel", TRANSPOSED),
    Row("qa_outputs.bias", "span_finder/bias", WHOLE),
)

HUGGINGFACE_PREFIX = "bert."
"""Stands before the names of the encoder, unless the encoder is all there is."""

HUGGINGFACE_ENCODER = ("embeddings.", "encoder.", "pooler.")

HUGGINGFACE_OLD_ENDS = ((".gamma", ".weight"), (".beta", ".bias"))
"""What the norms were called until 2019, and since."""

HUGGINGFACE_TWINS = (
    ("cls.predictions.decoder.weight", "embeddings.word_embeddings.weight"),
    ("cls.predictions.decoder.bias", "cls.predictions.bias"),
)
"""Names of one and the same tensor, of which a file may hold either or both."""

_TF1_BLOCK = "bert/encoder/layer_{n}"
_TF1_SELF = f"{_TF1_BLOCK}/attention/self"
_TRANSFORM = "cls/predictions/transform"

GOOGLE = (
    Row(
        "bert/embeddings/word_embeddings",
        "embeddings/token_embedding/embeddings",
        WHOLE,
    ),
    Row("bert/embeddings/position_embeddings", "embeddings/position_embeddings", WHOLE),
    Row(
        "bert/embeddings/token_type_embeddings",
        "embeddings/segment_embeddings",
        WHOLE,
    ),
    Row("bert/embeddings/LayerNorm/gamma", "embeddings/layer_norm/gamma", WHOLE),
    Row("bert/embeddings/LayerNorm/beta", "embeddings/layer_norm/beta", WHOLE),
    Row(f"{_TF1_SELF}/query/kernel", f"{_QUERY_KEY_VALUE}/kernel", THIRDS[0]),
    Row(f"{_TF1_SELF}/key/kernel", f"{_QUERY_KEY_VALUE}/kernel", THIRDS[1]),
    Row(f"{_TF1_SELF}/value/kernel", f"{_QUERY_KEY_VALUE}/kernel", THIRDS[2]),
    Row(f"{_TF1_SELF}/query/bias", f"{_QUERY_KEY_VALUE}/bias", THIRDS[0]),
    Row(f"{_TF1_SELF}/key/bias", f"{_QUERY_KEY_VALUE}/bias", THIRDS[1]),
    Row(f"{_TF1_SELF}/value/bias", f"{_QUERY_KEY_VALUE}/bias", THIRDS[2]),
    Row(
        f"{_TF1_BLOCK}/attention/output/dense/kernel",
        "block_{n}/attention_output/kernel",
        WHOLE,
    ),
    Row(
        f"{_TF1_BLOCK}/attention/output/dense/bias",
        "block_{n}/attention_output/bias",
        WHOLE,
    ),
    Row(
        f"{_TF1_BLOCK}/attention/output/LayerNorm/gamma",
        "block_{n}/attention_norm/gamma",
        WHOLE,
    ),
    Row(
        f"{_TF1_BLOCK}/attention/output/LayerNorm/beta",
        "block_{n}/attention_norm/beta",
        WHOLE,
    ),
    Row(
        f"{_TF1_BLOCK}/intermediate/dense/kernel",
        "block_{n}/intermediate/kernel",
        WHOLE,
    ),
    Row(f"{_TF1_BLOCK}/intermediate/dense/bias", "block_{n}/intermediate/bias", WHOLE),
    Row(f"{_TF1_BLOCK}/output/dense/kernel", "block_{n}/output/kernel", WHOLE),
    Row(f"{_TF1_BLOCK}/output/dense/bias", "block_{n}/output/bias", WHOLE),
    Row(f"{_TF1_BLOCK}/output/LayerNorm/gamma", "block_{n}/output_norm/gamma", WHOLE),
    Row(f"{_TF1_BLOCK}/output/LayerNorm/beta", "block_{n}/output_norm/beta", WHOLE),
    Row("bert/pooler/dense/kernel", "pooler/kernel", WHOLE),
    Row("bert/pooler/dense/bias", "pooler/bias", WHOLE),
    Row("cls/predictions/output_bias", "masked_lm/bias", WHOLE),
    Row(f"{_TRANSFORM}/dense/kernel", "masked_lm/dense/kernel", WHOLE),
    Row(f"{_TRANSFORM}/dense/bias", "masked_lm/dense/bias", WHOLE),
    Row(f"{_TRANSFORM}/LayerNorm/gamma", "masked_lm/norm/gamma", WHOLE),
    Row(f"{_TRANSFORM}/LayerNorm/beta", "masked_lm/norm/beta", WHOLE),
    Row(
        "cls/seq_relationship/output_weights",
        "next_sentence/kernel",
        REVERSED_TRANSPOSED,
    ),
    Row("cls/seq_relationship/output_bias", "next_sentence/bias", REVERSED),
    Row("output_weights", "classifier/kernel", TRANSPOSED),
    Row("output_bias", "classifier/bias", WHOLE),
    Row("cls/squad/output_weights", "span_finder/kernel", TRANSPOSED),
    Row("cls/squad/output_bias", "span_finder/bias", WHOLE),
)

GOOGLE_IGNORED = ("*/adam_m", "*/adam_v", "global_step")
"""What the optimizer of 2018 remembers."""

_HUB_BLOCK = "transformer_layer_{n}"
_HUB_SELF = f"{_HUB_BLOCK}/self_attention_layer"

KERASHUB = (
    Row("token_embedding/embeddings", "embeddings/token_embedding/embeddings", WHOLE),
    Row("position_embedding/embeddings", "embeddings/position_embeddings", WHOLE),
    Row("segment_embedding/embeddings", "embeddings/segment_embeddings", WHOLE),
    Row("embeddings_layer_norm/gamma", "embeddings/layer_norm/gamma", WHOLE),
    Row("embeddings_layer_norm/beta", "embeddings/layer_norm/beta", WHOLE),
    Row(f"{_HUB_SELF}/query/kernel", f"{_QUERY_KEY_VALUE}/kernel", THIRDS_IN_HEADS[0]),
    Row(f"{_HUB_SELF}/key/kernel", f"{_QUERY_KEY_VALUE}/kernel", THIRDS_IN_HEADS[1]),
    Row(f"{_HUB_SELF}/value/kernel", f"{_QUERY_KEY_VALUE}/kernel", THIRDS_IN_HEADS[2]),
    Row(f"{_HUB_SELF}/query/bias", f"{_QUERY_KEY_VALUE}/bias", THIRDS_IN_HEADS[0]),
    Row(f"{_HUB_SELF}/key/bias", f"{_QUERY_KEY_VALUE}/bias", THIRDS_IN_HEADS[1]),
    Row(f"{_HUB_SELF}/value/bias", f"{_QUERY_KEY_VALUE}/bias", THIRDS_IN_HEADS[2]),
    Row(
        f"{_HUB_SELF}/attention_output/kernel",
        "block_{n}/attention_output/kernel",
        FROM_HEADS,
    ),
    Row(f"{_HUB_SELF}/attention_output/bias", "block_{n}/attention_output/bias", WHOLE),
    Row(
        f"{_HUB_BLOCK}/self_attention_layer_norm/gamma",
        "block_{n}/attention_norm/gamma",
        WHOLE,
    ),
    Row(
        f"{_HUB_BLOCK}/self_attention_layer_norm/beta",
        "block_{n}/attention_norm/beta",
        WHOLE,
    ),
    Row(
        f"{_HUB_BLOCK}/feedforward_intermediate_dense/kernel",
        "block_{n}/intermediate/kernel",
        WHOLE,
    ),
    Row(
        f"{_HUB_BLOCK}/feedforward_intermediate_dense/bias",
        "block_{n}/intermediate/bias",
        WHOLE,
    ),
    Row(
        f"{_HUB_BLOCK}/feedforward_output_dense/kernel",
        "block_{n}/output/kernel",
        WHOLE,
    ),
    Row(f"{_HUB_BLOCK}/feedforward_output_dense/bias", "block_{n}/output/bias", WHOLE),
    Row(
        f"{_HUB_BLOCK}/feedforward_layer_norm/gamma",
        "block_{n}/output_norm/gamma",
        WHOLE,
    ),
    Row(
        f"{_HUB_BLOCK}/feedforward_layer_norm/beta", "block_{n}/output_norm/beta", WHOLE
    ),
    Row("pooled_dense/kernel", "pooler/kernel", WHOLE),
    Row("pooled_dense/bias", "pooler/bias", WHOLE),
    Row("logits/kernel", "classifier/kernel", WHOLE),
    Row("logits/bias", "classifier/bias", WHOLE),
)

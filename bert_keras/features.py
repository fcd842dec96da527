"""Names shared by every room: the feature dictionary and the special tokens.

A *feature dictionary* is what the model reads. Its keys are KerasHub's, so that parts
can be exchanged; every value is int32 unless said otherwise.

| key              | shape                  | meaning                                  |
|------------------|------------------------|------------------------------------------|
| `token_ids`      | `[batch, sequence]`    | row of the token table                   |
| `segment_ids`    | `[batch, sequence]`    | 0 for text A and padding, 1 for text B   |
| `padding_mask`   | `[batch, sequence]`    | 1 for a token, 0 for padding             |
| `mask_positions` | `[batch, predictions]` | positions that masked LM predicts        |
| `mask_ids`       | `[batch, predictions]` | the pieces that stood there (labels)     |
| `mask_weights`   | `[batch, predictions]` | float32: 1 for a prediction, 0 for a gap |
| `next_sentence`  | `[batch]`              | label: 1 if B follows A, 0 if it doesn't |
| `label`          | `[batch]`              | number of the class; float32 for a value |
| `label_weight`   | `[batch]`              | float32: what the row counts             |
| `tags`           | `[batch, sequence]`    | number of each token's tag               |
| `tag_weights`    | `[batch, sequence]`    | float32: 1 where a word's tag stands     |
| `span_start`     | `[batch]`              | position of the answer's first token     |
| `span_end`       | `[batch]`              | position of its last token               |
"""

from typing import NamedTuple

TOKEN_IDS = "token_ids"
SEGMENT_IDS = "segment_ids"
PADDING_MASK = "padding_mask"
MASK_POSITIONS = "mask_positions"
MASK_IDS = "mask_ids"
MASK_WEIGHTS = "mask_weights"
NEXT_SENTENCE = "next_sentence"
LABEL = "label"
LABEL_WEIGHT = "label_weight"
TAGS = "tags"
TAG_WEIGHTS = "tag_weights"
SPAN_START = "span_start"
SPAN_END = "span_end"

SEQUENCE_OUTPUT = "sequence_output"
POOLED_OUTPUT = "pooled_output"
MASKED_LM_LOGITS = "masked_lm_logits"
NEXT_SENTENCE_LOGITS = "next_sentence_logits"
LABEL_LOGITS = "label_logits"
LABEL_PROBABILITIES = "label_probabilities"
VALUE = "value"
TAG_LOGITS = "tag_logits"
START_LOGITS = "start_logits"
END_LOGITS = "end_logits"
EMBEDDING = "embedding"

ENCODER_INPUTS = (TOKEN_IDS, SEGMENT_IDS, PADDING_MASK)


class Task(NamedTuple):
    """What a model is for: what its readers need to know beside its outputs.

    Attributes:
        name: `"fill-mask"`, `"classify"`, `"regress"`, `"tag"`, `"span"` or
            `"embed"`.
        labels: names of the classes or tags, in the order of the logits.
        text_pairs: it reads two texts at once, and never one.
        may_abstain: it may find that a text has no answer.
    """

    name: str
    labels: tuple[str, ...] = ()
    text_pairs: bool = False
    may_abstain: bool = False


class SpecialTokens(NamedTuple):
    """The five tokens that BERT adds to text, by the names of the 2018 vocabularies."""

    pad: str = "[PAD]"
    unk: str = "[UNK]"
    cls: str = "[CLS]"
    sep: str = "[SEP]"
    mask: str = "[MASK]"

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
"""

from typing import NamedTuple

TOKEN_IDS = "token_ids"
SEGMENT_IDS = "segment_ids"
PADDING_MASK = "padding_mask"
MASK_POSITIONS = "mask_positions"
MASK_IDS = "mask_ids"
MASK_WEIGHTS = "mask_weights"
NEXT_SENTENCE = "next_sentence"

SEQUENCE_OUTPUT = "sequence_output"
POOLED_OUTPUT = "pooled_output"
MASKED_LM_LOGITS = "masked_lm_logits"
NEXT_SENTENCE_LOGITS = "next_sentence_logits"

ENCODER_INPUTS = (TOKEN_IDS, SEGMENT_IDS, PADDING_MASK)


class SpecialTokens(NamedTuple):
    """The five tokens that BERT adds to text, by the names of the 2018 vocabularies."""

    pad: str = "[PAD]"
    unk: str = "[UNK]"
    cls: str = "[CLS]"
    sep: str = "[SEP]"
    mask: str = "[MASK]"

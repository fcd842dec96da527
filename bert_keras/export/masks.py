"""What an artefact puts in the place of [MASK]."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_keras.export.artefacts import Artefact, Text
from bert_keras.features import MASKED_LM_LOGITS, TOKEN_IDS


class Candidate(NamedTuple):
    """A piece for a mask, and its probability."""

    token: str
    probability: float


def fill_masks(
    artefact: Artefact, texts: Sequence[Text], most: int = 5
) -> list[list[list[Candidate]]]:
    """Returns for each text, for each mask in it, the most probable pieces.

    Args:
        artefact: of a model with a masked-LM head.
        texts: with [MASK] in them.
        most: pieces for each mask.

    Raises:
        ValueError: the artefact has no masked-LM head.
    """
    outputs = artefact.run(texts)
    if MASKED_LM_LOGITS not in outputs:
        raise ValueError(
            f"The model has no masked-LM head. Received: outputs {sorted(outputs)}; "
            f"needed: {MASKED_LM_LOGITS}."
        )
    tokenizer = artefact.preprocessor.tokenizer
    vocabulary, first = tokenizer.vocabulary, tokenizer.options.id_offset
    filled = []
    for ids, logits in zip(outputs[TOKEN_IDS], outputs[MASKED_LM_LOGITS], strict=True):
        filled.append([])
        for position in np.flatnonzero(ids == tokenizer.special_ids.mask):
            # A table padded with more rows than tokens has nothing to say there.
            scores = logits[position, first : first + len(vocabulary)].astype(float)
            exponents = np.exp(scores - scores.max())
            probabilities = exponents / exponents.sum()
            best = np.argsort(-probabilities, kind="stable")[:most]
            filled[-1].append(
                [Candidate(vocabulary[i], float(probabilities[i])) for i in best]
            )
    return filled

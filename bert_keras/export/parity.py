"""Do two artefacts give the same answers? Nothing leaves without this check."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_keras.export.artefacts import Artefact, Outputs, Text
from bert_keras.features import (
    EMBEDDING,
    END_LOGITS,
    LABEL_LOGITS,
    MASKED_LM_LOGITS,
    POOLED_OUTPUT,
    START_LOGITS,
    TAG_LOGITS,
    TOKEN_IDS,
)

TOLERANCE = 1e-5
QUANTIZED_AGREEMENT = 0.98

# Short and long, empty and blank, several scripts, accents, controls, an emoji, a long
# word, special tokens typed by a user.
TEXTS = (
    "The quick brown fox jumps over the lazy dog.",
    "",
    "Welcome to HuggingFace Forums!",
    "   ",
    "café naïve Tōkyō Việt Straße ΣΣ ΟΣ",
    "the capital of France is [MASK].",
    "x[SEP]y [CLS] [PAD] [UNK] [mask]",
    "中文和日本語のテキスト, 한국어도",
    "Привет, мир! مرحبا بالعالم नमस्ते दुनिया",
    "ice\ncream\tand\r\nred wine, a\x00b\u200bc\ufeff",
    "nice🚀 day 🚀",
    "a" * 100 + " " + "b" * 101,
    "Don't stop -- 3.14% of (all) $5 e-mails: user@example.com/path?q=1#top",
    "return the element-wise sum of the input arrays along the given axis " * 20,
)

# Each batch size is another shape; so is each length in it.
BATCHES = (TEXTS, *((text,) for text in TEXTS), TEXTS[:3])
PAIRS = tuple(zip(TEXTS, (*TEXTS[3:], *TEXTS[:3]), strict=True))
PAIR_BATCHES = (PAIRS, *((pair,) for pair in PAIRS), PAIRS[:3])

# What a row has vectors in, and logits of choices: for every token, or for the row.
_VECTORS = (EMBEDDING, POOLED_OUTPUT)
_TOKEN_CHOICES = (MASKED_LM_LOGITS, TAG_LOGITS)
_ROW_CHOICES = (LABEL_LOGITS, START_LOGITS, END_LOGITS)


class Difference(NamedTuple):
    """How far an artefact is from the reference.

    Attributes:
        kind: of the artefact.
        texts: texts that were compared, over all batches.
        wrong_ids: token ids that differ.
        largest: greatest absolute difference of any float output.
        least_cosine: least cosine between embeddings, or between pooled outputs; 1.0
            for a model with neither.
        same_labels: share of the choices that are the same: of pieces or tags for the
            tokens, of classes or of first and last tokens for the rows; 1.0 for a model
            that chooses nothing.
        is_quantized: whether the artefact's weights are int8.
    """

    kind: str
    texts: int
    wrong_ids: int
    largest: float
    least_cosine: float
    same_labels: float
    is_quantized: bool

    @property
    def passes(self) -> bool:
        """All ids are equal, and all floats within 1e-5; or, of int8, near enough."""
        if self.wrong_ids:
            return False
        if self.is_quantized:
            return min(self.least_cosine, self.same_labels) >= QUANTIZED_AGREEMENT
        return self.largest <= TOLERANCE

    def __str__(self) -> str:
        return (
            f"{self.wrong_ids} wrong ids, floats up to {self.largest:.1e} away, least "
            f"cosine {self.least_cosine:.4f}, {self.same_labels:.1%} the same choices"
        )


def compare(
    reference: Artefact,
    other: Artefact,
    batches: Sequence[Sequence[Text]] | None = None,
) -> Difference:
    """Runs both on the same batches, by default short and hard ones."""
    if batches is None:
        batches = PAIR_BATCHES if reference.task.text_pairs else BATCHES
    pad = reference.preprocessor.tokenizer.special_ids.pad
    wrong_ids, largest, cosines, same = 0, 0.0, [], []
    for batch in batches:
        expected, answered = reference.run(batch), other.run(batch)
        wrong_ids += _wrong_ids(expected[TOKEN_IDS], answered[TOKEN_IDS])
        largest = max(largest, _largest_difference(expected, answered))
        if wrong_ids == 0 and np.isfinite(largest):
            cosines.append(_cosines(expected, answered))
            same.append(_same_choices(expected, answered, pad))
    return Difference(
        kind=other.kind,
        texts=sum(map(len, batches)),
        wrong_ids=wrong_ids,
        largest=largest,
        least_cosine=float(np.min(np.concatenate(cosines))) if cosines else 0.0,
        same_labels=_share(same) if same else 0.0,
        is_quantized=other.is_quantized,
    )


def _share(found: list[np.ndarray]) -> float:
    choices = np.concatenate(found)
    return float(choices.mean()) if choices.size else 1.0


def _wrong_ids(expected: np.ndarray, answered: np.ndarray) -> int:
    if expected.shape != answered.shape:
        return max(expected.size, answered.size)
    return int((expected != answered).sum())


def _largest_difference(expected: Outputs, answered: Outputs) -> float:
    """Returns infinity where an output lacks, has another shape or is not a number."""
    largest = 0.0
    for name, value in expected.items():
        if name == TOKEN_IDS:
            continue
        found = answered.get(name)
        if found is None or found.shape != value.shape:
            return np.inf
        differences = np.abs(found.astype(np.float64) - value)
        if np.isnan(differences).any():
            return np.inf
        largest = max(largest, float(differences.max(initial=0.0)))
    return largest


def _cosines(expected: Outputs, answered: Outputs) -> np.ndarray:
    names = [name for name in _VECTORS if name in expected]
    if not names:
        return np.ones(len(expected[TOKEN_IDS]))
    one, other = expected[names[0]], answered[names[0]]
    lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
    return (one * other).sum(axis=-1) / lengths


def _same_choices(expected: Outputs, answered: Outputs, pad: int) -> np.ndarray:
    found = [np.ones(0, bool)]
    for name in (*_TOKEN_CHOICES, *_ROW_CHOICES):
        if name in expected:
            one, other = (o[name].argmax(axis=-1) for o in (expected, answered))
            same = one == other
            found.append(same[expected[TOKEN_IDS] != pad] if same.ndim > 1 else same)
    return np.concatenate(found)

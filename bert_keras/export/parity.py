"""Do two artefacts give the same answers? Nothing leaves without this check."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_keras.export.artefacts import Artefact, Outputs, Text
from bert_keras.features import TOKEN_IDS

TOLERANCE = 1e-5

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


class Difference(NamedTuple):
    """How far an artefact is from the reference.

    Attributes:
        kind: of the artefact.
        texts: texts that were compared, over all batches.
        wrong_ids: token ids that differ.
        largest: greatest absolute difference of any float output.
    """

    kind: str
    texts: int
    wrong_ids: int
    largest: float

    @property
    def is_equal(self) -> bool:
        """Whether all ids are equal and all floats within 1e-5."""
        return self.wrong_ids == 0 and self.largest <= TOLERANCE


def compare(
    reference: Artefact,
    other: Artefact,
    batches: Sequence[Sequence[Text]] = BATCHES,
) -> Difference:
    """Runs both on the same batches."""
    wrong_ids, largest = 0, 0.0
    for batch in batches:
        expected, answered = reference.run(batch), other.run(batch)
        wrong_ids += _wrong_ids(expected[TOKEN_IDS], answered[TOKEN_IDS])
        largest = max(largest, _largest_difference(expected, answered))
    return Difference(other.kind, sum(map(len, batches)), wrong_ids, largest)


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
        largest = max(largest, float(differences.max(initial=0.0)))
        if np.isnan(differences).any():
            return np.inf
    return largest

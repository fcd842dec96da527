"""Texts from standard input and results to standard output, as JSON lines."""

import json
import sys
from collections.abc import Iterator
from typing import TextIO

from bert_keras.export.artefacts import Text

_LINES_AT_ONCE = 256


def batches(pairs: bool) -> Iterator[list[Text]]:
    """Yields the texts on standard input; all of a batch single, or all pairs."""
    batch: list[Text] = []
    for number, line in enumerate(sys.stdin.buffer, 1):
        text = _text_of(line, number, pairs)
        is_other = batch and isinstance(batch[0], str) != isinstance(text, str)
        if is_other or len(batch) == _LINES_AT_ONCE:
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


def _text_of(line: bytes, number: int, pairs: bool) -> Text:
    try:
        text = json.loads(line.decode("utf-8"))
    except ValueError as error:  # UnicodeDecodeError and JSONDecodeError are such
        raise ValueError(f"Line {number} of the input is not JSON: {error}") from error
    if isinstance(text, str):
        return _whole(text)
    is_pair = isinstance(text, list) and len(text) == 2
    if pairs and is_pair and all(isinstance(part, str) for part in text):
        return tuple(map(_whole, text))
    raise ValueError(
        f"Line {number} of the input is no text. Received: {str(text)[:80]}; "
        f"allowed: a JSON string{' or a list of two' if pairs else ''}."
    )


def _whole(text: str) -> str:
    """Replaces halves of surrogate pairs, which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def write(value, results: TextIO) -> None:
    """Writes one result."""
    print(json.dumps(value, ensure_ascii=False), file=results, flush=True)

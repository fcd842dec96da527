"""Files: written so that there is never half of one."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class AnotherRunError(ValueError):
    """A folder holds work that was begun with other arguments."""


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """Yields a path beside `path` to write to, and then renames what was written.

    Where writing fails nothing is left, and a file that was there before stays.

    Raises:
        OSError: naming `path` itself, if its folder cannot be written to.
    """
    path = Path(path)
    try:
        folder = tempfile.TemporaryDirectory(dir=path.parent, prefix=".writing-")
    except OSError as error:
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    with folder as name:
        yield Path(name) / path.name
        os.replace(Path(name) / path.name, path)


def write_json(value, path: str | os.PathLike, indent: int | None = 2) -> None:
    """Writes JSON beside `path`, then renames it."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=indent) + "\n", encoding="utf-8")


def read_json(path: str | os.PathLike):
    """Reads JSON; a `ValueError` names a file that is none."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} is not JSON: {error}") from error

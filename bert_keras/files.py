"""Writing a file so that there is never half of one."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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

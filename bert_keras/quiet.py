"""Loading TensorFlow without its notices, for the command line."""

import os
import sys
import tempfile


def import_tensorflow_quietly() -> None:
    """Imports TensorFlow with standard error put aside.

    It writes notices of the machine there before any setting can stop it, and they
    would drown the one line that a command has to say. If the import fails, what was
    put aside is shown.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as aside:
        os.dup2(aside.fileno(), 2)
        try:
            import tensorflow  # noqa: F401
        except BaseException:
            aside.seek(0)
            os.write(stderr, aside.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)

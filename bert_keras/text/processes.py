"""Counting words in several processes.

Each process counts one part of the corpus after the other and answers with all its
words at the end. The result does not depend on which one counts what: sums have no
order.

The processes are plain Python programs that are told what to do through pipes. Copies
of this one (fork) would inherit TensorFlow's threads in whatever state they are, and
those of `multiprocessing` (spawn) would import what the main program imports.
"""

import contextlib
import pickle
import queue
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

from bert_keras.text.counter import Strings, WordCounter
from bert_keras.text.lines import Span
from bert_keras.text.options import TokenizerOptions

# The package's own __init__ imports TensorFlow: seconds, for nothing.
_PROGRAM = """
import pickle, sys, types
sys.path, folder = pickle.load(sys.stdin.buffer)
sys.modules["bert_keras"] = types.ModuleType("bert_keras")
sys.modules["bert_keras"].__path__ = [folder]
from bert_keras.text.processes import serve
serve()
"""


def count_in_processes(
    parts: Iterable[Span | Strings],
    options: TokenizerOptions,
    names: tuple[str, ...],
    processes: int,
    done: Callable[[int], None],
) -> Counter[str]:
    """Counts the words of all parts.

    Args:
        parts: of the corpus; taken one at a time, when a process is free.
        options, names: as `WordCounter`.
        processes: how many at most; one is started for each part until then.
        done: called with the bytes or strings of each part that is counted.

    Raises:
        As `WordCounter.read`; ChildProcessError: a process was ended from outside.
    """
    words: Counter[str] = Counter()
    with ThreadPoolExecutor(processes) as threads, contextlib.ExitStack() as stack:
        children: list[subprocess.Popen] = []
        free: queue.SimpleQueue[subprocess.Popen] = queue.SimpleQueue()

        def count(part: Span | Strings) -> int:
            child = free.get()
            try:
                return _ask(child, part)
            finally:
                free.put(child)

        waiting = set()
        for part in parts:
            if len(children) < processes:
                children.append(stack.enter_context(_child(options, names)))
                free.put(children[-1])
            if len(waiting) == processes:
                ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for answer in ready:
                    done(answer.result())
            waiting.add(threads.submit(count, part))
        for answer in waiting:
            done(answer.result())
        for found in threads.map(_ask, children, [None] * len(children)):
            words.update(found)
    return words


def serve() -> None:
    """The life of a counting process: it answers what stands on its standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent sees to it
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    counter = WordCounter(*pickle.load(questions))
    while (part := pickle.load(questions)) is not None:
        try:
            answer = sum(counter.read(part))
        except Exception as error:
            answer = error
        pickle.dump(answer, answers)
        answers.flush()
    counter.finish()
    pickle.dump(dict(counter.words), answers)
    answers.flush()


@contextlib.contextmanager
def _child(
    options: TokenizerOptions, names: tuple[str, ...]
) -> Iterator[subprocess.Popen]:
    """Starts a counting process and ends it, whatever it does then."""
    with subprocess.Popen(
        [sys.executable, "-I", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        try:
            folder = str(Path(__file__).parents[1])
            pickle.dump((sys.path, folder), child.stdin)
            pickle.dump((options, names), child.stdin)
            yield child
        finally:
            child.kill()
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()


def _ask(child: subprocess.Popen, part: Span | Strings | None):
    """Returns a child's answer about one part, or in the end (None) its words."""
    try:
        pickle.dump(part, child.stdin)
        child.stdin.flush()
        answer = pickle.load(child.stdout)
    except (BrokenPipeError, EOFError, pickle.UnpicklingError) as error:
        raise ChildProcessError(
            f"A process that counts words was ended. Received: exit status "
            f"{child.wait()}; allowed: that it lives until all is counted. Is there "
            "enough memory? Fewer processes need less."
        ) from error
    if isinstance(answer, Exception):
        raise answer
    return answer

"""Work in several processes: each takes one part of the work after the other.

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
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Protocol

# The package's own __init__ imports TensorFlow: seconds, for those that only count.
_PROGRAM = """
import pickle, sys, types
sys.path, folder = pickle.load(sys.stdin.buffer)
sys.modules["bert_keras"] = types.ModuleType("bert_keras")
sys.modules["bert_keras"].__path__ = [folder]
from bert_keras.text.processes import serve
serve()
"""


class Worker(Protocol):
    """What is made in each process."""

    def work(self, part) -> int:
        """Does a part, and returns how much of the whole it was."""

    def result(self):
        """Returns what came of all its parts."""


def in_processes(
    make: Callable[..., Worker],
    arguments: tuple,
    parts: Iterable,
    processes: int,
    done: Callable[[int], None],
) -> Iterator:
    """Yields the result of each worker, when all parts are done.

    Which of them does what part is left to chance, and must not matter.

    Args:
        make: makes a worker, in a process of its own; a class or function of a module.
        arguments: of `make`.
        parts: of the work; taken one at a time, when a process is free.
        processes: how many at most; one is started for each part until then.
        done: called with how much each part was.

    Raises:
        What a worker raises; ChildProcessError: a process was ended from outside.
    """
    with ThreadPoolExecutor(processes) as threads, contextlib.ExitStack() as stack:
        children: list[subprocess.Popen] = []
        free: queue.SimpleQueue[subprocess.Popen] = queue.SimpleQueue()

        def work(part) -> int:
            child = free.get()
            try:
                return _ask(child, part)
            finally:
                free.put(child)

        waiting = set()
        for part in parts:
            if len(children) < processes:
                children.append(stack.enter_context(_child(make, arguments)))
                free.put(children[-1])
            if len(waiting) == processes:
                ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for answer in ready:
                    done(answer.result())
            waiting.add(threads.submit(work, part))
        for answer in waiting:
            done(answer.result())
        yield from threads.map(_ask, children, [None] * len(children))


def serve() -> None:
    """The life of a process: it answers what stands on its standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent sees to it
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever a library prints must not get among the answers
    make, arguments = pickle.load(questions)
    worker = make(*arguments)
    while (part := pickle.load(questions)) is not None:
        try:
            answer = worker.work(part)
        except Exception as error:
            answer = error
        pickle.dump(answer, answers)
        answers.flush()
    pickle.dump(worker.result(), answers)
    answers.flush()


@contextlib.contextmanager
def _child(make: Callable, arguments: tuple) -> Iterator[subprocess.Popen]:
    """Starts a process and ends it, whatever it does then."""
    with subprocess.Popen(
        [sys.executable, "-I", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        try:
            folder = str(Path(__file__).parents[1])
            pickle.dump((sys.path, folder), child.stdin)
            pickle.dump((make, arguments), child.stdin)
            yield child
        finally:
            child.kill()
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()


def _ask(child: subprocess.Popen, part):
    """Returns a child's answer about one part, or in the end (None) its result."""
    try:
        pickle.dump(part, child.stdin)
        child.stdin.flush()
        answer = pickle.load(child.stdout)
    except (BrokenPipeError, EOFError, pickle.UnpicklingError) as error:
        raise ChildProcessError(
            f"A process that works on the corpus was ended. Received: exit status "
            f"{child.wait()}; allowed: that it lives until all is done. Is there "
            "enough memory? Fewer processes need less."
        ) from error
    if isinstance(answer, Exception):
        raise answer
    return answer

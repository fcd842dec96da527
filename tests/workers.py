"""Processes that train together, for tests; on 127.0.0.1, and ended by their own id."""

import json
import os
import socket
import subprocess
import sys

PATIENCE = 240  # seconds


def started(program, *arguments, **environment):
    """Starts a Python program."""
    return subprocess.Popen(
        [sys.executable, str(program), *map(str, arguments)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(processes):
    """Waits for all of them; ends the others where one fails."""
    try:
        for process in processes:
            said, _ = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0, said[-3000:]
    finally:
        ended(processes)


def ended(processes):
    """Ends processes, whatever they do."""
    for process in processes:
        process.kill()
        process.communicate()


def clusters(count):
    """Returns the TF_CONFIG of each worker of a cluster."""
    workers = [f"127.0.0.1:{port}" for port in _free_ports(count)]
    return [
        json.dumps(
            {
                "cluster": {"worker": workers},
                "task": {"type": "worker", "index": number},
            }
        )
        for number in range(count)
    ]


def _free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()

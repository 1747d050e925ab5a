"""Light runs beside each other: in this process, and in others that end with it.

Each process takes the next run when it is done with its last, so results arrive in the order in which they were asked
for, as far as cores allow. A single run, or what is done in a moment, stays in this process: another one takes a second
to start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from capbias_core.errors import installed
from capbias_core.measures.training import free_memory

# Seconds that runs are expected to take, from which on they are shared.
WORTH = 10.0
# Bytes that a run may take: on a million captions it does.
MEMORY = 2.5e9
Run = tuple[str, str]


def at_once(runs: int, seconds: float) -> int:
    """How many processes share some light runs: one a core, if memory allows it. seconds: that the runs take."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    most = min(runs, cores)
    if most < 2 or seconds < WORTH or not (installed("psutil") and installed("distributed")):
        return 1
    return min(most, 1 + int(free_memory() / MEMORY))


def share(
    folder: str, runs: Iterable[Run], processes: int, here: Callable[[str, str], None], lost: Callable[[str, str], None]
) -> None:
    """Compute queued runs of the workspace at `folder`: by `here` in this process, and in others beside it.

    runs: id and token of each. lost: is told of a run whose process ended before it did.
    """
    waiting = deque(runs)
    threads = [
        threading.Thread(target=_elsewhere, args=(folder, waiting, lost), daemon=True) for _ in range(processes - 1)
    ]
    for thread in threads:
        thread.start()
    for run in _taken(waiting):
        here(*run)
    for thread in threads:
        thread.join()


def _taken(waiting: deque[Run]) -> Iterator[Run]:
    """What waits, each run by whoever asks for it first."""
    with suppress(IndexError):
        while True:
            yield waiting.popleft()


def _elsewhere(folder: str, waiting: deque[Run], lost: Callable[[str, str], None]) -> None:
    """Hand one run after the other to a process, until none waits or the process is lost."""
    command = [sys.executable, "-m", "capbias_core.runs.worker", folder]
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=environ) as process:
        assert process.stdin and process.stdout
        for run in _taken(waiting):
            with suppress(BrokenPipeError):
                process.stdin.write(" ".join([*run, "\n"]).encode())
            if not process.stdout.readline():
                lost(*run)
                return

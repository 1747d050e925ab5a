"""An Executor on this machine, and the environments that its processes get. `python -m` this module is such a process.

ProcessPoolExecutor does not fit: if one process dies all calls fail, the interpreter waits for running calls when it
ends, all processes share one environment, and each imports `__main__`, which in the web server is a page.
"""

from __future__ import annotations

import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from capbias_core.attackers.device import CUBLAS
from capbias_core.errors import installed
from capbias_core.processes import python

IDLE_SECONDS = 300.0  # then a process ends; the next call starts another one
STOP_SECONDS = 5.0  # that a running call gets at shutdown
# Light runs that take less in total stay in this process, since another one takes a second to start.
MIN_SECONDS_TO_SHARE = 10.0
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
MEMORY_OF_A_RUN = 2.5e9  # bytes; a run on a million captions takes as many
GPUS = "CUDA_VISIBLE_DEVICES"
Environment = dict[str, str]
P = ParamSpec("P")
T = TypeVar("T")


class LocalWorkers(Executor):
    """Computes calls in the order of submission, each in the next free slot. `slots`: how many are used.

    A slot without an environment computes in this process, others each in a process that the first call starts. That
    process ends when it is idle for long, and with this process. If it dies, the call that it was computing raises
    BrokenExecutor.
    """

    def __init__(self, environments: Sequence[Environment | None], slots: int | None = None):
        self.environments = environments
        self.slots = len(environments) if slots is None else slots
        self._calls: queue.Queue[tuple[Future, Callable] | None] = queue.Queue()
        self._threads: dict[int, threading.Thread] = {}
        self._processes: dict[int, subprocess.Popen] = {}
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._calls.put((future, partial(fn, *args, **kwargs)))
            for slot in range(self.slots):
                if slot not in self._threads:
                    self._threads[slot] = threading.Thread(target=self._serve, args=(slot,), daemon=True)
                    self._threads[slot].start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all processes. With cancel_futures, waiting calls are cancelled, and running ones in processes are killed
        after STOP_SECONDS."""
        with self._lock:
            self._closed = True
            with suppress(queue.Empty):  # a slot may take the last call meanwhile
                while cancel_futures:
                    if call := self._calls.get_nowait():
                        call[0].cancel()
            threads = dict(self._threads)
            for _ in threads:
                self._calls.put(None)
        end = time.monotonic() + STOP_SECONDS
        for slot, thread in threads.items() if wait else ():
            if cancel_futures and self.environments[slot] is not None:
                thread.join(max(0.0, end - time.monotonic()))
                if process := self._processes.get(slot):
                    process.kill()
            thread.join()

    def _serve(self, slot: int) -> None:
        while call := self._next(slot):
            future, function = call
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(self._compute(slot, function))
                except BaseException as error:  # of any kind: whoever has the future gets it
                    future.set_exception(error)

    def _next(self, slot: int) -> tuple[Future, Callable] | None:
        """The next call, or None if the slot's thread must end: after a shutdown, or when it was idle for long."""
        try:
            call = self._calls.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            call = None
        with self._lock:
            if call is None and not self._closed:
                with suppress(queue.Empty):
                    call = self._calls.get_nowait()  # it was submitted meanwhile, and counted on this thread
            if call is not None:
                return call
            del self._threads[slot]
            process = self._processes.pop(slot, None)  # before another thread of this slot may use it
        if process:
            process.communicate()  # which closes its input, so that it ends
        return None

    def _compute(self, slot: int, function: Callable):
        environment = self.environments[slot]
        if environment is None:
            return function()
        process = self._processes.get(slot)
        if process is None or process.poll() is not None:
            command, variables = python("-m", __name__, **environment)
            pipe = subprocess.PIPE
            process = self._processes[slot] = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=variables)
        assert process.stdin and process.stdout
        try:
            pickle.dump(function, process.stdin)
            process.stdin.flush()
            result, error = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            del self._processes[slot]
            process.kill()
            process.communicate()
            raise BrokenExecutor("the process ended before its call did") from None
        if error is not None:
            raise error
        return result


def main() -> None:
    """Compute the calls from standard input, answer each on standard output, and end with the input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the parent cancels
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    calls: queue.SimpleQueue[Callable] = queue.SimpleQueue()

    def read() -> None:
        try:
            while True:
                calls.put(pickle.load(sys.stdin.buffer))
        finally:
            os._exit(0)  # also in the middle of a call: the process that asked for it is gone

    threading.Thread(target=read, daemon=True).start()
    while True:
        function = calls.get()
        try:
            data = pickle.dumps((function(), None))
        except Exception as error:
            try:
                data = pickle.dumps((None, error))
                pickle.loads(data)
            except Exception:  # an error that cannot be sent
                data = pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
        answers.write(data)
        answers.flush()


def light_environments() -> list[Environment | None]:
    """A slot for each core: the first in this process, the others in processes of one thread."""
    return [None, *({"OMP_NUM_THREADS": "1"} for _ in range(_cores() - 1))]


def light_slots(runs: int, seconds: float) -> int:
    """How many of these slots light runs use, if memory allows it. seconds: that the runs take in total."""
    most = min(runs, _cores())
    if most < 2 or seconds < MIN_SECONDS_TO_SHARE or not installed("psutil"):
        return 1
    return min(most, 1 + int(free_memory() / MEMORY_OF_A_RUN))


def free_memory() -> int:
    """Bytes that this process may still take: what is free on the machine, or left of its container's limit."""
    import psutil

    free = [psutil.virtual_memory().available]
    for file in CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # no such file, or `max`
            free.append(int(Path(file).read_text()) - psutil.Process().memory_info().rss)
    return max(0, min(free))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def torch_environments() -> list[Environment]:
    """A slot for runs with torch, or one per GPU if there are several. Together they have a thread per core."""
    gpus = visible_gpus()
    threads = str(max(1, (os.cpu_count() or 1) // max(1, len(gpus))))
    common = {
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        # Threads that wait for each other must not spin: beside a busy server and browser that costs a hundredfold.
        "OMP_WAIT_POLICY": "PASSIVE",
        # Read when a process first uses CUDA, so that a later run may ask for deterministic algorithms.
        CUBLAS[0]: CUBLAS[1],
    }
    return [common | {GPUS: gpu} for gpu in gpus] if len(gpus) > 1 else [common]


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, by their names in CUDA_VISIBLE_DEVICES. Needs no torch."""
    if GPUS in os.environ:
        return [name for part in os.environ[GPUS].split(",") if (name := part.strip()) and name != "-1"]
    program = shutil.which("nvidia-smi")
    if not program:
        return []
    try:
        listed = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = [line for line in listed.stdout.splitlines() if line.startswith("GPU ")]
    return [str(number) for number in range(len(lines))]


if __name__ == "__main__":
    main()

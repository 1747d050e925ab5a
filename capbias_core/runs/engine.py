"""Starts workers for the runs that this process queues.

Light runs are computed in a thread here, and in processes if they take long. Runs with torch are computed in other
processes, or on the Dask cluster that CAPBIAS_SCHEDULER names. The queue, progress and ends are in the workspace, so
that a reload, another tab and another process see them.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from weakref import WeakSet

from capbias_core.attackers import attacker_entry
from capbias_core.data import Data
from capbias_core.errors import CapbiasError, installed, need
from capbias_core.language.device import CUBLAS, GPUS, visible_gpus
from capbias_core.measures.registry import MEASURES
from capbias_core.processes import python
from capbias_core.runs.run import Stopped, Watch, failure, is_current, needs_workers, read_by
from capbias_core.worker import STOP_SECONDS, execute, execute_all
from capbias_core.workspace.catalogue import WorkspaceError, this_process
from capbias_core.workspace.sources import data_of
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import ACTIVE, RunRow, Workspace

BEAT = 0.5  # seconds between two looks at the runs of this process
TABLE_CAPTIONS = 15_000  # for which measures give their seconds
SHARE_TO_TRUST = 0.25  # of the expected work: from then on the time left follows what it took alone
TORCH_START_SECONDS = 5.0
# Light runs that take less in total stay in this process, since another one takes a second to start.
MIN_SECONDS_TO_SHARE = 10.0
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
MEMORY_OF_A_RUN = 2.5e9  # bytes; a run on a million captions takes as many


Watching = Callable[[Sequence[RunSpec]], AbstractContextManager[Watch]]
_OPEN: WeakSet[Engine] = WeakSet()  # engines of this process, which share worker processes


class Engine:
    """Queues runs of one workspace, starts workers for them, and watches them while any is under way."""

    def __init__(self, folder: Path | str, read_only: bool = False, here: bool = False):
        """here: every run is computed in this process, those with torch too."""
        self.here = here
        self.workspace = Workspace(folder, make=not read_only, read_only=read_only)
        self.folder = str(self.workspace.folder)
        self._started: dict[str, Future | None] = {}  # runs under way -> their call on a cluster
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._light: threading.Thread | None = None
        self._watcher: threading.Thread | None = None
        _OPEN.add(self)

    def submit(self, specs: Sequence[RunSpec], collection: str) -> list[str]:
        """Start the runs that are neither finished nor under way; returns their ids. Raises CapbiasError if one of them
        needs a Dask cluster that does not answer."""
        known = self.workspace.runs_of([spec.run_id for spec in specs])
        todo = [spec for spec in specs if spec.run_id not in known or known[spec.run_id].status != "finished"]
        light = [spec for spec in todo if self._is_light(spec)]
        cluster = dask_executor() if len(light) < len(todo) else None
        slots = 1 if self.here else light_slots(len(light), sum(expected(self.workspace, light).each.values()))
        started: list[str] = []
        try:
            for spec in todo:
                with self._lock:
                    if self._enqueue(spec, collection, None if self._is_light(spec) else cluster):
                        started.append(spec.run_id)
        finally:
            if started:
                self._start_threads()
            if light and slots > 1:
                wake_workers("light", self.folder, slots - 1)
            if len(light) < len(todo) and not cluster:
                wake_workers("torch", self.folder)
        return started

    def _is_light(self, spec: RunSpec) -> bool:
        """Whether a run is computed in this process."""
        return self.here or not needs_workers(spec)

    def _enqueue(self, spec: RunSpec, collection: str, cluster: Executor | None) -> bool:
        try:
            if not self.workspace.enqueue(spec, collection):
                return False
            self._started[spec.run_id] = cluster.submit(execute, self.folder, spec.run_id) if cluster else None
            return True
        except BaseException:  # such as Ctrl-C in between, after which nobody would cancel the run
            if (run := self.workspace.run(spec.run_id)) and run.process == this_process():
                self.workspace.end_here(spec.run_id, "cancelled", "cancelled", run.token)
            raise

    def cancel(self, run_id: str) -> bool:
        """Stop a run: a queued one at once, a running one at its next report (a second or two). Raises WorkspaceError
        for a run of another process if that cannot be noted."""
        end = self.workspace.end_here if run_id in self._started else self.workspace.end
        changed = end(run_id, "cancelled", "cancelled")
        if changed and (call := self._started.get(run_id)):
            call.cancel()
        return changed

    def cancel_all(self) -> int:
        """Stop every run that is under way; returns how many."""
        # The newest first: those that wait before the one that runs, so that none starts in between.
        return sum(self.cancel(run.run_id) for run in self.workspace.runs() if run.status in ACTIVE)

    def repeat_all(self) -> int:
        """Start every run of `unfinished` again; returns how many."""
        runs = unfinished(self.workspace)
        for collection in dict.fromkeys(run.collection for run in runs):
            self.submit([run.spec for run in runs if run.collection == collection], collection)
        return len(runs)

    def wait(self, run_ids: Sequence[str], on_change=None, every: float = 0.1) -> list[RunRow]:
        """The runs, once none of them is under way in any process; on_change(rows) is called each time."""
        while True:
            # If the worker of a run died, a cluster may give the run to another one.
            repeatable = {run_id for run_id, call in list(self._started.items()) if call and not call.done()}
            rows = list(self.workspace.runs_of(run_ids).values())
            if on_change:
                on_change(rows)
            if not any(row.status in ACTIVE or (row.status == "died" and row.run_id in repeatable) for row in rows):
                return rows
            time.sleep(every)

    def close(self) -> None:
        """Cancel what this engine started and has not finished. Worker processes end with the last engine of this
        process. If an end cannot be written by then, others see that the process is gone."""
        self._stopping.set()
        for run_id in reversed(list(self._started)):  # those that wait first, so that none starts
            with suppress(CapbiasError):
                self.cancel(run_id)
        for thread in (self._light, self._watcher):
            if thread:
                thread.join()
        _OPEN.discard(self)
        if not _OPEN:
            end_workers()

    def _start_threads(self) -> None:
        """Start what computes light runs and what watches all, unless they are at work."""
        with self._lock:
            if not (self._watcher and self._watcher.is_alive()):
                self._watcher = threading.Thread(target=self._watch, daemon=True)
                self._watcher.start()
            if not (self._light and self._light.is_alive()):
                self._light = threading.Thread(target=self._compute, daemon=True)
                self._light.start()

    def _compute(self) -> None:
        """Compute the light runs of this engine, one after another, until none waits."""
        accepts = lambda run: run.run_id in self._started and self._is_light(run.spec)  # noqa: E731
        try:
            execute_all(self.folder, accepts, self._stopping)
        except WorkspaceError as error:  # such as a full disk
            self._fail(self._waiting(light=True), str(error))

    def _watch(self) -> None:
        """Until no run is left, note ends that could not be noted before, and wake workers for runs that wait."""
        while not self._stopping.wait(BEAT):
            with suppress(WorkspaceError):  # locked for long, or a full disk: the next time may get through
                self.workspace.write_ends()
            with suppress(WorkspaceError), self._lock:
                runs = self.workspace.runs_of(list(self._started))
                for run_id, call in list(self._started.items()):
                    if self._is_over(runs.get(run_id), call):
                        del self._started[run_id]
                if not self._started:
                    self._watcher = None
                    return
            if self._waiting(light=True):
                self._start_threads()
            if (waiting := self._waiting(light=False)) and (failure := wake_workers("torch", self.folder)):
                self._fail(waiting, failure)

    def _is_over(self, run: RunRow | None, call: Future | None) -> bool:
        """Whether the end of a run is in the catalogue. Notes an end that its worker did not note."""
        if run is None or run.finished is not None:
            return True
        if call is None:
            if run.status == "died":
                self.workspace.end_here(run.run_id, "died", run.message, run.token)
            return False
        if not call.done():
            return False
        error = None if call.cancelled() else call.exception()
        if call.cancelled() or type(error).__name__ == "KilledWorker":  # Dask's
            end = "died", "its process ended before the run did; repeat the run"
        elif isinstance(error, Exception):
            end = "failed", failure(error)
        else:
            end = "failed", "its worker did not find it: workers must see the workspace folder under the same path"
        self.workspace.end_here(run.run_id, *end)
        return False  # the next look sees whether it is written

    def _waiting(self, light: bool) -> list[str]:
        """Queued runs of this engine for the workers of this process."""
        with suppress(WorkspaceError):
            runs = self.workspace.runs_of([run_id for run_id, call in list(self._started.items()) if not call])
            return [
                run_id for run_id, run in runs.items() if run.status == "queued" and self._is_light(run.spec) == light
            ]
        return []

    def _fail(self, run_ids: Sequence[str], reason: str) -> None:
        for run_id in run_ids:
            self.workspace.end_here(run_id, "failed", reason)


def unwatched(_new: Sequence[RunSpec]) -> AbstractContextManager[Watch]:
    """Nobody watches runs."""
    return nullcontext(lambda rows: None)


def run_all(
    workspace: Workspace,
    specs: Sequence[RunSpec],
    collection: str,
    workers: bool = False,
    watching: Watching = unwatched,
    stopped: Stopped = None,
) -> list[RunRow]:
    """Compute what is not finished yet, and wait for all. Runs of another process are waited for, and started here if
    that process dies. If it is stopped, the runs that were started here are cancelled.

    workers: runs with torch go to worker processes or a cluster, and long ones to further cores. watching: gets the
    runs that were started, for a block in which what it gives gets all runs now and then. stopped: gets what stopped
    it; the runs are then returned as they are. Without it a stop is raised.
    """
    run_ids, started, todo = [spec.run_id for spec in specs], set[str](), list(specs)
    known = workspace.runs_of(run_ids)
    if all(run_id in known and known[run_id].status == "finished" for run_id in run_ids):
        return list(known.values())
    engine = Engine(workspace.folder, here=not workers)
    try:
        while True:
            new = set(engine.submit(todo, collection))
            started |= new
            with watching([spec for spec in todo if spec.run_id in new]) as watch:
                rows = engine.wait(run_ids, watch)
            todo = [row.spec for row in rows if row.status == "died" and row.run_id not in started]
            if not todo:
                return rows
    except BaseException as error:
        engine.close()  # which cancels what was started here
        if stopped is None or not isinstance(error, KeyboardInterrupt):
            raise
        stopped(error)
        return list(engine.workspace.runs_of(run_ids).values())
    finally:
        engine.close()


def unfinished(workspace: Workspace) -> list[RunRow]:
    """Runs that failed, died or were cancelled, oldest first; not those of an earlier version, whose numbers differ."""
    over = [run for run in workspace.runs() if run.status not in (*ACTIVE, "finished")]
    return [run for run in reversed(over) if is_current(run.spec)]


@cache
def engine_for(folder: str, read_only: bool = False) -> Engine:
    """The engine of a workspace folder, the same for all of this process."""
    return Engine(folder, read_only)


# worker processes, for all engines of this process


class Worker:
    """A process that computes queued runs; see `capbias_core.worker`."""

    def __init__(self, kind: str, environment: dict[str, str]):
        self.kind = kind
        self.environment = environment
        self.process: subprocess.Popen | None = None

    def wake(self, folder: str) -> str:
        """Let the process compute what is queued in this workspace. It is started if it is not running, also after it
        was killed. Returns why it cannot be used, '' if it can."""
        if code := self.process and self.process.poll():
            self.process = None
            if code > 0:
                return f"no worker takes it: its process ended with code {code}, and printed the reason"
        if self.process is None or self.process.poll() is not None:
            command, variables = python("-m", "capbias_core.worker", self.kind, this_process(), **self.environment)
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, env=variables)
        assert self.process.stdin
        with suppress(OSError):  # it ends just now: the next call starts another one
            self.process.stdin.write(json.dumps(folder).encode() + b"\n")
            self.process.stdin.flush()
        return ""


_workers: dict[str, list[Worker]] = {}  # by kind: light, torch
_clients: dict[str, Any] = {}  # of Dask, by the address of the scheduler
_lock = threading.Lock()


def wake_workers(kind: str, folder: str, most: int | None = None) -> str:
    """Let worker processes compute what this process has queued in a workspace. most: how many, by default all. Returns
    why one cannot be used, '' if all can."""
    with _lock:
        if kind not in _workers:
            environments = light_environments() if kind == "light" else torch_environments()
            _workers[kind] = [Worker(kind, environment) for environment in environments]
        return next(filter(None, [worker.wake(folder) for worker in _workers[kind][:most]]), "")


def end_workers() -> None:
    """End the worker processes, and the connection to a cluster."""
    with _lock:
        processes = [worker.process for workers in _workers.values() for worker in workers if worker.process]
        for process in processes:
            assert process.stdin
            with suppress(OSError):
                process.stdin.close()
        for process in processes:
            try:
                process.wait(STOP_SECONDS + 1)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for client in _clients.values():
            client.close()
        _workers.clear()
        _clients.clear()


def dask_executor() -> Executor | None:
    """The cluster for runs with torch; None without one. Raises CapbiasError if its scheduler does not answer."""
    address = os.environ.get("CAPBIAS_SCHEDULER", "")
    if not address:
        return None
    with _lock:
        client = _clients.get(address)
        if client is None or client.status != "running":
            need("A Dask cluster", "distributed")
            from distributed import Client

            try:
                client = _clients[address] = Client(address, timeout="10s", set_as_default=False)
            except (OSError, ValueError, TypeError) as error:  # also of what is no address
                raise CapbiasError(
                    f"No Dask scheduler answers at CAPBIAS_SCHEDULER={address} ({error}).",
                    "Start it, or unset CAPBIAS_SCHEDULER to use workers on this machine.",
                ) from None
        return client.get_executor(pure=False)


def light_environments() -> list[dict[str, str]]:
    """The environments of the processes for light runs: one per core besides this process, each with one thread."""
    return [{"OMP_NUM_THREADS": "1"}] * (_cores() - 1)


def light_slots(runs: int, seconds: float) -> int:
    """How many light runs are computed at once, this process included, if memory allows it. seconds: that the runs take
    in total."""
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


def torch_environments() -> list[dict[str, str]]:
    """The environments of the processes for runs with torch: one, or one per GPU if there are several. Together they
    have a thread per core."""
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


# how long runs take


@dataclass(frozen=True)
class Expected:
    """How long runs take on two free cores. each: seconds of each run, by id. seconds: of all runs together."""

    each: dict[str, float]
    seconds: float

    def left(self, rows: Sequence[RunRow]) -> tuple[float, float]:
        """The share of these runs that is done, from 0 to 1, and the seconds left, by what the done part took."""
        total = sum(self.each[row.run_id] for row in rows) or 1.0
        done = sum(self.each[row.run_id] * (row.progress if row.status in ACTIVE else 1.0) for row in rows) / total
        left = self.seconds * (1 - done)
        if done and (started := [row.started for row in rows if row.started]):
            # The first steps say little: loading takes time without progress.
            trust = min(1.0, done / SHARE_TO_TRUST)
            left += trust * ((time.time() - min(started)) * (1 - done) / done - left)
        return done, left


def captions_read(data: Data, measure: str) -> int:
    """How many captions of labelled images a run on this data reads, human ones included, after balancing if its
    measure balances."""
    labels, sets = data.labels, [captions.frame["image_id"] for captions in data.captions.values()]
    sets += [data.references.frame["image_id"]] if data.references else []
    for images in sets:
        labels = labels[labels.index.isin(images)]
    captions = sum(int(images.isin(labels.index).sum()) for images in sets)
    if not MEASURES[measure].balanced or labels.empty:
        return captions
    values = labels.value_counts()
    return round(captions * len(values) * values.min() / len(labels))


def expected(source: Workspace | Data, specs: Iterable[RunSpec]) -> Expected:
    """How long runs on a workspace or on data in hand take: light ones side by side, the others one after another."""

    def size(spec: RunSpec) -> int:
        """How many captions or photographs a run reads; TABLE_CAPTIONS if its inputs were deleted."""
        limits = [spec.options.get("max_images")]
        with suppress(CapbiasError):
            data = read_by(spec, source if isinstance(source, Data) else data_of(source, spec))
            if photographs := spec.options.get("photographs"):
                limits.append(len(data.sources.frame(photographs["item"])))
            if spec.captions:
                read = [spec.captions, spec.references, spec.labels, spec.attribute, spec.shared_with, spec.measure]
                key = hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()
                count = partial(captions_read, data, spec.measure)
                limits.append(data.sources.derived(f"captions read {key}", count, int))
        return min((limit for limit in limits if limit), default=TABLE_CAPTIONS)

    each: dict[str, float] = {}
    light: list[float] = []
    for spec in specs:
        rate = MEASURES[spec.measure].seconds / TABLE_CAPTIONS
        if spec.attacker:
            to_train, to_explain = attacker_entry(spec.attacker).seconds
            rate += (to_explain if MEASURES[spec.measure].explains else to_train) / 1000
        seconds = each[spec.run_id] = size(spec) * len(spec.seeds) * rate
        if needs_workers(spec):
            each[spec.run_id] += TORCH_START_SECONDS
        else:
            light.append(seconds)
    together = sum(light) / light_slots(len(light), sum(light))
    return Expected(each, sum(each.values()) - sum(light) + together)

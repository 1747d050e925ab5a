"""Runs are submitted to executors: light ones to this process and others like it, those with torch to processes of
their own or to the Dask cluster that CAPBIAS_SCHEDULER names.

Their progress and their ends are in the workspace, so that a reload, another tab and another process see them.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError, need
from capbias_core.runs.durations import expected
from capbias_core.runs.local_workers import LocalWorkers, light_environments, light_slots, torch_environments
from capbias_core.runs.run import add_later_metrics, execute, is_current, needs_workers
from capbias_core.workspace.catalogue import WorkspaceError
from capbias_core.workspace.people import check_own, may_change
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import ACTIVE, RunRow, Workspace

BEAT = 0.5  # seconds between two looks at the runs of this process


class Engine:
    """Submits runs of one workspace, and watches them while any is under way."""

    def __init__(self, folder: Path | str):
        self.workspace = Workspace(folder)
        self.folder = str(self.workspace.folder)
        self._light = LocalWorkers(light_environments(), slots=1)
        self._runs: dict[str, tuple[str, Future]] = {}  # run_id -> token and future
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._watcher: threading.Thread | None = None
        self._closing = False

    def submit(self, specs: Sequence[RunSpec], collection: str) -> list[str]:
        """Start the runs that are neither finished nor under way; returns their ids.

        Raises CapbiasError if one of them needs a Dask cluster that does not answer.
        """
        known = self.workspace.runs_of([spec.run_id for spec in specs])
        add_later_metrics(self.workspace, known.values())
        todo = [spec for spec in specs if spec.run_id not in known or known[spec.run_id].status != "finished"]
        light = [spec for spec in todo if not needs_workers(spec)]
        heavy = torch_executor() if len(light) < len(todo) else self._light
        if light:
            seconds = sum(expected(self.workspace, light).each.values())
            self._light.slots = light_slots(len(light), seconds)
        started = []
        for spec in todo:
            token = uuid.uuid4().hex
            try:
                if self.workspace.enqueue(spec, collection, token):
                    started.append(spec.run_id)
                    self._send(heavy if needs_workers(spec) else self._light, spec.run_id, token)
            except BaseException:  # such as Ctrl-C between the two, after which nobody would cancel the run
                self.workspace.end_here(spec.run_id, "cancelled", "cancelled", token)
                raise
        return started

    def _send(self, executor: Executor, run_id: str, token: str) -> None:
        try:
            future = executor.submit(execute, self.folder, run_id, token)
        except Exception as error:  # whatever keeps an executor from taking a run, the run must not wait for ever
            self.workspace.end_here(run_id, "failed", f"no worker takes it: {error}", token)
            return
        with self._lock:
            self._runs[run_id] = token, future
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, daemon=True)
                self._watcher.start()
        future.add_done_callback(lambda _: self._wake.set())

    def cancel(self, run_id: str) -> bool:
        """Stop a run: a queued one at once, a running one at its next report (a second or two).

        Raises WorkspaceError for a run of another process if that cannot be noted, CapbiasError for another person's.
        """
        if run := self.workspace.run(run_id):
            check_own(run.owner, self.workspace.folder, "the run")
        token, future = self._runs.get(run_id, ("", None))
        try:
            changed = self.workspace.end(run_id, "cancelled", "cancelled")
        except WorkspaceError:
            if future is None:
                raise
            changed = self.workspace.end_here(run_id, "cancelled", "cancelled", token)
        if changed and future is not None:
            future.cancel()
        return changed

    def cancel_all(self) -> int:
        """Stop every run that is under way and that may be cancelled; returns how many.

        The newest first: those that wait go before the one that runs, so that none starts in between.
        """
        return sum(self.cancel(run.run_id) for run in self.workspace.runs() if self.may_cancel(run))

    def may_cancel(self, run: RunRow) -> bool:
        """Whether a run is under way, and who asks may cancel it."""
        return run.status in ACTIVE and may_change(run.owner, self.workspace.folder)

    def repeat_all(self) -> int:
        """Start every run again that ended without finishing (see `unfinished`); returns how many."""
        runs = unfinished(self.workspace)
        for collection in dict.fromkeys(run.collection for run in runs):
            self.submit([run.spec for run in runs if run.collection == collection], collection)
        return len(runs)

    def wait(self, run_ids: Sequence[str], on_change=None, every: float = 0.1) -> list[RunRow]:
        """Block until none of these runs is under way, in whichever process; on_change(rows) is called each time."""
        while True:
            rows = list(self.workspace.runs_of(run_ids).values())
            if on_change:
                on_change(rows)
            if not any(row.status in ACTIVE or self._goes_on(row) for row in rows):
                return rows
            time.sleep(every)

    def _goes_on(self, run: RunRow) -> bool:
        """Whether the worker of a run died, and the scheduler of a cluster gives the run to another one."""
        _, future = self._runs.get(run.run_id, ("", None))
        return run.status == "died" and future is not None and not future.done()

    def close(self) -> None:
        """Cancel what this engine started and has not finished, and end all workers of this process.

        If an end cannot be written by then, others see that the process of the run is gone.
        """
        for run_id, (_, future) in reversed(list(self._runs.items())):  # those that wait first, so that none starts
            if not future.done():
                with suppress(CapbiasError):
                    self.cancel(run_id)
        self._closing = True
        self._light.shutdown(cancel_futures=True)
        _close_torch_workers()
        if watcher := self._watcher:
            self._wake.set()
            watcher.join()

    def _watch(self) -> None:
        """Note ends that runs could not note themselves, and tell other hosts that the rest is alive, until no run is
        left."""
        while True:
            self._wake.wait(BEAT)
            self._wake.clear()
            with self._lock:
                runs = dict(self._runs)
            over = [run_id for run_id, (token, future) in runs.items() if self._is_over(run_id, token, future)]
            with self._lock:
                for run_id in over:
                    if self._runs[run_id] == runs[run_id]:  # else it was asked for again meanwhile
                        del self._runs[run_id]
                if not self._runs:
                    self._watcher = None
                    return
                tokens = {run_id: token for run_id, (token, _) in self._runs.items()}
            with suppress(WorkspaceError):  # locked for long, or a full disk: the next beat may get through
                self.workspace.heartbeat(tokens)

    def _is_over(self, run_id: str, token: str, future: Future) -> bool:
        """Whether the end of a run is in the catalogue. If its future is done and it is not, write it."""
        if not future.done():
            return False
        with suppress(WorkspaceError):
            run = self.workspace.run(run_id)
            if run is None or run.finished is not None:
                return True
            self.workspace.end_here(run_id, *_lost(future), token)  # tried again at the next beat if it is not written
        return self._closing


def _lost(future: Future) -> tuple[str, str]:
    """The status and message of a run whose future is done and which has not noted its end."""
    if future.cancelled():
        return "died", "it was dropped before it started; repeat the run"
    error = future.exception()
    if error is None:
        return "failed", "its worker did not find it: workers must see the workspace folder under the same path"
    if isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":  # the latter is Dask's
        return "died", "its process ended before the run did; repeat the run"
    return "failed", str(error) if isinstance(error, CapbiasError) else f"{type(error).__name__}: {error}"


def unfinished(workspace: Workspace) -> list[RunRow]:
    """Runs that failed, died or were cancelled, oldest first; not those of an earlier version, whose numbers differ."""
    over = [run for run in workspace.runs() if run.status not in (*ACTIVE, "finished")]
    return [run for run in reversed(over) if is_current(run.spec)]


@cache
def engine_for(folder: str) -> Engine:
    """The engine of a workspace folder: one for this process."""
    return Engine(folder)


# The workers for runs with torch, for all engines of this process: address of the scheduler ('' for none) -> a Dask
# client or LocalWorkers.
_torch_workers: dict[str, Any] = {}
_torch_lock = threading.Lock()


def torch_executor() -> Executor:
    """Where runs with torch are computed. Raises CapbiasError if the Dask scheduler does not answer."""
    address = os.environ.get("CAPBIAS_SCHEDULER", "")
    with _torch_lock:
        workers: Any = _torch_workers.get(address)
        if not address:
            workers = workers or LocalWorkers(torch_environments())
        elif workers is None or workers.status != "running":
            workers = _dask_client(address)
        _torch_workers[address] = workers
    return workers.get_executor(pure=False) if address else workers


def _dask_client(address: str):
    need("A Dask cluster", "distributed")
    from distributed import Client

    try:
        return Client(address, timeout="10s", set_as_default=False)
    except OSError as error:
        raise CapbiasError(
            f"No Dask scheduler answers at CAPBIAS_SCHEDULER={address} ({error}).",
            "Start it, or unset CAPBIAS_SCHEDULER to use workers on this machine.",
        ) from None


def _close_torch_workers() -> None:
    with _torch_lock:
        for address, workers in _torch_workers.items():
            if address:
                workers.close()
            else:
                workers.shutdown(cancel_futures=True)
        _torch_workers.clear()

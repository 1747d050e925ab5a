"""Runs are submitted to executors: light ones to this process and others like it, those with torch to separate
processes or to the Dask cluster that CAPBIAS_SCHEDULER names.

Their progress and their ends are in the workspace, so that a reload, another tab and another process see them.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any
from weakref import WeakSet

from capbias_core.attackers import attacker_entry
from capbias_core.errors import CapbiasError, need
from capbias_core.measures.registry import MEASURES
from capbias_core.runs.local_workers import LocalWorkers, light_environments, light_slots, torch_environments
from capbias_core.runs.run import add_later_metrics, execute, is_current, needs_workers
from capbias_core.workspace.catalogue import WorkspaceError
from capbias_core.workspace.people import check_own, may_change
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import ACTIVE, RunRow, Workspace

BEAT = 0.5  # seconds between two looks at the runs of this process
TABLE_CAPTIONS = 15_000  # for which measures give their seconds
PAST_RUNS = 5
TORCH_START_SECONDS = 5.0


_OPEN: WeakSet[Engine] = WeakSet()  # engines of this process, which share the workers of runs with torch


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
        _OPEN.add(self)

    def submit(self, specs: Sequence[RunSpec], collection: str) -> list[str]:
        """Start the runs that are neither finished nor under way; returns their ids. Raises CapbiasError if one of them
        needs a Dask cluster that does not answer."""
        known = self.workspace.runs_of([spec.run_id for spec in specs])
        add_later_metrics(self.workspace, known.values())
        self.workspace.note_asked(list(known), collection)
        todo = [spec for spec in specs if spec.run_id not in known or known[spec.run_id].status != "finished"]
        light = [spec for spec in todo if not needs_workers(spec)]
        heavy = torch_executor() if len(light) < len(todo) else self._light
        if light:
            self._light.slots = light_slots(len(light), sum(expected(self.workspace, light).each.values()))
        started = []
        for spec in todo:
            run_id, token = spec.run_id, uuid.uuid4().hex
            try:
                if not self.workspace.enqueue(spec, collection, token):
                    continue
                started.append(run_id)
                executor = heavy if needs_workers(spec) else self._light
                try:
                    future = executor.submit(execute, self.folder, run_id, token)
                except Exception as error:  # of any kind: the run must not wait forever
                    self.workspace.end_here(run_id, "failed", f"no worker takes it: {error}", token)
                    continue
                with self._lock:
                    self._runs[run_id] = token, future
                    if self._watcher is None:
                        self._watcher = threading.Thread(target=self._watch, daemon=True)
                        self._watcher.start()
                future.add_done_callback(lambda _: self._wake.set())
            except BaseException:  # such as Ctrl-C in between, after which nobody would cancel the run
                self.workspace.end_here(run_id, "cancelled", "cancelled", token)
                raise
        return started

    def cancel(self, run_id: str) -> bool:
        """Stop a run: a queued one at once, a running one at its next report (a second or two). Raises WorkspaceError
        for a run of another process if that cannot be noted, CapbiasError for another person's."""
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
        """Stop every run that is under way and that may be cancelled; returns how many."""
        # The newest first: those that wait before the one that runs, so that none starts in between.
        return sum(self.cancel(run.run_id) for run in self.workspace.runs() if self.may_cancel(run))

    def may_cancel(self, run: RunRow) -> bool:
        """Whether a run is under way, and this user may cancel it."""
        return run.status in ACTIVE and may_change(run.owner, self.workspace.folder)

    def repeat_all(self) -> int:
        """Start every run of `unfinished` again; returns how many."""
        runs = unfinished(self.workspace)
        for collection in dict.fromkeys(run.collection for run in runs):
            self.submit([run.spec for run in runs if run.collection == collection], collection)
        return len(runs)

    def wait(self, run_ids: Sequence[str], on_change=None, every: float = 0.1) -> list[RunRow]:
        """The runs, once none of them is under way in any process; on_change(rows) is called each time."""
        while True:
            rows = list(self.workspace.runs_of(run_ids).values())
            if on_change:
                on_change(rows)
            # If the worker of a run died, the scheduler of a cluster may give the run to another one.
            pending = {run_id for run_id, (_, future) in list(self._runs.items()) if not future.done()}
            if not any(row.status in ACTIVE or (row.status == "died" and row.run_id in pending) for row in rows):
                return rows
            time.sleep(every)

    def close(self) -> None:
        """Cancel what this engine started and has not finished, and end its workers; those of runs with torch end with
        the last engine of this process. If an end cannot be written by then, others see that the process is gone."""
        for run_id, (_, future) in reversed(list(self._runs.items())):  # those that wait first, so that none starts
            if not future.done():
                with suppress(CapbiasError):
                    self.cancel(run_id)
        self._light.shutdown(cancel_futures=True)
        _OPEN.discard(self)
        if not _OPEN:
            _close_torch_workers()
        self._closing = True
        if watcher := self._watcher:
            self._wake.set()
            watcher.join()

    def _watch(self) -> None:
        """Note ends that runs could not note, and that the others are alive, until no run is left."""
        while True:
            self._wake.wait(BEAT)
            self._wake.clear()
            with self._lock:
                runs = dict(self._runs)
            over = [run_id for run_id, (token, future) in runs.items() if self._is_over(run_id, token, future)]
            with self._lock:
                for run_id in over:
                    if self._runs[run_id] == runs[run_id]:  # else it was started again meanwhile
                        del self._runs[run_id]
                if not self._runs:
                    self._watcher = None
                    return
                tokens = {run_id: token for run_id, (token, _) in self._runs.items()}
            with suppress(WorkspaceError):  # locked for long, or a full disk: the next beat may get through
                self.workspace.heartbeat(tokens)

    def _is_over(self, run_id: str, token: str, future: Future) -> bool:
        """Whether the end of a run is in the catalogue. If its future is done and the end is not, write it."""
        if not future.done():
            return self._closing  # a call on a cluster never ends once its client is closed
        with suppress(WorkspaceError):
            run = self.workspace.run(run_id)
            if run is None or run.finished is not None:
                return True
            error = None if future.cancelled() else future.exception()
            if future.cancelled():
                end = "died", "it was dropped before it started; repeat the run"
            elif error is None:
                end = "failed", "its worker did not find it: workers must see the workspace folder under the same path"
            elif isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":  # the latter is Dask's
                end = "died", "its process ended before the run did; repeat the run"
            else:
                end = "failed", str(error) if isinstance(error, CapbiasError) else f"{type(error).__name__}: {error}"
            self.workspace.end_here(run_id, *end, token)  # tried again at the next beat if it is not written
        return self._closing


def unfinished(workspace: Workspace) -> list[RunRow]:
    """Runs that failed, died or were cancelled, oldest first; not those of an earlier version, whose numbers differ."""
    over = [run for run in workspace.runs() if run.status not in (*ACTIVE, "finished")]
    return [run for run in reversed(over) if is_current(run.spec)]


@cache
def engine_for(folder: str) -> Engine:
    """The engine of a workspace folder, the same for all of this process."""
    return Engine(folder)


# For all engines of this process: address of the scheduler ('' for none) -> a Dask client or LocalWorkers.
_torch_workers: dict[str, Any] = {}
_torch_lock = threading.Lock()


def torch_executor() -> Executor:
    """Where runs with torch are computed. Raises CapbiasError if the Dask scheduler does not answer."""
    address = os.environ.get("CAPBIAS_SCHEDULER", "")
    with _torch_lock:
        workers: Any = _torch_workers.get(address)
        if not address:
            workers = _torch_workers[""] = workers or LocalWorkers(torch_environments())
            return workers
        if workers is None or workers.status != "running":
            need("A Dask cluster", "distributed")
            from distributed import Client

            try:
                workers = _torch_workers[address] = Client(address, timeout="10s", set_as_default=False)
            except (OSError, ValueError, TypeError) as error:  # also of what is no address
                raise CapbiasError(
                    f"No Dask scheduler answers at CAPBIAS_SCHEDULER={address} ({error}).",
                    "Start it, or unset CAPBIAS_SCHEDULER to use workers on this machine.",
                ) from None
        return workers.get_executor(pure=False)


def _close_torch_workers() -> None:
    with _torch_lock:
        for address, workers in _torch_workers.items():
            if address:
                workers.close()
            else:
                workers.shutdown(cancel_futures=True)
        _torch_workers.clear()


# how long runs take


@dataclass(frozen=True)
class Expected:
    """each: seconds of each run, by id. seconds: of all runs together. learned: from earlier runs here."""

    each: dict[str, float]
    seconds: float
    learned: bool

    def left(self, rows: Sequence[RunRow]) -> tuple[float, float]:
        """The share of these runs that is done, from 0 to 1, and the seconds left, which only ever go down."""
        total = sum(self.each[row.run_id] for row in rows) or 1.0
        done = sum(self.each[row.run_id] * (row.progress if row.status in ACTIVE else 1.0) for row in rows) / total
        return done, self.seconds * (1 - done)


def expected(workspace: Workspace, specs: Iterable[RunSpec], before: float | None = None) -> Expected:
    """How long runs take: light ones side by side, the others one after another.

    Seconds per caption and seed are the median of the last runs by the same measure and attacker, else those of the
    tables of measures and attackers. before: learn from runs that finished before this time (seconds since 1970), so
    that an answer about runs under way stays the same while some of them finish.
    """
    items = {item.hash: item for item in workspace.items()}

    def size(spec: RunSpec) -> int:
        """How many captions or photographs a run reads, times its seeds."""
        texts = sum(items[digest].rows for digest in (spec.captions, spec.references) if digest in items)
        photographs = items.get((spec.options.get("photographs") or {}).get("item", ""))
        limits = (texts, photographs.images if photographs else 0, spec.options.get("max_images"))
        return min((limit for limit in limits if limit), default=TABLE_CAPTIONS) * len(spec.seeds)

    rates: dict[tuple[str, str], float] = {}
    each: dict[str, float] = {}
    light: list[float] = []
    learned = True
    for spec in specs:
        key, start = (spec.measure, spec.attacker), TORCH_START_SECONDS if needs_workers(spec) else 0.0
        if key not in rates:
            past = workspace.past_durations(*key, PAST_RUNS, before)
            learned = learned and bool(past)
            measure = MEASURES[spec.measure]
            rates[key] = measure.seconds / TABLE_CAPTIONS
            if spec.attacker:
                to_train, to_explain = attacker_entry(spec.attacker).seconds
                rates[key] += (to_explain if measure.explains else to_train) / 1000
            if past:
                rates[key] = median(max(took - start, took / 10) / size(earlier) for earlier, took in past)
        each[spec.run_id] = start + size(spec) * rates[key]
        if not needs_workers(spec):
            light.append(each[spec.run_id])
    total = sum(each.values()) - sum(light) + sum(light) / light_slots(len(light), sum(light))
    return Expected(each, total, learned)


def rough_seconds(workspace: Workspace, captions: str, measures: Sequence[str]) -> float:
    """Seconds of measures without attackers on the caption set with this hash, by their table alone."""
    size = next((item.rows for item in workspace.items() if item.hash == captions), TABLE_CAPTIONS)
    return sum(MEASURES[name].seconds for name in measures) * size / TABLE_CAPTIONS

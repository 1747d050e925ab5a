"""Run scheduling: this process and others beside it for light attackers, Dask's workers for the ones with torch.

The embedded cluster starts at the first run that needs torch; CAPBIAS_SCHEDULER names another one instead (its
workers must see the workspace folder). Workers note their progress in the workspace, so that a reload, another
tab and another process see it.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capbias_core.attackers.checkpoints import checkpoints_in
from capbias_core.attackers.device import CUBLAS
from capbias_core.errors import Cancelled, CapbiasError, need
from capbias_core.measures.registry import MEASURES
from capbias_core.runs.beside import share
from capbias_core.runs.cost import together
from capbias_core.runs.later_metrics import add_later_metrics
from capbias_core.runs.run import is_current, needs_workers, run_one
from capbias_core.workspace.faults import Unavailable, WorkspaceError
from capbias_core.workspace.people import acting, check_own, may_change
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import ACTIVE, RunRow, Workspace

if TYPE_CHECKING:
    from distributed import Future

HOUSE = Path(__file__).parent.parent
PARTS = ("attackers", "measures")  # what is added to; a failure is said where it began there
BEAT = 2.0
BETWEEN_NOTES = 0.25

# How a Dask future can be over while its run is not: state of the future -> what to say.
LOST = {
    "error": "its process ended before the run did; repeat the run",
    "lost": "its process ended before the run did; repeat the run",
    "cancelled": "the scheduler dropped it; repeat the run",
    "finished": "its worker did not find it: workers must see the workspace folder under the same path",
}


def execute(folder: str, run_id: str, token: str) -> None:
    """Compute one queued run of the workspace at `folder`, where this is called: a worker, or the server.

    Every end is noted in the workspace: finished, failed with its message, or cancelled. Raises WorkspaceError where
    that cannot be.
    """
    workspace = Workspace(folder, make=False)
    if not workspace.claim(run_id, token):
        return
    try:
        run = workspace.runs_of([run_id])[run_id]
        with acting(run.owner), checkpoints_in(workspace.checkpoints / run_id):
            outcome = run_one(workspace, run.spec, _reporter(workspace, run_id, token))
        names = [own.name for own in MEASURES[run.spec.measure].metrics]
        workspace.finish(run_id, token, outcome.results, outcome.kept, outcome.notes, names, outcome.lacking)
    except Cancelled:
        with suppress(WorkspaceError):
            workspace.log(run_id, "stopped")
    except CapbiasError as error:
        workspace.end(run_id, "failed", str(error), token)
    except Exception as error:  # the run's end must be noted, whatever broke it
        with suppress(WorkspaceError):  # the workspace may be what broke it
            workspace.log(run_id, traceback.format_exc().rstrip())
        workspace.end(run_id, "failed", f"{type(error).__name__}: {error}{_place(error)}", token)
    _remove_checkpoints(workspace)


def _place(error: Exception) -> str:
    """` (measures/lic.py, line 12)`: the last line of a measure or an attacker that a failure went through, else the
    last of our own."""
    ours = [
        (Path(frame.filename).relative_to(HOUSE), frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(HOUSE)
    ]
    parts = [own for own in ours if own[0].parts[0] in PARTS and own[0].name != "base.py"]
    file, line = (parts or ours or [("", 0)])[-1]
    return f" ({file}, line {line})" if file else ""


# Runs that did not end by themselves: who asks for them again goes on from what was trained.
GOES_ON = ("died", "cancelled")


def _remove_checkpoints(workspace: Workspace) -> None:
    """Those of runs that are over or that nobody can ask for again."""
    with suppress(WorkspaceError):
        for folder in workspace.checkpoints.glob("*"):
            run = workspace.run(folder.name)
            if run is None or run.status not in (*ACTIVE, *GOES_ON) or not is_current(run.spec):
                shutil.rmtree(folder, ignore_errors=True)


def _reporter(workspace: Workspace, run_id: str, token: str):
    last_note, last_line = 0.0, ""

    def progress(share: float, message: str) -> None:
        nonlocal last_note, last_line
        now = time.monotonic()
        if now - last_note < BETWEEN_NOTES:
            return
        last_note = now
        with suppress(Unavailable):  # a full disk may have room again when the run is done
            if not workspace.progress(run_id, token, share, message):
                raise Cancelled
            line = message.rsplit(", loss", 1)[0]
            if line != last_line:
                workspace.log(run_id, message)
                last_line = line

    return progress


@cache
def dask_client():
    """The Dask client of this process: of the cluster that CAPBIAS_SCHEDULER names, or of an embedded one."""
    from distributed import Client

    address = os.environ.get("CAPBIAS_SCHEDULER")
    if address:
        try:
            return Client(address, timeout="10s", set_as_default=False)
        except OSError as error:
            raise CapbiasError(
                f"No Dask scheduler answers at CAPBIAS_SCHEDULER={address} ({error}).",
                "Start it, or unset CAPBIAS_SCHEDULER to use workers on this machine.",
            ) from None
    return _own_cluster()


def _own_cluster():
    """A client of workers on this machine: one, or one a GPU where there are several."""
    from dask import config
    from distributed import Client, LocalCluster

    from capbias_core.runs.gpus import OwnGPU, visible_gpus

    gpus = visible_gpus()
    workers = max(1, len(gpus))
    cores = str(max(1, (os.cpu_count() or 1) // workers))
    config.set(
        {
            "distributed.scheduler.allowed-failures": 0,
            "distributed.nanny.pre-spawn-environ.OMP_NUM_THREADS": cores,
            "distributed.nanny.pre-spawn-environ.MKL_NUM_THREADS": cores,
            # Threads that wait for each other must not spin: beside a busy server and browser that costs a hundredfold.
            "distributed.nanny.pre-spawn-environ.OMP_WAIT_POLICY": "PASSIVE",
            # Read when a process first uses CUDA, so that a later run may ask for deterministic algorithms.
            f"distributed.nanny.pre-spawn-environ.{CUBLAS[0]}": CUBLAS[1],
        }
    )
    # A worker has one thread for runs: a training run uses all its cores. Memory is not limited, a paused worker helps
    # nobody. Keys that only this process has keep other accounts of the machine from sending code to it.
    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        memory_limit=0,
        silence_logs=50,
        security=True,
    )
    client = Client(cluster, set_as_default=False)
    if len(gpus) > 1:
        client.register_plugin(OwnGPU(gpus))
    return client


def ask_worker(function: Callable, *given: Any) -> Future:
    """The future of what a function that needs torch returns and that is no run. A worker computes it after its runs.

    Raises MissingExtra if workers are not installed.
    """
    need("A worker process", "distributed", "psutil")
    return _running_client().submit(function, *given, key=f"{function.__name__}-{uuid.uuid4().hex}", pure=False)


_starting = threading.Lock()


def _running_client():
    """The Dask client; threads that ask at once share one, and one whose scheduler went is replaced."""
    with _starting:
        if dask_client().status != "running":
            dask_client.cache_clear()
        return dask_client()


class Engine:
    """Submits runs of one workspace and watches over them as long as any is under way."""

    def __init__(self, folder: Path | str):
        self.workspace = Workspace(folder)
        self.folder = str(self.workspace.folder)
        self._lock = threading.Lock()
        self._one_batch_at_a_time = threading.Lock()
        self._owned: dict[str, threading.Thread | Future] = {}  # run_id -> Dask future, or the thread that computes it
        self._tokens: dict[str, str] = {}
        self._threads: list[threading.Thread] = []
        self._watcher: threading.Thread | None = None
        self._sent_again: set[str] = set()  # tokens
        self._closing = False

    def submit(self, specs: Sequence[RunSpec], collection: str) -> list[str]:
        """Queue the runs that are not finished or under way, and start them; returns their ids.

        Raises MissingExtra if one of those is too heavy for this process and workers are not installed.
        """
        known = self.workspace.runs_of([spec.run_id for spec in specs])
        done = {run_id for run_id, run in known.items() if run.status == "finished"}
        if any(needs_workers(spec) for spec in specs if spec.run_id not in done):
            need("A worker process", "distributed", "psutil")
        started = []
        for spec in specs:
            token = uuid.uuid4().hex
            if self.workspace.enqueue(spec, collection, token):
                started.append((spec, token))
        add_later_metrics(self.workspace, self.workspace.runs_of([spec.run_id for spec in specs]).values())
        here = [(spec.run_id, token) for spec, token in started if not needs_workers(spec)]
        there = [(spec.run_id, token) for spec, token in started if needs_workers(spec)]
        if here:
            self._start(self._run_here, here)
        if there:
            # Starting the cluster takes a second; the page that asked does not wait for it.
            self._start(self._send, there)
        return [spec.run_id for spec, _ in started]

    def _start(self, work, runs) -> None:
        thread = threading.Thread(target=work, args=(runs,), daemon=True)
        with self._lock:
            self._threads = [*(other for other in self._threads if other.is_alive()), thread]
            for run_id, token in runs:
                self._owned[run_id] = thread
                self._tokens[run_id] = token
            thread.start()
            if self._watcher is None or not self._watcher.is_alive():
                self._watcher = threading.Thread(target=self._watch, daemon=True)
                self._watcher.start()

    def _run_here(self, runs) -> None:
        with self._one_batch_at_a_time:
            processes = 1
            with suppress(CapbiasError):  # what keeps the cost from being known, the run itself says
                found = self.workspace.runs_of([run_id for run_id, _ in runs])
                processes = together(self.workspace, [run.spec for run in found.values()])
            share(self.folder, runs, processes, self._execute, self._note_lost)

    def _execute(self, run_id: str, token: str) -> None:
        try:
            execute(self.folder, run_id, token)
        except WorkspaceError as error:
            self.workspace.end_here(run_id, "failed", str(error), token)

    def _note_lost(self, run_id: str, token: str) -> None:
        self.workspace.end_here(run_id, "died", LOST["lost"], token)

    def _send(self, runs) -> None:
        try:
            client = _running_client()
            futures = [
                client.submit(execute, self.folder, run_id, token, key=f"{run_id}-{uuid.uuid4().hex}", pure=False)
                for run_id, token in runs
            ]
        except Exception as error:  # whatever kept the cluster from starting, the runs say so
            for run_id, token in runs:
                self.workspace.end_here(run_id, "failed", f"no worker could be started: {error}", token)
            return
        with self._lock:
            for (run_id, token), future in zip(runs, futures, strict=True):
                if self._tokens.get(run_id) == token:  # else it was cancelled and asked for again meanwhile
                    self._owned[run_id] = future

    def cancel(self, run_id: str) -> bool:
        """Stop a run: a queued one at once, a running one at its next report (a second or two).

        Raises WorkspaceError for a run of another process where that cannot be noted, CapbiasError for somebody else's.
        """
        if run := self.workspace.run(run_id):
            check_own(run.owner, self.workspace.folder, "the run")
        holder = self._owned.get(run_id)
        try:
            changed = self.workspace.end(run_id, "cancelled", "cancelled")
        except WorkspaceError:
            if holder is None:
                raise
            changed = self.workspace.end_here(run_id, "cancelled", "cancelled", self._tokens[run_id])
        if changed and holder is not None and not isinstance(holder, threading.Thread):
            holder.cancel()
        return changed

    def cancel_all(self) -> int:
        """Stop every run of the workspace that is queued or running and may be cancelled; returns how many.

        The newest first: those that wait go before the one that runs, so that none starts in between.
        """
        return sum(self.cancel(run.run_id) for run in self.workspace.runs() if self.may_cancel(run))

    def may_cancel(self, run: RunRow) -> bool:
        """Whether a run is under way, and who asks may cancel it."""
        return run.status in ACTIVE and may_change(run.owner, self.workspace.folder)

    def repeat_all(self) -> int:
        """Queue every run anew that ended without finishing (see `unfinished`); returns how many."""
        runs = unfinished(self.workspace)
        for collection in dict.fromkeys(run.collection for run in runs):
            specs = [run.spec for run in runs if run.collection == collection]
            self.submit(specs, collection)
        return len(runs)

    def _watch(self) -> None:
        """Beats for the runs of this process, and notes those whose worker was lost, until none is left."""
        while True:
            with self._lock:
                owned = {run_id: (holder, self._tokens[run_id]) for run_id, holder in self._owned.items()}
            over = [run_id for run_id, (holder, token) in owned.items() if self._over(run_id, token, holder)]
            with self._lock:
                for run_id in over:
                    if self._owned[run_id] is owned[run_id][0]:  # else it was asked for again meanwhile
                        del self._owned[run_id]
                if not self._owned:
                    self._watcher = None
                    return
                tokens = {run_id: self._tokens[run_id] for run_id in self._owned}
            with suppress(WorkspaceError):  # busy for long, or full: the next beat may get through
                self.workspace.heartbeat(tokens)
            time.sleep(BEAT / 4)

    def _over(self, run_id: str, token: str, holder) -> bool:
        """Whether the end of a run is noted, or nobody is left to note it."""
        message = _lost(holder)
        if message and self._owned.get(run_id) is not holder:
            return False  # a thread that has handed its run to a worker by now
        with suppress(WorkspaceError):
            run = self.workspace.run(run_id)
            if run is None or run.finished is not None:
                return True
            unheard = run.status == "queued" and not isinstance(holder, threading.Thread)
            if message and unheard and token not in self._sent_again and not self._closing:
                # It was sent to a worker that had just died, before the scheduler knew.
                self._sent_again.add(token)
                self._start(self._send, [(run_id, token)])
            elif message:
                self.workspace.end_here(run_id, "died", message, token)
        return bool(message) and self._closing

    def close(self) -> None:
        """Wait for the threads of this engine (cancel its runs first to stop them soon), and end its workers.

        The end of a run that cannot be written by then is left to whoever looks next: the process that had it is gone.
        """
        self._closing = True
        for thread in self._threads:
            thread.join()
        watcher = self._watcher
        if watcher is not None:
            watcher.join()
        if dask_client.cache_info().currsize:
            client = dask_client()
            dask_client.cache_clear()
            if client.cluster is not None:
                client.cluster.close()
            client.close()

    def wait(self, run_ids: Sequence[str], on_change=None, every: float = 0.1) -> list[RunRow]:
        """Block until none of these runs is under way; on_change(rows) is called each time round."""
        while True:
            rows = list(self.workspace.runs_of(run_ids).values())
            if on_change:
                on_change(rows)
            if not any(row.status in ACTIVE for row in rows):
                return rows
            time.sleep(every)


def _lost(holder: threading.Thread | Future) -> str:
    """What to say of a run whose thread or Dask future is over; '' where it is not."""
    if isinstance(holder, threading.Thread):
        ended = holder.ident is not None and not holder.is_alive()
        return "the thread that computed it broke; repeat the run" if ended else ""
    if holder.status == "error" and isinstance(error := holder.exception(), WorkspaceError):
        return str(error)
    return LOST.get(holder.status or "", "")


def unfinished(workspace: Workspace) -> list[RunRow]:
    """Runs that failed, died or were cancelled, oldest first; those of an earlier version would give other numbers, and
    are left out."""
    over = [run for run in workspace.runs() if run.status not in (*ACTIVE, "finished")]
    return [run for run in reversed(over) if is_current(run.spec)]


@cache
def engine_for(folder: str) -> Engine:
    """The engine of a workspace folder: one for this process."""
    return Engine(folder)

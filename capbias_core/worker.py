"""Computes queued runs. An engine starts it as `python -m capbias_core.worker light|torch PROCESS`.

It then computes light runs, or those with torch, that PROCESS has queued in the workspaces whose folders come from
standard input, one per line as JSON. It ends when it is idle for long, and with that input, which PROCESS keeps open.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress

from capbias_core.errors import Cancelled, CapbiasError
from capbias_core.runs.run import failure, needs_workers, run_one
from capbias_core.types import Progress
from capbias_core.whole_files import HEX
from capbias_core.workspace.catalogue import WorkspaceError, lives
from capbias_core.workspace.store import RunRow, Workspace

SECONDS_BETWEEN_NOTES = 0.25
IDLE_SECONDS = 300.0  # then a process ends; the engine starts another one for the next run
STOP_SECONDS = 5.0  # that a run gets to stop when its process has to end


def execute(folder: str, run_id: str, stopping: threading.Event | None = None) -> None:
    """Compute one queued run, wherever: claim it, compute it, and write how it ends.

    It is left alone if a living process has it. stopping: set if this process has to end. Raises WorkspaceError if the
    end cannot be written; it is remembered, and the run dies with a process that ends then.
    """
    workspace = Workspace(folder, make=False)

    def is_free(run: RunRow) -> bool:
        return run.run_id == run_id and (run.status != "running" or not lives(workspace.folder, run.process))

    if not (run := workspace.claim(is_free)):
        return
    try:
        outcome = run_one(workspace, run.spec, _reporter(workspace, run, stopping or threading.Event()))
        for line in outcome.log:
            workspace.log(run_id, line)
        workspace.finish(run, outcome.results, outcome.kept, outcome.notes, outcome.lacking)
    except Cancelled:
        with suppress(WorkspaceError):
            workspace.log(run_id, "stopped")
    except Exception as error:  # whatever failed, the end must be noted
        if not isinstance(error, CapbiasError):
            with suppress(WorkspaceError):  # which may be what failed
                workspace.log(run_id, traceback.format_exc().rstrip())
        workspace.end_here(run_id, "failed", failure(error), run.token)
    except BaseException:  # such as Ctrl-C
        workspace.end_here(run_id, "cancelled", "cancelled", run.token)
        raise
    for left in workspace.unfinished.glob(HEX * 16):
        with suppress(WorkspaceError):
            if (other := workspace.run(left.name)) is None or other.status in ("finished", "failed"):
                shutil.rmtree(left, ignore_errors=True)
    workspace.write_ends()


def execute_all(folder: str, accepts: Callable[[RunRow], bool], stopping: threading.Event) -> None:
    """`execute` the queued runs that this function accepts, the oldest first, until none is left."""
    workspace = Workspace(folder, make=False)
    while not stopping.is_set():
        queued = (run for run in workspace.waiting() if run.status == "queued" and accepts(run))
        if (run := next(queued, None)) is None:
            return
        execute(folder, run.run_id, stopping)


def _reporter(workspace: Workspace, run: RunRow, stopping: threading.Event) -> Progress:
    """Writes progress to the workspace. It raises Cancelled if the run is cancelled or this process has to end."""
    last_time, last_line = 0.0, ""

    def progress(share: float, message: str) -> None:
        nonlocal last_time, last_line
        now = time.monotonic()
        if now - last_time < SECONDS_BETWEEN_NOTES:
            return
        last_time = now
        if stopping.is_set():
            raise Cancelled
        with suppress(WorkspaceError):  # a full disk may have room again when the run is done
            if not workspace.progress(run, share, message):
                raise Cancelled
            line = message.rsplit(", loss", 1)[0]
            if line != last_line:
                workspace.log(run.run_id, message)
                last_line = line

    return progress


def main(arguments: list[str]) -> None:
    kind, parent = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the parent cancels
    folders: dict[str, None] = {}  # to look into
    told, stopping = threading.Event(), threading.Event()

    def read() -> None:
        try:
            with open(0, "rb", buffering=0) as lines:
                for line in lines:
                    folders[json.loads(line)] = None
                    told.set()
        finally:
            stopping.set()
            told.set()
            time.sleep(STOP_SECONDS)
            os._exit(0)

    def accepts(run: RunRow) -> bool:
        return run.process == parent and needs_workers(run.spec) == (kind == "torch")

    threading.Thread(target=read, daemon=True).start()
    while told.wait(IDLE_SECONDS) and not stopping.is_set():
        told.clear()
        for folder in list(folders):
            del folders[folder]
            execute_all(folder, accepts, stopping)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except CapbiasError as error:
        sys.exit(f"error: {error}")

"""Runs from a terminal: what is to do, how far it is, how it ended."""

from __future__ import annotations

import shutil
import sys
import time

from capbias_core.cli.terminal import DONE, RUN_FAILED, say
from capbias_core.measures.base import RunSpec
from capbias_core.present.sentence import cost_text
from capbias_core.present.table import counted
from capbias_core.runs.cost import expected
from capbias_core.runs.engine import Engine
from capbias_core.workspace.store import ACTIVE, RunRow, Workspace

BETWEEN_LINES = 60.0


def run_all(workspace: Workspace, specs: list[RunSpec], collection: str) -> list[RunRow]:
    """Run what is not finished yet, and wait for all. On Ctrl-C the runs that were started here are cancelled.

    Afterwards nothing of this process uses the workspace, so that its folder may go.
    """
    engine = Engine(workspace.folder)
    started: list[str] = []
    progress = Progress()
    try:
        started += engine.submit(specs, collection)
        _say_what_is_to_do(workspace, [spec for spec in specs if spec.run_id in started])
        return engine.wait([spec.run_id for spec in specs], progress)
    except KeyboardInterrupt:
        for run_id in started:
            engine.cancel(run_id)
        raise
    finally:
        progress.clear()
        engine.close()


def _say_what_is_to_do(workspace: Workspace, todo: list[RunSpec]) -> None:
    if todo:
        found = expected(workspace, todo)
        say(f"{counted(len(todo), 'run')} to do: {cost_text(found.seconds, found.earlier)}")


class Progress:
    """One line that is rewritten on a terminal; elsewhere a line now and then, for runs that take long."""

    def __init__(self):
        self.live = sys.stderr.isatty()
        self.last = time.monotonic()

    def __call__(self, rows: list[RunRow]) -> None:
        now = time.monotonic()
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[K{_state(rows)[:width]}", end="", file=sys.stderr, flush=True)
        elif now - self.last > BETWEEN_LINES:
            self.last = now
            say(_state(rows))

    def clear(self) -> None:
        if self.live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _state(rows: list[RunRow]) -> str:
    over = [row for row in rows if row.status not in ACTIVE]
    share = (len(over) + sum(row.progress for row in rows if row.status in ACTIVE)) / len(rows)
    running = next((row for row in rows if row.status == "running"), None)
    doing = f": {running.spec['model']}, {running.message}" if running else ""
    return f"{len(over)} of {counted(len(rows), 'run')} done, {share:.0%}{doing}"


def outcome(rows: list[RunRow]) -> int:
    """Say each note once, and what did not finish; returns the exit code."""
    finished = [row for row in rows if row.status == "finished"]
    models = {row.spec["model"] for row in finished}
    for note in dict.fromkeys(note for row in finished for note in row.notes):
        own = dict.fromkeys(row.spec["model"] for row in finished if note in row.notes)
        say(f"note{'' if len(own) == len(models) else ' (' + ', '.join(own) + ')'}: {note}")
    for row in rows:
        if row.status != "finished":
            by = row.spec["attacker"] or row.spec["family"]
            say(f"error: {row.spec['model']} ({by}) {row.status}: {row.message}")
    return DONE if len(finished) == len(rows) else RUN_FAILED

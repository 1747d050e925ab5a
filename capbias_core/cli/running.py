"""Runs from a terminal: what is to do, how far it is, how it ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Column

from capbias_core.api import failures
from capbias_core.cli.terminal import DONE, RUN_FAILED, say
from capbias_core.runs.engine import Engine, Expected, expected
from capbias_core.types import counted
from capbias_core.views.sentence import cost_text, duration, named_notes
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import ACTIVE, RunRow, Workspace

BETWEEN_LINES = 60.0


def run_all(
    workspace: Workspace,
    specs: Sequence[RunSpec],
    collection: str,
    stopped: Callable[[KeyboardInterrupt], None] | None = None,
) -> list[RunRow]:
    """Run what is not finished yet, and wait for all. If it is stopped, the runs that were started here are cancelled.

    stopped: gets what stopped it; the runs are then returned as they are. Without it a stop is raised.
    Runs of another process are waited for, and started here if that process dies. Afterwards nothing of this process
    uses the workspace, so that its folder may go.
    """
    engine = Engine(workspace.folder)
    started: set[str] = set()
    todo = list(specs)
    try:
        while True:
            new = engine.submit(todo, collection)
            started.update(new)
            to_come = expected(workspace, [spec for spec in todo if spec.run_id in new])
            if new:
                say(f"{counted(len(new), 'run')} to do: {cost_text(to_come.seconds, to_come.learned)}")
            with Shown(to_come) as shown:
                rows = engine.wait([spec.run_id for spec in specs], shown)
            todo = [row.spec for row in rows if row.status == "died" and row.run_id not in started]
            if not todo:
                return rows
    except BaseException as error:
        engine.close()  # which cancels what was started here
        if stopped is None or not isinstance(error, KeyboardInterrupt):
            raise
        stopped(error)
        known = engine.workspace.runs_of([spec.run_id for spec in specs])
        return [known[spec.run_id] for spec in specs if spec.run_id in known]
    finally:
        engine.close()


class Shown:
    """A bar with the time left on a terminal; elsewhere a line now and then, for runs that take long.

    expected: how long the runs that are to do take.
    """

    def __init__(self, expected: Expected):
        self.expected = expected
        self.last = time.monotonic()
        text = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
        columns = BarColumn(20), TaskProgressColumn(), text
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True) if sys.stderr.isatty() else None
        self.task = self.bar.add_task("Running", total=1.0) if self.bar else None

    def __enter__(self) -> Shown:
        if self.bar and self.expected.each:
            self.bar.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self.bar:
            self.bar.stop()

    def __call__(self, rows: Sequence[RunRow]) -> None:
        share, text = self.state(rows)
        if self.bar and self.task is not None:
            self.bar.update(self.task, completed=share, description=text)
        elif time.monotonic() - self.last > BETWEEN_LINES:
            self.last = time.monotonic()
            say(f"{text} ({share:.0%})")

    def state(self, rows: Sequence[RunRow]) -> tuple[float, str]:
        """The share that is done, and `Running: 3 of 9 done, about 12 s left`."""
        rows = [row for row in rows if row.run_id in self.expected.each]
        done, left = self.expected.left(rows)
        over = sum(row.status not in ACTIVE for row in rows)
        running = next((f": {row.spec.model}, {row.message}" for row in rows if row.status == "running"), "")
        text = f"Running: {over} of {len(rows)} done, about {duration(left)} left{running}"
        return done, text


def outcome(rows: Sequence[RunRow]) -> int:
    """Say each note once, and what did not finish; returns the exit code."""
    for note in named_notes([(row.spec.model, row.notes) for row in rows if row.status == "finished"]):
        say(f"note: {note}")
    failed = failures(rows)
    for line in failed:
        say(f"error: {line}")
    return RUN_FAILED if failed else DONE

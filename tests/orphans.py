"""Runs whose process ended, or is on another host."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from capbias_core.workspace.catalogue import this_process
from capbias_core.workspace.store import RunRow, Workspace

ELSEWHERE = "another-host 00000000-0000-4000-8000-000000000000 4026531836 4242 4242"


def any_run(_: RunRow) -> bool:
    """For `claim`."""
    return True


def ended() -> str:
    """The name of a process that had this one's pid before it, and is no more."""
    return f"{this_process().rpartition(' ')[0]} 1"


def give(workspace: Workspace, process: str) -> None:
    """Let every run belong to this process."""
    with closing(sqlite3.connect(workspace.database, timeout=30)) as db, db:
        db.execute("UPDATE runs SET process = ?", (process,))

"""Why a workspace cannot be used, in one sentence, whatever SQLite and the system call it."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from capbias_core.databases import UNWRITABLE, code_of
from capbias_core.errors import CapbiasError

NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
TO_OPEN = 2**16  # bytes that SQLite takes for the files beside a catalogue
ANOTHER = "set CAPBIAS_HOME to another folder"


class WorkspaceError(CapbiasError):
    """The workspace cannot be read or written."""


class Unavailable(WorkspaceError):
    """The disk is full, or another process keeps the workspace locked: later it may go."""


def workspace_fault(database: Path, error: Exception, opened: bool) -> WorkspaceError:
    """The error for what SQLite or the system said of a catalogue. opened: it could be used before."""
    folder, code = database.parent, code_of(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Unavailable(
            f"Another process has kept the workspace {folder} locked for half a minute.",
            "Repeat this; if that does not help, end the other process.",
        )
    if getattr(error, "errno", None) in NO_SPACE or code == sqlite3.SQLITE_FULL or _is_full(folder, code):
        return Unavailable(
            f"The disk of the workspace {folder} has no space left.",
            "Free some space and repeat this. What was kept before can be read.",
        )
    if opened and not database.exists():
        return WorkspaceError(
            f"The catalogue {database.name} of the workspace {folder} is gone.",
            f"Put it back; or {ANOTHER} and start again.",
        )
    if code in UNWRITABLE or isinstance(error, OSError):
        return WorkspaceError(
            f"The workspace folder {folder} cannot be written ({error}).",
            f"Allow writing, or {ANOTHER}. What is kept in it can be read.",
        )
    return WorkspaceError(
        f"The catalogue {database} cannot be used ({error}).", f"Put back a copy of it, or {ANOTHER}."
    )


def _is_full(folder: Path, code: int) -> bool:
    """Whether SQLite could not write because the disk is full, which it does not always say."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return code in UNWRITABLE and disk.f_bavail * disk.f_frsize < TO_OPEN

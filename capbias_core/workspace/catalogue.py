"""The SQLite file of a workspace: its tables, the check of their version, its errors as sentences, and which processes
that it names are alive."""

from __future__ import annotations

import atexit
import errno
import fcntl
import os
import re
import sqlite3
import uuid
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import IO

from capbias_core.databases import UNWRITABLE, code_of, prepare, to_read
from capbias_core.errors import CapbiasError
from capbias_core.typed import shown
from capbias_core.whole_files import HEX, private_file, private_folder, whole_file

VERSION = 7  # of the tables, stored as SQLite's user_version
SCHEMA = """
CREATE TABLE IF NOT EXISTS items (
  collection TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, hash TEXT NOT NULL, rows INTEGER NOT NULL,
  images INTEGER NOT NULL, source TEXT NOT NULL, created REAL NOT NULL, details TEXT NOT NULL,
  PRIMARY KEY (collection, kind, name));
CREATE TABLE IF NOT EXISTS runs (
  run_id TEXT PRIMARY KEY, collection TEXT NOT NULL, spec TEXT NOT NULL, status TEXT NOT NULL, token TEXT NOT NULL,
  progress REAL NOT NULL, message TEXT NOT NULL, notes TEXT NOT NULL, created REAL NOT NULL, started REAL,
  finished REAL, heartbeat REAL NOT NULL, process TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS log (run_id TEXT NOT NULL, at REAL NOT NULL, message TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS log_of_run ON log (run_id);
CREATE TABLE IF NOT EXISTS results (
  attribute TEXT, model TEXT, metric TEXT, encoder TEXT, direction TEXT, condition TEXT, value REAL, spread REAL,
  spread_kind TEXT, scale REAL, run_id TEXT NOT NULL, seeds INTEGER, n INTEGER, ci_low REAL, ci_high REAL,
  method TEXT, paper TEXT, "table" TEXT, coverage TEXT, alignment TEXT, object TEXT, "group" TEXT,
  photographs TEXT, prompt TEXT, device TEXT, interval TEXT, training INTEGER, verdict TEXT,
  setting TEXT, setting_name TEXT);
CREATE INDEX IF NOT EXISTS results_of_run ON results (run_id);
CREATE TABLE IF NOT EXISTS derived (key TEXT PRIMARY KEY, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS arrays (
  run_id TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (run_id, name));
"""
with closing(sqlite3.connect(":memory:")) as _db:
    _db.executescript(SCHEMA)
    _COLUMNS = _db.execute("SELECT p.name, p.type FROM sqlite_master m, pragma_table_info(m.name) p").fetchall()
# Columns -> the types of their values: SQLite stores any type in any column.
HELD = {"TEXT": {str}, "INTEGER": {int}, "REAL": {int, float}}
TYPES = {name: HELD[kind] | {type(None)} for name, kind in _COLUMNS if name != "data"}
TIMES, LATEST = ("created", "started", "finished", "heartbeat", "at"), 1e11  # seconds since 1970
ANOTHER = "set CAPBIAS_HOME to another folder"
SPACE_TO_OPEN = 2**16  # bytes that SQLite needs for the files beside a catalogue


class WorkspaceError(CapbiasError):
    """The workspace cannot be read or written."""


class Unavailable(WorkspaceError):
    """The disk is full, or another process keeps the workspace locked; later it may work."""


def open_catalogue(file: Path) -> None:
    """Make a catalogue that does not exist, and check the version of an existing one, which is only read. Raises
    CapbiasError for a file of another version or program, and an empty one beside data; sqlite3.Error and OSError if it
    cannot be used."""
    if file.exists():
        with to_read(file) as db:
            db.execute("BEGIN")  # one state of the file, while another process makes its tables
            (version,) = db.execute("PRAGMA user_version").fetchone()
            (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and version != VERSION:
            raise CapbiasError(
                f"Another capbias, or another program, wrote {file} (version {version}; this one reads {VERSION}).",
                f"Use that version, or {ANOTHER} and import your files again.",
            )
        if tables:
            return
        if any((file.parent / "data").glob("*.parquet")):
            raise CapbiasError(
                f"The catalogue {file} is empty, and the workspace has data.", f"Put back a copy of it, or {ANOTHER}."
            )
    with closing(sqlite3.connect(private_file(file), isolation_level=None)) as db:
        prepare(db, f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version={VERSION}; COMMIT;")


def value_fault(rows: Sequence[sqlite3.Row]) -> str:
    """The first value that is not of the type of its column, '' for none; NULL may be anywhere."""
    for name, values in zip(rows[0].keys() if rows else (), zip(*rows, strict=True), strict=True):
        if name not in TYPES:
            continue
        wrong = (value for value in values if type(value) not in TYPES[name])
        if set(map(type, values)) <= TYPES[name]:
            wrong = (value for value in values if name in TIMES and value is not None and not 0 <= value < LATEST)
        for value in wrong:
            return f"{name} is {shown(value)}"
    return ""


def workspace_fault(database: Path, error: Exception, opened: bool) -> WorkspaceError:
    """An error of SQLite or the system as a sentence. opened: the catalogue could be used before."""
    folder, code = database.parent, code_of(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Unavailable(
            f"Another process has kept the workspace {folder} locked for half a minute.",
            "Repeat this; if that does not help, end the other process.",
        )
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or code == sqlite3.SQLITE_FULL
    if not full and code in UNWRITABLE and folder.exists():  # SQLite does not always say that the disk is full
        with suppress(OSError):
            disk = os.statvfs(folder)
            full = disk.f_bavail * disk.f_frsize < SPACE_TO_OPEN
    if full:
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
            f"Allow writing, or {ANOTHER}. What is stored in it can be read.",
        )
    return WorkspaceError(
        f"The catalogue {database} cannot be used ({error}).", f"Put back a copy of it, or {ANOTHER}."
    )


ALIVE = "alive"  # the folder of a workspace with a file for each process that has runs
NAME = re.compile(f"{HEX}{{32}}")
_locked: dict[Path, IO] = {}


def this_process() -> str:
    """A unique name of this process."""
    return _process_name(os.getpid())


@cache
def _process_name(_pid: int) -> str:
    return uuid.uuid4().hex


def show_alive(workspace: Path) -> str:
    """The name of this process, which keeps a file of that name locked in this workspace while it lives: the system
    ends the lock with the process, however that ends. Raises OSError."""
    path = workspace / ALIVE / this_process()
    if path not in _locked or not path.exists():
        private_folder(path.parent)
        for other in path.parent.iterdir():  # of processes that were killed
            if NAME.fullmatch(other.name) and not lives(workspace, other.name):
                other.unlink(missing_ok=True)
        with whole_file(path) as temporary:  # it gets its name when it is locked
            _locked[path] = temporary.open("wb")
            fcntl.flock(_locked[path], fcntl.LOCK_EX)
        atexit.register(path.unlink, missing_ok=True)
    return path.name


def lives(workspace: Path, process: str) -> bool:
    """Whether the process of this name, which has runs in this workspace, lives."""
    if not NAME.fullmatch(process):
        return False
    try:
        with (workspace / ALIVE / process).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:  # it is locked, or that cannot be seen
        return True
    return False

"""The tables of a workspace's catalogue, and the check that a file has them.

SQLite's user_version holds the version of the tables. A file of another version is refused, and stays as it is.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

from capbias_core.databases import prepare, to_read
from capbias_core.errors import CapbiasError
from capbias_core.whole_files import private_file

VERSION = 5
SCHEMA = """
CREATE TABLE IF NOT EXISTS items (
  collection TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, hash TEXT NOT NULL, rows INTEGER NOT NULL,
  images INTEGER NOT NULL, bytes INTEGER NOT NULL, source TEXT NOT NULL, created REAL NOT NULL, details TEXT NOT NULL,
  owner TEXT NOT NULL DEFAULT '', PRIMARY KEY (collection, kind, name));
CREATE TABLE IF NOT EXISTS runs (
  run_id TEXT PRIMARY KEY, collection TEXT NOT NULL, spec TEXT NOT NULL, status TEXT NOT NULL, token TEXT NOT NULL,
  progress REAL NOT NULL, message TEXT NOT NULL, notes TEXT NOT NULL, created REAL NOT NULL, started REAL,
  finished REAL, heartbeat REAL NOT NULL, metrics TEXT NOT NULL DEFAULT '[]', process TEXT NOT NULL DEFAULT '',
  owner TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS log (run_id TEXT NOT NULL, at REAL NOT NULL, message TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS log_of_run ON log (run_id);
CREATE TABLE IF NOT EXISTS results (
  attribute TEXT, model TEXT, metric TEXT, encoder TEXT, direction TEXT, condition TEXT, value REAL, spread REAL,
  spread_kind TEXT, scale REAL, run_id TEXT NOT NULL, seeds INTEGER, n INTEGER, ci_low REAL, ci_high REAL,
  method TEXT, paper TEXT, "table" TEXT, coverage TEXT, alignment TEXT, object TEXT, "group" TEXT,
  photographs TEXT, prompt TEXT, device TEXT, interval TEXT, training INTEGER, verdict TEXT);
CREATE INDEX IF NOT EXISTS results_of_run ON results (run_id);
CREATE TABLE IF NOT EXISTS derived (key TEXT PRIMARY KEY, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS arrays (
  run_id TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (run_id, name));
"""


def open_catalogue(file: Path) -> None:
    """Make a catalogue that is not there yet, and check one that is, which is only read.

    Raises CapbiasError for a file of another version or with other tables, sqlite3.Error and OSError where it cannot be
    used.
    """
    if not file.exists():
        _make(file)
    with to_read(file) as db:
        db.execute("BEGIN")  # one state of the file, while another process makes its tables
        version, tables = db.execute("PRAGMA user_version").fetchone()[0], _tables(db)
    if not tables:  # the process that made the file ended before it had any
        _make(file)
        return
    wanted = _wanted()
    faults = [f"no table {name}" for name in wanted if name not in tables]
    for name in wanted.keys() & tables.keys():
        faults += [f"no column {column} in {name}" for column in sorted(wanted[name] - tables[name])]
        faults += [f"an unknown column {column} in {name}" for column in sorted(tables[name] - wanted[name])]
    if version != VERSION and "items" in tables:
        raise CapbiasError(
            f"Another capbias wrote the workspace {file.parent} (tables {version}; this one reads {VERSION}).",
            "Set CAPBIAS_HOME to another folder and import your files again, or use that version.",
        )
    if faults:
        raise CapbiasError(
            f"{file} is not a catalogue of capbias: it has {', '.join(faults)}.",
            "Put back a copy of the file, or set CAPBIAS_HOME to another folder.",
        )


def _make(file: Path) -> None:
    with closing(sqlite3.connect(private_file(file), isolation_level=None)) as db:
        prepare(db, f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version={VERSION}; COMMIT;")


def _tables(db: sqlite3.Connection) -> dict[str, set[str]]:
    """The columns of each table."""
    names = db.execute("SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite%'").fetchall()
    return {
        name: {column for (column,) in db.execute("SELECT name FROM pragma_table_info(?)", (name,))}
        for (name,) in names
    }


@cache
def _wanted() -> dict[str, set[str]]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        return _tables(db)

"""The catalogue's tables, and how those of an earlier form become today's when a workspace is opened.

SQLite's user_version holds the form's number. Each migration is one step, all are one transaction, and a copy of the
catalogue as it was stays beside it.
"""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

from capbias_core.databases import UNWRITABLE, code_of, prepare, to_read, to_write
from capbias_core.errors import CapbiasError
from capbias_core.types import ORIGIN_COLUMNS
from capbias_core.whole_files import private_file

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

TABLES_OF_EVERY_FORM = {"items", "runs", "log", "results", "arrays"}
# What measures were called in form 0.
MEASURES = {
    "attack": "lic",
    "counting": "ratio_error",
    "cooccurrence": "bias_amplification",
    "combinations": "multi",
    "predictability": "dpa",
    "quality": "caption_quality",
    "naming": "naming_ratio",
    "judge": "imagecaptioner2",
    "captions": "caption_scores",
    "reading": "encoder_view",
}


def open_catalogue(file: Path) -> None:
    """Make a catalogue that is not there yet, and bring one of an earlier form to today's.

    One of today's form is only read. Raises CapbiasError for one of a later form and for tables that are not those of
    capbias, sqlite3.Error and OSError where the file cannot be used.
    """
    if not file.exists():
        _make(file)
    with to_read(file) as db:
        form, tables = _form(db), _tables(db)
    if not tables:  # whoever made the file was ended before it had any
        _make(file)
        return
    if form > FORM:
        raise CapbiasError(
            f"A newer capbias has written the workspace {file.parent} (form {form}; this one reads {FORM}).",
            "Update capbias, or set CAPBIAS_HOME to another folder.",
        )
    if form < FORM and tables.keys() >= TABLES_OF_EVERY_FORM:
        try:
            tables = _migrated(file)
        except (sqlite3.OperationalError, OSError) as error:
            if isinstance(error, sqlite3.Error) and code_of(error) not in UNWRITABLE:
                raise
            raise CapbiasError(
                f"The workspace {file.parent} cannot be brought from form {form} to {FORM} ({error}).",
                "Free some space or allow writing; or copy the folder, and set CAPBIAS_HOME to the copy.",
            ) from None
    _check(file, tables)


def _make(file: Path) -> None:
    with closing(sqlite3.connect(private_file(file), isolation_level=None)) as db:
        prepare(db, f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version={FORM}; COMMIT;")


def _form(db: sqlite3.Connection) -> int:
    return db.execute("PRAGMA user_version").fetchone()[0]


def _tables(db: sqlite3.Connection) -> dict[str, set[str]]:
    """The columns of each table."""
    names = db.execute("SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite%'").fetchall()
    return {name: _columns(db, name) for (name,) in names}


def _columns(db: sqlite3.Connection, table: str) -> set[str]:
    return {name for (name,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,))}


@cache
def _wanted() -> dict[str, set[str]]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        return _tables(db)


def _check(file: Path, tables: dict[str, set[str]]) -> None:
    """Raises CapbiasError for tables that lack something, or have a column that nobody fills."""
    wanted = _wanted()
    faults = [f"no table {name}" for name in wanted if name not in tables]
    for name in wanted.keys() & tables.keys():
        faults += [f"no column {column} in {name}" for column in sorted(wanted[name] - tables[name])]
        faults += [f"an unknown column {column} in {name}" for column in sorted(tables[name] - wanted[name])]
    if faults:
        raise CapbiasError(
            f"{file} is not a catalogue of capbias: it has {', '.join(faults)}.",
            "Put back a copy of the file, or set CAPBIAS_HOME to another folder.",
        )


def _migrated(file: Path) -> dict[str, set[str]]:
    """The tables of a catalogue after every migration that it lacks, or as they were where one goes wrong."""
    with to_write(file) as db:
        db.execute("BEGIN IMMEDIATE")
        form = _form(db)
        if form < FORM:  # else another process was first
            _copy(file, file.with_name(f"{file.stem}.form-{form}.sqlite"))
            for step in MIGRATIONS[form:]:
                step(db)
            _check(file, _tables(db))
            db.execute(f"PRAGMA user_version={FORM}")
        db.execute("COMMIT")
        return _tables(db)


def _copy(file: Path, copy: Path) -> None:
    """A copy that is whole or not there."""
    part = copy.with_suffix(".tmp")
    try:
        with to_read(file) as source, closing(sqlite3.connect(private_file(part))) as target:
            target.execute("PRAGMA journal_mode=OFF")
            source.backup(target)
        part.replace(copy)
    finally:
        part.unlink(missing_ok=True)


# the migrations


def _add(db: sqlite3.Connection, table: str, columns: dict[str, str]) -> None:
    """Add columns to a table, but those that some catalogues of its form had already."""
    for name in columns.keys() - _columns(db, table):
        db.execute(f'ALTER TABLE {table} ADD COLUMN "{name}" {columns[name]}')


def _measures_own_themselves(db: sqlite3.Connection) -> None:
    """Form 1, November 2026: versions of measures in place of one number for all. Numbers of before stay, unseen."""
    db.execute("CREATE TABLE IF NOT EXISTS derived (key TEXT PRIMARY KEY, data TEXT NOT NULL)")
    _add(db, "results", dict.fromkeys(ORIGIN_COLUMNS, "TEXT"))
    for run_id, text in db.execute("SELECT run_id, spec FROM runs").fetchall():
        spec = json.loads(text)
        if "measure" not in spec:
            db.execute("UPDATE runs SET spec=? WHERE run_id=?", (json.dumps(_today(spec)), run_id))


def _intervals_say_over_what(db: sqlite3.Connection) -> None:
    """Form 2: results say what their intervals are over, which was images, and which metrics their run knew."""
    _add(db, "results", {"interval": "TEXT"})
    _add(db, "runs", {"metrics": "TEXT NOT NULL DEFAULT '[]'"})
    db.execute("UPDATE results SET interval = iif(ci_low IS NULL, '', 'images') WHERE interval IS NULL")


def _runs_belong_to_processes(db: sqlite3.Connection) -> None:
    """Form 3: a run names its process, items and runs their owners. Form 2 got `training` and `verdict` unnumbered."""
    _add(db, "results", {"training": "INTEGER DEFAULT 0", "verdict": "TEXT"})
    _add(db, "runs", {"process": "TEXT NOT NULL DEFAULT ''", "owner": "TEXT NOT NULL DEFAULT ''"})
    _add(db, "items", {"owner": "TEXT NOT NULL DEFAULT ''"})
    db.execute("UPDATE results SET verdict = '' WHERE verdict IS NULL")


# Of form 3: ranges of the metrics that attackers give, whose intervals could leave them.
SHARES = ("LIC_M", "LIC_D", "SC", "SC_D", "vl_lic_M", "vl_lic_D") + tuple(
    f"imagecaptioner2{name}_{side}" for name in ("", "_lic", "_leakage") for side in "MD"
)
WEIGHTS = tuple(f"{name}_{side}" for name in ("DBAC", "DBAC_accuracy", "DBAC_code", "DPA") for side in "MH")
DIFFERENCES = ("LIC", "LIC_baseline", "LIC_excess", "leakage", "DBAC", "DBAC_accuracy", "DBAC_code", "DPA", "vl_lic")
DIFFERENCES += ("imagecaptioner2", "imagecaptioner2_lic", "imagecaptioner2_leakage")
RANGES = {SHARES: (0, 100), WEIGHTS: (0, math.inf), DIFFERENCES: (-100, 100), ("DBAC_added",): (-200, 200)}


def _intervals_end_with_their_metric(db: sqlite3.Connection) -> None:
    """Form 4: no interval goes beyond the range of its metric, and none that is made of seeds has no width."""
    for names, (low, high) in RANGES.items():
        db.executemany(
            "UPDATE results SET ci_low = max(ci_low, ?), ci_high = min(ci_high, ?) WHERE metric = ?",
            [(low, high, name) for name in names],
        )
    same = "interval = 'refits' AND ci_high - ci_low <= 1e-9"
    db.execute(f"UPDATE results SET ci_low = NULL, ci_high = NULL, interval = '' WHERE {same}")


# MIGRATIONS[n] makes form n + 1 of form n.
MIGRATIONS = (
    _measures_own_themselves,
    _intervals_say_over_what,
    _runs_belong_to_processes,
    _intervals_end_with_their_metric,
)
FORM = len(MIGRATIONS)


def _today(spec: dict) -> dict:
    """A spec of form 0 with today's keys; version 0 is that of no measure."""
    objects = spec.get("objects")
    return {
        "measure": MEASURES.get(spec["family"], spec["family"]),
        "version": 0,
        "model": spec["model"],
        "captions": spec["captions"],
        "references": spec["references"],
        "labels": spec["labels"],
        "attribute": spec["attribute"],
        "objects": objects if isinstance(objects, dict) else {},
        "coverage": spec["condition"],
        "shared_with": "",
        "options": {
            **spec.get("options", {}),
            "attacker": spec["attacker"],
            "seeds": len(spec["seeds"]),
            "merge_masks": spec["merge_masks"],
        },
    }

"""The workspace: a folder that holds what was loaded (Parquet, by content hash) and what was measured (SQLite).

One SQLite file in WAL mode, so that a server, its workers and a terminal may use the workspace at once. Every
finished run is written in one transaction: a process that dies leaves nothing half.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pyarrow import ArrowException
from pyarrow.parquet import read_schema

from capbias_core.databases import prepare
from capbias_core.errors import CapbiasError
from capbias_core.types import RESULT_COLUMNS, Result
from capbias_core.workspace.migrations import migrate
from capbias_core.workspace.spec import RunSpec

RUN = "run"  # the key in an item's details for the run that made it


SCHEMA = """
CREATE TABLE IF NOT EXISTS items (
  collection TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, hash TEXT NOT NULL, rows INTEGER NOT NULL,
  images INTEGER NOT NULL, bytes INTEGER NOT NULL, source TEXT NOT NULL, created REAL NOT NULL, details TEXT NOT NULL,
  PRIMARY KEY (collection, kind, name));
CREATE TABLE IF NOT EXISTS runs (
  run_id TEXT PRIMARY KEY, collection TEXT NOT NULL, spec TEXT NOT NULL, status TEXT NOT NULL, token TEXT NOT NULL,
  progress REAL NOT NULL, message TEXT NOT NULL, notes TEXT NOT NULL, created REAL NOT NULL, started REAL,
  finished REAL, heartbeat REAL NOT NULL, metrics TEXT NOT NULL DEFAULT '[]');
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

# A run whose process has not been heard of for this long is shown as died.
SILENCE = 15.0

ACTIVE = ("queued", "running")
STATUSES = (*ACTIVE, "finished", "failed", "cancelled", "died")

# The file in a folder of photographs that says that a run made them, and how; such a folder goes with its item.
MADE = "masked.json"
# How the name of a folder of uploaded photographs in the workspace starts; it goes with its item, too.
UPLOADED = "uploaded-"


@dataclass(frozen=True)
class Item:
    """Something kept: captions, references, attributes, objects, vectors, images (an index of photographs), boxes
    or segments of what they show.

    details: by kind.
    """

    collection: str
    kind: str
    name: str
    hash: str
    rows: int
    images: int
    bytes: int
    source: str
    created: float
    details: dict


@dataclass(frozen=True)
class RunRow:
    """A run as the catalogue knows it. status: queued, running, finished, failed, cancelled or died.

    metrics: the names that its measure had when the run finished.
    """

    run_id: str
    collection: str
    spec: RunSpec
    status: str
    progress: float
    message: str
    notes: tuple[str, ...]
    created: float
    started: float | None
    finished: float | None
    heartbeat: float
    metrics: tuple[str, ...] = ()


def content_hash(frame: pd.DataFrame) -> str:
    """A hash of the cells of a frame, the same whatever file format they came from."""
    digest = hashlib.sha256("\x1f".join(frame.columns).encode())
    for column in frame.columns:
        digest.update(b"\x1d")
        # Each cell with its length, so that no separator within a caption makes two frames one.
        text = "".join(f"{len(cell)}:{cell}" for cell in map(str, frame[column]))
        digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def frame_bytes(frame: pd.DataFrame) -> bytes:
    """A frame as Parquet."""
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False, compression="zstd")
    return buffer.getvalue()


def bytes_frame(data: bytes) -> pd.DataFrame:
    """The frame in Parquet bytes."""
    return pd.read_parquet(io.BytesIO(data))


def default_folder() -> Path:
    """CAPBIAS_HOME, or `workspace` in the current folder."""
    return Path(os.environ.get("CAPBIAS_HOME") or "workspace").expanduser().resolve()


class Workspace:
    """A workspace folder; opening a folder that is not there makes an empty one.

    Raises CapbiasError where the folder cannot be made or its catalogue is not one.
    """

    def __init__(self, folder: str | os.PathLike | None = None):
        self.folder = Path(folder) if folder is not None else default_folder()
        self.database = self.folder / "capbias.sqlite"
        try:
            (self.folder / "data").mkdir(parents=True, exist_ok=True)
            with self._connection() as db:
                prepare(db, SCHEMA)
            self._migrate()
        except (OSError, sqlite3.DatabaseError) as error:
            raise CapbiasError(
                f"the workspace folder {self.folder}, which cannot be used ({error})",
                "a folder that can be written, with a capbias catalogue or none",
                "Set CAPBIAS_HOME to another folder.",
            ) from None

    def _migrate(self) -> None:
        db = sqlite3.connect(self.database, timeout=30, isolation_level=None)
        try:
            migrate(db)
        finally:
            db.close()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(self.database, timeout=30)
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA synchronous=NORMAL")
        try:
            with db:
                yield db
        finally:
            db.close()

    def _all(self, query: str, *values) -> list[sqlite3.Row]:
        with self._connection() as db:
            return db.execute(query, values).fetchall()

    def _change(self, query: str, *values) -> int:
        with self._connection() as db:
            return db.execute(query, values).rowcount

    def version(self) -> str:
        """Changes whenever results, items or finished runs change; a key for caches."""
        row = self._all(
            "SELECT (SELECT count(*) || ':' || coalesce(max(rowid), 0) || ':' || coalesce(max(created), 0) FROM items)"
            " || '/' || (SELECT count(*) || ':' || coalesce(max(finished), 0) FROM runs) AS version"
        )
        return row[0]["version"]

    # what was loaded

    def keep(
        self,
        kind: str,
        name: str,
        frame: pd.DataFrame,
        collection: str,
        source: str,
        details: dict | None = None,
        digest: str = "",
    ) -> Item:
        """Keep a frame as Parquet under its content hash, and name it in the catalogue.

        The same name in the same collection is replaced, and results of its earlier content are forgotten. digest:
        the hash of a large file of which the frame is an excerpt; an earlier excerpt of the same file is replaced.
        """
        name, collection = checked_name(name), checked_name(collection)
        excerpt, digest = bool(digest), digest or content_hash(frame)
        for earlier in self._called(kind, name, collection):
            if earlier.hash != digest:
                self.delete(earlier, spared=(details or {}).get("folder", ""))
        data = frame_bytes(frame)
        images = frame["image_id"].nunique() if "image_id" in frame else 0
        item = Item(collection, kind, name, digest, len(frame), images, len(data), source, time.time(), details or {})
        values = [*vars(item).values()]
        values[-1] = json.dumps(item.details)
        # The file is written here, and removed in `delete`, within the transaction: content that one process forgets
        # while another keeps it has its file in the end.
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            self._write(self._path(digest), data, excerpt)
            db.execute(f"INSERT OR REPLACE INTO items VALUES ({', '.join('?' * len(values))})", values)
        return item

    def _called(self, kind: str, name: str, collection: str) -> list[Item]:
        return [own for own in self.items(kind, collection) if own.name == name]

    def check_replaceable(self, kind: str, name: str, frame: pd.DataFrame, collection: str) -> None:
        """Raises CapbiasError where `keep` would, since a run reads what it replaces."""
        for earlier in self._called(kind, name, collection):
            if earlier.hash != content_hash(frame):
                self._runs_gone_with(earlier)

    def _write(self, path: Path, data: bytes, replace: bool) -> None:
        if replace or not path.exists():
            temporary = path.with_suffix(f".{os.getpid()}.tmp")
            temporary.write_bytes(data)
            temporary.replace(path)

    def _path(self, digest: str) -> Path:
        return self.folder / "data" / f"{digest}.parquet"

    def items(self, kind: str | None = None, collection: str | None = None) -> list[Item]:
        """What is kept, oldest first."""
        rows = self._all("SELECT * FROM items ORDER BY created, name")
        items = [Item(**{**dict(row), "details": json.loads(row["details"])}) for row in rows]
        return [
            item
            for item in items
            if (kind is None or item.kind == kind) and (collection is None or item.collection == collection)
        ]

    def item(self, kind: str, name: str, collection: str) -> Item:
        """One kept item. Raises CapbiasError naming those that there are."""
        found = {item.name: item for item in self.items(kind, collection)}
        if name not in found:
            raise CapbiasError(
                f"{kind} {name!r} in the collection {collection!r}",
                f"one of: {', '.join(found) or 'none is kept'}",
                "Load it on the Data page or with `python -m capbias_core import`.",
            )
        return found[name]

    def collections(self) -> list[str]:
        """Names of the collections, the most recently filled first."""
        return [
            row["collection"]
            for row in self._all("SELECT collection FROM items GROUP BY collection ORDER BY max(created) DESC")
        ]

    def scored(self) -> list[str]:
        """Those of the collections for which a run has finished, in the same order."""
        ended = {row["collection"] for row in self._all("SELECT DISTINCT collection FROM runs WHERE status='finished'")}
        return [name for name in self.collections() if name in ended]

    def frame(self, digest: str) -> pd.DataFrame:
        """The kept frame with this content hash."""
        return self._read(digest, pd.read_parquet)

    def columns(self, digest: str) -> list[str]:
        """The columns of the kept frame with this content hash, of whose rows nothing is read."""
        return self._read(digest, read_schema).names

    def _read(self, digest: str, read: Callable[[Path], Any]) -> Any:
        try:
            return read(self._path(digest))
        except (OSError, ArrowException):
            raise CapbiasError(
                f"data {digest}, whose file is missing from the workspace or damaged",
                f"{self._path(digest).name} in its data folder",
                "Load the file again.",
            ) from None

    def using(self, item: Item) -> list[RunRow]:
        """Runs that read this item's content (as captions, references, labels or objects), for whichever collection."""
        return [run for run in self.runs() if item.hash in run.spec.inputs()]

    def _runs_gone_with(self, item: Item) -> tuple[list[Item], list[RunRow]]:
        """The other items, and the runs that go with an item: all that read its content, if it is the last that has it.

        Raises CapbiasError where one of them is under way.
        """
        place = (item.collection, item.kind, item.name)
        others = [own for own in self.items() if (own.collection, own.kind, own.name) != place]
        runs = [] if any(own.hash == item.hash for own in others) else self.using(item)
        if any(run.status in ACTIVE for run in runs):
            raise CapbiasError(
                f"{item.name}, which a run is reading", "no run under way on it", "Cancel the run first."
            )
        return others, runs

    def delete(self, item: Item, spared: str = "") -> int:
        """Forget an item; with the last item of its content go its file, its runs and their results.

        Photographs go with the last item of their folder where the workspace holds them, the user's own never. spared:
        a folder of photographs that stays. Returns how many runs went. Raises CapbiasError while a run reads it.
        """
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")  # from here on nobody else queues a run or keeps the same content
            place = (item.collection, item.kind, item.name)
            others, runs = self._runs_gone_with(item)
            for run in runs:
                self._forget(db, run.run_id)
            db.execute("DELETE FROM items WHERE collection=? AND kind=? AND name=?", place)
            if not db.execute("SELECT 1 FROM items WHERE hash=?", (item.hash,)).fetchone():
                self._path(item.hash).unlink(missing_ok=True)
            folder = item.details.get("folder")
            if folder and folder not in {spared, *(own.details.get("folder") for own in others)}:
                self._remove_photographs(Path(folder))
        return len(runs)

    def _remove_photographs(self, folder: Path) -> None:
        """Remove a folder of photographs that a run made or that were uploaded, and no other."""
        here = folder.parent.resolve() == (self.folder / "pictures").resolve()
        if here and (folder.name.startswith(UPLOADED) or (folder / MADE).is_file()):
            shutil.rmtree(folder, ignore_errors=True)

    def forget(self, run_id: str) -> None:
        """Forget a finished run, so that it is computed anew when it is asked for again."""
        with self._connection() as db:
            if db.execute("SELECT 1 FROM runs WHERE run_id=? AND status='finished'", (run_id,)).fetchone():
                self._forget(db, run_id)

    def _forget(self, db: sqlite3.Connection, run_id: str) -> None:
        for table in ("results", "arrays", "log", "runs"):
            db.execute(f"DELETE FROM {table} WHERE run_id=?", (run_id,))
        db.execute("DELETE FROM derived")

    # what was run

    def enqueue(self, spec: RunSpec, collection: str, token: str) -> bool:
        """Queue a run; False where it is finished, or queued or running in a living process."""
        now, run_id = time.time(), spec.run_id
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            row = db.execute("SELECT status, heartbeat FROM runs WHERE run_id=?", (run_id,)).fetchone()
            if row and (row["status"] == "finished" or (row["status"] in ACTIVE and _alive(row["heartbeat"], now))):
                return False
            self._forget(db, run_id)
            db.execute(
                "INSERT INTO runs VALUES (?, ?, ?, 'queued', ?, 0, 'waiting', '[]', ?, NULL, NULL, ?, '[]')",
                (run_id, collection, json.dumps(asdict(spec)), token, now, now),
            )
            _log(db, run_id, "queued")
        return True

    def claim(self, run_id: str, token: str) -> bool:
        """Start a queued run; a scheduler that repeats a task after a lost worker claims it again."""
        now = time.time()
        with self._connection() as db:
            changed = db.execute(
                "UPDATE runs SET status='running', started=?, heartbeat=?, progress=0, message='starting'"
                " WHERE run_id=? AND token=? AND status IN ('queued', 'running')",
                (now, now, run_id, token),
            ).rowcount
            if changed:
                _log(db, run_id, f"started in process {os.getpid()}")
        return bool(changed)

    def progress(self, run_id: str, token: str, share: float, message: str) -> bool:
        """Note progress (0 to 1); False where the run was cancelled or taken over, and must stop."""
        return bool(
            self._change(
                "UPDATE runs SET progress=?, message=?, heartbeat=? WHERE run_id=? AND token=? AND status='running'",
                share,
                message,
                time.time(),
                run_id,
                token,
            )
        )

    def log(self, run_id: str, message: str) -> None:
        """Add a line to a run's log."""
        with self._connection() as db:
            _log(db, run_id, message)

    def heartbeat(self, tokens: dict[str, str]) -> None:
        """Say that the process that owns these runs (run_id -> token) is alive."""
        with self._connection() as db:
            db.executemany(
                "UPDATE runs SET heartbeat=? WHERE run_id=? AND token=? AND status IN ('queued', 'running')",
                [(time.time(), run_id, token) for run_id, token in tokens.items()],
            )

    def finish(
        self,
        run_id: str,
        token: str,
        results: list[Result],
        arrays: dict[str, bytes],
        notes,
        metrics: Sequence[str] = (),
    ) -> bool:
        """Write a run's results, arrays and end in one transaction; False where it was cancelled meanwhile.

        metrics: the names of all that its measure gives today.
        """
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            changed = db.execute(
                "UPDATE runs SET status='finished', progress=1, message='finished', notes=?, metrics=?, finished=?"
                " WHERE run_id=? AND token=? AND status='running'",
                (json.dumps(list(notes)), json.dumps(list(metrics)), time.time(), run_id, token),
            ).rowcount
            if not changed:
                return False
            _insert(db, run_id, results)
            db.executemany("INSERT INTO arrays VALUES (?, ?, ?)", [(run_id, *pair) for pair in arrays.items()])
            _log(db, run_id, "finished")
        return True

    def add_results(self, run_id: str, results: list[Result], metrics: Sequence[str]) -> None:
        """Add rows to a finished run, from the evidence that it left. metrics: the names that are known from now on."""
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            row = db.execute("SELECT metrics FROM runs WHERE run_id=? AND status='finished'", (run_id,)).fetchone()
            known = json.loads(row["metrics"]) if row else None
            if known is None or set(metrics) <= set(known):  # gone, or another process was first
                return
            _insert(db, run_id, [own for own in results if own.metric not in known])
            db.execute("UPDATE runs SET metrics=? WHERE run_id=?", (json.dumps([*known, *metrics]), run_id))

    def end(self, run_id: str, status: str, message: str, token: str | None = None) -> bool:
        """End a run that did not finish (failed, cancelled, died); a finished run stays as it is."""
        with self._connection() as db:
            changed = db.execute(
                "UPDATE runs SET status=?, message=?, finished=? WHERE run_id=? AND status IN ('queued', 'running')"
                " AND (? IS NULL OR token=?)",
                (status, message, time.time(), run_id, token, token),
            ).rowcount
            if changed:
                _log(db, run_id, f"{status}: {message}")
        return bool(changed)

    def runs(self, collection: str | None = None) -> list[RunRow]:
        """Every run, newest first; one whose process fell silent is shown as died."""
        query = "SELECT * FROM runs WHERE ? IS NULL OR collection=? ORDER BY created DESC, rowid DESC"
        return [_run_row(row) for row in self._all(query, collection, collection)]

    def run(self, run_id: str) -> RunRow | None:
        """One run, or None."""
        return self.runs_of([run_id]).get(run_id)

    def runs_of(self, run_ids: Sequence[str]) -> dict[str, RunRow]:
        """Those of these runs that exist, by id, in the order given."""
        marks = ", ".join("?" * len(run_ids))
        found = {row["run_id"]: row for row in self._all(f"SELECT * FROM runs WHERE run_id IN ({marks})", *run_ids)}
        return {run_id: _run_row(found[run_id]) for run_id in run_ids if run_id in found}

    def times(self, measure: str, attacker: str, most: int = 50) -> list[tuple[RunSpec, float]]:
        """The newest finished runs of a measure by an attacker, newest first: what was asked for, and seconds taken."""
        rows = self._all(
            "SELECT spec, finished - started AS seconds FROM runs WHERE status='finished' AND"
            " json_extract(spec, '$.measure')=? AND coalesce(json_extract(spec, '$.options.attacker'), '')=?"
            " ORDER BY finished DESC LIMIT ?",
            measure,
            attacker,
            most,
        )
        return [(RunSpec.from_dict(json.loads(row["spec"])), row["seconds"]) for row in rows]

    def log_of(self, run_id: str) -> list[tuple[float, str]]:
        """The lines of a run's log with their times (seconds since 1970)."""
        rows = self._all("SELECT at, message FROM log WHERE run_id=? ORDER BY rowid", run_id)
        return [(row["at"], row["message"]) for row in rows]

    def array(self, run_id: str, name: str) -> bytes:
        """An array that a finished run left."""
        rows = self._all("SELECT data FROM arrays WHERE run_id=? AND name=?", run_id, name)
        if not rows:
            raise CapbiasError(f"no {name} of run {run_id}", "a finished run", "Run it again.")
        return rows[0]["data"]

    def derived(self, key: str, compute: Callable[[], object]):
        """What follows from finished runs and takes a while (a ranking): computed once, kept as JSON under a key
        that names the runs. Forgotten whenever a run is."""
        rows = self._all("SELECT data FROM derived WHERE key=?", key)
        if rows:
            return json.loads(rows[0]["data"])
        data = json.dumps(compute())
        self._change("INSERT OR REPLACE INTO derived VALUES (?, ?)", key, data)
        return json.loads(data)

    def has_derived(self, key: str) -> bool:
        """Whether `derived` has this already."""
        return bool(self._all("SELECT 1 FROM derived WHERE key=?", key))

    def results(self, run_ids=None) -> pd.DataFrame:
        """Measured rows, in the columns of the results table: of these finished runs, or of all."""
        columns = ", ".join(f'results."{column}"' for column in RESULT_COLUMNS)
        finished = "results JOIN runs USING (run_id) WHERE runs.status='finished'"
        rows = self._all(f"SELECT {columns} FROM {finished} ORDER BY results.rowid")
        frame = pd.DataFrame([tuple(row) for row in rows], columns=list(RESULT_COLUMNS))
        frame = frame.astype(dict.fromkeys(("value", "spread", "scale", "ci_low", "ci_high"), float))
        return frame if run_ids is None else frame[frame["run_id"].isin(list(run_ids))].reset_index(drop=True)


def _alive(heartbeat: float, now: float) -> bool:
    return now - heartbeat < SILENCE


def _run_row(row: sqlite3.Row) -> RunRow:
    fields = {key: row[key] for key in row.keys() if key != "token"}  # noqa: SIM118 (a Row iterates over values)
    if row["status"] in ACTIVE and not _alive(row["heartbeat"], time.time()):
        fields |= {"status": "died", "message": "the process died unexpectedly; repeat the run"}
    lists = {name: tuple(json.loads(row[name])) for name in ("notes", "metrics")}
    return RunRow(**{**fields, "spec": RunSpec.from_dict(json.loads(row["spec"])), **lists})


def _insert(db: sqlite3.Connection, run_id: str, results: Sequence[Result]) -> None:
    columns = ", ".join(f'"{column}"' for column in RESULT_COLUMNS)
    rows = [list({**result.row(), "run_id": run_id}.values()) for result in results]
    db.executemany(f"INSERT INTO results ({columns}) VALUES ({', '.join('?' * len(RESULT_COLUMNS))})", rows)


def _log(db: sqlite3.Connection, run_id: str, message: str) -> None:
    db.execute("INSERT INTO log VALUES (?, ?, ?)", (run_id, time.time(), message))


FORBIDDEN = frozenset("<>&\"'`|\\/*[]$")


def suggested_name(text: str) -> str:
    """A name such as `checked_name` accepts, from the name of a file.

    >>> suggested_name("my [best] model's $captions")
    'my best model s captions'
    """
    kept = (letter if letter.isprintable() and letter not in FORBIDDEN else " " for letter in text)
    return " ".join("".join(kept).split())[:60].strip() or "file"


def checked_name(name: str) -> str:
    """A name for an item or collection: printable, at most 80 characters, none of <>&\"'`|\\/ or line breaks."""
    cleaned = " ".join(name.split())
    if not cleaned or len(cleaned) > 80 or not cleaned.isprintable() or FORBIDDEN & set(cleaned):
        raise CapbiasError(
            f"the name {name[:100]!r}",
            "1 to 80 letters, digits, spaces or . _ - + ( ) , : =",
            "Give it a shorter or plainer name.",
        )
    return cleaned

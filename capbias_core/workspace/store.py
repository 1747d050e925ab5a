"""The workspace: a folder that holds what was loaded (Parquet, by content hash) and what was measured (SQLite).

One SQLite file in WAL mode, so that a server, its workers and a terminal may use the workspace at once. Every
finished run is written in one transaction: a process that dies leaves nothing half.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
from pyarrow import ArrowException
from pyarrow.parquet import read_schema

from capbias_core.databases import to_read, to_write
from capbias_core.errors import CapbiasError
from capbias_core.types import RESULT_COLUMNS, Result, left_out_lines
from capbias_core.whole_files import private_folder, write_whole
from capbias_core.workspace.catalogue import open_catalogue
from capbias_core.workspace.faults import WorkspaceError, workspace_fault
from capbias_core.workspace.people import check_own, person
from capbias_core.workspace.processes import lives, this_process
from capbias_core.workspace.spec import RunSpec

# A content hash, as `content_hash` and runs write it. Files are named by it, so nothing else may become a path.
HASH = re.compile(r"[0-9a-f]{16,64}")
RUN = "run"  # the key in an item's details for the run that made it


# A run whose process cannot be seen from here, as on another host, died if nothing was heard of it for so many seconds
# that passed here: clocks of two hosts are never compared.
SILENCE = 15.0

# Of a catalogue; see `Workspace.version`.
VERSION = (
    "SELECT (SELECT count(*) || ':' || coalesce(max(rowid), 0) || ':' || total(created) FROM items)"
    " || '/' || (SELECT count(*) || ':' || count(finished) || ':' || total(finished) FROM runs)"
    " || '/' || (SELECT coalesce(max(rowid), 0) FROM results) AS version"
)
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
    owner: str = ""


@dataclass(frozen=True)
class RunRow:
    """A run as the catalogue knows it. status: queued, running, finished, failed, cancelled or died.

    notes: for the reader, also on each metric without a value. lacking: why metrics have none, by metric. metrics: the
    names that its measure had when the run finished. owner: who asked for it, where people sign in.
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
    owner: str = ""
    lacking: Mapping[str, str] = field(default_factory=dict)


def content_hash(frame: pd.DataFrame) -> str:
    """A hash of the cells of a frame, the same whatever file format they came from."""
    digest = hashlib.sha256("\x1f".join(frame.columns).encode())
    for column in frame.columns:
        digest.update(b"\x1d")
        # Each cell with its length, so that no separator within a caption makes two frames one.
        text = "".join([f"{len(cell)}:{cell}" for cell in map(str, frame[column].to_numpy(dtype=object))])
        digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def frame_bytes(frame: pd.DataFrame) -> bytes:
    """A frame as Parquet."""
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False, compression="zstd")
    return buffer.getvalue()


def images_in(frame: pd.DataFrame) -> set[str]:
    """The images of a table. Python's texts are quicker to read than pandas', which are unpacked one by one."""
    return set(frame["image_id"].to_numpy(dtype=object))


def bytes_frame(data: bytes) -> pd.DataFrame:
    """The frame in Parquet bytes; columns of one kind are not copied beside each other."""
    return pd.read_parquet(io.BytesIO(data), to_pandas_kwargs={"split_blocks": True})


def default_folder() -> Path:
    """CAPBIAS_HOME, or `workspace` in the current folder."""
    return Path(os.environ.get("CAPBIAS_HOME") or "workspace").expanduser().resolve()


class _Reading:
    """What one thread has read of a catalogue since `one_reading` began."""

    def __init__(self, connections: ExitStack, database: Path):
        self.db = connections.enter_context(to_read(database))
        self.db.row_factory = sqlite3.Row
        self.forget()

    def forget(self) -> None:
        """The version is read first, so that nothing that is kept under it is older than it."""
        self.found: dict[tuple, Any] = {(VERSION,): self.db.execute(VERSION).fetchall()}

    def once(self, query: str, values: tuple) -> list[sqlite3.Row]:
        """The rows of a query, which is asked once."""
        if (query, *values) not in self.found:
            self.found[(query, *values)] = self.db.execute(query, values).fetchall()
        return self.found[(query, *values)]


class _Readings(threading.local):
    """Of this thread, by catalogue; None outside of `one_reading`."""

    def __init__(self) -> None:
        self.connections: ExitStack | None = None
        self.of: dict[Path, _Reading] = {}


_READINGS = _Readings()


@contextmanager
def one_reading() -> Iterator[None]:
    """In the block, this thread asks catalogues each question once, and sees of changes its own alone.

    What it reads was true when the block began or later, and after a change of its own when that was made or later.
    """
    with ExitStack() as connections:
        _READINGS.connections, _READINGS.of = connections, {}
        try:
            yield
        finally:
            _READINGS.connections, _READINGS.of = None, {}


class Workspace:
    """A workspace folder; opening a folder that is not there makes an empty one, unless `make` is False.

    Where nothing can be written, what is kept can be read. Raises WorkspaceError where it cannot be used, and
    CapbiasError for a catalogue of a newer capbias or with other tables.
    """

    def __init__(self, folder: str | os.PathLike | None = None, make: bool = True):
        self.folder = Path(folder) if folder is not None else default_folder()
        self.database = self.folder / "capbias.sqlite"
        self.checkpoints = self.folder / "checkpoints"  # of runs under way or that died, a folder each
        # token -> last beat of a run whose process cannot be seen, and when it was first read here (monotonic seconds).
        self._heard: dict[str, tuple[float, float]] = {}
        with self.usable(opened=not make):
            if make and not self.database.exists():
                private_folder(self.folder / "data")
            elif not self.database.exists():
                raise FileNotFoundError(self.database)
            open_catalogue(self.database)

    @contextmanager
    def usable(self, opened: bool = True) -> Iterator[None]:
        """Say what keeps the workspace from being used in words. Errors of a program that asks wrongly stay."""
        try:
            yield
        except (sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.IntegrityError):
            raise
        except (sqlite3.Error, OSError, json.JSONDecodeError) as error:
            raise workspace_fault(self.database, error, opened) from None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, in which nobody else writes; nothing of it is kept where it breaks."""
        with self.usable():
            with to_write(self.database) as db:
                db.row_factory = sqlite3.Row
                db.execute("BEGIN IMMEDIATE")
                self._forget_reading()  # what is decided in here is decided on what is true now
                yield db
                db.execute("COMMIT")
            self._forget_reading()

    def _forget_reading(self) -> None:
        if reading := _READINGS.of.get(self.database):
            reading.forget()

    def _reading(self) -> _Reading | None:
        """What this thread has read, where it is in `one_reading`."""
        if _READINGS.connections is None:
            return None
        if self.database not in _READINGS.of:
            _READINGS.of[self.database] = _Reading(_READINGS.connections, self.database)
        return _READINGS.of[self.database]

    def _all(self, query: str, *values) -> list[sqlite3.Row]:
        with self.usable():
            if reading := self._reading():
                return reading.once(query, values)
            with to_read(self.database) as db:
                db.row_factory = sqlite3.Row
                return db.execute(query, values).fetchall()

    def _change(self, query: str, *values) -> int:
        with self._writing() as db:
            return db.execute(query, values).rowcount

    def version(self) -> str:
        """Changes whenever results, items or finished runs change; a key for caches."""
        return self._all(VERSION)[0]["version"]

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
        path, data = self._path(digest), frame_bytes(frame)
        images = frame["image_id"].nunique() if "image_id" in frame else 0
        now, details, owner = time.time(), details or {}, person()
        item = Item(collection, kind, name, digest, len(frame), images, len(data), source, now, details, owner)
        replaced: list[Item] = []
        try:
            # Files are written, and removed in `_tidy`, while nobody else writes: content that one process forgets
            # while another keeps it has its file in the end.
            with self._writing() as db:
                self._write(path, data, excerpt)
                for earlier in self._called(kind, name, collection):
                    if earlier.hash == digest and (excerpt or earlier.details == details):
                        item = dataclasses.replace(item, owner=earlier.owner)
                        continue
                    check_own(earlier.owner, self.folder, earlier.name)
                    if earlier.hash != digest:
                        self._forget_item(db, earlier)
                        replaced.append(earlier)
                values = {**vars(item), "details": json.dumps(details)}
                marks = ", ".join(f":{key}" for key in values)
                db.execute(f"INSERT OR REPLACE INTO items ({', '.join(values)}) VALUES ({marks})", values)
        except CapbiasError:
            with suppress(WorkspaceError):
                self._tidy([item])
            raise
        self._tidy(replaced)
        return item

    def _called(self, kind: str, name: str, collection: str) -> list[Item]:
        return [own for own in self.items(kind, collection) if own.name == name]

    def check_replaceable(self, kind: str, name: str, frame: pd.DataFrame, collection: str) -> None:
        """Raises CapbiasError where `keep` would, since a run reads what it replaces, or somebody else owns it."""
        for earlier in self._called(kind, name, collection):
            if earlier.hash != content_hash(frame):
                check_own(earlier.owner, self.folder, earlier.name)
                self._ended_with(earlier)

    def _write(self, path: Path, data: bytes, replace: bool) -> None:
        for left in path.parent.glob("*.tmp"):  # by a process that was killed: nobody else writes now
            left.unlink(missing_ok=True)
        if replace or not path.exists():
            private_folder(path.parent)
            write_whole(path, data)

    def _path(self, digest: str) -> Path:
        return self.beside(digest, "parquet")

    def beside(self, digest: str, suffix: str) -> Path:
        """A file of what is kept under a content hash; all of them go with the last item that has it.

        Raises CapbiasError for a hash that is none, which could name a file anywhere.
        """
        if not HASH.fullmatch(digest):
            raise CapbiasError(f"{digest[:100]!r} is not a content hash.", "The workspace or bundle was changed.")
        return self.folder / "data" / f"{digest}.{suffix}"

    def items(self, kind: str | None = None, collection: str | None = None) -> list[Item]:
        """What is kept, oldest first."""
        rows = self._all("SELECT * FROM items ORDER BY created, name")
        with self.usable():
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
                f"The collection {collection!r} has no {kind} {name!r}.",
                f"It has: {', '.join(found) or 'none'}. Load others on the Data page or with `capbias import`.",
            )
        return found[name]

    def collections(self) -> list[str]:
        """Names of the collections, the most recently filled first."""
        return [
            row["collection"]
            for row in self._all("SELECT collection FROM items GROUP BY collection ORDER BY max(created) DESC")
        ]

    def scored(self) -> list[str]:
        """Those of the collections whose captions a run has finished by their labels, in the same order. A run for
        another collection that holds the same counts too, as everywhere."""
        query = "SELECT DISTINCT " + ", ".join(
            f"json_extract(spec, '$.{key}')" for key in ("model", "captions", "labels.table")
        )
        ended = {tuple(row) for row in self._all(f"{query} FROM runs WHERE status='finished'")}
        held: dict[str, set] = {}
        for item in self.items():
            held.setdefault(item.collection, set()).update({(item.name, item.hash), item.hash})
        return [
            name
            for name in self.collections()
            if any((model, captions) in held[name] and labels in held[name] for model, captions, labels in ended)
        ]

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
                f"{self._path(digest).name} is missing from the data folder of the workspace, or damaged.",
                "Load the file again.",
            ) from None

    def using(self, item: Item) -> list[RunRow]:
        """Runs that read this item's content (as captions, references, labels or objects), for whichever collection."""
        return [run for run in self.runs() if item.hash in run.spec.inputs()]

    def gone_with(self, item: Item) -> list[RunRow]:
        """The runs that go with an item: all that read its content, if it is the last that has it."""
        place = (item.collection, item.kind, item.name)
        others = (own for own in self.items() if (own.collection, own.kind, own.name) != place)
        return [] if any(own.hash == item.hash for own in others) else self.using(item)

    def _ended_with(self, item: Item) -> list[RunRow]:
        """The runs that go with an item. Raises CapbiasError where one of them is under way."""
        runs = self.gone_with(item)
        if any(run.status in ACTIVE for run in runs):
            raise CapbiasError(f"A run is reading {item.name}.", "Cancel the run first.")
        return runs

    def delete(self, item: Item) -> int:
        """Forget an item; with the last item of its content go its file, its runs and their results.

        Photographs go with the last item of their folder where the workspace holds them, the user's own never. Returns
        how many runs went. Raises CapbiasError while a run reads it, for one that is gone, and for somebody else's.
        """
        check_own(item.owner, self.folder, item.name)
        with self._writing() as db:  # from here on nobody else queues a run or keeps the same content
            runs = self._forget_item(db, item)
        self._tidy([item])
        return runs

    def _forget_item(self, db: sqlite3.Connection, item: Item) -> int:
        runs, own = self._ended_with(item), (item.collection, item.kind, item.name, item.hash, item.created)
        # Whatever keeps it anew, with other labels or by somebody else, dates it anew.
        gone = "DELETE FROM items WHERE collection=? AND kind=? AND name=? AND hash=? AND created=?"
        if not db.execute(gone, own).rowcount:
            raise CapbiasError(f"{item.name} has changed or is deleted.", "Reload the page.")
        for run in runs:
            self._forget(db, run.run_id)
        return len(runs)

    def _tidy(self, gone: Sequence[Item]) -> None:
        """Remove files and photographs of items that are gone, but those that another item has."""
        if not gone:
            return
        with self._writing():
            items = self.items()
            hashes, folders = {own.hash for own in items}, {own.details.get("folder") for own in items}
            for item in gone:
                if item.hash not in hashes:
                    for file in self._path(item.hash).parent.glob(f"{item.hash}.*"):
                        file.unlink(missing_ok=True)
                folder = item.details.get("folder")
                if folder and folder not in folders:
                    self._remove_photographs(Path(folder))

    def _remove_photographs(self, folder: Path) -> None:
        """Remove a folder of photographs that a run made or that were uploaded, and no other."""
        here = folder.parent.resolve() == (self.folder / "pictures").resolve()
        if here and (folder.name.startswith(UPLOADED) or (folder / MADE).is_file()):
            shutil.rmtree(folder, ignore_errors=True)

    def forget(self, run_id: str) -> None:
        """Forget a finished run, so that it is computed anew when it is asked for again."""
        with self._writing() as db:
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
        with self._writing() as db:
            row = db.execute("SELECT * FROM runs WHERE run_id=?", (run_id,)).fetchone()
            if row and self._run_row(row).status in ("finished", *ACTIVE):
                return False
            self._forget(db, run_id)
            db.execute(
                "INSERT INTO runs (run_id, collection, spec, status, token, progress, message, notes, created,"
                " heartbeat, process, owner) VALUES (?, ?, ?, 'queued', ?, 0, 'waiting', '[]', ?, ?, ?, ?)",
                (run_id, collection, json.dumps(asdict(spec)), token, now, now, this_process(), person()),
            )
            _log(db, run_id, "queued")
        return True

    def claim(self, run_id: str, token: str) -> bool:
        """Start a queued run; a scheduler that repeats a task after a lost worker claims it again."""
        now = time.time()
        with self._writing() as db:
            changed = db.execute(
                "UPDATE runs SET status='running', started=?, heartbeat=?, process=?, progress=0, message='starting'"
                " WHERE run_id=? AND token=? AND status IN ('queued', 'running')",
                (now, now, this_process(), run_id, token),
            ).rowcount
            if changed:
                _log(db, run_id, f"started in process {os.getpid()}")
        return bool(changed)

    def progress(self, run_id: str, token: str, share: float, message: str) -> bool:
        """Note progress (0 to 1); False where the run was cancelled, taken over or sent elsewhere, and must stop."""
        return token not in _ENDS and bool(
            self._change(
                "UPDATE runs SET progress=?, message=?, heartbeat=?"
                " WHERE run_id=? AND token=? AND process=? AND status='running'",
                share,
                message,
                time.time(),
                run_id,
                token,
                this_process(),
            )
        )

    def log(self, run_id: str, message: str) -> None:
        """Add a line to a run's log."""
        with self._writing() as db:
            _log(db, run_id, message)

    def heartbeat(self, tokens: dict[str, str]) -> None:
        """Say that the process that owns these runs (run_id -> token) is alive."""
        with self._writing() as db:
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
        notes: Sequence[str],
        metrics: Sequence[str] = (),
        lacking: Mapping[str, str] | None = None,
    ) -> bool:
        """Write a run's results, arrays and end in one transaction; False where it was cancelled meanwhile.

        metrics: the names of all that its measure gives today. lacking: why some of them have no value, by metric.
        """
        with self._writing() as db:
            changed = db.execute(
                "UPDATE runs SET status='finished', progress=1, message='finished', notes=?, metrics=?, finished=?"
                " WHERE run_id=? AND token=? AND status='running'",
                (
                    json.dumps([*notes, *([dict(lacking)] if lacking else [])]),
                    json.dumps(list(metrics)),
                    time.time(),
                    run_id,
                    token,
                ),
            ).rowcount
            if not changed:
                return False
            _insert(db, run_id, results)
            db.executemany("INSERT INTO arrays VALUES (?, ?, ?)", [(run_id, *pair) for pair in arrays.items()])
            _log(db, run_id, "finished")
        return True

    def add_finished(
        self,
        spec: RunSpec,
        collection: str,
        arrays: Mapping[str, bytes],
        notes: Sequence[str],
        results: Sequence[Result] = (),
    ) -> None:
        """Store a run that finished elsewhere; a run that is here stays as it is.

        It has no start, so no estimate of durations here rests on it.
        """
        now, run_id = time.time(), spec.run_id
        with self._writing() as db:
            if db.execute("SELECT 1 FROM runs WHERE run_id=?", (run_id,)).fetchone():
                return
            db.execute(
                "INSERT INTO runs (run_id, collection, spec, status, token, progress, message, notes, created,"
                " finished, heartbeat, metrics, process, owner)"
                " VALUES (?, ?, ?, 'finished', '', 1, 'finished', ?, ?, ?, ?, ?, '', ?)",
                (
                    run_id,
                    collection,
                    json.dumps(asdict(spec)),
                    json.dumps(list(notes)),
                    *(now, now, now),
                    json.dumps(sorted({result.metric for result in results})),
                    person(),
                ),
            )
            _insert(db, run_id, results)
            db.executemany("INSERT INTO arrays VALUES (?, ?, ?)", [(run_id, *pair) for pair in arrays.items()])
            _log(db, run_id, "imported; it was computed elsewhere")

    def add_results(self, run_id: str, results: list[Result], metrics: Sequence[str]) -> None:
        """Add rows to a finished run, from the evidence that it left. metrics: the names that are known from now on."""
        with self._writing() as db:
            row = db.execute("SELECT metrics FROM runs WHERE run_id=? AND status='finished'", (run_id,)).fetchone()
            known = json.loads(row["metrics"]) if row else None
            if known is None or set(metrics) <= set(known):  # gone, or another process was first
                return
            _insert(db, run_id, [own for own in results if own.metric not in known])
            db.execute("UPDATE runs SET metrics=? WHERE run_id=?", (json.dumps([*known, *metrics]), run_id))

    def end(self, run_id: str, status: str, message: str, token: str | None = None) -> bool:
        """End a run that did not finish (failed, cancelled, died); a finished run stays as it is."""
        with self._writing() as db:
            changed = db.execute(
                "UPDATE runs SET status=?, message=?, finished=? WHERE run_id=? AND status IN ('queued', 'running')"
                " AND (? IS NULL OR token=?)",
                (status, message, time.time(), run_id, token, token),
            ).rowcount
            if changed:
                _log(db, run_id, f"{status}: {message}")
        return bool(changed)

    def end_here(self, run_id: str, status: str, message: str, token: str) -> bool:
        """`end` for a run of this process, which knows of the end also where that cannot be written.

        Called again, it writes the first end that it was told.
        """
        try:
            changed = self.end(run_id, *_ENDS.get(token, (status, message)), token)
        except WorkspaceError:
            _ENDS.setdefault(token, (status, message))
            return True
        _ENDS.pop(token, None)
        return changed

    def runs(self, collection: str | None = None) -> list[RunRow]:
        """Every run, newest first; one whose process is no more is shown as died."""
        query = "SELECT * FROM runs WHERE ? IS NULL OR collection=? ORDER BY rowid DESC"
        return [self._run_row(row) for row in self._all(query, collection, collection)]

    def _run_row(self, row: sqlite3.Row) -> RunRow:
        fields = {key: row[key] for key in row.keys() if key not in ("token", "process")}  # noqa: SIM118 (a Row)
        if row["status"] in ACTIVE:
            if row["token"] in _ENDS:
                fields["status"], fields["message"] = _ENDS[row["token"]]
            elif not self._lives(row):
                fields |= {"status": "died", "message": "its process ended before the run did; repeat the run"}
        with self.usable():
            kept = json.loads(row["notes"])  # texts, and perhaps the reasons for metrics without a value
            lacking = {name: reason for own in kept if isinstance(own, dict) for name, reason in own.items()}
            notes = (*(own for own in kept if isinstance(own, str)), *left_out_lines(lacking))
            fields |= {"spec": _spec(row["spec"]), "notes": notes, "lacking": lacking}
            return RunRow(**{**fields, "metrics": tuple(json.loads(row["metrics"]))})

    def _lives(self, row: sqlite3.Row) -> bool:
        """Whether the process of a run under way lives; if that cannot be seen, whether it was heard of lately."""
        known = lives(row["process"])
        if known is not None:
            return known
        now = time.monotonic()
        beat, since = self._heard.get(row["token"], (None, now))
        if beat != row["heartbeat"]:
            self._heard[row["token"]] = row["heartbeat"], now
            return True
        return now - since < SILENCE

    def run(self, run_id: str) -> RunRow | None:
        """One run, or None."""
        return self.runs_of([run_id]).get(run_id)

    def there(self, run_id: str) -> RunRow:
        """One run. Raises CapbiasError where it was deleted meanwhile."""
        if run := self.run(run_id):
            return run
        raise CapbiasError(f"The run {run_id!r} was deleted.", "Reload the page.")

    def runs_of(self, run_ids: Sequence[str]) -> dict[str, RunRow]:
        """Those of these runs that exist, by id, in the order given."""
        marks = ", ".join("?" * len(run_ids))
        found = {row["run_id"]: row for row in self._all(f"SELECT * FROM runs WHERE run_id IN ({marks})", *run_ids)}
        return {run_id: self._run_row(found[run_id]) for run_id in run_ids if run_id in found}

    def past_durations(
        self, measure: str, attacker: str, most: int, before: float | None = None
    ) -> list[tuple[RunSpec, float]]:
        """The newest finished runs of a measure by an attacker, newest first: their specs, and the seconds they took.

        before: only those that finished before this time (seconds since 1970).
        """
        rows = self._all(
            "SELECT spec, finished - started AS seconds FROM runs WHERE status='finished' AND finished >= started AND"
            " json_extract(spec, '$.measure')=? AND coalesce(json_extract(spec, '$.options.attacker'), '')=?"
            " AND finished < coalesce(?, finished + 1) ORDER BY finished DESC LIMIT ?",
            measure,
            attacker,
            before,
            most,
        )
        return [(_spec(row["spec"]), row["seconds"]) for row in rows]

    def log_of(self, run_id: str) -> list[tuple[float, str]]:
        """The lines of a run's log with their times (seconds since 1970)."""
        rows = self._all("SELECT at, message FROM log WHERE run_id=? ORDER BY rowid", run_id)
        return [(row["at"], row["message"]) for row in rows]

    def array(self, run_id: str, name: str) -> bytes:
        """An array that a finished run left; it may be too large to be held as long as `one_reading` lasts."""
        with self.usable(), to_read(self.database) as db:
            db.execute("BEGIN")  # the place of the array is that of its bytes
            place = db.execute("SELECT rowid FROM arrays WHERE run_id=? AND name=?", (run_id, name)).fetchone()
            if not place:
                raise CapbiasError(f"The run {run_id} has left no {name}.", "Run it again.")
            with db.blobopen("arrays", "data", *place, readonly=True) as blob:  # a query would copy it twice
                return blob.read()

    def arrays(self, run_id: str) -> list[str]:
        """The names of the arrays that a finished run left."""
        return [row["name"] for row in self._all("SELECT name FROM arrays WHERE run_id=? ORDER BY rowid", run_id)]

    def derived(self, key: str, compute: Callable[[], object]):
        """What follows from finished runs and takes a while (a ranking): computed once, kept as JSON under a key
        that names the runs. Forgotten whenever a run is."""
        rows = self._all("SELECT data FROM derived WHERE key=?", key)
        if rows:
            return json.loads(rows[0]["data"])
        data = json.dumps(compute())
        with suppress(WorkspaceError):  # such as a full disk: it is computed again
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


@lru_cache(maxsize=4096)
def _spec(text: str) -> RunSpec:
    """A run as it is kept; callers only read."""
    return RunSpec.from_dict(json.loads(text))


# token -> status and message of a run of this process that ended while that could not be written.
_ENDS: dict[str, tuple[str, str]] = {}


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
        raise CapbiasError(f"A name must be 1 to 80 letters, digits, spaces or . _ - + ( ) , : =, not {name[:100]!r}.")
    return cleaned

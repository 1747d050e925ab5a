"""The workspace: a folder with loaded tables (Parquet, by content hash) and measured results (SQLite).

A server, its workers and a terminal may use it at once. A finished run is written in one transaction.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import ArrowException

from capbias_core.aggregate import Counts
from capbias_core.aggregate.estimate import VERDICTS
from capbias_core.data import images_in
from capbias_core.databases import to_read, to_write
from capbias_core.errors import CapbiasError, first_line, short
from capbias_core.kinds import checked_name
from capbias_core.prepare.tokens import Tokens
from capbias_core.typed import from_json
from capbias_core.types import RESULT_COLUMNS, Result, left_out_lines
from capbias_core.whole_files import CATALOGUE, HEX, check_contained, private_folder, typed_path, write_whole
from capbias_core.workspace.catalogue import (
    WorkspaceError,
    lives,
    open_catalogue,
    show_alive,
    value_fault,
    workspace_fault,
)
from capbias_core.workspace.shape import NEEDED, TABLES, Details, table_fault
from capbias_core.workspace.spec import HASH, RunSpec, StoredRun

COUNTS = "counts"  # the array of a run with its evidence; `counts A->T` of one direction
MODELS = "models"  # the folder with the path of each model, in a file named by the model's digest
RUN = "run"  # the key in an item's details for the run that made it
ACTIVE = ("queued", "running")
WAITING = f"SELECT * FROM runs WHERE status IN {ACTIVE} ORDER BY rowid"
# Who queued or claimed a run has its token until somebody else claims it or it ends: nothing else cancels a run, takes
# it over, and keeps a worker that lost it from writing.
HELD = "run_id=? AND token=?"
# A folder of photographs with this file was made by a run; one with this prefix was uploaded. Both go with their item.
MADE, UPLOADED = "masked.json", "uploaded-"


@dataclass(frozen=True)
class Item:
    """Stored captions, references, attributes, objects, vectors, images (a list of photographs), boxes or segments.
    details: by kind."""

    collection: str
    kind: str
    name: str
    hash: str
    rows: int
    images: int
    source: str
    created: float
    details: dict


@dataclass(frozen=True)
class RunRow:
    """A run in the catalogue."""

    run_id: str
    collection: str
    spec: RunSpec
    status: str  # queued, running, finished, failed, cancelled or died
    progress: float
    message: str
    notes: tuple[str, ...]  # for the reader, with a line for each reason in `lacking`
    created: float
    started: float | None
    finished: float | None
    process: str  # which queued the run, or computes it
    lacking: Mapping[str, str] = field(default_factory=dict)  # why metrics have no value, by metric
    token: str = field(default="", compare=False, repr=False)  # of who queued or claimed it, '' once it ended
    evidence: Any = field(default=None, compare=False, repr=False)  # what it left: `Evidence`, or an Outcome in hand

    def counts(self) -> dict[str, Counts]:
        """The evidence of a finished run, by direction. Raises CapbiasError if its labels are of another attribute."""
        counts, values = self.evidence.counts_by_direction(), len(self.spec.attribute.get("values", ()))
        if any(each.label.max(initial=-1) >= values for each in counts.values()):
            raise CapbiasError(f"The run {self.run_id} has left counts of other labels.", "Run it again.")
        return counts

    def counts_of(self, direction: str = "") -> Counts:
        """The evidence of one direction. Raises CapbiasError if the run left none."""
        if counts := self.counts().get(direction):
            return counts
        raise CapbiasError(f"The run {self.run_id} has left no counts.", "Run it again.")

    def array(self, name: str) -> bytes | None:
        """An array that a finished run left; None if it left none of this name."""
        return self.evidence.array(name)

    def read(self, name: str, read: Callable[[bytes], Any]) -> Any:
        """An array that a finished run left, as this function reads it. Raises CapbiasError if it left none, or if
        another program wrote it."""
        try:
            return read(self.array(name) or b"")
        except (ValueError, LookupError, TypeError, OSError, EOFError, ArrowException):
            raise CapbiasError(f"The run {self.run_id} has left no {name}.", "Run it again.") from None


@dataclass(frozen=True)
class Evidence:
    """What a run left in a workspace, read when it is used."""

    workspace: Workspace
    run_id: str

    def counts_by_direction(self) -> dict[str, Counts]:
        return self.workspace.counts(self.run_id)

    def array(self, name: str) -> bytes | None:
        return self.workspace.array(self.run_id, name) if name in self.workspace.arrays(self.run_id) else None


def content_hash(frame: pd.DataFrame) -> str:
    """A hash of the cells of a frame, the same whatever file format they came from."""
    digest = hashlib.sha256("\x1f".join(frame.columns).encode())
    for column in frame.columns:
        digest.update(b"\x1d")
        # Each cell with its length, so that no separator within a caption makes two frames equal.
        text = "".join([f"{len(cell)}:{cell}" for cell in map(str, frame[column].to_numpy(dtype=object))])
        digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def frame_bytes(frame: pd.DataFrame) -> bytes:
    """The frame as Parquet."""
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False, compression="zstd")
    return buffer.getvalue()


def bytes_frame(data: bytes) -> pd.DataFrame:
    """The frame in Parquet bytes; columns of one type are not copied into one block."""
    return pd.read_parquet(io.BytesIO(data), to_pandas_kwargs={"split_blocks": True})


def human_sets(workspace: Workspace, collection: str) -> list[Item]:
    """The sets of human captions of a collection, those of most images first; by default the first is compared with."""
    return sorted(workspace.items("references", collection), key=lambda item: -item.images)


def default_folder() -> Path:
    """CAPBIAS_HOME, or `workspace` in the current folder."""
    return typed_path(os.environ.get("CAPBIAS_HOME") or "workspace").resolve()


def shared_folder() -> Path | None:
    """The workspace that all who sign in can read, by CAPBIAS_SHARED; None if it is not set. Raises CapbiasError for a
    folder that is no workspace."""
    if not (named := os.environ.get("CAPBIAS_SHARED")):
        return None
    folder = typed_path(named).resolve()
    if not (folder / CATALOGUE).is_file():
        raise CapbiasError(f"CAPBIAS_SHARED is {named}, which is no workspace.", "Name another folder, or unset it.")
    return folder


# Ends that could not be written: database and run -> token of who had the run, status, message.
_ENDS: dict[tuple[Path, str], tuple[str, str, str]] = {}


class Workspace:
    """A workspace folder. A missing folder becomes an empty workspace, unless `make` is False.

    If nothing can be written, it can still be read. Raises WorkspaceError if it cannot be used, and CapbiasError for a
    catalogue of another version, and for a folder that leads out of itself (`check_contained`).
    """

    read_only = False  # as the shared workspace is

    def __init__(self, folder: str | os.PathLike | None = None, make: bool = True, read_only: bool = False):
        self.read_only = read_only
        self.folder = typed_path(folder) if folder is not None else default_folder()
        self.database = self.folder / CATALOGUE
        self.unfinished = self.folder / "unfinished"  # a folder for each run that may go on where it stopped
        check_contained(self.folder)
        with self.translate_errors(opened=not make):
            if make and not self.database.exists():
                private_folder(self.folder / "data")
            elif not self.database.exists():
                raise FileNotFoundError(self.database)
            open_catalogue(self.database)

    @contextmanager
    def translate_errors(self, opened: bool = True) -> Iterator[None]:
        """Errors of SQLite and the system become WorkspaceError; errors of a wrong query stay."""
        try:
            yield
        except (sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.IntegrityError):
            raise
        except (sqlite3.Error, OSError, json.JSONDecodeError) as error:
            raise workspace_fault(self.database, error, opened) from None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, in which no other process writes; an error undoes it."""
        if self.read_only:
            raise WorkspaceError("This workspace is shared, so it can only be read.", "Choose your own workspace.")
        with self.translate_errors(), to_write(self.database) as db:
            db.row_factory = sqlite3.Row
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")

    def _all(self, query: str, *values) -> list[sqlite3.Row]:
        with self.translate_errors(), to_read(self.database) as db:
            db.row_factory = sqlite3.Row
            rows = db.execute(query, values).fetchall()
        with self._unchanged():
            if fault := value_fault(rows):
                raise ValueError(fault)
        return rows

    def version(self) -> str:
        """Changes whenever results, items or finished runs change; a key for caches."""
        query = (
            "SELECT (SELECT count(*) || ':' || coalesce(max(rowid), 0) || ':' || total(created) FROM items) || '/' ||"
            " (SELECT count(*) || ':' || count(finished) || ':' || total(finished) FROM runs) AS version"
        )
        return self._all(query)[0]["version"]

    # items

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
        """The stored item: a frame as Parquet under its content hash, with a name in the catalogue.

        An item of the same name in the collection is replaced, with the results of its content. digest: the hash of a
        large file of which the frame is an excerpt; an earlier excerpt of the same file is replaced.
        """
        name, collection = checked_name(name), checked_name(collection)
        excerpt, digest = bool(digest), digest or content_hash(frame)
        path = self.sidecar_path(digest, "parquet")
        images = frame["image_id"].nunique() if "image_id" in frame else 0
        now, details = time.time(), details or {}
        item = Item(collection, kind, name, digest, len(frame), images, source, now, details)
        replaced: list[Item] = []
        try:
            # Files are written here, and removed in `_tidy`, within a transaction: content that one process deletes
            # while another stores it has its file in the end.
            with self._writing() as db:
                for left in path.parent.glob(f".{HEX * 32}.tmp"):  # by a process that was killed: only one writes now
                    left.unlink(missing_ok=True)
                if excerpt or not path.exists():
                    private_folder(path.parent)
                    write_whole(path, frame_bytes(frame))
                for earlier in self.items(kind, collection, name):
                    if earlier.hash == digest and (excerpt or earlier.details == details):
                        continue
                    if earlier.hash != digest:
                        self._delete_item(db, earlier)
                        replaced.append(earlier)
                _insert(db, "items", [{**vars(item), "details": json.dumps(details)}])
        except CapbiasError:
            with suppress(WorkspaceError):
                self._tidy([item])
            raise
        self._tidy(replaced)
        return item

    def check_replaceable(self, kind: str, name: str, frame: pd.DataFrame, collection: str) -> None:
        """Raises CapbiasError if `keep` would: a run reads what it replaces."""
        for earlier in self.items(kind, collection, name):
            if earlier.hash != content_hash(frame):
                self._unused_runs(earlier)

    def sidecar_path(self, digest: str, suffix: str) -> Path:
        """A file stored under a content hash; all of them go with the last item of that content. Raises CapbiasError
        for anything but a hash, which could name a file anywhere."""
        if not HASH.fullmatch(digest):
            raise CapbiasError(f"{short(digest, 100)!r} is not a content hash.", "The workspace or bundle was changed.")
        return self.folder / "data" / f"{digest}.{suffix}"

    def items(self, kind: str | None = None, collection: str | None = None, name: str | None = None) -> list[Item]:
        """The stored items, oldest first."""
        rows = self._all("SELECT * FROM items ORDER BY created, name")
        with self._unchanged():
            return [
                _item(*row)
                for row in rows
                if kind in (None, row["kind"])
                and collection in (None, row["collection"])
                and name in (None, row["name"])
            ]

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """What is read of a catalogue in the block has its types; a stranger may have written it. Otherwise raises
        WorkspaceError."""
        try:
            yield
        except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
            reason = first_line(error)
            raise WorkspaceError(
                f"The catalogue {self.database} was changed by another program ({reason}).", "Put back a copy of it."
            ) from None

    def item(self, kind: str, name: str, collection: str) -> Item:
        """One stored item. Raises CapbiasError with the known names."""
        known = {item.name: item for item in self.items(kind, collection)}
        if name not in known:
            raise CapbiasError(
                f"The collection {collection!r} has no {kind} {name!r}.",
                f"It has: {', '.join(known) or 'none'}. Load others on the Data page or with `capbias import`.",
            )
        return known[name]

    def collections(self) -> list[str]:
        """Names of the collections, the most recently filled first."""
        query = "SELECT collection FROM items GROUP BY collection ORDER BY max(created) DESC"
        return [row["collection"] for row in self._all(query)]

    def scored(self) -> list[str]:
        """The collections whose captions and labels a finished run read, in the order of `collections`. The run may
        have been started for another collection with the same content."""
        specs = [run.spec for run in self.runs() if run.status == "finished"]
        read = {(spec.model, spec.captions, spec.labels.get("table")) for spec in specs}
        stored: dict[str, set] = {name: set() for name in self.collections()}
        for item in self.items():
            stored.setdefault(item.collection, set()).update({item.hash, (item.name, item.hash)})
        return [
            name
            for name, keys in stored.items()
            if any((model, captions) in keys and table in keys for model, captions, table in read)
        ]

    def frame(self, digest: str) -> pd.DataFrame:
        """The stored frame with this content hash."""
        path, frame = self.sidecar_path(digest, "parquet"), None
        with suppress(OSError, ArrowException, ValueError):
            frame = pd.read_parquet(path) if path.is_file() else None  # of a folder, pandas would read what is in it
        if frame is None or self._is_other(digest, frame):
            raise CapbiasError(
                f"{path.name} is missing from the data folder of the workspace, or damaged.", "Load the file again."
            )
        return frame

    def _is_other(self, digest: str, frame: pd.DataFrame) -> bool:
        """Whether a table is not that of the items with this content hash."""
        return any(
            len(frame) != item.rows or (item.kind in TABLES and table_fault(item.kind, item.details, frame))
            for item in self.items()
            if item.hash == digest
        )

    def tokens(self, digest: str) -> Tokens:
        """The tokens of a stored caption set."""
        return _tokens(self.folder, digest)

    def images(self, digest: str) -> frozenset[str]:
        """The image IDs of a stored table."""
        return _images(self.folder, digest)

    def model_path(self, digest: str) -> str:
        """Where the model with this digest is on this machine; '' if that is not known."""
        note = self.folder / MODELS / digest
        return note.read_text(encoding="utf-8") if HASH.fullmatch(digest) and note.is_file() else ""

    def keep_model_path(self, digest: str, path: str) -> None:
        """Note where the model with this digest is."""
        if self.model_path(digest) != path:
            with self.translate_errors():
                private_folder(self.folder / MODELS)
                write_whole(self.folder / MODELS / digest, path.encode())

    def using(self, item: Item) -> list[RunRow]:
        """Runs of any collection that read the content of this item."""
        return [run for run in self.runs() if item.hash in run.spec.inputs()]

    def gone_with(self, item: Item) -> list[RunRow]:
        """The runs that are deleted with an item: all that read its content, unless another item has that content."""
        same = [other for other in self.items() if other.hash == item.hash]
        alone = all(
            (other.collection, other.kind, other.name) == (item.collection, item.kind, item.name) for other in same
        )
        return self.using(item) if alone else []

    def _unused_runs(self, item: Item) -> list[RunRow]:
        runs = self.gone_with(item)
        if any(run.status in ACTIVE for run in runs):
            raise CapbiasError(f"A run is reading {item.name}.", "Cancel the run first.")
        return runs

    def delete(self, item: Item) -> int:
        """Delete an item, and with the last item of its content the file, runs and results; returns how many runs.

        Photographs are deleted with the last item of their folder if they are in the workspace. Raises CapbiasError
        while a run reads the item, and if it was deleted already.
        """
        with self._writing() as db:  # from here on nobody else queues a run or stores the same content
            runs = self._delete_item(db, item)
        self._tidy([item])
        return runs

    def delete_collection(self, collection: str) -> int:
        """Delete all items of a collection as `delete` does; returns how many runs. Raises CapbiasError, and deletes
        nothing, while a run reads one of them."""
        items = self.items(collection=collection)
        for item in items:
            self._unused_runs(item)
        return sum(map(self.delete, items))

    def _delete_item(self, db: sqlite3.Connection, item: Item) -> int:
        runs, key = self._unused_runs(item), (item.collection, item.kind, item.name, item.hash, item.created)
        # An item that was stored again has another date.
        query = "DELETE FROM items WHERE collection=? AND kind=? AND name=? AND hash=? AND created=?"
        if not db.execute(query, key).rowcount:
            raise CapbiasError(f"{item.name} has changed or is deleted.", "Reload the page.")
        for run in runs:
            self._forget(db, run.run_id)
        return len(runs)

    def _tidy(self, gone: Sequence[Item]) -> None:
        """Remove files and photographs of deleted items, unless another item has them."""
        if not gone:
            return
        with self._writing() as db:
            items = self.items()
            hashes, folders = {item.hash for item in items}, {item.details.get("folder") for item in items}
            for item in gone:
                if item.hash not in hashes:
                    _underive(db, item.hash)
                    for file in (self.folder / "data").glob(f"{item.hash}.*"):
                        file.unlink(missing_ok=True)
                if (name := item.details.get("folder")) and name not in folders:
                    folder = Path(name)
                    ours = folder.name.startswith(UPLOADED) or (folder / MADE).is_file()
                    if ours and folder.resolve().parent == (self.folder / "pictures").resolve():
                        shutil.rmtree(folder, ignore_errors=True)

    # runs

    def forget(self, run_id: str) -> None:
        """Forget a finished run, so that it is computed again at the next request."""
        with self._writing() as db:
            if db.execute("SELECT 1 FROM runs WHERE run_id=? AND status='finished'", (run_id,)).fetchone():
                self._forget(db, run_id)

    def _forget(self, db: sqlite3.Connection, run_id: str) -> None:
        for table in ("results", "arrays", "log", "runs"):
            db.execute(f"DELETE FROM {table} WHERE run_id=?", (run_id,))
        _underive(db, run_id)

    def enqueue(self, spec: RunSpec, collection: str) -> bool:
        """Queue a run; False if it is finished, or queued or running in a living process. A queued run dies with this
        process unless another process claims it."""
        with self._writing() as db:
            row = db.execute("SELECT * FROM runs WHERE run_id=?", (spec.run_id,)).fetchone()
            if row and self._run_row(row).status in ("finished", *ACTIVE):
                return False
            self._forget(db, spec.run_id)
            _ENDS.pop((self.database, spec.run_id), None)
            now = time.time()
            row = {"run_id": spec.run_id, "collection": collection, "spec": json.dumps(asdict(spec))}
            row |= {"status": "queued", "process": show_alive(self.folder), "progress": 0, "message": "waiting"}
            row |= {"token": uuid.uuid4().hex}
            _insert(db, "runs", [row | {"notes": "[]", "created": now, "heartbeat": now}])
            _log(db, spec.run_id, "queued")
        return True

    def waiting(self) -> list[RunRow]:
        """The queued and running runs, those that died too, the oldest first."""
        return [self._run_row(row) for row in self._all(WAITING)]

    def claim(self, accepts: Callable[[RunRow], bool]) -> RunRow | None:
        """Start the oldest run of `waiting` that this function accepts. From then on only who knows its new token has
        the run. Returns the run as it was in the queue, with that token; None if no run is accepted."""
        if not any(map(accepts, self.waiting())):
            return None  # without keeping others from writing
        query = (
            "UPDATE runs SET status='running', started=?, process=?, token=?, progress=0,"
            " message='starting' WHERE run_id=?"
        )
        with self._writing() as db:
            for run in map(self._run_row, db.execute(WAITING).fetchall()):
                if accepts(run):
                    now, token = time.time(), uuid.uuid4().hex
                    db.execute(query, (now, show_alive(self.folder), token, run.run_id))
                    _log(db, run.run_id, f"started in process {os.getpid()}")
                    return replace(run, token=token)
        return None

    def progress(self, run: RunRow, share: float, message: str) -> bool:
        """Note progress (0 to 1); False if the run was cancelled or somebody else has it, so that it must stop. run: as
        `claim` gave it."""
        if (self.database, run.run_id) in _ENDS:
            return False
        query = f"UPDATE runs SET progress=?, message=? WHERE {HELD}"
        with self._writing() as db:
            return bool(db.execute(query, (share, message, run.run_id, run.token)).rowcount)

    def log(self, run_id: str, message: str) -> None:
        """Add a line to a run's log."""
        with self._writing() as db:
            _log(db, run_id, message)

    def write_ends(self) -> None:
        """Write the ends of runs of this process that could not be written before."""
        for key, (token, status, message) in list(_ENDS.items()):
            if key[0] == self.database:
                self.end(key[1], status, message, token)
                _ENDS.pop(key, None)

    def finish(
        self,
        run: RunRow,
        results: list[Result],
        arrays: Mapping[str, bytes],
        notes: Sequence[str] = (),
        lacking: Mapping[str, str] | None = None,
    ) -> bool:
        """Write the results, arrays and end of a run, in one transaction; False if it was cancelled or somebody else
        has it. run: as `claim` gave it. lacking: why metrics have no value, by metric."""
        query = "UPDATE runs SET status='finished', progress=1, message='finished', token='', notes=?, finished=?"
        texts = json.dumps([*notes, *([dict(lacking)] if lacking else [])])
        with self._writing() as db:
            if not db.execute(f"{query} WHERE {HELD}", (texts, time.time(), run.run_id, run.token)).rowcount:
                return False
            _insert(db, "results", [{**result.row(), "run_id": run.run_id} for result in results])
            _insert(db, "arrays", [{"run_id": run.run_id, "name": name, "data": data} for name, data in arrays.items()])
            _log(db, run.run_id, "finished")
        return True

    def end(self, run_id: str, status: str, message: str, token: str | None = None) -> bool:
        """End a run that did not finish (failed, cancelled, died); a finished run stays as it is. token: only if this
        claim still has it. Returns whether the run was ended."""
        with self._writing() as db:
            return _end(db, run_id, status, message, token)

    def end_here(self, run_id: str, status: str, message: str, token: str | None = None) -> bool:
        """`end`, but this process remembers the first end that cannot be written, and `write_ends` writes it later."""
        _, status, message = _ENDS.get((self.database, run_id), ("", status, message))
        try:
            return self.end(run_id, status, message, token)
        except WorkspaceError:
            run = self.run(run_id)
            if run and token in (None, run.token):
                _ENDS[self.database, run_id] = run.token, status, message
            return True

    def runs(self, collection: str | None = None) -> list[RunRow]:
        """All runs, newest first; one whose process ended is shown as died."""
        query = "SELECT * FROM runs WHERE ? IS NULL OR collection=? ORDER BY rowid DESC"
        return [self._run_row(row) for row in self._all(query, collection, collection)]

    def _run_row(self, row: sqlite3.Row) -> RunRow:
        fields = {name: row[name] for name in row.keys() if name != "heartbeat"}  # noqa: SIM118
        if row["status"] in ACTIVE:
            token, status, message = _ENDS.get((self.database, row["run_id"]), (None, "", ""))
            if token == row["token"]:
                fields |= {"status": status, "message": message}
            elif not lives(self.folder, row["process"]):
                fields |= {"status": "died", "message": "its process ended before the run did; repeat the run"}
        with self._unchanged():
            if not row["run_id"].isalnum():  # in a bundle, files have this name
                raise ValueError(f"{row['run_id'][:50]!r} is no ID of a run")
            stored = json.loads(row["notes"])  # texts, and perhaps the reasons for metrics without a value
            lacking = {name: reason for note in stored if isinstance(note, dict) for name, reason in note.items()}
            notes = (*(note for note in stored if isinstance(note, str)), *left_out_lines(lacking))
            read = {"spec": _spec(row["spec"]), "notes": notes, "lacking": lacking}
            return RunRow(**fields | read, evidence=Evidence(self, row["run_id"]))

    def run(self, run_id: str) -> RunRow | None:
        """One run, or None."""
        return self.runs_of([run_id]).get(run_id)

    def get_run(self, run_id: str) -> RunRow:
        """One run. Raises CapbiasError if it was deleted."""
        if run := self.run(run_id):
            return run
        raise CapbiasError(f"The run {run_id!r} was deleted.", "Reload the page.")

    def runs_of(self, run_ids: Sequence[str]) -> dict[str, RunRow]:
        """Those of these runs that exist, by id, in the order given."""
        marks = ", ".join("?" * len(run_ids))
        rows = {row["run_id"]: row for row in self._all(f"SELECT * FROM runs WHERE run_id IN ({marks})", *run_ids)}
        return {run_id: self._run_row(rows[run_id]) for run_id in run_ids if run_id in rows}

    def log_of(self, run_id: str) -> list[tuple[float, str]]:
        """The lines of a run's log with their times (seconds since 1970)."""
        rows = self._all("SELECT at, message FROM log WHERE run_id=? ORDER BY rowid", run_id)
        return [(row["at"], row["message"]) for row in rows]

    def array(self, run_id: str, name: str) -> bytes:
        """An array that a finished run left."""
        with self.translate_errors(), to_read(self.database) as db:
            db.execute("BEGIN")  # the row number stays valid until the bytes are read
            row = db.execute("SELECT rowid FROM arrays WHERE run_id=? AND name=?", (run_id, name)).fetchone()
            if not row:
                raise CapbiasError(f"The run {run_id} has left no {name}.", "Run it again.")
            with db.blobopen("arrays", "data", *row, readonly=True) as blob:  # a query would copy it twice
                return blob.read()

    def arrays(self, run_id: str) -> list[str]:
        """The names of the arrays that a finished run left."""
        rows = self._all("SELECT name FROM arrays WHERE run_id=? ORDER BY rowid", run_id)
        return [row["name"] for row in rows]

    def counts(self, run_id: str) -> dict[str, Counts]:
        """The evidence of a finished run, by direction."""
        names = [name for name in self.arrays(run_id) if name.split(" ")[0] == COUNTS]
        with self._unchanged():
            return {name.partition(" ")[2]: Counts.load(self.array(run_id, name)) for name in names}

    def derived(self, key: str, compute: Callable[[], object], kind: Any):
        """A slow value that follows from stored items and runs, such as a ranking: computed once, and stored as JSON
        under a key that names them by their IDs and hashes. Forgotten when one of them is. kind: its type; computed
        again if what is stored is of another."""
        for row in self._all("SELECT data FROM derived WHERE key=?", key):
            with suppress(ValueError):
                return from_json(kind, row["data"], key)
        data = json.dumps(compute(), default=asdict)
        with suppress(WorkspaceError), self._writing() as db:  # such as a full disk: it is computed again
            _insert(db, "derived", [{"key": key, "data": data}])
        return from_json(kind, data, key)

    def results(self, run_ids=None) -> pd.DataFrame:
        """Measured rows of these finished runs, by default all, in the columns of the results table."""
        columns = ", ".join(f'results."{column}"' for column in RESULT_COLUMNS)
        finished = "results JOIN runs USING (run_id) WHERE runs.status='finished'"
        rows = self._all(f"SELECT {columns} FROM {finished} ORDER BY results.rowid")
        with self._unchanged():
            frame = results_frame([tuple(row) for row in rows])
            nothing = frame[["metric", "model"]].isna().any(axis=None) or not {*frame["verdict"]} <= {"", *VERDICTS}
            if nothing or frame.duplicated().any() or np.isinf(frame["value"]).any():
                raise ValueError("results are double, endless or of nothing")
        return frame if run_ids is None else frame[frame["run_id"].isin(list(run_ids))].reset_index(drop=True)


def results_frame(rows: list[tuple]) -> pd.DataFrame:
    """Rows as the results table."""
    frame = pd.DataFrame(rows, columns=list(RESULT_COLUMNS))
    return frame.astype(dict.fromkeys(("value", "spread", "scale", "ci_low", "ci_high"), float))


@lru_cache(maxsize=8)
def _tokens(folder: Path, digest: str) -> Tokens:
    return Tokens.of(Workspace(folder, make=False).frame(digest)["caption"])


@lru_cache(maxsize=16)
def _images(folder: Path, digest: str) -> frozenset[str]:
    return frozenset(images_in(Workspace(folder, make=False).frame(digest)))


@lru_cache(maxsize=4096)
def _spec(text: str) -> RunSpec:
    """A run from its JSON; callers only read it. Raises ValueError for fields of other types."""
    return from_json(StoredRun, text, "spec")


@lru_cache(maxsize=4096)
def _item(*row: Any) -> Item:
    """An item from its row; callers only read it. Raises ValueError for details of other types, or a hash that is
    none."""
    *about, details = row
    item = Item(*about, details=from_json(Details, details, "details"))
    if not HASH.fullmatch(item.hash):
        raise ValueError(f"{item.hash[:50]!r} is no content hash")
    if item.kind in NEEDED and NEEDED[item.kind] not in item.details:
        raise ValueError(f"details.{NEEDED[item.kind]} is missing")
    return item


def _insert(db: sqlite3.Connection, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows of one shape, in place of those with the same primary key."""
    for row in rows[:1]:
        columns, marks = ", ".join(f'"{column}"' for column in row), ", ".join("?" * len(row))
        query = f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({marks})"
        db.executemany(query, [tuple(row.values()) for row in rows])


def _underive(db: sqlite3.Connection, identity: str) -> None:
    """Forget what was derived from a run or from stored content."""
    db.execute("DELETE FROM derived WHERE instr(key, ?)", (identity,))


def _end(db: sqlite3.Connection, run_id: str, status: str, message: str, token: str | None) -> bool:
    """End a run that is under way. token: only if this claim still has it."""
    query = "UPDATE runs SET status=?, message=?, finished=?, token='' WHERE run_id=? AND token=coalesce(?, token)"
    query += " AND token != ''"
    changed = db.execute(query, (status, message, time.time(), run_id, token)).rowcount
    if changed:
        _log(db, run_id, f"{status}: {message}")
    return bool(changed)


def _log(db: sqlite3.Connection, run_id: str, message: str) -> None:
    _insert(db, "log", [{"run_id": run_id, "at": time.time(), "message": message}])

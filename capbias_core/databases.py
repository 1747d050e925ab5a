"""SQLite files that several processes open at once, and a cache of bytes by key in such a file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError
from capbias_core.whole_files import private_file, private_folder

PATIENCE = 30.0  # seconds
PAUSE = 0.02
KEYS_PER_QUERY = 400
# SQLite's codes if it cannot write the files of a database's log, which it needs even to read.
UNWRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL}
# What a file of this program never has: views, triggers and virtual tables, whose answers may never end.
STRANGE = "SELECT name FROM sqlite_master WHERE sql NOT LIKE 'CREATE TABLE %' AND sql NOT LIKE 'CREATE INDEX %'"
CACHE = "CREATE TABLE IF NOT EXISTS cache (key PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"


def code_of(error: BaseException) -> int:
    """SQLite's primary code of an error; 0 without one."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


@contextmanager
def to_write(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to an existing file. Each statement is a transaction unless BEGIN comes before it."""
    with closing(_connected(file, "mode=rw")) as db:
        db.execute("PRAGMA synchronous=NORMAL")
        yield db


@contextmanager
def to_read(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to an existing file; works if nothing can be written, as on a full disk."""
    db = _connected(file, "mode=rw")
    try:
        try:
            _check_plain(db)
        except sqlite3.OperationalError as error:
            if code_of(error) not in UNWRITABLE:
                raise
            db.close()
            # A log holds data if a process has the database open or was killed.
            log = file.with_name(f"{file.name}-wal")
            in_log = log.exists() and log.stat().st_size > 0
            db = _connected(file, "mode=ro" if in_log else "mode=ro&immutable=1")
            _check_plain(db)
        yield db
    finally:
        db.close()


def _check_plain(db: sqlite3.Connection) -> None:
    if strange := db.execute(STRANGE).fetchone():
        raise sqlite3.DatabaseError(f"{strange[0]} is not a table of capbias")


def _connected(file: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?{how}", PATIENCE, isolation_level=None, uri=True)


def prepare(db: sqlite3.Connection, schema: str) -> None:
    """Set the write-ahead log and make missing tables. Raises sqlite3.Error. Tries again if another process makes the
    same file, since SQLite's timeout does not cover that lock."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.executescript(schema)
            return
        except sqlite3.OperationalError as error:
            if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(PAUSE)


class ByteCache:
    """Bytes by key, in a file; see `byte_cache`."""

    def __init__(self, db: sqlite3.Connection):
        self.db = db

    def get(self, keys: Iterable) -> dict[Any, bytes]:
        """The stored values of these keys."""
        result, keys = {}, list(keys)
        for start in range(0, len(keys), KEYS_PER_QUERY):
            part = keys[start : start + KEYS_PER_QUERY]
            marks = ", ".join("?" * len(part))
            result |= dict(self.db.execute(f"SELECT key, value FROM cache WHERE key IN ({marks})", part).fetchall())
        return result

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One transaction, in which no other process writes."""
        with self.db:
            self.db.execute("BEGIN IMMEDIATE")
            yield

    def put(self, values: Mapping[Any, bytes]) -> None:
        """Store values; in `locked`, all or none."""
        self.db.executemany("INSERT OR REPLACE INTO cache VALUES (?, ?)", values.items())


@contextmanager
def byte_cache(file: Path, content: str, lost: str, patience: float = PATIENCE) -> Iterator[ByteCache]:
    """The cache in a file, made if missing, of values that can be computed again. content, lost: for errors, what the
    file holds and what its deletion means. patience: seconds to wait for another process. Raises CapbiasError if the
    file cannot be used."""
    try:
        try:
            private_folder(file.parent)
            private_file(file)
        except OSError as error:
            raise sqlite3.OperationalError(str(error)) from None
        with closing(sqlite3.connect(file, timeout=patience, isolation_level=None)) as db:
            db.execute("PRAGMA synchronous=NORMAL")
            prepare(db, CACHE)
            _check_plain(db)
            yield ByteCache(db)
    except sqlite3.Error as error:
        raise CapbiasError(f"{file}, the file of {content}, cannot be used ({error}).", f"Delete it: {lost}.") from None

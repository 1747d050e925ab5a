"""SQLite files that several processes open at once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from capbias_core.errors import CapbiasError
from capbias_core.whole_files import private_file, private_folder

PATIENCE = 30.0  # seconds
PAUSE = 0.02
# How SQLite says that it cannot make or write the files beside a database that its log needs, even to read.
UNWRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL}


def code_of(error: BaseException) -> int:
    """SQLite's primary code of an error; 0 of one without."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


@contextmanager
def to_write(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a file that is there. A statement is a transaction of its own, unless BEGIN comes before it."""
    with closing(_connected(file, "mode=rw")) as db:
        db.execute("PRAGMA synchronous=NORMAL")
        yield db


@contextmanager
def to_read(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a file that is there. It also reads where nothing can be written, as on a full disk."""
    db = _connected(file, "mode=rw")
    try:
        try:
            db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        except sqlite3.OperationalError as error:
            if code_of(error) not in UNWRITABLE:
                raise
            db.close()
            db = _connected(file, "mode=ro" if _has_log(file) else "mode=ro&immutable=1")
        yield db
    finally:
        db.close()


def _connected(file: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?{how}", PATIENCE, isolation_level=None, uri=True)


def _has_log(file: Path) -> bool:
    """Whether some of a database is in its write-ahead log alone, because a process has it open or was killed."""
    log = file.with_name(f"{file.name}-wal")
    return log.exists() and log.stat().st_size > 0


def prepare(db: sqlite3.Connection, schema: str) -> None:
    """Set the write-ahead log and make the tables of a file that may be new.

    SQLite waits for a lock with its timeout, but not for this one: where two processes make the same file at once, the
    second hears at once that it is locked. It tries again, for half a minute. Raises sqlite3.Error.
    """
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


@contextmanager
def kept_in(file: Path, schema: str, what: str, lost: str, patience: float = PATIENCE) -> Iterator[sqlite3.Connection]:
    """A connection to a file of what can be computed again; file and folder are made where they are not there.

    A statement is a transaction of its own, unless BEGIN comes before it. what: is in the file, for messages. lost:
    what happens where it is deleted. patience: seconds to wait for another process. Raises CapbiasError where the file
    cannot be used.
    """
    try:
        with _opened(file, schema, patience) as db:
            yield db
    except sqlite3.Error as error:
        raise CapbiasError(f"{file}, the file of {what}, cannot be used ({error}).", f"Delete it: {lost}.") from None


@contextmanager
def _opened(file: Path, schema: str, patience: float) -> Iterator[sqlite3.Connection]:
    try:
        private_folder(file.parent)
        private_file(file)
    except OSError as error:  # one of the body is none of this file
        raise sqlite3.OperationalError(str(error)) from None
    db = sqlite3.connect(file, timeout=patience, isolation_level=None)
    try:
        db.execute("PRAGMA synchronous=NORMAL")
        prepare(db, schema)
        yield db
    finally:
        db.close()

"""SQLite files that several processes open at once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capbias_core.errors import CapbiasError

PATIENCE = 30.0  # seconds
PAUSE = 0.02


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
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
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
        raise CapbiasError(
            f"the file of {what} {file}, which cannot be used ({error})",
            "a file that can be written, made by this program, or none",
            f"Delete it: {lost}.",
        ) from None


@contextmanager
def _opened(file: Path, schema: str, patience: float) -> Iterator[sqlite3.Connection]:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:  # one of the body is none of this file
        raise sqlite3.OperationalError(str(error)) from None
    db = sqlite3.connect(file, timeout=patience, isolation_level=None)
    try:
        db.execute("PRAGMA synchronous=NORMAL")
        prepare(db, schema)
        yield db
    finally:
        db.close()

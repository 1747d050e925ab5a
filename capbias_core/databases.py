"""SQLite files that several processes open at once."""

from __future__ import annotations

import sqlite3
import time

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

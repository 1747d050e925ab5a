"""Vectors of texts, kept on disk: a text is embedded once, whichever run, seed, captioner or process asks for it.

One SQLite file a model, named by the digest of the model's files; a text is known by its hash. Vectors are written in
transactions, so a process that dies leaves nothing half, and one process embeds at a time: another that wants the same
texts waits for them and does not embed them again. About 1.6 kB a text for MiniLM (384 numbers), 3.1 kB for 768.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from capbias_core.databases import kept_in

TEXTS_A_STEP = 256  # embedded between two reports, and written at once
ASKED_AT_ONCE = 500  # keys in one query
SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
PATIENCE = 3600.0  # seconds to wait for a process that embeds

Embed = Callable[[Sequence[str]], np.ndarray]


class EmbeddingCache:
    """The vectors of one model. file: is made where it is not there; its folder too."""

    def __init__(self, file: Path):
        self.file = file

    def vectors(
        self, texts: Sequence[str], embed: Embed, tick: Callable[[str], None] = lambda text: None
    ) -> np.ndarray:
        """(n, d) float32 vectors of different texts, in their order; those that are not kept yet are embedded.

        embed: texts to (n, d). tick: called with a short text before each step of embedding, which it may stop by
        raising. Raises CapbiasError where the file cannot be used.
        """
        if not len(texts):
            return embed(texts)
        keys = [_key(text) for text in texts]
        with kept_in(self.file, SCHEMA, "embeddings", "its captions are then embedded again", PATIENCE) as db:
            missing = sorted(set(keys) - _known(db, keys).keys())
            self._fill(db, {key: text for key, text in zip(keys, texts, strict=True)}, missing, embed, tick)
            found = _known(db, keys)
        return np.stack([found[key] for key in keys])

    def _fill(
        self, db: sqlite3.Connection, texts: dict[bytes, str], missing: list, embed: Embed, tick: Callable[[str], None]
    ) -> None:
        missing = sorted(missing, key=lambda key: len(texts[key]))  # alike in length go together
        for start in range(0, len(missing), TEXTS_A_STEP):
            tick(f"embedding captions, {start:,} of {len(missing):,}")
            with db:
                db.execute("BEGIN IMMEDIATE")  # from here on nobody else embeds
                part = missing[start : start + TEXTS_A_STEP]
                known = _known(db, part)
                part = [key for key in part if key not in known]
                rows = embed([texts[key] for key in part]).astype("<f4") if part else ()
                pairs = [(key, row.tobytes()) for key, row in zip(part, rows, strict=True)]
                db.executemany("INSERT INTO vectors VALUES (?, ?)", pairs)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _known(db: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, np.ndarray]:
    """The vectors of those of these keys that are kept."""
    found = {}
    for start in range(0, len(keys), ASKED_AT_ONCE):
        part = keys[start : start + ASKED_AT_ONCE]
        marks = ", ".join("?" * len(part))
        for key, vector in db.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", part):
            found[key] = np.frombuffer(vector, dtype="<f4")
    return found

"""Vectors of texts on disk: a text is embedded once, whichever run, seed, captioner or process asks for it.

One SQLite file per model, named by the digest of the model's files; a text is identified by its hash. One process
embeds at a time: another that wants the same texts waits for it. About 1.6 kB per text for MiniLM (384 numbers).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from capbias_core.databases import byte_cache

TEXTS_A_STEP = 256  # embedded between two reports, and written at once
PATIENCE = 3600.0  # seconds to wait for a process that embeds

Embed = Callable[[Sequence[str]], np.ndarray]


class EmbeddingCache:
    """The vectors of one model. file: is made if missing, its folder too."""

    def __init__(self, file: Path):
        self.file = file

    def vectors(
        self, texts: Sequence[str], embed: Embed, tick: Callable[[str], None] = lambda text: None
    ) -> np.ndarray:
        """(n, d) float32 vectors of different texts, in their order; new ones are embedded.

        embed: texts to (n, d). tick: called with a short text before each step of embedding, which it may stop by
        raising. Raises CapbiasError if the file cannot be used.
        """
        if not len(texts):
            return embed(texts)
        keys = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        by_key = dict(zip(keys, texts, strict=True))
        with byte_cache(self.file, "embeddings", "its captions are then embedded again", PATIENCE) as cache:
            known = cache.get(by_key)
            missing = sorted(by_key.keys() - known.keys())
            missing.sort(key=lambda key: len(by_key[key]))  # similar lengths go together
            for start in range(0, len(missing), TEXTS_A_STEP):
                tick(f"embedding captions, {start:,} of {len(missing):,}")
                with cache.locked():  # from here on no other process embeds
                    part = missing[start : start + TEXTS_A_STEP]
                    known |= cache.get(part)
                    part = [key for key in part if key not in known]
                    rows = embed([by_key[key] for key in part]).astype("<f4") if part else ()
                    fresh = {key: row.tobytes() for key, row in zip(part, rows, strict=True)}
                    cache.put(fresh)
                known |= fresh
        return np.stack([np.frombuffer(known[key], dtype="<f4") for key in keys])

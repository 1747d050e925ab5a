"""Where networks keep how far their training is, so that a run whose process was killed goes on from there.

Nothing here imports torch; networks/checkpoint.py writes and reads the files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

_folder: ContextVar[Path | None] = ContextVar("checkpoints", default=None)


@contextmanager
def checkpoints_in(folder: Path) -> Iterator[None]:
    """What trains in the block keeps checkpoints in this folder, and goes on from those that are there."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def checkpoints_folder() -> Path | None:
    """The folder of the block around, None outside of one: nothing is then kept."""
    return _folder.get()


@cache
def code_digest() -> str:
    """Of every source file of capbias_core: a checkpoint of other code is never gone on from."""
    core, digest = Path(__file__).resolve().parent.parent, hashlib.sha256()
    for file in sorted(core.rglob("*.py")):
        digest.update(f"{file.relative_to(core)}\0".encode() + file.read_bytes())
    return digest.hexdigest()

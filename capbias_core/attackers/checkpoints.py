"""Checkpoints: the state of a training after an epoch, from which a run goes on whose process was killed.

A file holds weights, the optimizer's state, the best epoch so far and the state of every random generator, so a resumed
training ends with the numbers of an undisturbed one on the same kind of machine. torch is imported on use.
"""

from __future__ import annotations

import hashlib
import pickle
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from capbias_core.whole_files import private_folder, whole_file

SECONDS_BETWEEN = 10.0
SHARE_OF_TIME = 0.05  # spent on writing, at most
SHARE_OF_DISK = 0.05  # of the free space, for one file at most: results need room, too

_folder: ContextVar[Path | None] = ContextVar("checkpoints", default=None)


@contextmanager
def checkpoints_in(folder: Path) -> Iterator[None]:
    """Trainings in this block save checkpoints in the folder, and resume from those that are there."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


class Checkpoint:
    """The file of one training. state: what it held, or None. The first weights, what is learned from and the code name
    the file, so no other training resumes from it. Outside of `checkpoints_in` nothing is saved."""

    def __init__(self, network: Any, reads: Iterable[np.ndarray]):
        import torch

        self.folder, self.between, self.state = _folder.get(), SECONDS_BETWEEN, None
        if self.folder:
            weights = [value.detach().cpu().numpy() for value in network.parameters()]
            digest = hashlib.sha256(
                f"{code_digest()} {torch.__version__} {next(network.parameters()).device.type}".encode()
            )
            for values in (*weights, *reads):
                digest.update(f"{values.shape} {values.dtype}".encode())
                digest.update(np.ascontiguousarray(values).data)
            self.file = self.folder / f"{digest.hexdigest()[:32]}.pt"
            with suppress(OSError, EOFError, RuntimeError, pickle.UnpicklingError):  # a damaged file: begin anew
                self.state: dict[str, Any] | None = torch.load(self.file, map_location="cpu", weights_only=True)
        self.since = time.monotonic()

    def save(self, state: dict[str, Any], ended: bool = False) -> None:
        """Write the state unless that happened a moment ago; a full disk leaves the training without a checkpoint.

        ended: the state is small, and replaces an earlier one at once.
        """
        import torch

        began = time.monotonic()
        if not self.folder or (began - self.since <= self.between and not (ended and self.file.exists())):
            return
        with suppress(OSError, RuntimeError):
            private_folder(self.folder)
            if _size(state) < SHARE_OF_DISK * shutil.disk_usage(self.folder).free:
                with whole_file(self.file) as file:
                    torch.save(state, file)
        self.since = time.monotonic()
        self.between = max(SECONDS_BETWEEN, (self.since - began) / SHARE_OF_TIME)


def _size(state: Any) -> int:
    if isinstance(state, dict | list):
        return sum(map(_size, state.values() if isinstance(state, dict) else state))
    return getattr(state, "nbytes", 0)


@cache
def code_digest() -> str:
    """Of every source file of capbias_core: no training resumes from a checkpoint of other code."""
    core, digest = Path(__file__).resolve().parent.parent, hashlib.sha256()
    for file in sorted(core.rglob("*.py")):
        digest.update(f"{file.relative_to(core)}\0".encode() + file.read_bytes())
    return digest.hexdigest()

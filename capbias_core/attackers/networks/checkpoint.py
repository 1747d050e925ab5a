"""How far a training is, in a file: written after an epoch, read by whoever begins the same training again.

The file holds weights, what Adam knows, the epoch kept so far and the state of every generator of random numbers. So
what goes on from it ends with the numbers of a training that was never disturbed, on the same kind of machine.
"""

from __future__ import annotations

import hashlib
import pickle
import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from capbias_core.attackers.checkpoints import checkpoints_folder, code_digest
from capbias_core.whole_files import private_folder, whole_file

BETWEEN = 10.0  # seconds of training between checkpoints, at least
TIMES = 20  # as long as writing one took, at least: at most a twentieth of the time is spent on them
WORTH_KEEPING = 1.0  # seconds of training since the last, of one that ended
SHARE_OF_DISK = 0.05  # of what is free, at most, for one file: results need room, too
WITH_ADAM = 4  # weights, Adam's two means and the weights of the epoch with the lowest loss


class Stateful(Protocol):
    """What changes while it trains: an optimizer, generators, the epoch kept so far."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> None: ...


class Generators:
    """Generators of random numbers, NumPy's and PyTorch's, as one thing with a state."""

    def __init__(self, own: Sequence[np.random.Generator | torch.Generator]):
        self.own = own

    def state_dict(self) -> dict[str, Any]:
        return {
            str(place): each.get_state() if isinstance(each, torch.Generator) else each.bit_generator.state
            for place, each in enumerate(self.own)
        }

    def load_state_dict(self, state_dict: dict[str, Any], /) -> None:
        for each, state in zip(self.own, state_dict.values(), strict=True):
            if isinstance(each, torch.Generator):
                each.set_state(state)
            else:
                each.bit_generator.state = state


class Checkpoint:
    """One training: where it stands at first is what its file says, if there is one.

    weights: what learns. parts: what else changes. reads: what is learned from; together with the first weights and
    the code it names the file. epochs: how many are done. ended: whether all are.
    """

    def __init__(self, weights: Sequence[Tensor], parts: Sequence[Stateful], reads: Iterable[Tensor | np.ndarray]):
        self.weights, self.parts = weights, parts
        self.epochs, self.ended, self.between = 0, False, BETWEEN
        folder = checkpoints_folder()
        self.file = folder / f"{_name(weights, parts, reads)}.pt" if folder else None
        if self.file and self.file.exists():
            self._load(self.file)
        self.since = time.monotonic()

    def _load(self, file: Path) -> None:
        try:
            state = torch.load(file, map_location="cpu", weights_only=True)
        except (OSError, EOFError, RuntimeError, pickle.UnpicklingError):  # damaged: the training begins anew
            return
        with torch.no_grad():
            for own, kept in zip(self.weights, state["weights"], strict=True):
                own.copy_(kept)
        self.epochs, self.ended = state["epochs"], not state["parts"]
        if not self.ended:
            for part, kept in zip(self.parts, state["parts"], strict=True):
                part.load_state_dict(kept)

    def keep(self, epochs: int) -> None:
        """Before a further epoch: write, if the last time is long enough ago. epochs: how many are done."""
        if time.monotonic() - self.since > self.between:
            self._write(epochs, self.parts, WITH_ADAM)

    def end(self, epochs: int) -> None:
        """After the last epoch: the weights alone are kept."""
        if not self.ended and time.monotonic() - self.since > WORTH_KEEPING:
            self._write(epochs, (), 1)

    def _write(self, epochs: int, parts: Sequence[Stateful], copies: int) -> None:
        if self.file is None:
            return
        began = time.monotonic()
        with suppress(OSError, RuntimeError):  # a full disk: training goes on without
            private_folder(self.file.parent)
            room = SHARE_OF_DISK * shutil.disk_usage(self.file.parent).free
            if copies * sum(own.nbytes for own in self.weights) < room:
                state = {"epochs": epochs, "weights": [own.detach() for own in self.weights]}
                with whole_file(self.file) as file:
                    torch.save({**state, "parts": [own.state_dict() for own in parts]}, file)
        self.since = time.monotonic()
        self.between = max(BETWEEN, TIMES * (self.since - began))


def _name(weights: Sequence[Tensor], parts: Sequence[Stateful], reads: Iterable[Tensor | np.ndarray]) -> str:
    """Of a training before it began."""
    digest = hashlib.sha256(f"{code_digest()} {torch.__version__} {weights[0].device.type}".encode())
    digest.update(repr([own.state_dict() for own in parts if isinstance(own, Generators)]).encode())
    for own in (*weights, *reads):
        values = own.detach().cpu().numpy() if isinstance(own, Tensor) else own
        digest.update(f"{values.shape} {values.dtype}".encode())
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()[:32]

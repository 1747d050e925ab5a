"""Where attackers with networks train (`--device auto|cpu|cuda`), and whether the same way each time
(`--deterministic`). PyTorch is imported where it is asked.

On a CPU the same run gives the same numbers anyway. On CUDA some of PyTorch's kernels add up in whatever order their
threads end; its deterministic ones are slower, and an operation that has none stops the run with an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from capbias_core.errors import CapbiasError, unknown_name

if TYPE_CHECKING:
    import torch

AUTO = "auto"
DEVICES = (AUTO, "cpu", "cuda")
# What cuBLAS needs for it, read when a process first uses CUDA.
CUBLAS = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def choose_device(name: str) -> torch.device:
    """The device of a name in DEVICES; auto is CUDA where there is one. Raises CapbiasError for cuda without CUDA."""
    import torch

    if name not in DEVICES:
        raise unknown_name("device", name, DEVICES)
    if name == AUTO:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise CapbiasError("PyTorch finds no CUDA on this machine.", "Choose the device auto or cpu.")
    return torch.device(name)


@contextmanager
def deterministic(asked: bool) -> Iterator[None]:
    """PyTorch's deterministic algorithms for a block, where asked; afterwards all is as before."""
    if not asked:
        yield
        return
    import torch

    before = torch.are_deterministic_algorithms_enabled()
    os.environ.setdefault(*CUBLAS)
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def device_of(attacker: object) -> str:
    """Where an attacker trains, 'cpu' or 'cuda'; '' for one that has no device."""
    asked = getattr(attacker, "device", "")
    return choose_device(asked).type if asked else ""


def trained_on(attacker: object, deterministic: bool = False) -> str:
    """What a method says of the device, such as `; trained on cuda`; '' for an attacker that has none."""
    device = device_of(attacker)
    return f"; trained on {device}{', deterministic algorithms' if deterministic else ''}" if device else ""

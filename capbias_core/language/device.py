"""The device on which networks train (option `device`), and `deterministic`. Imports PyTorch on use.

On CUDA some kernels of PyTorch add numbers in the order in which threads end. Its deterministic kernels are slower; an
operation without one stops the run with an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from capbias_core.errors import CapbiasError, unknown_name

if TYPE_CHECKING:
    import torch

AUTO = "auto"
DEVICES = (AUTO, "cpu", "cuda")
# cuBLAS needs it for deterministic algorithms; read when a process first uses CUDA.
CUBLAS = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
GPUS = "CUDA_VISIBLE_DEVICES"
# PyTorch's messages if memory is short on a CPU; on a GPU the error has another type.
SHORT_OF_MEMORY = ("out of memory", "can't allocate memory")


def choose_device(name: str) -> torch.device:
    """The device of a name in DEVICES; auto is CUDA if there is one. Raises CapbiasError for cuda without CUDA."""
    import torch

    if name not in DEVICES:
        raise unknown_name("device", name, DEVICES)
    if name == AUTO:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise CapbiasError("PyTorch finds no CUDA on this machine.", "Choose the device auto or cpu.")
    torch.backends.cudnn.allow_tf32 = False  # else recurrent layers and convolutions read 10 bits of 23
    return torch.device(name)


@contextmanager
def deterministic(asked: bool) -> Iterator[None]:
    """A block with PyTorch's deterministic algorithms, if asked."""
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


def halving(size: int, work: Callable[[int], Any]) -> Any:
    """What `work` gives for a size: for this one, or for half of it as often as memory runs out. Raises MemoryError if
    size 1 does not fit."""
    import torch

    while True:
        try:
            return work(size)
        except RuntimeError as error:
            short = any(words in str(error) for words in SHORT_OF_MEMORY)
            if not short and not isinstance(error, torch.OutOfMemoryError):
                raise
            if size == 1:
                raise MemoryError(str(error)) from None
        size //= 2  # not in the handler, whose error holds the memory
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def device_of(attacker: object) -> str:
    """'cpu' or 'cuda'; '' for an attacker without a device."""
    name = getattr(attacker, "device", "")
    return choose_device(name).type if name else ""


def trained_on(attacker: object, deterministic: bool = False) -> str:
    """The device as part of a method, such as `; trained on cuda`; '' for an attacker without a device."""
    device = device_of(attacker)
    return f"; trained on {device}{', deterministic algorithms' if deterministic else ''}" if device else ""


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, by their names in CUDA_VISIBLE_DEVICES."""
    if GPUS in os.environ:
        return [name for part in os.environ[GPUS].split(",") if (name := part.strip()) and name != "-1"]
    return list(_installed_gpus())


@cache
def _installed_gpus() -> tuple[str, ...]:
    """The number of each GPU, by NVIDIA's program."""
    program = shutil.which("nvidia-smi")
    if not program:
        return ()
    try:
        listed = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(re.findall(r"^GPU (\d+): ", listed.stdout, re.MULTILINE))

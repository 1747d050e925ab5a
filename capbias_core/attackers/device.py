"""Where attackers with networks train (`--device auto|cpu|cuda`), and whether the same way each time
(`--deterministic`). PyTorch is imported where it is asked.

On a CPU the same run gives the same numbers anyway. On CUDA some of PyTorch's kernels add up in whatever order their
threads end; its deterministic ones are slower, and an operation that has none stops the run with an error.

Networks from scratch train on CUDA with matrix products in TF32: operands rounded to 10 bits after the point, sums of
full precision. benchmarks/rounded_products.py shows, with the same rounding on a CPU, what that changes in LIC_M.
`lstm_bi` trains on a CPU with products in BF16, 7 bits after the point, where the processor has AMX (with AVX512-BF16
alone that is slower than without); benchmarks/lstm_against_loop.py --precision shows what it changes. Deterministic
runs round too: one machine gives one result, and other processors give others anyway.
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
# How matrix products may round: as TF32 on CUDA alone; there, and as BF16 on a CPU that has such products; not at all.
TF32, BF16, FP32 = "tf32", "bf16", "fp32"
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


@contextmanager
def products(precision: str, device: torch.device) -> Iterator[None]:
    """Matrix products on CUDA in TF32, unless in FP32, for a block; afterwards, and elsewhere, all is as before."""
    if device.type != "cuda":
        yield
        return
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest" if precision == FP32 else "high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def precision_on(precision: str, device: str) -> str:
    """How matrix products of an attacker that may round so do round on a device, cpu or cuda."""
    if precision == FP32:
        return FP32
    if device == "cuda":
        return TF32
    return BF16 if precision == BF16 and has_bf16() else FP32


def has_bf16() -> bool:
    """Whether the processor has AMX, and PyTorch the library that uses it."""
    import torch

    return torch.backends.mkldnn.is_available() and torch.cpu._is_amx_tile_supported()


def device_of(attacker: object) -> str:
    """Where an attacker trains, 'cpu' or 'cuda'; '' for one that has no device."""
    asked = getattr(attacker, "device", "")
    return choose_device(asked).type if asked else ""


def trained_on(attacker: object, deterministic: bool = False) -> str:
    """What a method says of the device, such as `; trained on cuda, TF32`; '' for an attacker that has none."""
    device = device_of(attacker)
    if not device:
        return ""
    precision = precision_on(getattr(attacker, "precision", FP32), device)
    rounded = "" if precision == FP32 else f", {precision.upper()}"
    return f"; trained on {device}{rounded}{', deterministic algorithms' if deterministic else ''}"

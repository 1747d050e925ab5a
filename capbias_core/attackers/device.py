"""Where attackers with networks train: `--device auto|cpu|cuda`. PyTorch is imported where it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capbias_core.errors import CapbiasError, unknown_name

if TYPE_CHECKING:
    import torch

AUTO = "auto"
DEVICES = (AUTO, "cpu", "cuda")


def choose_device(name: str) -> torch.device:
    """The device of a name in DEVICES; auto is CUDA where there is one. Raises CapbiasError for cuda without CUDA."""
    import torch

    if name not in DEVICES:
        raise unknown_name("device", name, DEVICES)
    if name == AUTO:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise CapbiasError(
            "device cuda on a machine where PyTorch finds no CUDA", "a machine with CUDA, or device auto or cpu",
            "Choose auto: it takes CUDA where there is one.",
        )  # fmt: skip
    return torch.device(name)


def trained_on(attacker: object) -> str:
    """What a method says of the device, such as `; trained on cpu`; '' for an attacker that has none."""
    asked = getattr(attacker, "device", "")
    return f"; trained on {choose_device(asked).type}" if asked else ""

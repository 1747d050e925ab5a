"""One worker a GPU: which there are, and each worker sees its own only. Imports no torch."""

from __future__ import annotations

import os
import shutil
import subprocess

from distributed import WorkerPlugin

VISIBLE = "CUDA_VISIBLE_DEVICES"


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them; none where there is no NVIDIA driver."""
    if VISIBLE in os.environ:
        return [name for part in os.environ[VISIBLE].split(",") if (name := part.strip()) and name != "-1"]
    program = shutil.which("nvidia-smi")
    if not program:
        return []
    try:
        listed = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [str(place) for place, line in enumerate(listed.stdout.splitlines()) if line.startswith("GPU ")]


class OwnGPU(WorkerPlugin):
    """A worker of ours is called by its number: it gets the GPU of that number, before PyTorch looks for one."""

    name = "own-gpu"

    def __init__(self, gpus: list[str]):
        self.gpus = gpus

    def setup(self, worker) -> None:
        os.environ[VISIBLE] = self.gpus[int(worker.name) % len(self.gpus)]

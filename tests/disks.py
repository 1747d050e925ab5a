"""A small disk that can be filled and made read-only; only root may mount one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from capbias_core.workspace import catalogue


class SmallDisk:
    """A tmpfs at `folder`."""

    def __init__(self, folder: Path):
        self.folder = folder

    def fill(self) -> None:
        """Leave not a byte."""
        with (self.folder / "filling").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def free(self) -> None:
        (self.folder / "filling").unlink()

    def read_only(self) -> None:
        for path, lock in catalogue._locked.items():  # a file that is open for writing keeps it writable
            if path.is_relative_to(self.folder):
                lock.close()
        subprocess.run(["mount", "-o", "remount,ro", self.folder], check=True)


@contextmanager
def small_disk(folder: Path, megabytes: int = 3) -> Iterator[SmallDisk]:
    """A disk in a new folder; skips the test where none may be mounted."""
    folder.mkdir()
    size = f"size={megabytes}m"
    if os.getuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], check=False).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)

"""Network namespaces as other machines: Linux, as root, with `ip`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


@contextmanager
def made(commands: Iterable[str], undone: Iterable[str]) -> Iterator[None]:
    """What these commands make, for as long as the block lasts. undone: commands that remove it, whatever failed."""
    try:
        for command in commands:
            subprocess.run(command.split(), check=True)
        yield
    finally:
        for command in undone:
            subprocess.run(command.split(), check=False)

"""Processes that import nothing from the current folder, where a `queue.py` may be anybody's; a limit on threads."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from capbias_core.errors import CapbiasError
from capbias_core.resources import PACKAGE

STOPPED, TERMINATED = 130, 143  # exit codes after Ctrl-C and SIGTERM


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM); it cleans up as after Ctrl-C."""


def terminate(*_signal: object) -> None:
    """A handler of SIGTERM."""
    raise Terminated


def python(*arguments: str, **environment: str) -> tuple[list[str], dict[str, str]]:
    """The command and environment of a Python process that finds this package, without relative entries of PYTHONPATH.
    environment: further variables."""
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(path)]
    if PACKAGE.parent.name not in ("site-packages", "dist-packages"):  # found there without PYTHONPATH
        paths.insert(0, str(PACKAGE.parent))
    fixed = {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
    return [sys.executable, *arguments], {**os.environ, **fixed, **environment}


def current_folder() -> str:
    """The current folder. Raises CapbiasError if it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        raise CapbiasError("The current folder was deleted.", "Change to another one: cd ~") from None


@contextmanager
def one_thread() -> Iterator[None]:
    """A block, or a function, during which BLAS has one thread in the whole process. For small matrices more threads
    gain nothing, and on busy cores take three times the processor time, since waiting threads spin."""
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries():
    import scipy.linalg  # noqa: F401  so that its BLAS is limited too
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # takes 50 ms

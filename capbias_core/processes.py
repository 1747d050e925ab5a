"""Processes that capbias starts, which import nothing from the current folder: a `queue.py` there may be anybody's."""

from __future__ import annotations

import os
import sys

from capbias_core.resources import PACKAGE


def python(*arguments: str, **environment: str) -> tuple[list[str], dict[str, str]]:
    """The command and the environment of a Python process that finds this package. environment: further variables.

    Relative entries of PYTHONPATH, which mean the current folder, are left out; so do all processes below it.
    """
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(path)]
    if PACKAGE.parent.name not in ("site-packages", "dist-packages"):  # there it is found without being named
        paths.insert(0, str(PACKAGE.parent))
    fixed = {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
    return [sys.executable, *arguments], {**os.environ, **fixed, **environment}

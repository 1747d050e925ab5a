"""How processes of this package are started: without the current folder on their path, whose files are not ours."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

LOCATION = Path(__file__).resolve().parent.parent  # of the package
# What the process runs: its path ends with the folders that it is given, so that none of them hides a standard module.
START = "import runpy, sys; n = int(sys.argv[1]); sys.path += sys.argv[3 : 3 + n]; " + (
    "name = sys.argv[2]; sys.argv[1:] = sys.argv[3 + n :]; runpy.run_module(name, run_name='__main__', alter_sys=True)"
)


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of this package in a new process, which can import what this one can, but for
    what is in the current folder. A `queue.py` beside somebody's captions must not run."""
    here = ""
    with suppress(OSError):  # the current folder was removed
        here = os.getcwd()
    others = (os.path.realpath(folder) for folder in sys.path if os.path.isabs(folder))
    known = dict.fromkeys([str(LOCATION), *(folder for folder in others if folder != os.path.realpath(here))])
    return [sys.executable, "-P", "-c", START, str(len(known)), module, *known, *arguments]


def child_environment(**changed: str) -> dict[str, str]:
    """The environment of such a process: of PYTHONPATH only whole paths, since others begin in the current folder."""
    folders = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(folder)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders), **changed}

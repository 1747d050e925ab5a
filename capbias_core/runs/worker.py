"""The process that computes light runs beside the one that started it: `python -m capbias_core.runs.worker FOLDER`.

For each line of its input, the id and the token of a queued run of the workspace, it computes that run, and writes a
line when that is over. It ends with its input, and so with the process that started it.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from capbias_core.runs.engine import execute
from capbias_core.workspace.faults import WorkspaceError


def main(folder: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal; the process that started this one cancels its runs
    answers = os.dup(1)
    os.dup2(2, 1)  # what a library prints is no answer
    for line in sys.stdin:
        with suppress(WorkspaceError):
            execute(folder, *line.split())
        with suppress(BrokenPipeError):  # nobody waits any more
            os.write(answers, b"over\n")


if __name__ == "__main__":
    main(sys.argv[1])

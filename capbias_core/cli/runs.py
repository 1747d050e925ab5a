"""`run status`: every run of a workspace, with its status and progress."""

from __future__ import annotations

import json
import time
from typing import Annotated

import pandas as pd

from capbias_core.cli.flags import ANSWER, WHAT, WorkspaceFlag, command, flag
from capbias_core.cli.inputs import opened
from capbias_core.cli.terminal import DONE, show
from capbias_core.errors import unknown_name
from capbias_core.present.sentence import run_text
from capbias_core.present.table import to_text
from capbias_core.workspace.store import STATUSES, RunRow

app = command("status", "  capbias run status\n  capbias run status --status running queued --json")


@app.default
def runs(
    *,
    status: Annotated[list[str] | None, flag("only these (default: all)", "|".join(STATUSES), WHAT)] = None,
    json_: Annotated[bool, flag("as JSON", group=ANSWER, name="--json")] = False,
    workspace: WorkspaceFlag = None,
) -> int:
    """List the runs, newest first: id, what, status, progress, seconds."""
    for name in status or ():
        if name not in STATUSES:
            raise unknown_name("--status", name, STATUSES)
    with opened(workspace) as place:
        rows = [_row(run) for run in place.runs() if run.status in (status or STATUSES)]
    if json_:
        show(json.dumps(rows, indent=2))
    elif rows:
        shown = [row | {"progress": f"{row['progress']:.0%}", "seconds": f"{row['seconds']:.1f}"} for row in rows]
        show(to_text(pd.DataFrame(shown)).rstrip("\n"))
    else:
        show("No runs.")
    return DONE


def _row(run: RunRow) -> dict:
    passed = max(0.0, (run.finished or time.time()) - run.started) if run.started else 0.0
    return {
        "run": run.run_id,
        "what": run_text(run.spec),
        "status": run.status,
        "progress": round(run.progress, 3),
        "seconds": round(passed, 1),
        "message": "" if run.status == "finished" else run.message,
    }

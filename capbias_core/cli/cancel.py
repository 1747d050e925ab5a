"""`run cancel`: stop runs that are queued or running, whoever started them."""

from __future__ import annotations

from typing import Annotated

from capbias_core.cli.flags import INPUTS, WorkspaceFlag, command, flag
from capbias_core.cli.inputs import chosen_runs, opened
from capbias_core.cli.terminal import DONE, say, show
from capbias_core.errors import CapbiasError
from capbias_core.present.sentence import run_text
from capbias_core.runs.engine import Engine
from capbias_core.workspace.store import ACTIVE

app = command("cancel", "  capbias run cancel 3f2a --workspace workspace\n  capbias run cancel --all")


@app.default
def cancel(
    *ids: Annotated[str, flag("runs, from `capbias run status`; the beginning is enough", "ID", INPUTS)],
    every: Annotated[bool, flag("all that are queued or running", group=INPUTS, name="--all")] = False,
    workspace: WorkspaceFlag = None,
) -> int:
    """Stop runs that are queued or running; a running one stops at its next report, in a second or two."""
    with opened(workspace) as place:
        active = [run for run in place.runs() if run.status in ACTIVE]
        chosen = chosen_runs(place, ids, every, active)
        engine = Engine(place.folder)
        over = [run for run in chosen if not engine.cancel(run.run_id)]
    for run in chosen:
        if run not in over:
            show(f"{run.run_id} cancelled: {run_text(run.spec)}")
    for run in over:
        say(f"{run.run_id} is {run.status}: nothing to cancel")
    if chosen and len(over) == len(chosen):
        raise CapbiasError("No run was cancelled, because none is queued or running.", "See: capbias run status")
    return DONE

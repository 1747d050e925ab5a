"""`run resume`: start again what failed, died or was cancelled."""

from __future__ import annotations

from typing import Annotated

from capbias_core.cli.flags import INPUTS, WorkspaceFlag, command, flag
from capbias_core.cli.inputs import chosen_runs, opened
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.terminal import DONE, say
from capbias_core.errors import CapbiasError
from capbias_core.runs.engine import unfinished
from capbias_core.workspace.store import ACTIVE

app = command("resume", "  capbias run resume 3f2a --workspace workspace\n  capbias run resume --all")


@app.default
def resume(
    *ids: Annotated[str, flag("runs, from `capbias run status`; the beginning is enough", "ID", INPUTS)],
    every: Annotated[bool, flag("all that failed, died or were cancelled", group=INPUTS, name="--all")] = False,
    workspace: WorkspaceFlag = None,
) -> int:
    """Start runs again that failed, died or were cancelled, and wait for them. Finished runs are not made again."""
    with opened(workspace) as place:
        open_ = unfinished(place)
        chosen = chosen_runs(place, ids, every, open_)
        for run in chosen:
            if run not in open_:
                why = "still under way" if run.status in ACTIVE else "finished, or of an earlier version"
                raise CapbiasError(f"The run {run.run_id} is {why}, so it cannot resume.", "See: capbias run status")
        if not chosen:
            say("no run failed, died or was cancelled")
            return DONE
        code = DONE
        for collection in dict.fromkeys(run.collection for run in chosen):
            specs = [run.spec for run in chosen if run.collection == collection]
            code = max(code, outcome(run_all(place, specs, collection)))
    return code

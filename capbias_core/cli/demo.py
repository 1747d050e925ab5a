"""`demo`: the bundled data, measured, beside their known truth."""

from __future__ import annotations

import json
from typing import Annotated

from capbias_core.cli.flags import INPUTS, WorkspaceFlag, command, flag
from capbias_core.cli.inputs import opened
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.terminal import DONE, say, show
from capbias_core.present.table import scores_table, to_text
from capbias_core.resources import DEMO_FOLDER
from capbias_core.runs import demo as runs
from capbias_core.workspace.ingest import DEMO

app = command("demo", "  capbias demo --if-empty")


@app.default
def demo(
    *,
    if_empty: Annotated[bool, flag("do nothing if the workspace holds something", group=INPUTS)] = False,
    workspace: WorkspaceFlag = None,
) -> int:
    """Load the bundled demo, run it, and print LIC beside the known truth."""
    with opened(workspace, make=True) as place:
        if if_empty and place.items():
            say("the workspace already holds something; the demo was not loaded")
            return DONE
        runs.load(place)
        rows = run_all(place, runs.demo_runs(place), DEMO)
        code = outcome(rows)
        frame = place.results([row.run_id for row in rows])
    table = scores_table(frame, metrics=["LIC"])
    truth = json.loads((DEMO_FOLDER / "truth.json").read_text(encoding="utf-8"))["truth"]
    table["true LIC"] = [f"{truth[name]['LIC']:.2f}" for name in table["captioner"]]
    show(to_text(table).rstrip("\n"))
    return code

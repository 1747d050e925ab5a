"""`demo`: the scores of the bundled data next to the true ones."""

from __future__ import annotations

import json
from typing import Annotated

from capbias_core.cli.flags import INPUTS, WorkspaceFlag, command, flag
from capbias_core.cli.inputs import opened
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.terminal import DONE, say, show_table
from capbias_core.present.table import scores_table
from capbias_core.resources import DEMO_FOLDER
from capbias_core.runs import demo as runs
from capbias_core.workspace.ingest import DEMO

app = command("demo", "  capbias demo --if-empty")


@app.default
def demo(
    *,
    if_empty: Annotated[bool, flag("do nothing if the workspace is not empty", group=INPUTS)] = False,
    workspace: WorkspaceFlag = None,
) -> int:
    """Load and score the bundled demo, and print the true LIC next to the measured one."""
    with opened(workspace, make=True) as store:
        if if_empty and store.items():
            say("the workspace is not empty; the demo was not loaded")
            return DONE
        runs.load(store)
        rows = run_all(store, runs.demo_runs(store), DEMO)
        code = outcome(rows)
        frame = store.results([row.run_id for row in rows])
    table = scores_table(frame, metrics=["LIC"])
    truth = json.loads((DEMO_FOLDER / "truth.json").read_text(encoding="utf-8"))["truth"]
    table["true LIC"] = [f"{truth[name]['LIC']:.2f}" for name in table["captioner"]]
    show_table(table)
    return code

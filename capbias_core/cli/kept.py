"""`list`: the stored files of a workspace, and its runs with their status."""

from __future__ import annotations

import json
from typing import Annotated

import pandas as pd

from capbias_core.cli.flags import ANSWER, INPUTS, WorkspaceFlag, command, flag
from capbias_core.cli.inputs import known_collection, opened
from capbias_core.cli.terminal import DONE, show, show_table
from capbias_core.measures.registry import MEASURES
from capbias_core.workspace.store import Item, RunRow

app = command("list", "  capbias list --json")


@app.default
def list_stored(
    *,
    collection: Annotated[str, flag("only this collection (default: all)", "NAME", INPUTS)] = "",
    json_: Annotated[bool, flag("as JSON", group=ANSWER, name="--json")] = False,
    workspace: WorkspaceFlag = None,
) -> int:
    """List the stored files and the runs."""
    with opened(workspace) as store:
        asked = known_collection(store, collection) if collection else None
        items = [_item_row(item) for item in store.items(collection=asked)]
        runs = [_run_row(run) for run in store.runs(asked)]
    if json_:
        show(json.dumps({"items": items, "runs": runs}, indent=2))
        return DONE
    if items:
        show_table(pd.DataFrame([row | {"attributes": ", ".join(row["attributes"])} for row in items]))
    else:
        show("The workspace is empty.")
    if runs:
        show_table(pd.DataFrame(runs).drop(columns=["progress", "notes"]), before="\n")
    return DONE


def _item_row(item: Item) -> dict:
    row = {key: getattr(item, key) for key in ("collection", "kind", "name", "rows", "images", "hash")}
    return row | {"attributes": list(item.details.get("attributes", {}))}


def _run_row(run: RunRow) -> dict:
    spec = run.spec
    seeded = spec.measure in MEASURES and MEASURES[spec.measure].seeded
    return {
        "run_id": run.run_id,
        "collection": run.collection,
        "captioner": spec.model,
        "measure": spec.measure,
        "attribute": spec.attribute.get("name", ""),
        "attacker": spec.attacker,
        "seeds": len(spec.seeds) if seeded else 0,
        "coverage": " ".join(filter(None, (spec.coverage, "shared_images" if spec.shared_with else ""))),
        "status": run.status,
        "progress": run.progress,
        "message": "" if run.status == "finished" else run.message,
        "notes": list(run.notes),
    }

"""`list` and `export`: what a workspace holds, and its results. `demo`: the bundled data beside their truth."""

from __future__ import annotations

import json

import pandas as pd

from capbias_core.analysis.read import current_runs
from capbias_core.cli.inputs import known_collection, opened
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.score import ordered
from capbias_core.cli.terminal import DONE, checked_output, say, write_output
from capbias_core.errors import CapbiasError
from capbias_core.measures import FAMILIES
from capbias_core.metrics import METRICS, expand_metrics
from capbias_core.present.table import scores_table, to_csv, to_json, to_latex, to_text
from capbias_core.runs.shared_images import WITHIN
from capbias_core.workspace import ingest
from capbias_core.workspace.store import Item, RunRow

SHARED = "shared_images"  # the condition of a run on the images that another set has too
FORMATS = {"csv": to_csv, "latex": to_latex, "json": to_json}


def list_kept(args) -> int:
    """What is kept, and the runs with their status."""
    with opened(args) as workspace:
        items = [_item_row(item) for item in workspace.items()]
        runs = [_run_row(run) for run in workspace.runs()]
    if args.json:
        print(json.dumps({"items": items, "runs": runs}, indent=2))
        return DONE
    if items:
        print(to_text(pd.DataFrame([row | {"attributes": ", ".join(row["attributes"])} for row in items])), end="")
    else:
        print("Nothing is kept in this workspace.")
    if runs:
        print("\n" + to_text(pd.DataFrame(runs).drop(columns=["progress", "notes"])), end="")
    return DONE


def _item_row(item: Item) -> dict:
    row = {key: getattr(item, key) for key in ("collection", "kind", "name", "rows", "images", "hash")}
    return row | {"attributes": list(item.details.get("attributes", {}))}


def _run_row(run: RunRow) -> dict:
    spec = run.spec
    return {
        "run_id": run.run_id,
        "collection": run.collection,
        "captioner": spec["model"],
        "family": spec["family"],
        "attribute": spec["attribute"].get("name", ""),
        "attacker": spec["attacker"],
        "seeds": len(spec["seeds"]) if FAMILIES[spec["family"]].seeded else 0,
        "condition": " ".join(filter(None, (spec["condition"], SHARED if WITHIN in spec["options"] else ""))),
        "status": run.status,
        "progress": run.progress,
        "message": "" if run.status == "finished" else run.message,
        "notes": list(run.notes),
    }


def export(args) -> int:
    """Results of a collection's finished runs as CSV, LaTeX or JSON."""
    output = checked_output(args.output)
    with opened(args) as workspace:
        collection = known_collection(workspace, args.collection)
        frame = workspace.results([run.run_id for run in current_runs(workspace, collection)])
    frame = ordered(frame, frame["model"].unique(), expand_metrics(args.metric or METRICS))
    if frame.empty:
        raise CapbiasError(
            f"no result in the collection {collection}",
            "results of finished runs",
            "Score it first, or ask for others.",
        )
    write_output(FORMATS[args.format](frame), output)
    return DONE


def run_demo(args) -> int:
    """Load the bundled demo, run it, and print LIC beside the truth."""
    with opened(args, make=True) as workspace:
        if args.if_empty and workspace.items():
            say("the workspace already holds something; the demo was not loaded")
            return DONE
        ingest.load_demo(workspace)
        rows = run_all(workspace, ingest.demo_runs(workspace), ingest.DEMO)
        code = outcome(rows)
        frame = workspace.results([row.run_id for row in rows])
    table = scores_table(frame, metrics=["LIC"])
    truth = json.loads((ingest.DEMO_FOLDER / "truth.json").read_text(encoding="utf-8"))["truth"]
    table["true LIC"] = [f"{truth[name]['LIC']:.2f}" for name in table["captioner"]]
    print(to_text(table), end="")
    return code

"""From a file to the workspace: read, report, keep. Nothing is kept before the user has seen the report."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.experiments.engine import Engine
from capbias_core.experiments.plan import Request, attribute_from, labels_for, plan, suggested_details
from capbias_core.experiments.store import Item, Workspace
from capbias_core.load import demo, read_attributes, read_captions, report_attributes, report_captions

DEMO = "demo"
DEMO_FOLDER = Path(__file__).resolve().parents[2] / "assets" / "demo"
DEFAULT_COLLECTION = "my captions"


@dataclass(frozen=True)
class Offered:
    """A file that was read and may be kept. report has .lines(), .warnings, .problems and .problem_count."""

    kind: str
    frame: pd.DataFrame
    report: object


def _ids(workspace: Workspace, kind: str, collection: str) -> set[str] | None:
    items = workspace.items(kind, collection)
    return {image for item in items for image in workspace.frame(item.hash)["image_id"]} if items else None


def offer(workspace: Workspace, path: Path, kind: str, collection: str, columns: dict | None = None) -> Offered:
    """Read a file as captions, references or attributes, and report on it beside what the collection holds.

    columns: names for "image_id" and "caption", where they cannot be guessed. Raises CapbiasError for a wrong file.
    """
    path = Path(path)
    if kind == "attributes":
        table = read_attributes(path, (columns or {}).get("image_id"))
        report = report_attributes(table, path.name, _ids(workspace, "captions", collection))
        return Offered(kind, table.frame, report)
    table = read_captions(path, columns, "reference" if kind == "references" else "generated")
    references = _ids(workspace, "references", collection) if kind == "captions" else None
    report = report_captions(table, path.name, _ids(workspace, "attributes", collection), references)
    return Offered(kind, table.frame, report)


def keep_captions(
    workspace: Workspace, offered: Offered, name: str, collection: str, source: str, trained: bool | None = None
) -> Item:
    """Keep a caption set or references. trained: whether the model was trained on these references (None: not said)."""
    details = {"trained_on_references": trained} if offered.kind == "captions" else {}
    return workspace.keep(offered.kind, name, offered.frame, collection, source, details)


def keep_attributes(
    workspace: Workspace, frame: pd.DataFrame, name: str, collection: str, source: str, attributes: dict
) -> Item:
    """Keep an attribute table with its mapped attributes: {name: mapping_details(...)}."""
    if not attributes:
        raise CapbiasError(
            "an attribute table none of whose columns is mapped", "at least one mapped attribute", "Map a column."
        )
    return workspace.keep("attributes", name, frame, collection, source, {"attributes": attributes})


def dropped_labels(frame: pd.DataFrame, details: dict) -> dict[str, int]:
    """Raw labels that a mapping drops, with the number of images each ('' stands for empty)."""
    attribute = attribute_from(details["attribute"])
    return labels_for(frame, attribute, details["column"], details["mapping"]).dropped


def load_demo(workspace: Workspace) -> None:
    """Keep the bundled demo data (see load/demo.py) in the collection `demo`."""
    data = demo.read(DEMO_FOLDER)
    keep_attributes(
        workspace, data.attributes, "labels", DEMO, "bundled", {"gender": suggested_details("gender", data.attributes)}
    )
    workspace.keep("references", "human", data.references, DEMO, "bundled", {"images": str(DEMO_FOLDER / "images")})
    for name, frame in data.captioners.items():
        workspace.keep("captions", name, frame, DEMO, "bundled", {"trained_on_references": True})


def demo_request() -> Request:
    """What the dashboard opens on: the demo's captioners, every metric, scores and words of each caption."""
    truth = json.loads((DEMO_FOLDER / "truth.json").read_text(encoding="utf-8"))
    return Request(
        collection=DEMO, captions=tuple(truth["captioners"]), table="labels", attribute="gender",
        metrics=("lic", "leakage", "ratio", "error"), references="human", words=True,
    )  # fmt: skip


def run_demo(engine: Engine) -> list[str]:
    """Load the demo data and start its runs; returns the ids of those that were not finished already."""
    load_demo(engine.workspace)
    return engine.submit(plan(engine.workspace, demo_request()), DEMO)

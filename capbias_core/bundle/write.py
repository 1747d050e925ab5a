"""A bundle: a zip with results, what they were measured from, and a report.

report.html   the answer on two pages, everything else folded; opens without a server and without a network
rows.csv, rows.json   a row per number, nothing rounded
manifest.json         versions, extensions, each run with its attribute and options, each input with its content hash
data/         the inputs as they were kept (Parquet)
"""

from __future__ import annotations

import io
import json
import platform
import time
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import Any

import pandas as pd

from capbias_core import __version__
from capbias_core.aggregate.comparison import unlearned_note
from capbias_core.aggregate.variants import INPUTS
from capbias_core.errors import CapbiasError
from capbias_core.measures.registry import METRICS
from capbias_core.runs.run import needs_workers
from capbias_core.spreadsheets import csv_text
from capbias_core.types import RESULT_COLUMNS
from capbias_core.views.choose import choose, measured_rows, named_inputs
from capbias_core.views.files import json_text
from capbias_core.views.pictures import file_name
from capbias_core.views.report import report_html
from capbias_core.views.results import attribute_of_run, exported
from capbias_core.views.sentence import named_notes
from capbias_core.workspace.shape import PLACES, TABLES
from capbias_core.workspace.store import Item, RunRow, Workspace, content_hash, frame_bytes

FORMAT = 2
MANIFEST, ROWS, REPORT = "manifest.json", "rows.json", "report.html"
PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "pyarrow")
OF_NETWORKS = ("torch", "transformers", "sentence-transformers")


def write_bundle(workspace: Workspace, collection: str, metrics: Sequence[str] = (), note: str = "") -> bytes:
    """The bundle of a collection's results, as a zip. metrics: only these (default: all). note: by the author, for the
    report. Raises CapbiasError without a result."""
    files = _files(workspace, collection, metrics, note, HELD)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(name, files[name])
    return buffer.getvalue()


def write_report(workspace: Workspace, collection: str, metrics: Sequence[str] = (), note: str = "") -> str:
    """The report of a bundle alone, as one HTML file that needs nothing else. As `write_bundle`."""
    return str(_files(workspace, collection, metrics, note, ALONE)[REPORT])


def no_result(collection: str) -> CapbiasError:
    """The error for a collection without a result of the metrics that were asked for."""
    return CapbiasError(f"The collection {collection} has no such result.", "Score it first, or ask for other metrics.")


ALONE = "A bundle of these results (capbias export --format bundle) has what is needed, with the inputs."
HELD = "The inputs are in this bundle."
REPEATS = "This repeats the runs in an empty workspace and compares every number with rows.json."


def _files(
    workspace: Workspace, collection: str, metrics: Sequence[str], note: str, of_inputs: str
) -> dict[str, bytes | str]:
    """The files of a bundle by name. of_inputs: where the report says that they are."""
    rows = measured_rows(workspace, collection)
    rows = rows[rows["metric"].isin(list(metrics or METRICS))].reset_index(drop=True)
    runs = list(workspace.runs_of(list(rows["run_id"].unique())).values())
    if not runs:
        raise no_result(collection)
    items, files = _items(workspace, collection, runs), dict[str, bytes | str]()
    entries = [_entry(workspace, item, files) for item in items]
    result = named_inputs(rows)
    files |= {ROWS: json_text(result[[*RESULT_COLUMNS, *INPUTS]]), "rows.csv": csv_text(exported(result))}
    manifest = {
        "format": FORMAT,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "collection": collection,
        "rows": len(rows),
        "versions": versions(any(run.spec.options.get("encoder") or needs_workers(run.spec) for run in runs)),
        "measures": {run.spec.measure: run.spec.version for run in runs},
        "runs": [asdict(run.spec) for run in runs],
        "items": entries,
    }
    files[MANIFEST] = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    first = choose(workspace, rows, {"collection": collection})
    choices = [first, *(first.of_attribute(name) for name in first.options["attribute"] if name != first.attribute)]
    files[REPORT] = report_html(
        choices,
        about=_about(rows, runs, manifest),
        inputs=pd.DataFrame(entries)[["kind", "name", "rows", "images", "hash"]],
        reproduce=f"{of_inputs} {REPEATS}",
        methods=_methods(rows, runs, {entry["hash"] for entry in entries if entry["content"]}),
        note=note,
    )
    return files


def _entry(workspace: Workspace, item: Item, files: dict[str, bytes | str]) -> dict[str, Any]:
    """An item of the manifest. files: gets its table, under a name that no other has."""
    frame, name = workspace.frame(item.hash) if item.kind in TABLES else None, ""
    if frame is not None:
        base, taken = f"data/{item.kind}-{file_name(item.name)}", {each.lower() for each in files}
        tries = (f"{base}{number}.parquet" for number in ("", *(f"-{number}" for number in range(2, 10_000))))
        name = next(each for each in tries if each.lower() not in taken)
        files[name] = frame_bytes(frame)
    return {
        "kind": item.kind,
        "name": item.name,
        "file": name,
        "hash": item.hash,  # by which runs name it; `content` is the hash of the table, if the two differ
        "content": content_hash(frame) if frame is not None else "",
        "rows": item.rows,
        "images": item.images,
        "details": {key: value for key, value in item.details.items() if key not in PLACES},
    }


# what was measured


def _items(workspace: Workspace, collection: str, runs: Sequence[RunRow]) -> list[Item]:
    """The inputs of the runs in a collection."""
    read = {digest for run in runs for digest in run.spec.inputs()}
    models = {run.spec.model for run in runs}
    items = (item for item in workspace.items(collection=collection) if item.hash in read)
    return list(
        {(item.kind, item.name): item for item in items if item.kind != "captions" or item.name in models}.values()
    )


def versions(networks: bool) -> dict[str, str]:
    """What numbers may depend on besides inputs and options: packages, also those that extend capbias. networks: with
    the packages of networks."""
    numbers = {"capbias": __version__, "python": platform.python_version()}
    extending = (entry.dist.name for entry in entry_points(group="capbias") if entry.dist)
    for name in (*PACKAGES, *(OF_NETWORKS if networks else ()), *extending):
        with suppress(PackageNotFoundError):
            numbers[name] = version(name)
    return numbers | {"machine": f"{platform.system()} {platform.machine()}"}


# what the report says of it


def _about(rows: pd.DataFrame, runs: Sequence[RunRow], manifest: Mapping[str, Any]) -> dict[str, str]:
    """How it was measured, label to text."""
    return {
        "attribute": ", ".join(dict.fromkeys(attribute_of_run(run).title for run in runs)),
        "attacker": ", ".join(dict.fromkeys(encoder for encoder in rows["encoder"] if encoder)) or "none",
        "rows": f"{len(rows):,}",
        "method": "; ".join(dict.fromkeys(rows["method"])),
        "made": manifest["made"],
        "with": ", ".join(f"{name} {number}" for name, number in manifest["versions"].items()),
        "measures": ", ".join(f"{name} version {number}" for name, number in manifest["measures"].items()),
    }


def _methods(rows: pd.DataFrame, runs: Sequence[RunRow], held: set[str]) -> list[str]:
    """Notes of runs, and what follows little. held: content hashes of the inputs that the bundle names."""
    values = {run.spec.attribute["name"]: len(run.spec.attribute["values"]) for run in runs}
    notes = [*named_notes([(run.spec.model, run.notes) for run in runs]), unlearned_note(named_inputs(rows), values)]
    if lost := {f"{run.spec.measure} of {run.spec.model}" for run in runs if not run.spec.inputs() <= held}:
        notes.append(
            f"These cannot be repeated from the bundle, which lacks what they read: {', '.join(sorted(lost))}."
        )
    return [line for line in notes if line]

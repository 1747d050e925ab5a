"""A bundle: a zip with results, what they were measured from, and a report.

report.html   answer, tables and charts; opens without a server and without a network
rows.csv, rows.json   a row per number, nothing rounded
manifest.json         versions, extensions, each run with its attribute and options, each input with its content hash
data/         the inputs as they were kept (Parquet), unless they are left out
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
from capbias_core.bundle.manifest import FORMAT, MANIFEST, PLACES, ROWS, TABLES
from capbias_core.errors import CapbiasError
from capbias_core.kinds import kind_name
from capbias_core.measures.registry import METRICS
from capbias_core.runs.run import needs_workers
from capbias_core.views.choose import choose, measured_rows
from capbias_core.views.pictures import file_name
from capbias_core.views.report import report_html
from capbias_core.views.results import with_inputs
from capbias_core.views.sentence import named_notes
from capbias_core.views.tables import to_csv, to_json
from capbias_core.workspace.labels import DERIVED, is_derived
from capbias_core.workspace.store import Item, RunRow, Workspace, content_hash, frame_bytes

REPORT = "report.html"
PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "pyarrow")
OF_NETWORKS = ("torch", "transformers", "sentence-transformers")


def write_bundle(
    workspace: Workspace, collection: str, run_ids: Sequence[str], data: bool = True, metrics: Sequence[str] = ()
) -> bytes:
    """The bundle of finished runs of a collection, as a zip. data: with the inputs themselves; else with their content
    hashes alone. metrics: only these (default: all). Raises CapbiasError if these runs gave no number."""
    files = _files(workspace, collection, run_ids, data, metrics)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(name, files[name])
    return buffer.getvalue()


def write_report(
    workspace: Workspace, collection: str, run_ids: Sequence[str], metrics: Sequence[str] = (), note: str = ""
) -> str:
    """The report of a bundle alone, as one HTML file that needs nothing else. note: by the author. Raises CapbiasError
    if nothing among these metrics answers."""
    files = _files(workspace, collection, run_ids, False, metrics, ALONE, note)
    if REPORT not in files:
        raise CapbiasError("A report needs LIC or LIC_M.", "Export csv, json or tex, or score lic.", "metric")
    return str(files[REPORT])


ALONE = (
    "A bundle of these results (capbias export --format bundle) has what is needed, with the inputs or their hashes."
)


def _files(
    workspace: Workspace,
    collection: str,
    run_ids: Sequence[str],
    data: bool,
    metrics: Sequence[str],
    inputs: str = "",
    note: str = "",
) -> dict[str, bytes | str]:
    """The files of a bundle by name. inputs: what the report says of them (default: whether they are in the bundle).
    note: by the author."""
    runs = [run for run in workspace.runs_of(list(run_ids)).values() if run.status == "finished"]
    rows = with_inputs(workspace, collection, workspace.results([run.run_id for run in runs]), runs)
    rows = rows[rows["metric"].isin(list(metrics or METRICS))].reset_index(drop=True)
    runs = [run for run in runs if run.run_id in set(rows["run_id"])]
    if not runs:
        raise CapbiasError(f"The collection {collection} has no results to export.", "Score it first.")
    items = _items(workspace, collection, runs)
    names: dict[tuple[str, str], str] = {}  # each item's file; two names that would be one file get a number
    for item in items:
        base, taken = (f"data/{kind_name(item.kind)}-{file_name(item.name)}", {name.lower() for name in names.values()})
        tries = (f"{base}{number}.parquet" for number in ("", *(f"-{number}" for number in range(2, 10_000))))
        names[item.kind, item.name] = next(name for name in tries if name.lower() not in taken)
    # Bytes that depend on the content alone, so that the same results give the same files.
    ids = [run.run_id for run in runs]
    files: dict[str, bytes | str] = {ROWS: to_json(rows)}
    entries = []
    for item in items:
        frame, name = workspace.frame(item.hash) if item.kind in TABLES else None, names[item.kind, item.name]
        entries.append(
            {
                "kind": item.kind,
                "name": item.name,
                "file": name if data and frame is not None else "",
                "hash": item.hash,  # by which runs name it; `content` is the hash of the table, if the two differ
                "content": content_hash(frame) if frame is not None else "",
                "rows": item.rows,
                "images": item.images,
                "details": {key: value for key, value in item.details.items() if key not in PLACES},
            }
        )
        if data and frame is not None:
            files[name] = frame_bytes(frame)
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
    scored = measured_rows(workspace, collection)
    of_runs = scored[scored["run_id"].isin(ids)]
    letters = dict(zip(zip(scored["run_id"], scored["metric"], strict=True), scored["letters"], strict=True))
    rows = rows.assign(letters=[letters.get(key, "") for key in zip(rows["run_id"], rows["metric"], strict=True)])
    files["rows.csv"] = to_csv(rows)
    with suppress(CapbiasError):  # nothing that answers is among the metrics
        files[REPORT] = _report(
            workspace, collection, rows, of_runs, runs, manifest, inputs, data or bool(inputs), note
        )
    return files


# what was measured


def _items(workspace: Workspace, collection: str, runs: Sequence[RunRow]) -> list[Item]:
    """The inputs of the runs in a collection, and human captions from which labels were derived."""
    read = {digest for run in runs for digest in run.spec.inputs()}
    tables = [item for item in workspace.items("labels", collection) if item.hash in read]
    read |= {item.details[DERIVED]["references"] for item in tables if is_derived(item)}
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


# what it says


def _report(
    workspace: Workspace,
    collection: str,
    rows: pd.DataFrame,
    scored: pd.DataFrame,
    runs: Sequence[RunRow],
    manifest: Mapping[str, Any],
    of_inputs: str,
    texts: bool,
    note: str,
) -> str:
    """The report of these runs. scored: their rows, as `measured_rows` gives them. texts: whether it may show words of
    captions, which a bundle without data does not hold. note: by the author."""
    choice = choose(workspace, scored, {"collection": collection})
    others = [choice.of_attribute(name) for name in choice.options["attribute"] if name != choice.attribute]
    notes = named_notes([(run.spec.model, run.notes) for run in runs])
    items = manifest["items"]
    known = {item["hash"] for item in items if item["content"]}
    if lost := {f"{run.spec.measure} of {run.spec.model}" for run in runs if not run.spec.inputs() <= known}:
        notes.append(
            f"These cannot be repeated from the bundle, which lacks what they read: {', '.join(sorted(lost))}."
        )
    about = {
        "attacker": ", ".join(dict.fromkeys(encoder for encoder in rows["encoder"] if encoder)) or "none",
        "rows": f"{len(rows):,}",
        "method": "; ".join(dict.fromkeys(rows["method"])),
        "made": manifest["made"],
        "with": ", ".join(f"{name} {number}" for name, number in manifest["versions"].items()),
        "measures": ", ".join(f"{name} version {number}" for name, number in manifest["measures"].items()),
    }
    held = "The inputs are in this bundle."
    if not any(item["file"] for item in items):
        held = "The inputs are not in this bundle, only their content hashes: add --data and the files or their folder."
    reproduce = f"{of_inputs or held} This repeats the runs and compares every number with rows.json."
    return report_html(choice, others, about, items, notes, reproduce, note, texts)

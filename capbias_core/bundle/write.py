"""A bundle: a zip with results, what they were measured from, the plan, figures and a report.

report.html   opens without a server and without a network
plan.toml     what was measured; `capbias run plan.toml` runs it, also edited
rows.csv, rows.json   a row per number, nothing rounded
manifest.json         versions, and each input with its content hash
data/         the inputs as they were kept (Parquet), unless they are left out
attributes/   each attribute with its words
figures/      each chart as SVG: intervals of each metric, and what pages draw of these rows
"""

from __future__ import annotations

import io
import json
import platform
import re
import time
import zipfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pandas as pd

from capbias_core import __version__
from capbias_core.aggregate.comparison import unlearned_note
from capbias_core.analysis.read import Comparison, attribute_of_run, comparisons, ranking, with_inputs, with_letters
from capbias_core.bundle.manifest import FORMAT, MANIFEST, PLACES, PLAN, ROWS, TABLES
from capbias_core.errors import CapbiasError
from capbias_core.measures.registry import METRICS
from capbias_core.present.figures import chart_series
from capbias_core.present.gaps import READING, gap_table
from capbias_core.present.headline import headline
from capbias_core.present.page_charts import page_charts
from capbias_core.present.pictures import pictures, pictures_lack
from capbias_core.present.report import Chart, ReportParts, report_html
from capbias_core.present.sentence import (
    BY_HUMAN,
    intervals_over,
    named_notes,
    second_dots,
    told_apart,
    variants_warning,
)
from capbias_core.present.svg import interval_svg, part_svg
from capbias_core.present.table import in_blocks, scores_table, shown_letters, to_csv, to_json
from capbias_core.runs.plan import Request, plan
from capbias_core.runs.plan_file import KINDS, LabelColumn, PlanFile, attribute_text, plan_text, requests_of
from capbias_core.runs.run import needs_workers
from capbias_core.types import counted
from capbias_core.workspace.labels import DERIVED, is_derived
from capbias_core.workspace.spec import attribute_from
from capbias_core.workspace.store import Item, RunRow, Workspace, content_hash, frame_bytes

REPORT = "report.html"
PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "pyarrow")
OF_NETWORKS = ("torch", "transformers", "sentence-transformers")
SECTIONS = {kind: section for section, kind in KINDS.items()}


def write_bundle(
    workspace: Workspace, collection: str, run_ids: Sequence[str], data: bool = True, metrics: Sequence[str] = ()
) -> bytes:
    """The bundle of finished runs of a collection, as a zip.

    data: with the inputs themselves; else with their content hashes alone. metrics: only these (default: all). Raises
    CapbiasError if these runs gave no number.
    """
    runs = [run for run in workspace.runs_of(list(run_ids)).values() if run.status == "finished"]
    rows = with_inputs(workspace, collection, workspace.results([run.run_id for run in runs]), runs)
    rows = rows[rows["metric"].isin(list(metrics or METRICS))].reset_index(drop=True)
    runs = [run for run in runs if run.run_id in set(rows["run_id"])]
    if not runs:
        raise CapbiasError(f"The collection {collection} has no results to export.", "Score it first.")
    requests = requests_of(workspace, collection, [run.spec for run in runs], rows["metric"].unique())
    items = _items(workspace, collection, runs)
    names = _file_names(items)
    written = plan_text(_plan(collection, items, names, requests, runs))
    # Bytes that depend on the content alone, so that the same results give the same files.
    files: dict[str, bytes | str] = {PLAN: written, ROWS: to_json(rows)}
    for run in runs:
        attribute = attribute_of_run(run)
        files[_attribute_file(attribute.name)] = attribute_text(attribute)
    entries = []
    for item in items:
        frame = workspace.frame(item.hash) if item.kind in TABLES else None
        entries.append(_entry(item, names[item.kind, item.name] if data else "", frame))
        if data and frame is not None:
            files[names[item.kind, item.name]] = frame_bytes(frame)
    unplanned = _unplanned(workspace, requests, runs)
    manifest = _manifest(collection, runs, entries, len(rows), unplanned)
    files[MANIFEST] = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    found = comparisons(workspace, collection)
    charts = [*_charts(workspace, rows), *_page_charts(workspace, collection, rows, runs)]
    rows = with_letters(workspace, rows, found, [run.run_id for run in runs])
    parts = _report(workspace, collection, rows, runs, found, charts, manifest, written, unplanned)
    files["rows.csv"] = to_csv(rows)
    files |= {f"figures/{_slug(chart.title)}.svg": chart.svg for chart in charts}
    files[REPORT] = report_html(parts)
    return _zipped(files)


def _zipped(files: dict[str, bytes | str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(name, files[name])
    return buffer.getvalue()


def _slug(name: str) -> str:
    """A name as one for a file."""
    return re.sub(r"[^\w.-]+", "_", name.replace("→", "to")).strip("._") or "file"


def _attribute_file(name: str) -> str:
    return f"attributes/{_slug(name)}.toml"


# what was measured


def _items(workspace: Workspace, collection: str, runs: Sequence[RunRow]) -> list[Item]:
    """What the runs read of a collection, and human captions from which labels were derived."""
    read = {digest for run in runs for digest in run.spec.inputs()}
    tables = [item for item in workspace.items("attributes", collection) if item.hash in read]
    read |= {item.details[DERIVED]["references"] for item in tables if is_derived(item)}
    models = {run.spec.model for run in runs}
    found: dict[tuple[str, str], Item] = {}
    for item in workspace.items(collection=collection):
        named = item.kind != "captions" or item.name in models
        if item.hash in read and named:
            found[item.kind, item.name] = item
    return list(found.values())


def _file_names(items: Sequence[Item]) -> dict[tuple[str, str], str]:
    """Each item's file in the bundle; two names that would be one file get a number."""
    found: dict[tuple[str, str], str] = {}
    for item in items:
        base = f"data/{SECTIONS.get(item.kind, item.kind)}-{_slug(item.name)}"
        taken = {name.lower() for name in found.values()}
        tries = (f"{base}{number}.parquet" for number in ("", *(f"-{own}" for own in range(2, 10_000))))
        found[item.kind, item.name] = next(name for name in tries if name.lower() not in taken)
    return found


def _plan(
    collection: str,
    items: Sequence[Item],
    names: dict[tuple[str, str], str],
    requests: Sequence[Request],
    runs: Sequence[RunRow],
) -> PlanFile:
    files: dict[str, dict[str, str]] = {section: {} for section in KINDS}
    for item in items:
        if item.kind in SECTIONS:
            files[SECTIONS[item.kind]][item.name] = names[item.kind, item.name]
    tables = {item.hash: item.name for item in items if item.kind == "attributes"}
    columns = {}
    for run in runs:
        labels, attribute = run.spec.labels, attribute_from(run.spec.attribute)
        mapping = {raw: value for raw, value in labels["mapping"].items() if value is not None}
        table = tables.get(labels["table"], "")
        columns[attribute.name] = LabelColumn(_attribute_file(attribute.name), table, labels["column"], mapping)
    details = {item.name: item.details.get("trained_on_references") for item in items if item.kind == "captions"}
    trained = {name: said for name, said in details.items() if said is not None}
    return PlanFile(collection, files, tuple(requests), columns, trained)


def _entry(item: Item, file: str, frame: pd.DataFrame | None) -> dict[str, Any]:
    """An input in the manifest. hash: by which runs name it. content: of the table, where the two differ."""
    details = {name: value for name, value in item.details.items() if name not in PLACES}
    return {
        "kind": item.kind,
        "name": item.name,
        "file": file if frame is not None else "",
        "hash": item.hash,
        "content": content_hash(frame) if frame is not None else "",
        "rows": item.rows,
        "images": item.images,
        "details": details,
    }


def _unplanned(workspace: Workspace, requests: Sequence[Request], runs: Sequence[RunRow]) -> list[str]:
    """Runs that the plan of the bundle does not give again."""
    planned: set[str] = set()
    for request in requests:
        try:
            planned |= {spec.run_id for spec in plan(workspace, request)}
        except CapbiasError:  # such as a model that is gone; its runs are among those that are named
            continue
    return [run.run_id for run in runs if run.run_id not in planned]


def _manifest(
    collection: str, runs: Sequence[RunRow], entries: list[dict], rows: int, unplanned: list[str]
) -> dict[str, Any]:
    networks = any(run.spec.options.get("encoder") or needs_workers(run.spec) for run in runs)
    return {
        "format": FORMAT,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "collection": collection,
        "rows": rows,
        "versions": versions(networks),
        "measures": {run.spec.measure: run.spec.version for run in runs},
        "runs": [run.run_id for run in runs],
        "not_in_plan": unplanned,
        "items": entries,
    }


def versions(networks: bool) -> dict[str, str]:
    """What numbers may depend on besides inputs and plan. networks: with the packages of networks."""
    found = {"capbias": __version__, "python": platform.python_version()}
    for name in (*PACKAGES, *(OF_NETWORKS if networks else ())):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found | {"machine": f"{platform.system()} {platform.machine()}"}


# what it says


def _charts(workspace: Workspace, rows: pd.DataFrame) -> list[Chart]:
    found = []
    for name, own in chart_series(rows).items():
        metric, direction = own.iloc[0]["metric"], own.iloc[0]["direction"]
        runs = list(workspace.runs_of(list(own["run_id"])).values())
        pairs = ranking(workspace, runs, metric, direction)
        alike = rows[rows["run_id"].isin(own["run_id"])]
        second = second_dots(alike, metric)
        svg = interval_svg(own, metric, attribute_of_run(runs[0]), pairs.letters, second, name)
        said = (METRICS[metric].explanation, BY_HUMAN if second else "", told_apart(pairs))
        found.append(Chart(name, svg, " ".join(filter(None, said))))
    return found


def _page_charts(workspace: Workspace, collection: str, rows: pd.DataFrame, runs: Sequence[RunRow]) -> list[Chart]:
    """Those that pages draw besides, none where this machine cannot draw them."""
    if pictures_lack():
        return []
    found = list(page_charts(workspace, collection, rows, runs))
    drawn = pictures([own.figure for own in found], "svg")
    return [Chart(own.title, part_svg(svg, own.title), own.note) for own, svg in zip(found, drawn, strict=True)]


def _report(
    workspace: Workspace,
    collection: str,
    rows: pd.DataFrame,
    runs: Sequence[RunRow],
    found: Sequence,
    charts: Sequence[Chart],
    manifest: dict[str, Any],
    written: str,
    unplanned: Sequence[str],
) -> ReportParts:
    """The report. rows: with letters."""
    ids = {run.run_id for run in runs}
    best: dict[str, Comparison] = {}  # of each attribute
    for own in found:
        if ids & set(own.run_ids) and own.metric in set(rows["metric"]):
            best.setdefault(own.attribute.name, own)
    said, elsewhere = None, []
    for name, own in best.items():
        answered = headline(workspace, collection, rows[rows["run_id"].isin(ids & set(own.run_ids))])
        if said is None:
            said = answered
        elif answered:
            elsewhere.append(f"{name}: {answered.headline}")
    attributes = {own.name: own for own in map(attribute_of_run, runs)}
    told_by = " or ".join(dict.fromkeys(shown_letters(rows)["metric"]))
    share = f" Captioners that share a letter are not told apart by {told_by}." if told_by else ""
    notes = named_notes([(run.spec.model, run.notes) for run in runs])
    notes += [unlearned_note(rows, {name: len(own.values) for name, own in attributes.items()}), variants_warning(rows)]
    notes += [own.note for own in attributes.values()]
    if unplanned:
        lost = {(run.spec.measure, run.spec.model) for run in runs if run.run_id in set(unplanned)}
        named = ", ".join(sorted(f"{measure} of {model}" for measure, model in lost))
        notes.append(f"The plan does not make these again, since what they read is not in the bundle: {named}.")
    items = manifest["items"]
    if lack := pictures_lack():
        notes.append(f"Charts of objects, directions, encoders and masking are left out. {lack}")
    groups = gap_table(rows)
    inputs = pd.DataFrame([{name: own[name] for name in ("kind", "name", "rows", "images", "hash")} for own in items])
    about = {
        "attribute": ", ".join(own.title for own in attributes.values()),
        "attacker": ", ".join(dict.fromkeys(own for own in rows["encoder"] if own)) or "none",
        "rows": f"{len(rows):,}",
        "method": "; ".join(dict.fromkeys(rows["method"])),
        "made": manifest["made"],
        "with": ", ".join(f"{name} {own}" for name, own in manifest["versions"].items()),
        "measures": ", ".join(f"{name} version {own}" for name, own in manifest["measures"].items()),
    }
    with_data = any(own["file"] for own in items)
    files = (
        "The inputs are in this bundle."
        if with_data
        else (
            "The inputs are not in this bundle, only their content hashes: add --data and the files or their folder, "
            "which are found by content."
        )
    )
    parts = ReportParts(
        title=f"{collection}: societal bias in image captions",
        answer=(said.headline, " ".join([said.support, said.details, *elsewhere])) if said else ("", ""),
        tables=in_blocks(scores_table(rows)),
        table_note=f"Value ± standard deviation over attacker seeds [interval, {intervals_over(rows)}].{share}",
        charts=charts,
        notes=[own for own in notes if own],
        about=about,
        groups=groups,
        groups_note=READING,
        sections={f"Inputs ({counted(len(items), 'file')})": inputs},
        reproduce=f"{files} This runs the plan in an empty workspace and compares every number with rows.json.",
        plan=written,
    )
    return parts

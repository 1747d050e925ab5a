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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import Any

import pandas as pd

from capbias_core import __version__
from capbias_core.aggregate.comparison import unlearned_note
from capbias_core.bundle.manifest import FORMAT, MANIFEST, PLACES, ROWS, TABLES
from capbias_core.bundle.report import Chart, ReportParts, page_charts, report_cell, report_html
from capbias_core.errors import CapbiasError, installed, missing_extra
from capbias_core.kinds import kind_name
from capbias_core.measures.registry import METRICS
from capbias_core.runs.run import needs_workers
from capbias_core.types import counted
from capbias_core.views.change import change
from capbias_core.views.charts import chart_series, interval_chart
from capbias_core.views.groups import READING, gap_table
from capbias_core.views.leaderboard import leaderboard
from capbias_core.views.pictures import file_name
from capbias_core.views.results import (
    Comparison,
    attribute_of_run,
    best_comparisons,
    comparisons,
    ranking,
    with_inputs,
    with_letters,
)
from capbias_core.views.sentence import (
    BY_HUMAN,
    intervals_over,
    named_notes,
    second_dots,
    stored_headline,
    told_apart,
    variants_warning,
)
from capbias_core.views.slices import WORDS, slices
from capbias_core.views.tables import in_blocks, scores_table, shown_letters, to_csv, to_json
from capbias_core.views.view import Scope, Shown
from capbias_core.workspace.labels import DERIVED, is_derived
from capbias_core.workspace.store import Item, RunRow, Workspace, content_hash, frame_bytes

REPORT = "report.html"
PAIR = 2  # captioners that are compared as before and after
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


def write_report(workspace: Workspace, collection: str, run_ids: Sequence[str], metrics: Sequence[str] = ()) -> str:
    """The report of a bundle alone, as one HTML file that needs nothing else. As `write_bundle`."""
    return str(_files(workspace, collection, run_ids, False, metrics, ALONE)[REPORT])


ALONE = (
    "A bundle of these results (capbias export --format bundle) has what is needed, with the inputs or their hashes."
)


def _files(
    workspace: Workspace, collection: str, run_ids: Sequence[str], data: bool, metrics: Sequence[str], inputs: str = ""
) -> dict[str, bytes | str]:
    """The files of a bundle by name. inputs: what the report says of them (default: whether they are in the bundle)."""
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
    all_comparisons = comparisons(workspace, collection)
    best = best_comparisons(
        [comparison for comparison in all_comparisons if comparison.metric in set(rows["metric"])], ids
    )
    views = dict(_views(workspace, collection, ids, best, words=data or bool(inputs)))
    charts = []
    if installed("plotly"):
        charts = _charts(workspace, rows)
        charts += [Chart(shown.title, shown.chart()) for shown in views.values() if shown.chart]
        charts += page_charts(workspace, collection, rows, runs)
    rows = with_letters(workspace, rows, all_comparisons, ids)
    parts = _report(workspace, collection, rows, runs, best, charts, views, manifest, inputs)
    files["rows.csv"] = to_csv(rows)
    files[REPORT] = report_html(parts)
    return files


# what was measured


def _items(workspace: Workspace, collection: str, runs: Sequence[RunRow]) -> list[Item]:
    """The inputs of the runs in a collection, and human captions from which labels were derived."""
    read = {digest for run in runs for digest in run.spec.inputs()}
    tables = [item for item in workspace.items("attributes", collection) if item.hash in read]
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


def _views(
    workspace: Workspace, collection: str, ids: Sequence[str], best: Mapping[str, Comparison], words: bool
) -> Iterator[tuple[str, Shown]]:
    """The views of a report of these runs, with their headings. best: the comparison of each attribute. words: whether
    it may name words of captions, which a bundle without data does not hold."""
    stored = [item.name for item in workspace.items("captions", collection)]
    if len(best) > 1:
        yield "Leaderboard", leaderboard(Scope(workspace, collection, next(iter(best.values())), ()), run_ids=ids)
    for name, comparison in best.items():
        captioners = tuple(sorted((run.spec.model for run in comparison.runs), key=stored.index))
        scope, of = Scope(workspace, collection, comparison, captioners), f" ({name})" if len(best) > 1 else ""
        with suppress(CapbiasError):  # no objects and no human captions to slice by
            where = slices(scope)
            if words or not where.rows["rule"].str.startswith(f"{WORDS}:").any():
                yield f"Where does it amplify?{of}", where
        if len(captioners) == PAIR:
            with suppress(CapbiasError):
                yield f"Before and after{of}", change(scope)


def _charts(workspace: Workspace, rows: pd.DataFrame) -> list[Chart]:
    charts = []
    for name, series in chart_series(rows).items():
        metric, direction = series.iloc[0]["metric"], series.iloc[0]["direction"]
        runs = list(workspace.runs_of(list(series["run_id"])).values())
        pairs = ranking(workspace, runs, metric, direction)
        second = second_dots(rows[rows["run_id"].isin(series["run_id"])], metric)
        figure = interval_chart(series, metric, attribute_of_run(runs[0]), pairs.letters, second)
        notes = (METRICS[metric].explanation, BY_HUMAN if second else "", told_apart(pairs))
        charts.append(Chart(name, figure, " ".join(filter(None, notes))))
    return charts


def _report(
    workspace: Workspace,
    collection: str,
    rows: pd.DataFrame,
    runs: Sequence[RunRow],
    best: Mapping[str, Comparison],
    charts: Sequence[Chart],
    views: Mapping[str, Shown],
    manifest: dict[str, Any],
    of_inputs: str,
) -> ReportParts:
    first_answer, elsewhere = None, []
    for name, comparison in best.items():
        answered = stored_headline(
            workspace, collection, workspace.results(list(comparison.run_ids))
        )  # also of other metrics
        if first_answer is None:
            first_answer = answered
        elif answered:
            elsewhere.append(f"{name}: {answered.headline}")
    attributes = {attribute.name: attribute for attribute in map(attribute_of_run, runs)}
    told_by = " or ".join(dict.fromkeys(shown_letters(rows)["metric"]))
    share = f" Captioners with the same letter do not differ significantly by {told_by}." if told_by else ""
    notes = named_notes([(run.spec.model, run.notes) for run in runs])
    notes += [
        unlearned_note(rows, {name: len(attribute.values) for name, attribute in attributes.items()}),
        variants_warning(rows),
    ]
    notes += [attribute.note for attribute in attributes.values()]
    items = manifest["items"]
    held = {item["hash"] for item in items if item["content"]}
    if lost := {f"{run.spec.measure} of {run.spec.model}" for run in runs if not run.spec.inputs() <= held}:
        notes.append(
            f"These cannot be repeated from the bundle, which lacks what they read: {', '.join(sorted(lost))}."
        )
    if not installed("plotly"):
        notes.append(f"Charts are left out. {missing_extra(['plotly'], 'A chart')}")
    groups = gap_table(rows, report_cell)
    inputs = pd.DataFrame([{name: item[name] for name in ("kind", "name", "rows", "images", "hash")} for item in items])
    about = {
        "attribute": ", ".join(attribute.title for attribute in attributes.values()),
        "attacker": ", ".join(dict.fromkeys(encoder for encoder in rows["encoder"] if encoder)) or "none",
        "rows": f"{len(rows):,}",
        "method": "; ".join(dict.fromkeys(rows["method"])),
        "made": manifest["made"],
        "with": ", ".join(f"{name} {number}" for name, number in manifest["versions"].items()),
        "measures": ", ".join(f"{name} version {number}" for name, number in manifest["measures"].items()),
    }
    with_data = any(item["file"] for item in items)
    files = of_inputs or (
        "The inputs are in this bundle."
        if with_data
        else (
            "The inputs are not in this bundle, only their content hashes: add --data and the files or their folder, "
            "which are found by content."
        )
    )
    below = [first_answer.support, first_answer.details, first_answer.warning, *elsewhere] if first_answer else []
    parts = ReportParts(
        title=f"{collection}: societal bias in image captions",
        answer=(first_answer.headline, " ".join(filter(None, below))) if first_answer else ("", ""),
        tables=in_blocks(scores_table(rows, cell=report_cell)),
        table_note=f"Value ± standard deviation over attacker seeds [interval, {intervals_over(rows)}].{share}",
        charts=charts,
        views=views,
        notes=[note for note in notes if note],
        about=about,
        groups=groups,
        groups_note=READING,
        sections={f"Inputs ({counted(len(items), 'file')})": inputs},
        reproduce=f"{files} This repeats the runs in an empty workspace and compares every number with rows.json.",
    )
    return parts

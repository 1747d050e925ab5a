"""`export`: the results of a collection, or all of it as a bundle; `reproduce`: the numbers of a bundle again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated

import pandas as pd

from capbias_core.bundle.reproduce import TOLERANCE, find_data, read_bundle, reproduce
from capbias_core.bundle.write import write_bundle, write_report
from capbias_core.cli.inputs import (
    ANSWER,
    INPUTS,
    WHAT,
    CollectionFlag,
    ForceFlag,
    WorkspaceFlag,
    command,
    flag,
    known_collection,
    opened,
)
from capbias_core.cli.run import run_all
from capbias_core.cli.terminal import DONE, RUN_FAILED, checked_output, say, show, show_table, write_file, write_output
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.places import checked_path
from capbias_core.measures.registry import METRICS, expand_metrics
from capbias_core.processes import temporary_folder
from capbias_core.types import counted
from capbias_core.views import results
from capbias_core.views.choose import choose, measured_rows
from capbias_core.views.latex import to_latex
from capbias_core.views.table import TABLE, TableOptions
from capbias_core.views.tables import to_csv, to_json
from capbias_core.workspace.store import Workspace

FORMATS = {"csv": to_csv, "json": to_json}
BUNDLE, REPORT = "bundle", "report"
KNOWN = (*FORMATS, "latex", REPORT, BUNDLE)
ENDINGS = {"csv": "csv", "latex": "tex", "json": "json", REPORT: "html", BUNDLE: "zip"}

app = command(
    "export",
    """\
  capbias export --collection coco --format latex --metric lic --output lic.tex
  capbias export --collection coco --format bundle --output bundle.zip
  capbias export --collection coco --format report --output report.html

A report is one HTML file to send: answer, tables, where it amplifies, charts, caveats and methods. A bundle is a zip
with the report, the rows and the data; `capbias reproduce bundle.zip` recomputes the numbers on another machine.""",
)
reproduce_app = command(
    "reproduce",
    f"""\
  capbias reproduce bundle.zip
  capbias reproduce bundle.zip --data results/ annotations/

Checks the content of the data, repeats the runs in an empty workspace without a network, and compares each number. On
the same machine and versions all digits are equal. Other processors sum in another order: numbers are equal within
{TOLERANCE:g}, and the largest difference is printed. The exit code is 1 if any row differs.""",
)


@app.default
def export(
    *,
    collection: CollectionFlag,
    workspace: WorkspaceFlag = None,
    metric: Annotated[list[str] | None, flag("only these (default: all)", "NAME", WHAT)] = None,
    format: Annotated[str, flag("what to write (default: csv)", "|".join(KNOWN), ANSWER)] = "csv",
    without_data: Annotated[bool, flag("a bundle with hashes of the data instead of the data", group=ANSWER)] = False,
    note: Annotated[str, flag("a note of yours in the report", "TEXT", ANSWER)] = "",
    output: Annotated[str | None, flag("where to write it (default: stdout)", "FILE", ANSWER)] = None,
    force: ForceFlag = False,
) -> int:
    """Write the results of a collection's finished runs as CSV, LaTeX, JSON, a report or a bundle."""
    if format not in KNOWN:
        raise unknown_name("--format", format, KNOWN)
    if without_data and format != BUNDLE:
        raise CapbiasError(
            f"--without-data fits --format bundle only, not {format}.", "Leave it out: rows hold no captions."
        )
    wanted, path = expand_metrics(metric or METRICS), checked_output(output, force, [ENDINGS[format]])
    if format == BUNDLE and path is None:
        raise CapbiasError("--format bundle needs --output.", "Name a file such as bundle.zip.")
    store = opened(workspace)
    asked = store.asked_for(known_collection(store, collection))
    runs = [run for run in results.current_runs(store, collection) if run.run_id in asked]
    ids = [run.run_id for run in runs]
    if format == BUNDLE and path:
        write_file(write_bundle(store, collection, ids, not without_data, wanted), path)
        return DONE
    if format == REPORT:
        write_output(write_report(store, collection, ids, wanted, note), path)
        return DONE
    if format == "latex":
        choice = choose(store, results_of(store, collection, ids), {"collection": collection})
        table = TABLE.rows(choice, TableOptions(metrics=tuple(metric or ())))
        write_output(to_latex(TABLE.table(table), TABLE.title(choice), TABLE.sentence(choice, table)), path)
        return DONE
    frame = results.with_inputs(store, collection, store.results(ids), runs)
    scored = measured_rows(store, collection)
    letters = dict(zip(zip(scored["run_id"], scored["metric"], strict=True), scored["letters"], strict=True))
    frame = frame.assign(letters=[letters.get(key, "") for key in zip(frame["run_id"], frame["metric"], strict=True)])
    frame = results.ordered(frame, frame["model"].unique(), wanted)
    if frame.empty:
        raise CapbiasError(
            f"The collection {collection} has no such result.", "Score it first, or ask for other metrics."
        )
    write_output(FORMATS[format](frame), path)
    return DONE


def results_of(store: Workspace, collection: str, ids: Sequence[str]) -> pd.DataFrame:
    """The rows of these runs, as views read them."""
    rows = measured_rows(store, collection)
    return rows[rows["run_id"].isin(ids)]


@reproduce_app.default
def run(
    bundle: Annotated[str, flag("a bundle, from the page Scores or from export", "FILE", INPUTS)],
    /,
    *,
    data: Annotated[
        list[str] | None, flag("files or folders with the data, for a bundle without data", "FILE", INPUTS)
    ] = None,
    workspace: Annotated[
        str | None, flag("an empty folder in which to run and keep it (default: a temporary one)", "FOLDER", INPUTS)
    ] = None,
    tolerance: Annotated[
        float, flag(f"largest difference of equal numbers (default: {TOLERANCE:g})", "NUMBER", WHAT)
    ] = TOLERANCE,
) -> int:
    """Recompute the numbers of a bundle, and list the differences."""
    if not tolerance >= 0:
        raise CapbiasError(f"--tolerance is {tolerance:g}, which is below 0.", "Give another, or leave it out.")
    began = time.monotonic()
    with temporary_folder() as folder:
        read = read_bundle(checked_path(bundle), folder / "bundle")
        frames = find_data(read, map(checked_path, data or ()), say)
        say(f"{counted(len(read.items), 'input')} with the content that the bundle names")
        store = Workspace(workspace or folder / "workspace")
        compared = reproduce(store, read, frames, run_all, tolerance)
    for reason in compared.reasons:
        say(f"error: {reason}")
    for name, (before, here) in compared.versions.items():
        say(f"note: {name} {before} made the bundle, {here} is here")
    equal = compared.same + compared.near
    show(f"rows         {compared.rows:,}\nrows equal   {equal:,}")
    if compared.near:
        show(f"             {compared.same:,} to the last digit, {compared.near:,} within {tolerance:g}")
    elif compared.same:
        show("             to the last digit")
    show(f"rows differ  {compared.rows - equal:,}")
    show(f"largest difference {compared.largest:.3g}, {time.monotonic() - began:.0f} s")
    if equal < compared.rows:
        show_table(compared.differ, before="\n")
    return DONE if equal == compared.rows else RUN_FAILED

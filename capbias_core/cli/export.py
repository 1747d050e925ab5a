"""`export`: the results of a collection, or all of it as a bundle; `reproduce`: the numbers of a bundle again."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from capbias_core.bundle.reproduce import TOLERANCE, read_bundle, reproduce
from capbias_core.bundle.write import no_result, write_bundle, write_report
from capbias_core.cli.inputs import (
    ANSWER,
    INPUTS,
    STDOUT,
    WHAT,
    CollectionFlag,
    Flags,
    Output,
    WorkspaceFlag,
    command,
    flag,
    known_collection,
    opened,
)
from capbias_core.cli.run import run_all
from capbias_core.cli.terminal import DONE, RUN_FAILED, say, show, show_table, write
from capbias_core.errors import CapbiasError
from capbias_core.load.places import checked_path
from capbias_core.measures.registry import METRICS, expand_metrics
from capbias_core.spreadsheets import csv_text
from capbias_core.types import counted
from capbias_core.views.choose import choose, measured_rows, named_inputs
from capbias_core.views.files import content, json_text
from capbias_core.views.results import exported, ordered
from capbias_core.views.table import TABLE, TableOptions
from capbias_core.workspace.store import Workspace

BUNDLE, REPORT = "bundle", "report"
ENDINGS = {"csv": "csv", "json": "json", "tex": "tex", REPORT: "html", BUNDLE: "zip"}

app = command(
    "export",
    """\
  capbias export --collection coco --metric lic --output lic.tex
  capbias export --collection coco --output bundle.zip
  capbias export --collection coco --output report.html --note "A draft"

A report is one HTML file to send: two pages with the answer, captioners, errors, words, captions and limits, and
everything else folded. A bundle is a zip with the report, the rows and the data; `capbias reproduce bundle.zip`
recomputes the numbers on another machine.""",
)
reproduce_app = command(
    "reproduce",
    f"""\
  capbias reproduce bundle.zip

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
    format: Annotated[
        str, flag("what to write (default: by the ending of --output, else csv)", "|".join(ENDINGS), ANSWER)
    ] = "",
    note: Annotated[str, flag("a note of yours in the report", "TEXT", ANSWER)] = "",
    to: Annotated[Output, Flags] = STDOUT,
) -> int:
    """Write the results of a collection's finished runs as CSV, JSON, LaTeX, a report or a bundle."""
    wanted = expand_metrics(metric or METRICS)
    path, format = to.place(ENDINGS, format)
    format = format or "csv"
    if note and format not in (BUNDLE, REPORT):
        raise CapbiasError(f"--note fits --format {BUNDLE} and {REPORT} only, not {format}.", "Leave it out.")
    if format == BUNDLE and path is None:
        raise CapbiasError("--format bundle needs --output.", "Name a file such as bundle.zip.")
    store = opened(workspace)
    known_collection(store, collection)
    if format == BUNDLE and path:
        write(write_bundle(store, collection, wanted, note), path)
        return DONE
    if format == REPORT:
        write(write_report(store, collection, wanted, note), path)
        return DONE
    rows = measured_rows(store, collection)
    rows = rows[rows["metric"].isin(wanted)]
    if rows.empty:
        raise no_result(collection)
    if format == "tex":
        choice = choose(store, rows, {"collection": collection})
        table = TABLE.rows(choice, TableOptions(metrics=tuple(metric or ())))
        write(content(TABLE, choice, table, "tex"), path)
        return DONE
    frame = exported(ordered(named_inputs(rows), rows["captioner"].unique(), wanted))
    write(csv_text(frame) if format == "csv" else json_text(frame.drop(columns="name")), path)
    return DONE


@reproduce_app.default
def run(
    bundle: Annotated[str, flag("a bundle, from the page Scores or from export", "FILE", INPUTS)],
    /,
    *,
    workspace: Annotated[
        str | None, flag("an empty folder in which to run and keep it (default: a temporary one)", "FOLDER", INPUTS)
    ] = None,
) -> int:
    """Recompute the numbers of a bundle, and list the differences."""
    began = time.monotonic()
    with TemporaryDirectory(prefix="capbias-") as temporary:
        folder = Path(temporary)
        read = read_bundle(checked_path(bundle), folder / "bundle")
        say(f"{counted(len(read.items), 'input')} with the content that the bundle names")
        store = Workspace(workspace or folder / "workspace")
        compared = reproduce(store, read, run_all)
    for reason in compared.reasons:
        say(f"error: {reason}")
    for name, (before, here) in compared.versions.items():
        say(f"note: {name} {before} made the bundle, {here} is here")
    equal = compared.same + compared.near
    show(f"rows         {compared.rows:,}\nrows equal   {equal:,}")
    if compared.near:
        show(f"             {compared.same:,} to the last digit, {compared.near:,} within {TOLERANCE:g}")
    elif compared.same:
        show("             to the last digit")
    show(f"rows differ  {compared.rows - equal:,}")
    show(f"largest difference {compared.largest:.3g}, {time.monotonic() - began:.0f} s")
    if equal < compared.rows:
        show_table(compared.differ, before="\n")
    return DONE if equal == compared.rows else RUN_FAILED

"""`export`: the results of a collection as CSV, LaTeX or JSON, or all of it as a bundle."""

from __future__ import annotations

from typing import Annotated

from capbias_core.analysis.read import (
    comparisons,
    current_runs,
    references_read,
    runs_against,
    runs_with,
    tables_read,
    with_inputs,
    with_letters,
)
from capbias_core.api import ordered
from capbias_core.bundle.write import write_bundle
from capbias_core.cli.flags import ANSWER, WHAT, CollectionFlag, WorkspaceFlag, command, flag
from capbias_core.cli.inputs import known_collection, opened
from capbias_core.cli.terminal import DONE, checked_output, write_file, write_output
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.measures.registry import METRICS, expand_metrics
from capbias_core.present.latex import to_latex
from capbias_core.present.table import to_csv, to_json

FORMATS = {"csv": to_csv, "latex": to_latex, "json": to_json}
BUNDLE = "bundle"

app = command(
    "export",
    """\
  capbias export --collection coco --format latex --metric lic --output lic.tex
  capbias export --collection coco --format bundle --output bundle.zip

A bundle is a zip with the rows, the data, the plan, figures and an HTML report; `capbias reproduce bundle.zip`
recomputes the numbers on another machine.""",
)


@app.default
def export(
    *,
    collection: CollectionFlag,
    workspace: WorkspaceFlag = None,
    metric: Annotated[list[str] | None, flag("only these (default: all)", "NAME", WHAT)] = None,
    format: Annotated[str, flag("(default: csv)", "|".join((*FORMATS, BUNDLE)), ANSWER)] = "csv",
    without_data: Annotated[bool, flag("a bundle with hashes of the data instead of the data", group=ANSWER)] = False,
    output: Annotated[str | None, flag("where to write it (default: stdout)", "FILE", ANSWER)] = None,
) -> int:
    """Write the results of a collection's finished runs as CSV, LaTeX or JSON, or all of it as a bundle."""
    if format not in (*FORMATS, BUNDLE):
        raise unknown_name("--format", format, (*FORMATS, BUNDLE))
    if without_data and format != BUNDLE:
        raise CapbiasError(
            f"--without-data fits --format bundle only, not {format}.", "Leave it out: rows hold no captions."
        )
    wanted, path = expand_metrics(metric or METRICS), checked_output(output)
    if format == BUNDLE and path is None:
        raise CapbiasError("--format bundle needs --output.", "Name a file such as bundle.zip.")
    with opened(workspace) as store:
        runs = current_runs(store, known_collection(store, collection))
        ids = [run.run_id for run in runs]
        if format == BUNDLE and path:
            write_file(write_bundle(store, collection, ids, not without_data, wanted), path)
            return DONE
        if format == "latex":  # a cell has one number
            human = references_read(store, collection)
            runs = runs_against(runs_with(runs, tables_read(store, collection)), human)
        ids = [run.run_id for run in runs]
        frame = with_inputs(store, collection, store.results(ids), runs)
        frame = with_letters(store, frame, comparisons(store, collection), ids)
    frame = ordered(frame, frame["model"].unique(), wanted)
    if frame.empty:
        raise CapbiasError(
            f"The collection {collection} has no such result.", "Score it first, or ask for other metrics."
        )
    write_output(FORMATS[format](frame), path)
    return DONE

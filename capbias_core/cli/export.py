"""`export`: the results of a collection as CSV, LaTeX or JSON."""

from __future__ import annotations

from typing import Annotated

from capbias_core.analysis.read import current_runs
from capbias_core.api import ordered
from capbias_core.cli.flags import ANSWER, INPUTS, WHAT, OutputFlag, WorkspaceFlag, command, flag
from capbias_core.cli.inputs import known_collection, opened
from capbias_core.cli.terminal import DONE, checked_output, write_output
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.measures.registry import METRICS, expand_metrics
from capbias_core.present.table import to_csv, to_json, to_latex

FORMATS = {"csv": to_csv, "latex": to_latex, "json": to_json}

app = command("export", '  capbias export --collection "my captions" --format latex --metric lic --output lic.tex')


@app.default
def export(
    *,
    collection: Annotated[str, flag("the collection", "NAME", INPUTS)],
    workspace: WorkspaceFlag = None,
    metric: Annotated[list[str] | None, flag("only these (default: all)", "NAME", WHAT)] = None,
    format: Annotated[str, flag("(default: csv)", "|".join(FORMATS), ANSWER)] = "csv",
    output: OutputFlag = None,
) -> int:
    """Write the results of a collection's finished runs as CSV, LaTeX or JSON."""
    if format not in FORMATS:
        raise unknown_name("--format", format, FORMATS)
    wanted, path = expand_metrics(metric or METRICS), checked_output(output)
    with opened(workspace) as place:
        runs = current_runs(place, known_collection(place, collection))
        frame = place.results([run.run_id for run in runs])
    frame = ordered(frame, frame["model"].unique(), wanted)
    if frame.empty:
        raise CapbiasError(
            f"no result in the collection {collection}",
            "results of finished runs",
            "Score it first, or ask for others.",
        )
    write_output(FORMATS[format](frame), path)
    return DONE

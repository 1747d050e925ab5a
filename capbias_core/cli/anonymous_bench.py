"""`anonymous-bench`: how often captions of images without identifiable people name a value, as rows of CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pandas as pd

from capbias_core.analysis.anonymous_bench import proxy_alignment, proxy_scores
from capbias_core.analysis.consistency import alignment
from capbias_core.attributes import get_attribute
from capbias_core.cli.flags import INPUTS, OutputFlag, WorkspaceFlag, command, flag
from capbias_core.cli.inputs import opened, own_folder
from capbias_core.cli.rows import write_rows
from capbias_core.cli.terminal import DONE, checked_output, say
from capbias_core.load import CAPTIONS
from capbias_core.load.published import read_human_scores, read_results
from capbias_core.workspace.ingest import read_frame
from capbias_core.workspace.inputs import caption_files
from capbias_core.workspace.limited import within_limits

app = command(
    "anonymous-bench",
    """\
  capbias anonymous-bench --captions nic.json sat.json fc.json --attribute gender --output proxy.csv
  capbias anonymous-bench --captions nic.json sat.json fc.json --attribute gender \\
    --results scores.csv --human people.csv

Captions are of photographs on which the value cannot be seen; they need no labels. human_guess_proxy is the share of
captions that name a value: a proxy for whether people can guess it, not what people said. With --results (as `score`
writes them) proxy_alignment is the Pearson of each metric with the proxy over captioners; with --human, people's scores
(a CSV with the columns model and value), human_alignment is that with people, also of the proxy itself.""",
)


@app.default
def anonymous_bench(
    *,
    captions: Annotated[
        list[str], flag("files of captions, one per captioner; with --collection, names", "FILE", INPUTS)
    ],
    collection: Annotated[str | None, flag("use a workspace's collection, and names for files", "NAME", INPUTS)] = None,
    attribute: Annotated[str, flag("an attribute with words, such as gender, or a TOML file", "NAME", INPUTS)],
    results: Annotated[
        str | None, flag("metrics of the same captioners, as `score` writes them", "FILE", INPUTS)
    ] = None,
    human: Annotated[str | None, flag("human scores: a CSV with the columns model and value", "FILE", INPUTS)] = None,
    workspace: WorkspaceFlag = None,
    output: OutputFlag = None,
) -> int:
    """Measure how often captions of images without identifiable people name a value (AnonymousBench), as CSV."""
    path = checked_output(output)
    sets = _sets(captions, collection, workspace)
    scores = proxy_scores(sets, get_attribute(attribute, own_folder(workspace, of_files=False)))
    measured = [within_limits(Path(results).name, read_results, Path(results))] if results else []
    parts = [scores, *(proxy_alignment(scores, table) for table in measured)]
    if human:
        people = within_limits(Path(human).name, read_human_scores, Path(human))
        parts += [alignment(table, people) for table in (scores, *measured)]
    say("note: human_guess_proxy is a proxy for people's guesses; AnonymousBench asks people.")
    write_rows(pd.concat([part for part in parts if len(part)], ignore_index=True), path)
    return DONE


def _sets(captions: list[str], collection: str | None, folder: str | None) -> dict[str, pd.DataFrame]:
    if collection:
        with opened(folder) as workspace:
            items = [workspace.item("captions", name, collection) for name in captions]
            return {item.name: workspace.frame(item.hash) for item in items}
    files = caption_files(captions)
    return {file.item_name: read_frame(file.source, CAPTIONS) for file in files}

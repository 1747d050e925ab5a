"""`consistency`: how far the numbers of a results table depend on who judges, as rows of CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from capbias_core.analysis.consistency import consistency as consistency_rows
from capbias_core.cli.flags import INPUTS, OutputFlag, command, flag
from capbias_core.cli.rows import write_rows
from capbias_core.cli.terminal import DONE, checked_output, on_terminal, say
from capbias_core.errors import CapbiasError
from capbias_core.load.published import published_results, read_human_scores, read_results
from capbias_core.types import counted
from capbias_core.workspace.limited import within_limits

app = command(
    "consistency",
    """\
  capbias consistency --output published.csv
  capbias consistency --results scores.csv --human people.csv --output scores_consistency.csv

One row per number, in the columns that `score` writes. The column metric is one of:

  cv                    sample standard deviation / |mean| of a captioner's values across encoders
  conflict_score        % of captioners that one of two encoders puts above 0 and the other does not
  clear_conflict_score  % of captioners whose intervals by two encoders lie on different sides of 0
  ranking_consistency   Pearson between two encoders over captioners
  human_alignment       Pearson with the human score over captioners
  mask_correlation      of metrics that see the photographs: Pearson over captioners between two ways of masking them
  mask_difference       of one captioner: the second way of masking minus the first

The column condition is the metric that was judged, such as LIC, and after a semicolon the condition under which it
was measured; encoder names the judges; paper and table are those of the judged rows; n counts encoders (cv) or
captioners; method says what was done, or after `blank:` why there is no value.

Human scores: the rows human_guess of the table itself, or a CSV with the columns model and value. Names are compared
without regard to case and punctuation.""",
)


@app.default
def consistency(
    *,
    results: Annotated[
        str | None, flag("a results table, as `score` writes it (default: the papers' printed figures)", "FILE", INPUTS)
    ] = None,
    human: Annotated[str | None, flag("human scores: a CSV with the columns model and value", "FILE", INPUTS)] = None,
    output: OutputFlag = None,
) -> int:
    """Judge the judges: how far every metric of a results table depends on encoders, as CSV."""
    path = checked_output(output)
    frame = within_limits(Path(results).name, read_results, Path(results)) if results else published_results()
    people = within_limits(Path(human).name, read_human_scores, Path(human)) if human else None
    rows = consistency_rows(frame, people)
    if rows.empty:
        raise CapbiasError(
            "This results table has neither several encoders nor human scores.",
            "Score with two attackers, or add --human.",
        )
    blank = int(rows["value"].isna().sum())
    if blank:
        where = "the column method says why" if path or not on_terminal() else "the CSV says why"
        say(f"note: {counted(blank, 'value')} of {len(rows):,} left blank; {where}")
    write_rows(rows, path, defined=True)
    return DONE

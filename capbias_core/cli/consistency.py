"""`consistency`: how far the numbers of a results table depend on who judges, as rows of CSV."""

from __future__ import annotations

from pathlib import Path

from capbias_core.aggregate.consistency import consistency as consistency_rows
from capbias_core.cli.terminal import DONE, checked_output, say, write_output
from capbias_core.errors import CapbiasError
from capbias_core.load.published import published_results, read_human_scores, read_results
from capbias_core.present.table import counted, to_csv

EXAMPLE = """\
  python -m capbias_core consistency --output published.csv
  python -m capbias_core consistency --results scores.csv --human people.csv --output scores_consistency.csv

One row a number, in the columns that `score` writes. The column metric is one of:
  cv                   sample standard deviation / |mean| of a captioner's values across encoders
  conflict_score       % of captioners that one of two encoders puts above 0 and the other does not
  ranking_consistency  Pearson between two encoders over captioners
  human_alignment      Pearson with the human score over captioners
  mask_correlation     of metrics that see the photographs: Pearson over captioners between two ways of masking them
  mask_difference      of one captioner: the second way of masking minus the first
The column condition is the metric that was judged, such as LIC, and after a semicolon the condition under which it
was measured; encoder names the judges; paper and table are those of the judged rows; n counts encoders (cv) or
captioners; method says what was done, or after `blank:` why there is no value.

Human scores: the rows human_guess of the table itself, or a CSV with the columns model and value. Names are compared
without regard to case and punctuation."""


def consistency(args) -> int:
    """Consistency of every metric of a results table (default: the papers' figures); CSV to --output or stdout."""
    if args.workspace:
        raise CapbiasError("--workspace", "files only: --results and --human", "Export the workspace's results first.")
    output = checked_output(args.output)
    frame = read_results(Path(args.results)) if args.results else published_results()
    human = read_human_scores(Path(args.human)) if args.human else None
    rows = consistency_rows(frame, human)
    if rows.empty:
        raise CapbiasError(
            "a results table without encoders and without human scores",
            "values of a metric that several encoders gave, such as LIC",
            "Score with two attackers, or add --human.",
        )
    blank = int(rows["value"].isna().sum())
    if blank:
        say(f"note: {counted(blank, 'value')} of {len(rows):,} left blank; the column method says why")
    write_output(to_csv(rows), output)
    return DONE


def add_arguments(command) -> None:
    """The options of the command."""
    papers = "the papers' printed figures"
    command.add_argument("--results", metavar="FILE", help=f"a results table, as `score` writes it (default: {papers})")
    command.add_argument("--human", metavar="FILE", help="human scores: a CSV with the columns model and value")
    command.add_argument("--output", metavar="FILE", help="where to write the CSV (default: stdout)")

"""`known-answer`: metrics of the controlled sets C1 to C4 as rows of CSV."""

from __future__ import annotations

from typing import Annotated

from capbias_core.analysis.known_answer import known_answers
from capbias_core.cli.flags import WHAT, OutputFlag, Positive, SeedsFlag, command, drawn, flag
from capbias_core.cli.rows import write_rows
from capbias_core.cli.terminal import DONE, checked_output, say

app = command(
    "known-answer",
    """\
  capbias known-answer --output known.csv

Four sets (the DBAC paper's C1 to C4, made anew and 100 times as large) in which women and men, and objects, are
balanced and independent; only the verbs differ, so that nobody can be right about a masked caption in more than 60, 70,
80 and 90%. One row per set and metric: Q (accuracy of the attacker ngram), LIC (of these captions, x100), BA (b)
and DPA (accuracy). The column method says what each tends to.""",
)


@app.default
def known_answer(
    *,
    times: Annotated[Positive, flag("times as large as in the paper (default: 100)", "N", WHAT)] = 100,
    seeds: SeedsFlag = None,
    output: OutputFlag = None,
) -> int:
    """Measure caption sets whose answer is known: which metrics see a bias that is in the language alone."""
    path = checked_output(output)
    rows = known_answers(times, drawn(seeds), lambda share, name: say(f"{name} ({share:.0%} done)"))
    write_rows(rows, path)
    return DONE

"""`known-answer`: metrics of the controlled sets C1 to C4 as rows of CSV."""

from __future__ import annotations

from capbias_core.analysis.known_answer import known_answers
from capbias_core.cli.terminal import DONE, checked_output, say, write_output
from capbias_core.errors import CapbiasError
from capbias_core.present.table import to_csv

EXAMPLE = """\
  python -m capbias_core known-answer --output known.csv

Four sets (the DBAC paper's C1 to C4, made anew and 100 times as large) in which women and men, and objects, are
balanced and independent; only the verbs differ, so that nobody can be right about a masked caption in more than 60, 70,
80 and 90%. One row a set and metric: Q (accuracy of the attacker ngram), LIC (of these captions, x100), BA (b)
and DPA (accuracy). The column method says what each tends to."""


def known_answer(args) -> int:
    """Metrics of C1 to C4; CSV to --output or stdout."""
    if args.workspace:
        raise CapbiasError("--workspace", "no workspace: the sets are made", "Leave --workspace out.")
    output = checked_output(args.output)
    rows = known_answers(args.times, args.seeds, lambda share, name: say(f"{name} ({share:.0%} done)"))
    write_output(to_csv(rows), output)
    return DONE

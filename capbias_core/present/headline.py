"""The answer of result rows that a workspace holds: of the captioner that is shown to amplify most."""

from __future__ import annotations

import pandas as pd

from capbias_core.aggregate.estimate import AMPLIFIES
from capbias_core.analysis.read import attribute_of_run
from capbias_core.attackers import attacker_entry
from capbias_core.present.sentence import Answer, answer
from capbias_core.workspace.store import Workspace

# The metrics that answer, and by which captioners are ranked, the first that is there.
ANSWERING = ("LIC", "LIC_M")


def first_to_answer(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of one metric, a captioner each, in the order in which they answer: those shown to amplify, then the
    others, each from the highest lower end of its interval: a high value of few images answers nothing."""
    surely = rows["ci_low"].astype(float).fillna(rows["value"])
    return (
        rows.assign(shown=rows["verdict"] == AMPLIFIES, surely=surely)
        .sort_values(["shown", "surely"], ascending=False, kind="stable")
        .drop(columns="surely")
    )


def headline(workspace: Workspace, collection: str, rows: pd.DataFrame) -> Answer | None:
    """The answer for the captioner that answers first by LIC (LIC_M without references); None without either."""
    metric = next((name for name in ANSWERING if name in set(rows["metric"])), None)
    if metric is None:
        return None
    highest = first_to_answer(rows[rows["metric"] == metric]).iloc[0]
    own, run_id = rows[rows["run_id"] == highest["run_id"]], highest["run_id"]
    trained = workspace.item("captions", highest["model"], collection).details.get("trained_on_references")
    run = workspace.runs_of([run_id])[run_id]
    entry = attacker_entry(highest["encoder"])
    return answer(own, run.spec.model, attribute_of_run(run), entry, trained)

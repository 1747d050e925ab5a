"""Runs of the family 'vocabulary': how many different words a caption set has."""

from __future__ import annotations

from capbias_core.aggregate import Estimate
from capbias_core.measures.base import Job, Outcome
from capbias_core.metrics import METRICS
from capbias_core.metrics.vocabulary import vocabulary
from capbias_core.types import Result
from capbias_core.workspace.store import RunRow, Workspace


def run(job: Job) -> Outcome:
    """Words of the captions of labelled images."""
    captions = job.frame["caption"]
    result = Result(
        attribute=job.attribute.name,
        model=job.spec.model,
        metric="vocabulary",
        value=float(vocabulary(captions)),
        scale=METRICS["vocabulary"].scale,
        n=len(captions),
        method="different words of the captions of labelled images; a count, without an interval",
    )
    return Outcome([result], {}, ())


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """None: a count of a whole set is no function of sums over images, so captioners are not ranked by it."""
    return {}

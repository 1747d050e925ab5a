"""Refusals: captions that say that the image cannot be described, by group."""

from __future__ import annotations

from capbias_core.aggregate import Counts
from capbias_core.measures.base import LOWER_SHARE, Job, Measure, Metric, Outcome, group_of, with_gaps
from capbias_core.prepare.refusals import refusals

_SOURCE = "capbias 2026, docs/metrics.md"
SHOWN = 60  # characters of a refusal in a note

METRICS = with_gaps(
    Metric(
        "refused",
        "refusals, by group",
        *LOWER_SHARE,
        _SOURCE,
        "Captions that refuse to describe the image, such as “I'm sorry, but I can't help with identifying people”,"
        " of all captions. A caption that describes the image after such a sentence is none. A gap says that the "
        "model refuses one group more often than another.",
        reads=("refused", "captions"),
    ),
    source=_SOURCE,
)


def run(job: Job) -> Outcome:
    """Which captions of labelled images are refusals."""
    captions = job.frame["caption"].to_numpy(dtype=object)
    refused = refusals(captions)
    counts = Counts.of_captions(job.frame["image_id"], job.codes, {"refused": refused})
    notes = []
    if refused.any():
        example = " ".join(captions[refused.argmax()].split())[:SHOWN]
        notes = [f"{refused.sum():,} of {len(refused):,} captions are refusals, such as “{example}”."]
    return job.outcome(METRICS, counts, "refusals by their wording", notes)


MEASURE = Measure(
    name="refusals",
    title="refusals",
    place=2,
    metrics=METRICS,
    groups=(group_of("refused", "refusals by group", METRICS, default=True),),
    version=2,
    run=run,
)

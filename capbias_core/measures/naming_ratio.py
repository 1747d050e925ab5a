"""How often captions name a value, for each human caption of the same images that does."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, hstack

from capbias_core.aggregate import Estimate
from capbias_core.aggregate.columns import Statistic
from capbias_core.attributes import need_words
from capbias_core.measures.base import Group, Job, Measure, Metric, Needs, Outcome
from capbias_core.measures.caption_side import CaptionSide, both_sides, of_no_value
from capbias_core.measures.gender_score_common import (
    PAPER,
    WITHOUT_LIMIT,
    Label,
    Statistics,
    Sums,
    outcome_estimates,
    set_rows,
    sums_bytes,
)
from capbias_core.metrics.naming_ratio import naming_ratio
from capbias_core.types import Attribute
from capbias_core.workspace.store import RunRow, Workspace

METHOD = (
    "captions that name the value and no other, an image's captions together counting once; 95% image bootstrap, 1000 "
    "draws"
)

METRIC = Metric(
    "naming_ratio",
    "captions naming a value, over the human ones",
    1,
    lambda k: 1.0,
    "neutral",
    WITHOUT_LIMIT,
    f"{PAPER}, Table 3",
    "Captions that name the value, for each human caption of the same images that does. The paper calls it leakage; "
    "here leakage is an attacker's accuracy.",
)


def run(job: Job) -> Outcome:
    """Shares of each image's captions that name each value, on the images that both sides have."""
    need_words(job.attribute)
    sides = both_sides(job)
    images, whole = sides[0].images, csr_array(hstack([_shares(side) for side in sides]))
    none = np.zeros(0, dtype=int)
    sums = Sums(tuple(images), (), whole, whole[:, []], _statistics(job.attribute), len(images), none)
    return Outcome(
        set_rows(sums, Label.of(job, METHOD)),
        {"sums": sums_bytes(sums)},
        tuple(filter(None, [of_no_value(*sides[::-1]).strip()])),
    )


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The ratios again, by metric and direction."""
    return outcome_estimates(workspace, run, _statistics)


def _shares(side: CaptionSide) -> csr_array:
    """(n_images, K): the share of each image's captions that name only this value."""
    of_image = np.bincount(side.image, minlength=len(side.images))[side.image]
    row, value = np.nonzero((side.values.toarray() > 0) & side.only_one[:, None])
    return csr_array((1 / of_image[row], (side.image[row], value)), shape=(len(side.images), side.k))


def _statistics(attribute: Attribute) -> Statistics:
    k = len(attribute.values)
    return {
        (METRIC.name, value): Statistic(lambda sums, place=place: naming_ratio(sums[..., place], sums[..., k + place]))
        for place, value in enumerate(attribute.values)
    }


MEASURE = Measure(
    name="naming_ratio",
    title="values named, over the human captions",
    place=10,
    metrics=(METRIC,),
    groups=(Group("naming", "values named, over the human captions", (METRIC.name,)),),
    needs=Needs(references="required", words="any"),
    run=run,
    estimates=estimates,
)

"""How often captions name a value, for each human caption of the same images that does."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack

from capbias_core.aggregate import Estimate
from capbias_core.aggregate.columns import Statistic
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Group, Job, Measure, Metric, Needs, Outcome, of_images
from capbias_core.measures.cost import per_image
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
from capbias_core.prepare.tasks import encode
from capbias_core.types import Attribute
from capbias_core.workspace.store import RunRow, Workspace, images_in

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
    if not job.attribute.words:
        raise CapbiasError(
            f"{job.attribute.name}, which has no words", "an attribute that captions name", "Leave naming out for it."
        )
    human = job.references()
    images = sorted(images_in(job.frame) & images_in(human))
    whole = csr_array(hstack([_shares(frame, images, job.attribute) for frame in (job.frame, human)]))
    none = np.zeros(0, dtype=int)
    sums = Sums(tuple(images), (), whole, whole[:, []], _statistics(job.attribute), len(images), none)
    return Outcome(set_rows(sums, Label.of(job, METHOD)), {"sums": sums_bytes(sums)}, ())


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The ratios again, by metric and direction."""
    return outcome_estimates(workspace, run, _statistics)


def _shares(frame: pd.DataFrame, images: list[str], attribute: Attribute) -> csr_array:
    """(n_images, K): the share of each image's captions that name only this value."""
    frame = of_images(frame, images)
    named = encode(frame["caption"]).with_any([attribute.words[value] for value in attribute.values]).toarray() > 0
    only = named & (named.sum(axis=1, keepdims=True) == 1)
    image = pd.Index(images).get_indexer(frame["image_id"])
    of_image = np.bincount(image, minlength=len(images))[image]
    row, value = np.nonzero(only)
    return csr_array((1 / of_image[row], (image[row], value)), shape=(len(images), len(attribute.values)))


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
    cost=per_image(1.0),
    run=run,
    estimates=estimates,
)

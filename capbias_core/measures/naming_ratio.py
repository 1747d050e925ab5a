"""How often captions name a value, for each human caption of the same images that does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from capbias_core.aggregate import Counts
from capbias_core.attributes import need_words
from capbias_core.measures.base import Job, Measure, Metric, Needs, Outcome, group_of
from capbias_core.measures.caption_side import CaptionSide, both_sides, of_no_value
from capbias_core.measures.gender_score_common import FEWEST, PAPER, WITHOUT_LIMIT
from capbias_core.metrics.naming import naming_ratio

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
    reads=("model", "human"),
    of=naming_ratio,
    by_value=True,
)


def run(job: Job) -> Outcome:
    """Shares of each image's captions that name each value, on the images that both sides have."""
    need_words(job.attribute)
    sides = both_sides(job)
    model, human = (_shares(side) for side in sides)
    counts, images = Counts.by_image(sides[0].images, sides[0].y, {"model": model, "human": human}), sides[0].images
    method = "captions that name the value and no other, an image's captions together counting once"
    few = f"fewer than {FEWEST} images" if len(images) < FEWEST else ""
    rows = job.rows([replace(METRIC, no_interval=few)], counts, method, n=len(images))
    notes = tuple(filter(None, [of_no_value(*sides[::-1]).strip()]))
    return Outcome(rows, {}, notes, counts={"": counts})


def _shares(side: CaptionSide) -> csr_array:
    """(n_images, K): the share of each image's captions that name only this value."""
    of_image = np.bincount(side.image, minlength=len(side.images))[side.image]
    row, value = np.nonzero((side.values.toarray() > 0) & side.only_one[:, None])
    return csr_array((1 / of_image[row], (side.image[row], value)), shape=(len(side.images), side.k))


MEASURE = Measure(
    name="naming_ratio",
    title="values named, over the human captions",
    place=10,
    metrics=(METRIC,),
    groups=(group_of("naming", "values named, over the human captions", [METRIC]),),
    needs=Needs(references="required", words="any"),
    version=2,
    run=run,
)

"""DBAC with verbs as task words: what people do on an image, in the place of the objects on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from capbias_core.errors import NotMeasurable
from capbias_core.measures.base import Group, Measure, Needs, by_name
from capbias_core.measures.caption_side import CaptionSide
from capbias_core.measures.dbac import DBAC, DBACOptions, OfImages, amplification, beside_constant, on_images, weights
from capbias_core.measures.image_objects import LEAST_SHARE
from capbias_core.prepare.tasks import mask_verbs, named_verbs

NAME, CONSTANT, ADDED = "DBAC_verbs", "DBAC_verbs_constant", "DBAC_verbs_added"
TITLE = "DBAC of verbs"

METRICS = by_name(
    amplification(
        NAME,
        f"{TITLE}, its equations, Q = 1 / cross-entropy",
        "The paper's equations with the verbs of captions as task words: above 0, the model's captions tie value and "
        "verbs together more than the human ones do.",
        "DBAC_equations",
    ),
    *weights(NAME, TITLE, "DBAC_equations"),
    *beside_constant(CONSTANT, ADDED, TITLE, "DBAC_equations"),
)


@dataclass(frozen=True)
class Verbs:
    """Verbs as task words, whatever their form. left_out: words that name the attribute."""

    left_out: frozenset[str]

    def known(self, images: list[str]) -> list[str]:
        return images

    def of_captions(self, sides: Sequence[CaptionSide], who: Sequence[str]) -> tuple[list[csr_array], str]:
        names, _, _, which = self.of_images(sides)
        own = [self._of_captions(side, names) for side in sides]
        for named, whose in zip(own, who, strict=True):
            if not named.sum():
                raise NotMeasurable(
                    f"The captions of {whose} have none of the verbs that the human captions have, such as "
                    f"{', '.join(names[:3])}.",
                    "Check that they are in English.",
                )
        return own, which

    def patterns(self, side: CaptionSide) -> csr_array:
        return named_verbs(side.encoded, self.left_out)[1]

    def of_images(self, sides: Sequence[CaptionSide]) -> OfImages:
        human = sides[1]
        every, named = named_verbs(human.encoded, self.left_out)
        there = on_images(human, named)
        kept = np.flatnonzero(there.sum(axis=0) >= max(1, LEAST_SHARE * len(human.images)))
        if not len(kept):
            raise NotMeasurable(
                f"The human captions have no verb on {LEAST_SHARE:.0%} of the {len(human.images):,} images or more.",
                "Check that they are in English.",
            )
        which = f"{len(kept)} verbs that the human captions of {LEAST_SHARE:.0%} of the images or more have"
        hide = partial(mask_verbs, left_out=self.left_out)
        return OfImages([every[place] for place in kept], csr_array(there[:, kept]), hide, which)

    def _of_captions(self, side: CaptionSide, names: Sequence[str]) -> csr_array:
        """(n, len(names)) booleans: the caption has the verb."""
        every, named = named_verbs(side.encoded, self.left_out)
        place = pd.Index(every).get_indexer(pd.Index(names))
        having = np.flatnonzero(place >= 0)
        of_name = csr_array((np.ones(len(having)), (place[having], having)), (len(every), len(names)))
        return csr_array(named @ of_name)


VERBS = DBAC(TITLE, METRICS, lambda job: Verbs(job.attribute.masked_words))

MEASURE = Measure(
    name="dbac_verbs",
    title=TITLE,
    place=4,
    metrics=tuple(METRICS.values()),
    groups=(Group("dbac_verbs", TITLE, tuple(METRICS)),),
    options=DBACOptions,
    needs=Needs(references="required"),
    version=4,
    seconds=0.6,
    run=VERBS.run,
)

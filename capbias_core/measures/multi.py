"""Multi->: objects and pairs of objects beside values, human captions against the model's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array, hstack, triu

from capbias_core.aggregate import Counts
from capbias_core.attributes import need_words
from capbias_core.errors import NotMeasurable
from capbias_core.measures.base import Group, Job, Measure, Metric, Needs, Outcome, run_available, zero
from capbias_core.measures.caption_side import (
    CaptionSide,
    both_sides,
    comparing,
    cooccurrence,
    least_captions,
    of_no_value,
)
from capbias_core.measures.image_objects import annotated, objects_of
from capbias_core.metrics.cooccurrence import mean_change, variance_of_change
from capbias_core.prepare.tasks import object_names
from capbias_core.types import A_TO_T, T_TO_A, left_out_lines

FEWEST = 5

METRICS = (
    Metric(
        "Multi",
        "Multi, change of combinations of objects",
        100,
        zero,
        "lower",
        (0, 100),
        "Zhao et al., ICML 2023 (Multi->), Eq. 3-4",
        "Mean size of the change from the human captions, over values and objects or pairs of objects. It does not "
        "tell more bias from less, and chance alone keeps it above 0.",
        digits=2,
        **comparing("human", "model", mean_change, directed=True),
    ),
    Metric(
        "Multi_variance",
        "Multi_variance, whether few pairs carry the change",
        10_000,
        zero,
        "lower",
        (0, 10_000),
        "Zhao et al., ICML 2023 (Multi->)",
        "Variance of the changes, each with its sign: high where few values and objects carry them.",
        digits=2,
        no_interval="a bootstrap adds noise to a variance",
        **comparing("human", "model", variance_of_change, directed=True),
    ),
)


def run(job: Job) -> Outcome:
    """Counts of both sides on the images that both have, in each direction that the inputs allow."""
    sides = both_sides(job)[::-1]
    found, notes, reasons = run_available(
        {A_TO_T: lambda: _named(sides), T_TO_A: lambda: _annotated(sides, job)}, "Multi "
    )
    method, rows, counts = "objects and pairs of objects; captions of the images that both sides have", [], {}
    for direction, (human, model) in found.items():
        counts[direction] = Counts.by_image(sides[0].images, sides[0].y, {"human": human, "model": model})
        rows += job.rows(METRICS, counts[direction], method, direction, int(model[:, 0].sum()))
    return Outcome(rows, {}, (*notes, *left_out_lines(reasons)), counts=counts)


def _least(sides: Sequence[CaptionSide]) -> int:
    """In how many human captions a combination must stand. Of rarer ones, draws of a bootstrap often have none."""
    return max(FEWEST, least_captions(sides[0]))


def _note(names: list[str], least: int) -> str:
    pairs = sum(" + " in name for name in names)
    return (
        f"{len(names) - pairs} objects and {pairs} pairs of objects, in {least} human captions or more. Chance alone "
        "keeps Multi above 0; how far depends on the number of captions, so compare captioners on the same images only."
    )


def _named(sides: Sequence[CaptionSide]) -> tuple[tuple[csr_array, csr_array], str]:
    """A->T: labelled values, and objects that captions name."""
    names, combined = combinations(list(object_names()), [side.objects for side in sides], _least(sides))
    found = cooccurrence(sides, lambda side: (side.labelled, combined[sides.index(side)], slice(None)))
    return found, _note(names, _least(sides))


def _annotated(sides: Sequence[CaptionSide], job: Job) -> tuple[tuple[csr_array, csr_array], str]:
    """T->A: objects on images, and values that captions name."""
    objects = job.objects()
    need_words(job.attribute)
    if objects is None:
        raise NotMeasurable("The objects of the images are not known.", "Load them.", "objects")
    images = sides[0].images
    table, on_image = objects_of(images, objects)
    names, combined = combinations(table, [on_image[side.image] for side in sides], _least(sides))
    known = annotated(images, objects)

    def read(side: CaptionSide) -> tuple[csr_array, csr_array, np.ndarray]:
        return side.values, combined[sides.index(side)], side.only_one & known[side.image]

    found = cooccurrence(sides, read)
    return found, _note(names, _least(sides)) + of_no_value(*sides)


def combinations(names: list[str], sides: list[csr_array], least: int) -> tuple[list[str], list[csr_array]]:
    """Objects and pairs of objects that stand in `least` captions of the first side or more.

    sides: (n, L) booleans each. Returns the names, a pair's joined by ` + `, and (n, M) booleans for each side.
    """
    counts = (sides[0].T @ sides[0]).toarray()
    single = np.flatnonzero(counts.diagonal() >= least)
    first, second = np.nonzero(triu(counts, k=1).toarray() >= least)
    if not len(single):
        raise NotMeasurable(
            f"No object goes with {least} human captions or more.",
            "Load more human captions, or objects of these images.",
        )
    found = [names[place] for place in single]
    found += [f"{names[one]} + {names[other]}" for one, other in zip(first, second, strict=True)]
    return found, [csr_array(hstack([own[:, single], own[:, first].multiply(own[:, second])])) for own in sides]


MEASURE = Measure(
    name="multi",
    title="Multi",
    place=6,
    metrics=METRICS,
    groups=(Group("multi", "Multi", ("Multi", "Multi_variance")),),
    needs=Needs(references="required", objects="optional"),
    version=3,
    run=run,
)

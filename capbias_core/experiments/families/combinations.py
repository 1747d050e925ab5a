"""Runs of the family 'combinations': Multi->, objects and pairs of objects beside values."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack, triu

from capbias_core.aggregate import Estimate, comparison
from capbias_core.errors import CapbiasError
from capbias_core.experiments.families.base import Job, Outcome
from capbias_core.experiments.families.cooccurrence import (
    Side,
    annotated,
    cooccurrence_bytes,
    cooccurrence_from,
    counts_of,
    least_captions,
    objects_of,
    one_hot,
)
from capbias_core.experiments.store import RunRow, Workspace
from capbias_core.metrics import METRICS, Cooccurrence
from capbias_core.metrics.multi_attribute import (
    combination_to_value,
    value_to_combination,
    variance_of_combinations,
    variance_of_values,
)
from capbias_core.prepare.tasks import named_objects, object_names

A_TO_T, T_TO_A = "A->T", "T->A"
READ = {
    A_TO_T: {"Multi": value_to_combination, "Multi_variance": variance_of_values},
    T_TO_A: {"Multi": combination_to_value, "Multi_variance": variance_of_combinations},
}


def run(job: Job) -> Outcome:
    """Counts of both sides on the images that both have, in each direction that the inputs allow."""
    human = job.references()
    images = sorted(set(human["image_id"].unique()) & set(job.frame["image_id"].unique()))
    sides = [Side(frame, images, job.attribute) for frame in (human, job.frame)]
    evidence = {A_TO_T: _named(sides, images, job)}
    notes = []
    if job.attribute.words and job.objects() is not None:
        evidence[T_TO_A] = _annotated(sides, images, job.objects())
    else:
        lacking = "words that captions could name" if not job.attribute.words else "objects of the images"
        notes.append(f"Multi T->A left out: there are no {lacking}.")
    method = (
        "objects and pairs of objects; captions of the images that both sides have; 95% image bootstrap, 1000 draws"
    )
    results = []
    for direction, own in evidence.items():
        pairs = sum(" + " in name for name in own.tasks)
        notes.append(
            f"Multi {direction}: {len(own.tasks) - pairs} objects and {pairs} pairs of objects, in "
            f"{least_captions(sides[0])} human captions or more. Chance alone keeps Multi above 0."
        )
        for (name, way), found in _estimates(direction, own).items():
            # Draws of a bootstrap add their own noise to a variance, so it gets no interval.
            interval = (None, None) if name == "Multi_variance" else None
            results.append(job.result(name, found, int(own.model[:, 0].sum()), method, way, interval))
    arrays = {direction: cooccurrence_bytes(own) for direction, own in evidence.items()}
    return Outcome(results, arrays, tuple(notes))


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again from its counts, by metric and direction."""
    found = {}
    for direction in workspace.results([run.run_id])["direction"].unique():
        found |= _estimates(direction, cooccurrence_from(workspace.array(run.run_id, direction)))
    return found


def _estimates(direction: str, evidence: Cooccurrence) -> dict[tuple[str, str], Estimate]:
    return {
        (name, direction): comparison(compare, evidence, METRICS[name].scale)
        for name, compare in READ[direction].items()
    }


def _named(sides: list[Side], images: list[str], job: Job) -> Cooccurrence:
    """A->T: labelled values, and objects that captions name."""
    table = object_names()
    label = one_hot(job.codes(images), len(job.attribute.values))
    named = [named_objects(side.encoded, table) for side in sides]
    names, combined = combinations(list(table), named, least_captions(sides[0]))
    return counts_of(sides, images, names, lambda side: (label[side.image], combined[sides.index(side)], slice(None)))


def _annotated(sides: list[Side], images: list[str], objects: pd.Series) -> Cooccurrence:
    """T->A: objects on images, and values that captions name."""
    table, on_image = objects_of(images, objects)
    tasks = [on_image[side.image] for side in sides]
    names, combined = combinations(table, tasks, least_captions(sides[0]))
    known = annotated(images, objects)

    def read(side: Side):
        values, task, kept = side.named(combined[sides.index(side)])
        return values, task, kept & known[side.image]

    return counts_of(sides, images, names, read)


def combinations(names: list[str], sides: list[csr_array], least: int) -> tuple[list[str], list[csr_array]]:
    """Objects and pairs of objects that stand in `least` captions of the first side or more.

    sides: (n, L) booleans each. Returns the names, a pair's joined by ` + `, and (n, M) booleans for each side.
    """
    counts = (sides[0].T @ sides[0]).toarray()
    single = np.flatnonzero(counts.diagonal() >= least)
    first, second = np.nonzero(triu(counts, k=1).toarray() >= least)
    if not len(single):
        raise CapbiasError(
            f"human captions in which no object stands {least} times",
            "captions or images with objects that are named there more often",
            "Load more references, or objects of these images.",
        )
    found = [names[place] for place in single]
    found += [f"{names[one]} + {names[other]}" for one, other in zip(first, second, strict=True)]
    return found, [csr_array(hstack([own[:, single], own[:, first].multiply(own[:, second])])) for own in sides]

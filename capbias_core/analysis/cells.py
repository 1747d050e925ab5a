"""Whose captions give most away: an attacker's scores by the labelled value, and what crossing two attributes adds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from capbias_core.aggregate import Estimate, estimate
from capbias_core.aggregate.refits import OF_LEVEL, refit_interval
from capbias_core.analysis.read import current_runs, references_read, runs_against, runs_with, tables_read
from capbias_core.measures.held_out import accuracy, confidence_where_right, held_out_from
from capbias_core.metrics.evidence import HeldOut, Ratio
from capbias_core.prepare.cross import parts_of
from capbias_core.types import WITHIN
from capbias_core.workspace.store import Item, RunRow, Workspace

SCALE = 100.0


@dataclass(frozen=True)
class Beyond:
    """Of a crossed attribute, from the guesses of one attacker. right: % of captions whose cell it names. parts: for
    each of the two attributes, its name and % of captions whose value it names by the same guesses, summed over the
    other attribute. beyond: right minus the product of both parts, which is what two independent guesses give; points,
    with its 95% interval with refits, None of a single attacker."""

    right: Estimate
    parts: tuple[tuple[str, Estimate], ...]
    beyond: float
    interval: tuple[float, float] | tuple[None, None]


def by_value(workspace: Workspace, run: RunRow) -> dict[str, Estimate]:
    """LIC_M on the captions of each labelled value of a finished LIC run: mean confidence of the attacker where it is
    right, 0 where it is wrong, x100, with refits. Higher gives more away."""
    evidence = _model(workspace, run)
    whole = confidence_where_right(evidence)
    return {
        value: estimate(_of(whole, evidence.label == place), evidence, SCALE, (0, SCALE))
        for place, value in enumerate(run.spec.attribute["values"])
    }


def beyond_parts(workspace: Workspace, run: RunRow) -> Beyond | None:
    """What naming the cell takes beyond naming each attribute.

    None where the attribute is not a crossed one, and where cells are left out: guesses that tell nothing then name a
    part more often than independent ones would, and the cell seems to be told less than both.
    """
    names, pairs = parts_of(run.spec.attribute["name"]), _pairs(run.spec.attribute["values"])
    if names is None or not pairs or cells_left_out(run):
        return None
    evidence = _model(workspace, run)
    parts = tuple(
        (name, estimate(accuracy(_summed(evidence, [pair[place] for pair in pairs])), evidence, SCALE, (0, SCALE)))
        for place, name in enumerate(names)
    )
    right = estimate(accuracy(evidence), evidence, SCALE, (0, SCALE))
    beyond = right.seed_values - parts[0][1].seed_values * parts[1][1].seed_values / SCALE
    interval = (None, None)
    if right.refits is not None and len(beyond) > 1:
        interval = refit_interval(beyond, right.refits.test_over_train, OF_LEVEL, (-SCALE, SCALE))
    return Beyond(right, parts, float(beyond.mean()), interval)


def cells_left_out(run: RunRow) -> int:
    """How many combinations of two crossed attributes are no cell of a run; 0 for an attribute that is not crossed."""
    pairs = _pairs(run.spec.attribute["values"])
    if parts_of(run.spec.attribute["name"]) is None or not pairs:
        return 0
    return len({one for one, _ in pairs}) * len({other for _, other in pairs}) - len(pairs)


def _pairs(values: Iterable[str]) -> list[tuple[str, str]]:
    """Each cell as the values that it is of; [] where one is not of two."""
    found = [tuple(value.split(WITHIN)) for value in values]
    return [(own[0], own[1]) for own in found] if all(len(own) == 2 for own in found) else []


def _model(workspace: Workspace, run: RunRow) -> HeldOut:
    return held_out_from(workspace.array(run.run_id, "model"))


def _of(ratio: Ratio, kept: np.ndarray) -> Ratio:
    return Ratio(ratio.numerator * kept, ratio.denominator * kept)


def _summed(evidence: HeldOut, side: list[str]) -> HeldOut:
    """The same guesses of one attribute alone: probabilities summed over its cells. side: its value in each cell."""
    own = list(dict.fromkeys(side))
    place = np.array([own.index(value) for value in side])
    summed = np.stack([evidence.probabilities[:, place == value].sum(axis=1) for value in range(len(own))], axis=1)
    return HeldOut(evidence.images, evidence.seed, evidence.image, place[evidence.label], summed, evidence.training)


def runs_by_value(
    workspace: Workspace, collection: str, attribute: str, attacker: str, references: Item | None = None
) -> dict[str, RunRow]:
    """The runs of LIC of an attribute by one attacker and the labels of `tables_read`, as `by_captioner` chooses.

    references: the human captions that they compare with, if with any (default: as `references_read` says).
    """
    labels = {name: table for name, table in tables_read(workspace, collection).items() if name == attribute}
    human = {attribute: references} if references else references_read(workspace, collection)
    runs = runs_against(runs_with(current_runs(workspace, collection, "lic"), labels), human)
    return by_captioner(run for run in runs if run.spec.attacker == attacker)


def by_captioner(runs: Iterable[RunRow]) -> dict[str, RunRow]:
    """Captioner -> its newest run; where it was measured on all images and on those with references, of the latter.
    Runs on the images that another captioner has too do not count."""
    ordered = sorted(runs, key=lambda run: (bool(run.spec.references), run.created))
    return {run.spec.model: run for run in ordered if not run.spec.shared_with}

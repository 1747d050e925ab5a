"""Whose captions give most away: an attacker's scores by the labelled value, and what crossing two attributes adds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from capbias_core.aggregate import Counts, Estimate
from capbias_core.aggregate.resampling import OF_LEVEL, refit_interval
from capbias_core.analysis.read import current_runs, references_read, runs_against, runs_with, tables_read
from capbias_core.measures.base import counts_of
from capbias_core.metrics.share import share
from capbias_core.prepare.labels import cells_of, parts_of
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
    counts = counts_of(workspace, run)[""]
    return {
        value: _share(counts, "sure", counts.label[counts.image] == place)
        for place, value in enumerate(run.spec.attribute["values"])
    }


def beyond_parts(workspace: Workspace, run: RunRow) -> Beyond | None:
    """What naming the cell takes beyond naming each attribute.

    None where the attribute is not a crossed one, and where cells are left out: guesses that tell nothing then name a
    part more often than independent ones would, and the cell seems to be told less than both.
    """
    names, pairs = parts_of(run.spec.attribute["name"]), cells_of(run.spec.attribute["values"])
    if names is None or not pairs or cells_left_out(run):
        return None
    counts = counts_of(workspace, run)[""]
    parts = tuple((name, _share(counts, f"right {name}")) for name in names)
    right = _share(counts, "right")
    beyond = right.seed_values - parts[0][1].seed_values * parts[1][1].seed_values / SCALE
    interval = (None, None)
    if right.refits is not None and len(beyond) > 1:
        interval = refit_interval(beyond, right.refits.test_over_train, OF_LEVEL, (-SCALE, SCALE))
    return Beyond(right, parts, float(beyond.mean()), interval)


def cells_left_out(run: RunRow) -> int:
    """How many combinations of two crossed attributes are no cell of a run; 0 for an attribute that is not crossed."""
    pairs = cells_of(run.spec.attribute["values"])
    if parts_of(run.spec.attribute["name"]) is None or not pairs:
        return 0
    return len({one for one, _ in pairs}) * len({other for _, other in pairs}) - len(pairs)


def _share(counts: Counts, column: str, kept: np.ndarray | float = 1.0) -> Estimate:
    """A column of the model's captions over captions, x100. kept: (rows,) booleans, the rows that count."""
    columns = {name: counts.columns[name] * kept for name in (f"model {column}", "model captions")}
    return Estimate.read(replace(counts, columns=columns), share, SCALE, (0, SCALE), share=True)


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

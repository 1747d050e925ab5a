"""Which metrics see a bias that is in the language alone: measured on sets whose answer is known."""

from __future__ import annotations

import tempfile

import numpy as np
import pandas as pd

from capbias_core.aggregate import Estimate, estimate
from capbias_core.attackers.labels import guess_labels
from capbias_core.attributes import get_attribute
from capbias_core.experiments.families.base import Progress
from capbias_core.experiments.families.counting import naming
from capbias_core.experiments.plan import Request, plan, suggested_details
from capbias_core.experiments.run import run_one
from capbias_core.experiments.store import Workspace
from capbias_core.load.known_answer import IMBALANCE, SUBSETS, KnownSet, known_set
from capbias_core.metrics import HeldOut, Parts
from capbias_core.prepare import image_split
from capbias_core.types import RESULT_COLUMNS, Result

ATTRIBUTE = "gender"
TEST_SHARE = 0.2
SEES = {"Q": True, "LIC": True, "DBAC_H": True, "BA": False, "DPA": False}


def known_truth(name: str, metric: str) -> float:
    """What the metric tends to on the set: of the best possible attacker, and with value and object independent."""
    share, objects = IMBALANCE[name] / 50, len(SUBSETS)
    return {"Q": share, "LIC": 100 * share**2, "DBAC_H": share * 2 / objects, "BA": 0.5, "DPA": 1 - 1 / objects}[metric]


def known_answers(times: int = 100, seeds: int = 10, progress: Progress | None = None) -> pd.DataFrame:
    """Result rows of C1 to C4, one a metric: Q, LIC and w (DBAC_H) of the captions, b of BA, quality of DPA.

    times: how much larger than in the paper. progress: told the share that is done.
    """
    rows = []
    for place, name in enumerate(IMBALANCE):
        if progress:
            progress(place / len(IMBALANCE), name)
        rows += _answers(name, known_set(name, times), seeds)
    return pd.DataFrame([row.row() for row in rows], columns=list(RESULT_COLUMNS))


def kept_answers(workspace: Workspace, compute: bool) -> pd.DataFrame | None:
    """`known_answers` as kept in the workspace; computed where they are not, or None."""
    key = "known answers"
    if not compute and not workspace.has_derived(key):
        return None
    return pd.DataFrame(workspace.derived(key, lambda: known_answers().to_dict("records")))


def _answers(name: str, own: KnownSet, seeds: int) -> list[Result]:
    attacked = _attacked(name, own, seeds)
    objects = len(SUBSETS)
    best = f"the best possible attacker's is {known_truth(name, 'Q'):.1f}"
    chance = f"chance of its encoding, {objects} objects there or not, is {1 - 1 / objects:.3f}"
    return [
        _scaled(attacked["SC"], "Q", 0.01, f"share of captions whose value the attacker names; {best}"),
        _scaled(
            attacked["LIC_M"], "LIC", 1, f"LIC of these captions; of the best attacker {known_truth(name, 'LIC'):.0f}"
        ),
        _scaled(
            attacked["SC"], "DBAC_H", 0.02 / objects, f"w: Q * P(t) / P(a), P(t) = 1/{objects} and P(a) = 1/2", "A->T"
        ),
        _labelled(name, "BA", _share_of_men(own), "b: share of captions naming a man, by object; 0.5 is independent"),
        _labelled(name, "DPA", _objects_guessed(own, seeds), f"share of labels guessed from the value; {chance}"),
    ]


def _attacked(name: str, own: KnownSet, seeds: int) -> dict[str, Result]:
    """LIC_M and SC by the runs that everything else uses, in a workspace that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="capbias-") as folder:
        workspace = Workspace(folder)
        details = {"attributes": {ATTRIBUTE: suggested_details(ATTRIBUTE, own.labels)}}
        workspace.keep("attributes", "labels", own.labels, "known", "made", details)
        workspace.keep("captions", name, own.captions, "known", "made")
        request = Request("known", (name,), "labels", ATTRIBUTE, ("LIC_M", "SC"), seeds=seeds)
        (spec,) = plan(workspace, request)
        return {row.metric: row for row in run_one(workspace, spec, lambda share, text: None).results}


def _scaled(row: Result, metric: str, factor: float, method: str, direction: str = "") -> Result:
    """An attack's row under the name that it has here."""
    numbers = {key: getattr(row, key) for key in ("value", "spread", "ci_low", "ci_high")}
    values = {key: None if value is None else value * factor for key, value in numbers.items()}
    given = {**row.row(), **values, "metric": metric, "direction": direction}
    return Result(**{**given, "scale": 100.0 if metric == "LIC" else 1.0, "method": f"{method}; {row.method}"})


def _labelled(name: str, metric: str, found: Estimate, method: str) -> Result:
    low, high = found.interval()
    return Result(
        attribute=ATTRIBUTE, model=name, metric=metric, value=found.value, direction="A->T",
        spread=found.spread, spread_kind="std" if found.spread is not None else "", seeds=len(found.seed_values),
        n=len(found.images), ci_low=low, ci_high=high, method=f"{method}; 95% image bootstrap, 1000 draws",
    )  # fmt: skip


def _share_of_men(own: KnownSet) -> Estimate:
    """b of BA, Eq. 2 of LIC, averaged over the objects, which are equally common."""
    labels = own.labels.set_index("image_id")[ATTRIBUTE]
    evidence = naming(own.captions, labels, get_attribute(ATTRIBUTE))
    men = evidence.only[:, 1].astype(float)
    return estimate(Parts(men, evidence.only.any(axis=1).astype(float)), evidence, 1.0)


def _objects_guessed(own: KnownSet, seeds: int) -> Estimate:
    """Accuracy of DPA, A->T: of three labels a caption, whether each object is there, those guessed from the value."""
    values, objects = (np.unique(own.labels[column], return_inverse=True)[1] for column in (ATTRIBUTE, "objects"))
    features, truth = np.eye(2)[values], np.eye(len(SUBSETS))[objects]
    images, parts = tuple(own.labels["image_id"]), []
    for seed in range(seeds):
        split = image_split(values, 2, seed, TEST_SHARE, images)
        shares = guess_labels(features[split.train], truth[split.train], features[split.test])
        right = ((shares > 0.5) == (truth[split.test] > 0.5)).mean(axis=1)
        parts.append((np.full(len(split.test), seed), split.test, right))
    seed, image, right = (np.concatenate(column) for column in zip(*parts, strict=True))
    evidence = HeldOut(images, seed, image, values[image], right[:, None])
    return estimate(Parts(right, np.ones(len(right))), evidence, 1.0)

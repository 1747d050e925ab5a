"""What the Objects page reads: co-occurrence counted at once, beside the human captions, and captions of one object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, diags_array, eye_array, kron

from capbias_core.analysis.read import attribute_of_run, current_runs, object_rows
from capbias_core.measures.base import of_images
from capbias_core.measures.gender_score import COOCCURRENCE as METRIC
from capbias_core.measures.gender_score import COOCCURRENCE_COUNT as COUNT
from capbias_core.measures.gender_score import cooccurrence as counts
from capbias_core.measures.gender_score_common import Sums, gendered, set_rows
from capbias_core.measures.gender_score_common import object_rows as rows_by_object
from capbias_core.prepare.tasks import rows_by_image
from capbias_core.runs.plan import Request, plan
from capbias_core.runs.run import job_of
from capbias_core.types import silent
from capbias_core.workspace.models import KINDS
from capbias_core.workspace.spec import RunSpec, attribute_from
from capbias_core.workspace.store import Item, RunRow, Workspace

# The measures whose results the page shows beside the counts.
SCORED = ("object_distance", "gender_score")


@dataclass(frozen=True)
class Ratios:
    """Co-occurrence of one set of captions.

    rows: object, captions (that name one value), count0.. (that name each value), share0.., low0.., high0.. (of each
    value among them, with 95% intervals; missing for few captions), most captions first. overall: share of each value
    over all captions with an object. n: those captions. note: what was left out.
    """

    rows: pd.DataFrame
    overall: tuple[float, ...]
    n: int
    note: str


def cooccurrence_spec(workspace: Workspace, request: Request) -> RunSpec:
    """The run of co-occurrence of the first captions of a request."""
    return plan(workspace, replace(request, metrics=(METRIC,)))[0]


def of_references(spec: RunSpec, references: Item) -> RunSpec:
    """The same of human captions."""
    return replace(spec, model=references.name, captions=references.hash)


def ratios(workspace: Workspace, spec: RunSpec) -> Ratios:
    """Co-occurrence of a run of its measure; counted in a second if it was not yet, and kept in the workspace."""

    def compute() -> dict:
        return _shares(*counts(job_of(workspace, spec, silent)), spec)

    return _ratios(workspace.derived(f"object ratios {spec.run_id}", compute))


def beside_people(workspace: Workspace, spec: RunSpec, human: Item) -> tuple[Ratios, pd.DataFrame]:
    """Co-occurrence of a run of its measure on the images that have human captions too, and `beside_human` of both with
    error0, error1, ..: the standard error of each difference, paired by image. Kept in the workspace.
    """

    def compute() -> dict:
        job = job_of(workspace, spec, silent)
        beside = of_images(workspace.frame(human.hash), job.frame["image_id"])
        own = counts(replace(job, frame=of_images(job.frame, beside["image_id"])))
        theirs = counts(replace(job, spec=of_references(spec, human), frame=beside))
        errors = paired_errors(own[0][0], theirs[0][0], len(attribute_from(spec.attribute).values))
        return {"own": _shares(*own, spec), "human": _shares(*theirs, spec), "errors": errors.to_dict("list")}

    data = workspace.derived(f"objects beside people {spec.run_id} {human.hash}", compute)
    own = _ratios(data["own"])
    return own, beside_human(own, _ratios(data["human"])).merge(pd.DataFrame(data["errors"]), on="object", how="left")


def paired_errors(own: Sums, other: Sums, values: int) -> pd.DataFrame:
    """The standard error of the difference of two sides' shares, for each object of both and each value.

    To first order (the delta method): what an image adds to each share is known, images are independent, and both sides
    of an image go together. Columns: object, error0, error1, ..
    """
    row, images = pd.factorize(np.array([*own.counts.images, *other.counts.images], dtype=object))
    objects = [name for name in own.objects if name in set(other.objects)]
    ones, added = np.ones((1, values)), []
    for side, rows in ((own, row[: len(own.counts.images)]), (other, row[len(own.counts.images) :])):
        place = rows_by_image(rows, len(images))
        columns = [side.objects.index(name) * values + value for name in objects for value in range(values)]
        counted = csr_array(place @ csr_array(side.by_object, dtype=float)[:, columns])
        each = counted @ kron(eye_array(len(objects)), ones.T)  # (images, objects): captions with the object
        whole = np.repeat(np.asarray(each.sum(axis=0)), values)
        shares = np.divide(np.asarray(counted.sum(axis=0)), whole, where=whole > 0, out=np.full(len(whole), np.nan))
        expected = (each @ kron(eye_array(len(objects)), ones)) @ diags_array(np.nan_to_num(shares))
        added.append((counted - expected) @ diags_array(1 / np.maximum(whole, 1)))
    error = np.sqrt(np.asarray((added[0] - added[1]).power(2).sum(axis=0))).reshape(len(objects), values)
    return pd.DataFrame({"object": objects} | {f"error{value}": error[:, value] for value in range(values)})


def _shares(counted: list[Sums], columns: dict[str, str], notes: tuple[str, ...], spec: RunSpec) -> dict:
    (sums,) = counted
    overall = {row.direction: (row.value, row.n) for row in set_rows(sums, columns) if row.metric == METRIC}
    values = attribute_from(spec.attribute).values
    return {
        "rows": _wide(rows_by_object(sums, columns), values).to_dict("list"),
        "overall": [overall[value][0] for value in values],
        "n": overall[values[0]][1],
        "note": notes[0],
    }


def _ratios(data: dict) -> Ratios:
    return Ratios(pd.DataFrame(data["rows"]), tuple(data["overall"]), data["n"], data["note"])


def _wide(rows: pd.DataFrame, values: Sequence[str]) -> pd.DataFrame:
    """Result rows of objects to one row per object (see Ratios)."""
    shares, counts = (rows[rows["metric"] == name] for name in (METRIC, COUNT))
    first = shares[shares["direction"] == values[0]]
    table = pd.DataFrame({"object": first["object"].to_numpy(), "captions": first["n"].to_numpy()})
    for place, value in enumerate(values):
        own = shares[shares["direction"] == value].set_index("object").loc[table["object"]]
        count = counts[counts["direction"] == value].set_index("object").loc[table["object"]]
        table[f"count{place}"] = count["value"].to_numpy().astype(int)
        for name, column in (("share", "value"), ("low", "ci_low"), ("high", "ci_high")):
            table[f"{name}{place}"] = own[column].astype(float).to_numpy()
    return table


def beside_human(own: Ratios, human: Ratios) -> pd.DataFrame:
    """The rows of a model with `human_` columns for the same objects; missing if human captions have none."""
    theirs = human.rows.add_prefix("human_").rename(columns={"human_object": "object"})
    return own.rows.merge(theirs, on="object", how="left")


def captions_with(workspace: Workspace, spec: RunSpec, name: str) -> pd.DataFrame:
    """The captions that count for an object: image_id, names (the value), caption."""
    job = job_of(workspace, spec, silent)
    data = gendered(job.frame, job.attribute, job.objects(), job.options, tokens=job.tokens)
    place = data.objects.index(name) if name in data.objects else -1
    if place < 0:
        return pd.DataFrame(columns=["image_id", "names", "caption"])
    kept = data.having(data.confidence[:, [place]].toarray().ravel() > 0)
    values = [job.attribute.values[value] for value in kept.value]
    images = [kept.images[image] for image in kept.image]
    return pd.DataFrame({"image_id": images, "names": values, "caption": kept.captions})


def scored_runs(workspace: Workspace, collection: str, counted: RunSpec) -> dict[str, RunRow]:
    """Newest finished runs of Gender Score and Gender Object Distance, by metric and models.

    counted: the run that counts objects; those of the same set, attribute and labels are given.
    """
    found: dict[str, RunRow] = {}
    asked = (counted.model, attribute_from(counted.attribute), counted.labels)
    for measure in SCORED:
        for run in current_runs(workspace, collection, measure):
            if (run.spec.model, attribute_of_run(run), run.spec.labels) == asked:
                found.setdefault(f"{measure} {_models(run)}", run)
    return found


def _models(run: RunRow) -> str:
    options = run.spec.options
    return ", ".join(options[kind]["name"] for kind in KINDS if kind in options)


def scores_by_object(workspace: Workspace, run: RunRow) -> pd.DataFrame:
    """One row per object, one column per metric and direction, such as `gender_score Male`; most captions first."""
    rows = object_rows(workspace, run)
    rows["column"] = rows["metric"] + " " + rows["direction"]
    order = rows.groupby("object")["n"].max().sort_values(ascending=False).index
    table = rows.pivot(index="object", columns="column", values="value").loc[order]
    return table[list(dict.fromkeys(rows["column"]))].reset_index()

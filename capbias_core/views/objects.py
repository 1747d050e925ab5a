"""Objects and the values that captions name beside them, counted and beside human captions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, diags_array, eye_array, kron
from scipy.special import erfc

from capbias_core.aggregate.counts import Counts, beside_objects
from capbias_core.aggregate.ranking import ALPHA, holm
from capbias_core.aggregate.resampling import NORMAL
from capbias_core.data import Data, images_in
from capbias_core.kinds import LABELS, REFERENCES
from capbias_core.measures.base import BY_OBJECT, Outcome
from capbias_core.measures.gender_score import COOCCURRENCE as METRIC
from capbias_core.measures.gender_score_common import CAPTION, captions_of
from capbias_core.measures.registry import measure_of
from capbias_core.prepare.tasks import rows_by_image
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.types import counted, silent
from capbias_core.views.choose import Choice
from capbias_core.views.sentence import say
from capbias_core.views.slices import DIFFERENCE
from capbias_core.workspace.objects import usual_objects
from capbias_core.workspace.sources import data_of
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace, bytes_frame

OWN, PEOPLE = "its captions", "people"  # what rows are of, beside DIFFERENCE
ENOUGH = 30  # captions, for an object to be tested beside human captions


def spec_of(choice: Choice, captioner: str) -> RunSpec:
    """The run that counts the values which captions name beside the objects that they name."""
    labels = choice.measured_with.labels
    table = choice.workspace.item(LABELS, labels, choice.collection)
    objects, _ = usual_objects(choice.workspace, choice.collection, table)  # of several files, as slices read them
    question = Question(
        *(choice.collection, (captioner,), labels, choice.attribute, (METRIC,)),
        objects=objects,
        options={"objects_from": CAPTION},
    )
    return plan(choice.workspace, question)[0]


def images_with(workspace: Workspace, spec: RunSpec, name: str) -> frozenset[str]:
    """The images whose captions count for an object."""
    data = data_of(workspace, spec)
    captions = captions_of(data, measure_of(METRIC).options.read(spec.options), CAPTION)
    if name not in captions.objects:
        return frozenset()
    counting = captions.having(captions.confidence[:, [captions.objects.index(name)]].toarray().ravel() > 0)
    return frozenset(counting.images[image] for image in counting.image)


# what is counted


def _cooccurrence(data: Data, spec: RunSpec) -> tuple[Outcome, pd.DataFrame]:
    """What a run of co-occurrence finds; and value, low, high and n by object and value, of most captions first."""
    measure = measure_of(METRIC)
    outcome = measure.run(data, measure.options.read(spec.options), silent)
    rows = bytes_frame(outcome.arrays[BY_OBJECT]).rename(columns={"ci_low": "low", "ci_high": "high"})
    rows = rows[rows["metric"] == METRIC].set_index(["object", "direction"])[["value", "low", "high", "n"]]
    return outcome, rows.astype(float)


def shares_of(choice: Choice, spec: RunSpec) -> tuple[pd.DataFrame, bool]:
    """A row for each object and value: value, low, high, n; and whether people's captions are beside, on the images
    that have some. Then also human_value .. (missing if none has the object), difference, its error paired by image,
    p and p_holm over the objects with ENOUGH captions of both; objects of the largest difference first."""
    values, name = choice.defined.values, choice.measured_with.references
    own = data_of(choice.workspace, spec)
    if not name:
        return _cooccurrence(own, spec)[1], False
    human = choice.workspace.item(REFERENCES, name, choice.collection)
    of_people = replace(spec, model=human.name, captions=human.hash)
    people = data_of(choice.workspace, of_people)
    both = images_in(own.frame) & images_in(people.frame)
    (outcome, rows), (human_outcome, human_rows) = (
        _cooccurrence(data.on(both), each) for data, each in ((own, spec), (people, of_people))
    )
    assert isinstance(outcome.counts, Counts) and isinstance(human_outcome.counts, Counts)
    rows = rows.join(human_rows.add_prefix("human_"))
    errors = paired_errors(outcome.counts, human_outcome.counts, len(values))
    errors = errors.set_index("object").set_axis(values, axis=1).rename_axis(columns="direction")
    rows = rows.join(errors.stack().rename("error"))  # noqa: PD013
    rows["difference"] = rows["value"] - rows["human_value"]
    tested = (rows[["n", "human_n"]] >= ENOUGH).all(axis=1) & (rows["error"] > 0) & rows["difference"].notna()
    p = erfc((rows["difference"].abs() / rows["error"] / math.sqrt(2)).to_numpy(dtype=float))
    rows["p"] = rows["p_holm"] = np.where(tested, p, math.nan)
    for value in values:
        family = tested & (rows.index.get_level_values("direction") == value)
        rows.loc[family, "p_holm"] = holm(rows.loc[family, "p"].to_numpy())
    last = rows.xs(values[-1], level="direction")
    order = last["difference"].abs().where(last["n"] >= ENOUGH, -1.0).fillna(-2.0)
    order = order.sort_values(ascending=False, kind="stable").index
    return rows.loc[[(thing, value) for value in values for thing in order]], True


def paired_errors(own: Counts, other: Counts, values: int) -> pd.DataFrame:
    """The standard error of the difference of two sides' shares, for each object of both and each value.

    To first order (the delta method): what an image adds to each share is known, images are independent, and both sides
    of an image go together. Columns: object, error0, error1, ..
    """
    row, images = pd.factorize(np.array([*own.images, *other.images], dtype=object))
    objects = [name for name in own.objects if name in set(other.objects)]
    ones, added = np.ones((1, values)), []
    for side, rows in ((own, row[: len(own.images)]), (other, row[len(own.images) :])):
        by_image = rows_by_image(rows, len(images))
        columns = [side.objects.index(name) * values + value for name in objects for value in range(values)]
        counted = csr_array(by_image @ csr_array(side.columns[beside_objects(METRIC)], dtype=float)[:, columns])
        each = counted @ kron(eye_array(len(objects)), ones.T)  # (images, objects): captions with the object
        whole = np.repeat(np.asarray(each.sum(axis=0)), values)
        shares = np.divide(np.asarray(counted.sum(axis=0)), whole, where=whole > 0, out=np.full(len(whole), np.nan))
        expected = (each @ kron(eye_array(len(objects)), ones)) @ diags_array(np.nan_to_num(shares))
        added.append((counted - expected) @ diags_array(1 / np.maximum(whole, 1)))
    error = np.sqrt(np.asarray((added[0] - added[1]).power(2).sum(axis=0))).reshape(len(objects), values)
    return pd.DataFrame({"object": objects} | {f"error{value}": error[:, value] for value in range(values)})


# the view


def named_rows(choice: Choice, spec: RunSpec) -> Iterator[dict[str, Any]]:
    """For each object how often captions name the last value beside it (of more than two each value), how often
    people's do, and the difference. spec: of `spec_of`."""
    values, (rows, people) = choice.defined.values, shares_of(choice, spec)
    two = len(values) == 2
    shown = [rows.xs(value, level="direction", drop_level=False) for value in (values[1:] if two else values)]
    for row in pd.concat(shown).reset_index().to_dict("records"):
        thing, value = row["object"], row["direction"]
        about = {"captioner": spec.model, "thing": thing if two else f"{thing}, {value}", "object": thing}
        about |= {"metric": METRIC, "direction": value}
        own = about | {key: row[key] for key in ("value", "low", "high")} | {"n": int(row["n"]), "of": OWN}
        if not people or pd.isna(row["human_n"]):
            yield own
            continue
        change, n = row["difference"], int(row["human_n"])
        side = value if change > 0 or not two else values[0]
        verdict = f"{side} {'more' if two or change > 0 else 'less'}" if row["p_holm"] < ALPHA else ""
        yield own | {"verdict": verdict}
        yield about | {key: row[f"human_{key}"] for key in ("value", "low", "high")} | {"n": n, "of": PEOPLE}
        half = NORMAL * row["error"] if pd.notna(row["p"]) else math.nan
        ends = {"value": change, "low": change - half, "high": change + half}
        yield about | ends | {"of": DIFFERENCE, "n": own["n"] + n, "p": row["p"], "p_holm": row["p_holm"]}


def named_sentence(choice: Choice, captioner: str, rows: pd.DataFrame) -> tuple[str, bool]:
    own, people = (rows[rows["of"] == of].set_index("line") for of in (OWN, PEOPLE))
    values = choice.defined.values
    found = own[own["verdict"] != ""]
    if people.empty:
        return say("where.no_people", objects=counted(len(own), "object")), False
    tested = int(rows["p"].notna().sum())
    if not tested:
        return say("where.few_captions", least=ENOUGH), False
    if found.empty:
        return say("where.none_named", objects=counted(tested, "object")), False
    change = found["value"] - people["value"].reindex(found.index)
    if len(values) > 2:
        change = change[change > 0] if (change > 0).any() else change
    line = change.abs().idxmax()
    share, human, value = found.at[line, "value"], people.at[line, "value"], found.at[line, "direction"]
    if change[line] < 0 and len(values) == 2:
        share, human, value = 1 - share, 1 - human, values[0]
    numbers = {"share": share, "people": human, "value": value}
    return say("where.named", captioner=captioner, object=found.at[line, "object"], **numbers), True

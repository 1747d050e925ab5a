"""Objects and the values that captions name beside them, counted and beside human captions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, diags_array, eye_array, kron
from scipy.special import erfc
from typing_extensions import TypedDict

from capbias_core.aggregate.counts import Counts, beside_objects
from capbias_core.aggregate.ranking import ALPHA, holm
from capbias_core.aggregate.resampling import NORMAL
from capbias_core.data import Data, images_in
from capbias_core.kinds import LABELS, REFERENCES
from capbias_core.measures.base import BY_OBJECT, Outcome
from capbias_core.measures.gender_score import COOCCURRENCE as METRIC
from capbias_core.measures.gender_score import COOCCURRENCE_COUNT as COUNT
from capbias_core.measures.gender_score_common import CAPTION, captions_of
from capbias_core.measures.registry import measure_of
from capbias_core.prepare.tasks import rows_by_image
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.types import counted, silent
from capbias_core.views.choose import Choice
from capbias_core.views.sentence import say
from capbias_core.workspace.objects import usual_objects
from capbias_core.workspace.sources import data_of
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Item, Workspace, bytes_frame

OWN, PEOPLE, DIFFERENCE = "its captions", "people", "difference"  # what rows are of
ENOUGH = 30  # captions, for an object to be tested beside human captions


@dataclass(frozen=True)
class Ratios:
    """Co-occurrence of one set of captions."""

    # object, captions (that name one value), count0.. (that name each value), share0.., low0.., high0.. (of each value
    # among them, with 95% intervals; missing for few captions); most captions first
    rows: pd.DataFrame
    overall: tuple[float, ...]  # share of each value over all captions with an object
    n: int  # captions with an object
    note: str  # what was left out


class _Shares(TypedDict):
    """The fields of Ratios, as JSON has them."""

    rows: dict[str, list]
    overall: list[float]
    n: int
    note: str


class _BesidePeople(TypedDict):
    own: _Shares
    human: _Shares
    errors: dict[str, list]


# counts


def cooccurrence_spec(workspace: Workspace, request: Question) -> RunSpec:
    """The run of co-occurrence of the first captions of a request."""
    return plan(workspace, replace(request, metrics=(METRIC,)))[0]


def counted_objects(workspace: Workspace, spec: RunSpec, human: Item | None) -> tuple[Ratios, pd.DataFrame]:
    """What a run of co-occurrence counts, and a row an object; counted in a second, and kept in the workspace.

    With human captions both are on the images that have some, each row has `human_` columns for the same object
    (missing if no human caption has it) and error0, error1, ..: the standard error of each difference, paired by image;
    sorted `by_difference`.
    """

    def kept_ratios(data: _Shares) -> Ratios:
        return Ratios(pd.DataFrame(data["rows"]), tuple(data["overall"]), data["n"], data["note"])

    if human is None:
        key = f"object ratios {spec.run_id}"
        data = workspace.derived(key, lambda: _shares(_cooccurrence(data_of(workspace, spec), spec)), _Shares)
        ratios = kept_ratios(data)
        return ratios, ratios.rows

    def compute() -> _BesidePeople:
        of_people = replace(spec, model=human.name, captions=human.hash)
        own, people = (data_of(workspace, each) for each in (spec, of_people))
        both = images_in(own.frame) & images_in(people.frame)
        outcome, human_outcome = _cooccurrence(own.on(both), spec), _cooccurrence(people.on(both), of_people)
        errors = paired_errors(outcome.counts, human_outcome.counts, len(own.attribute.values))
        return {"own": _shares(outcome), "human": _shares(human_outcome), "errors": errors.to_dict("list")}

    data = workspace.derived(f"objects beside people {spec.run_id} {human.hash}", compute, _BesidePeople)
    ratios, people = kept_ratios(data["own"]), kept_ratios(data["human"])
    human_rows = people.rows.add_prefix("human_").rename(columns={"human_object": "object"})
    table = ratios.rows.merge(human_rows, on="object", how="left")
    return ratios, by_difference(table.merge(pd.DataFrame(data["errors"]), on="object", how="left"))


def _cooccurrence(data: Data, spec: RunSpec) -> Outcome:
    measure = measure_of(METRIC)
    return measure.run(data, measure.options.read(spec.options), silent)


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


def _shares(outcome: Outcome) -> _Shares:
    whole = [row for row in outcome.results if row.metric == METRIC]
    rows = shares_by_object(bytes_frame(outcome.arrays[BY_OBJECT]), [row.direction for row in whole])
    overall = [row.value for row in whole]
    return {"rows": rows.to_dict("list"), "overall": overall, "n": whole[0].n, "note": outcome.notes[0]}


def shares_by_object(by_object: pd.DataFrame, values: Sequence[str]) -> pd.DataFrame:
    """The columns of `Ratios.rows` from rows of co-occurrence."""
    parts = {key: part.set_index("object") for key, part in by_object.groupby(["metric", "direction"], sort=False)}
    table = parts[METRIC, values[0]][["n"]].rename(columns={"n": "captions"})
    for index, value in enumerate(values):
        table[f"count{index}"] = parts[COUNT, value]["value"].astype(int)
        for name, column in (("share", "value"), ("low", "ci_low"), ("high", "ci_high")):
            table[f"{name}{index}"] = parts[METRIC, value][column].astype(float)
    return table.reset_index()


def captions_with(workspace: Workspace, spec: RunSpec, name: str) -> pd.DataFrame:
    """The captions that count for an object: image_id, names (the value), caption."""
    data, measure = data_of(workspace, spec), measure_of(METRIC)
    captions = captions_of(data, measure.options.read(spec.options), CAPTION)
    if name not in captions.objects:
        return pd.DataFrame(columns=["image_id", "names", "caption"])
    with_object = captions.having(captions.confidence[:, [captions.objects.index(name)]].toarray().ravel() > 0)
    values = [data.attribute.values[value] for value in with_object.value]
    images = [with_object.images[image] for image in with_object.image]
    return pd.DataFrame({"image_id": images, "names": values, "caption": with_object.captions})


def testable(table: pd.DataFrame) -> pd.Series:
    """Which objects have enough captions of the captioner and of people. table: of `counted_objects`, with these."""
    return (table["captions"] >= ENOUGH) & (table["human_captions"] >= ENOUGH)


def difference_of(table: pd.DataFrame, index: int) -> pd.Series:
    """A value's share among the captions that have the object, minus that among people's."""
    return table[f"share{index}"] - table[f"human_share{index}"]


def tests(table: pd.DataFrame, index: int) -> pd.DataFrame:
    """p of the difference from people, and p_holm over the objects with enough captions of both; nan of others."""
    error, difference = table[f"error{index}"], difference_of(table, index)
    p = pd.Series(math.nan, table.index)
    known = testable(table) & (error > 0) & difference.notna()
    p[known] = erfc((difference[known].abs() / error[known] / math.sqrt(2)).to_numpy())
    corrected = p.copy()
    corrected[known] = holm(p[known].to_numpy())
    return pd.DataFrame({"p": p, "p_holm": corrected})


def by_difference(table: pd.DataFrame) -> pd.DataFrame:
    """The rows with the largest difference from the human captions first, in either direction; those with fewer than 30
    captions, and those that no human caption has, come after all others."""
    last = sum(name.startswith("share") for name in table) - 1
    order = difference_of(table, last).abs().where(table["captions"] >= ENOUGH, -1.0)
    return table.loc[order.fillna(-2.0).sort_values(ascending=False, kind="stable").index]


# objects and values


def spec_of(choice: Choice, captioner: str, objects_from: str = CAPTION, further: Sequence[str] = ()) -> RunSpec:
    """The run that counts the values which captions name beside objects. objects_from: what names these, the caption
    or an image's annotations. further: words that count as objects, too."""
    chosen: dict[str, Any] = {"objects_from": objects_from}
    chosen |= {"object_words": list(further)} if further else {}
    labels = choice.settings[choice.setting].labels
    table = choice.workspace.item(LABELS, labels, choice.collection)
    objects, _ = usual_objects(choice.workspace, choice.collection, table)  # of several files, as slices read them
    question = Question(choice.collection, (captioner,), labels, choice.attribute, (), objects=objects, options=chosen)
    return cooccurrence_spec(choice.workspace, question)


def _counted(choice: Choice, spec: RunSpec) -> tuple[pd.DataFrame, bool, Sequence[float]]:
    """A row for each object, whether people's captions are in it, and the share of each value beside all objects."""
    name = choice.settings[choice.setting].references
    human = choice.workspace.item(REFERENCES, name, choice.collection) if name else None
    ratios, table = counted_objects(choice.workspace, spec, human)
    return table, human is not None, ratios.overall


def _share(row: Mapping[str, Any], index: int, side: str = "") -> dict[str, Any]:
    keys = {"value": "share", "low": "low", "high": "high"}
    return {key: row[f"{side}{column}{index}"] for key, column in keys.items()} | {"n": int(row[f"{side}captions"])}


def named_rows(choice: Choice, spec: RunSpec) -> Iterator[dict[str, Any]]:
    """For each object how often captions name the last value beside it (of more than two each value), how often
    people's do, and the difference. spec: of `spec_of`."""
    values = choice.defined.values
    table, people, _ = _counted(choice, spec)
    two = len(values) == 2
    for index in [1] if two else range(len(values)):
        tested = tests(table, index) if people else table
        for place, row in table.iterrows():
            thing = row["object"] if two else f"{row['object']}, {values[index]}"
            about = {"captioner": spec.model, "thing": thing, "object": row["object"], "metric": METRIC}
            about["direction"] = values[index]
            if not people or pd.isna(row["human_captions"]):
                yield about | _share(row, index) | {"of": OWN, "verdict": ""}
                continue
            change, half = row[f"share{index}"] - row[f"human_share{index}"], NORMAL * row[f"error{index}"]
            side = values[index] if change > 0 or not two else values[0]
            verdict = f"{side} {'more' if two or change > 0 else 'less'}"
            known = pd.notna(tested.at[place, "p"])
            yield (
                about
                | _share(row, index)
                | {"of": OWN, "verdict": verdict if tested.at[place, "p_holm"] < ALPHA else ""}
            )
            yield about | _share(row, index, "human_") | {"of": PEOPLE}
            ends = {"low": change - half, "high": change + half} if known else {}
            n = int(row["captions"] + row["human_captions"])
            yield about | {"of": DIFFERENCE, "value": change, "n": n} | ends | dict(tested.loc[place])


def naming(choice: Choice, captioner: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Of each object how often captions, and people's, name the last value beside it, by what these numbers are
    called; with `lean` of the difference: 1 if captions exaggerate what people's say, -1 if the opposite, else 0."""
    if not choice.defined.names_values or len(choice.defined.values) != 2:
        return {}
    table, people, overall = _counted(choice, spec_of(choice, captioner))
    if not people:
        return {}
    last, tested = choice.defined.values[1], tests(table, 1)
    found = {}
    for place, row in table.iterrows():
        if pd.isna(row["human_captions"]):
            continue
        significant = tested.at[place, "p_holm"] < ALPHA
        lean = np.sign(row["human_share1"] - overall[1]) * np.sign(row["share1"] - row["human_share1"]) * significant
        usual = {"direction": last, "lean": lean}
        names = say("where.beside", value=last), say("where.beside_people", value=last)
        people = _share(row, 1, "human_") | {"direction": last}
        found[row["object"]] = {names[0]: _share(row, 1) | usual, names[1]: people}
    return found


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

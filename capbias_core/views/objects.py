"""Objects and the values that captions name beside them: counts, the answer, the table, charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, diags_array, eye_array, kron
from scipy.special import erfc

from capbias_core.aggregate.counts import Counts, beside_objects
from capbias_core.aggregate.ranking import ALPHA, holm
from capbias_core.aggregate.resampling import NORMAL
from capbias_core.data import Data, images_in
from capbias_core.measures.base import BY_OBJECT, Outcome
from capbias_core.measures.gender_score import COOCCURRENCE as METRIC
from capbias_core.measures.gender_score import COOCCURRENCE_COUNT as COUNT
from capbias_core.measures.gender_score_common import CAPTION, captions_of
from capbias_core.measures.registry import measure_of
from capbias_core.prepare.tasks import rows_by_image
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.types import Attribute, counted, silent
from capbias_core.views.charts import BLUE_MARK, GREY, MARGINS, ORANGE_MARK, graph_objects
from capbias_core.views.results import attribute_of_run, current_runs, object_rows
from capbias_core.views.sentence import Answer, number
from capbias_core.workspace.models import KINDS
from capbias_core.workspace.sources import data_of
from capbias_core.workspace.spec import RunSpec, attribute_from
from capbias_core.workspace.store import Item, RunRow, Workspace, bytes_frame

# The measures whose results the page shows beside the counts, in words, with the metric that each scores.
DISTANCE, SCORE = "Gender Object Distance", "Gender Score"
SCORED = {"object_distance": (DISTANCE, "gender_object_distance"), "gender_score": (SCORE, "gender_score")}
ENOUGH = 30  # captions, for an object to be named in the answer and in the chart beside human captions
MOST = 30  # objects in that chart


@dataclass(frozen=True)
class Ratios:
    """Co-occurrence of one set of captions."""

    # object, captions (that name one value), count0.. (that name each value), share0.., low0.., high0.. (of each value
    # among them, with 95% intervals; missing for few captions); most captions first
    rows: pd.DataFrame
    overall: tuple[float, ...]  # share of each value over all captions with an object
    n: int  # captions with an object
    note: str  # what was left out


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

    def kept_ratios(data: dict) -> Ratios:
        return Ratios(pd.DataFrame(data["rows"]), tuple(data["overall"]), data["n"], data["note"])

    if human is None:
        key = f"object ratios {spec.run_id}"
        ratios = kept_ratios(workspace.derived(key, lambda: _shares(_cooccurrence(data_of(workspace, spec), spec))))
        return ratios, ratios.rows

    def compute() -> dict:
        of_people = replace(spec, model=human.name, captions=human.hash)
        own, people = (data_of(workspace, each) for each in (spec, of_people))
        both = images_in(own.frame) & images_in(people.frame)
        outcome, human_outcome = _cooccurrence(own.on(both), spec), _cooccurrence(people.on(both), of_people)
        errors = paired_errors(outcome.by_direction[""], human_outcome.by_direction[""], len(own.attribute.values))
        return {"own": _shares(outcome), "human": _shares(human_outcome), "errors": errors.to_dict("list")}

    data = workspace.derived(f"objects beside people {spec.run_id} {human.hash}", compute)
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


def _shares(outcome: Outcome) -> dict:
    """The fields of Ratios, as JSON has them."""
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


def scored_runs(workspace: Workspace, collection: str, counted: RunSpec) -> dict[str, RunRow]:
    """Newest finished runs of Gender Score and Gender Object Distance, by metric and models.

    counted: the run that counts objects; those of the same set, attribute and labels are given.
    """
    runs: dict[str, RunRow] = {}
    wanted = (counted.model, attribute_from(counted.attribute), counted.labels)
    for measure in SCORED:
        for run in current_runs(workspace, collection, measure):
            if (run.spec.model, attribute_of_run(run), run.spec.labels) == wanted:
                models = ", ".join(run.spec.options[kind]["name"] for kind in KINDS if kind in run.spec.options)
                runs.setdefault(f"{measure} {models}", run)
    return runs


def scores_by_object(workspace: Workspace, run: RunRow) -> pd.DataFrame:
    """One row per object, one column per metric and direction, such as `gender_score Male`; most captions first."""
    rows = object_rows(run)
    rows["column"] = rows["metric"] + " " + rows["direction"]
    order = rows.groupby("object")["n"].max().sort_values(ascending=False).index
    table = rows.pivot(index="object", columns="column", values="value").loc[order]
    return table[list(dict.fromkeys(rows["column"]))].reset_index()


# sentences and tables


def percent(share: float) -> str:
    """`68%`; `none` for a share that is not there."""
    return "none" if pd.isna(share) else f"{100 * share:.0f}%"


def object_answer(table: pd.DataFrame, overall: Sequence[float], n: int, model: str, attribute: Attribute) -> Answer:
    """Which objects go with a value more than beside human captions; without those, more than other objects do.

    table, overall, n: of `counted_objects`. Only objects with 30 captions are named, and only with a difference that
    chance does not explain.
    """

    def share_of(row: pd.Series, index: int, side: str = "") -> str:
        """`68% [57%, 78%]`"""
        share, low, high = (percent(row[f"{side}{name}{index}"]) for name in ("share", "low", "high"))
        return f"{share} [{low}, {high}]"

    shares = ", ".join(f"{value} {percent(share)}" for value, share in zip(attribute.values, overall, strict=True))
    support = f"Of {n:,} captions that name one value and an object: {shares}. Read the shares together with the counts"
    support += ": the labelled images need not show each value equally often."
    going = []  # of each value the object with the highest share, told apart from all objects together
    for index, (value, whole) in enumerate(zip(attribute.values, overall, strict=True)):
        above = table[(table["captions"] >= ENOUGH) & (table[f"low{index}"] > whole)]
        if len(above):
            row = above.sort_values([f"share{index}", "captions"]).iloc[-1]
            share = f"{share_of(row, index)} of {row['captions']:,} captions"
            going.append(f"“{row['object']}” is mentioned with {value} in {share} (all objects: {percent(whole)})")
    if "human_share0" not in table:
        going = going or ["no object is clearly associated with one value more than the others"]
        return Answer(f"{model}: {'; '.join(going)}.", support)
    associated = "".join(f"{text}. " for text in going)
    tested = _testable(table)
    if tested.empty:
        none = f"no object has {ENOUGH} captions of the captioner and of people, so none can be compared"
        return Answer(f"{model}: {none}.", f"{associated}{support}")
    parts, details, without = [], [], []
    for index, value in enumerate(attribute.values):
        # The object that goes with the value most beyond the human captions, told apart from them.
        apart = _significant(tested, index)
        apart = apart[apart > 0]
        if apart.empty:
            without.append(value)
            continue
        row = tested.loc[apart.idxmax()]
        when, says = ("", ":") if parts else (f"When {model} mentions ", ", it says")
        parts.append(
            f"{when}“{row['object']}”{says} {value} {percent(row[f'share{index}'])} of the time (people: "
            f"{percent(row[f'human_share{index}'])})"
        )
        details.append(
            f"“{row['object']}”, {value}: {share_of(row, index)} of {row['captions']:,} captions, "
            f"{share_of(row, index, 'human_')} of {int(row['human_captions']):,} human captions"
        )
    objects = counted(len(tested), "object")
    how = f"tested image by image, Holm over {objects} with {ENOUGH} captions on both sides"
    if not parts:
        none = "no object is clearly mentioned with one value more than in human captions"
        return Answer(f"{model}: {none}.", f"Differences {how}. {associated}{support}")
    none = f"No object is clearly mentioned more with {' or '.join(without)} than in human captions. "
    support = f"{none}{support}" if without else support
    return Answer(
        f"{'; '.join(parts)}.",
        f"{'; '.join(details)}. The largest significant difference toward each value, {how}. {support}",
    )


def _testable(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table["captions"] >= ENOUGH) & (table["human_captions"] >= ENOUGH)]


def _significant(tested: pd.DataFrame, index: int) -> pd.Series:
    """The differences from people that chance does not explain, corrected by Holm over these objects."""
    error, difference = tested[f"error{index}"], _difference(tested, index)
    known = (error > 0) & difference.notna()
    p = holm(erfc((difference[known].abs() / error[known] / math.sqrt(2)).to_numpy()))
    return difference[known][p < ALPHA]


def comparable(table: pd.DataFrame) -> bool:
    """Whether any object has enough captions of the captioner and of people."""
    return "human_captions" in table and not _testable(table).empty


def _difference(table: pd.DataFrame, index: int) -> pd.Series:
    return table[f"share{index}"] - table[f"human_share{index}"]


def by_difference(table: pd.DataFrame) -> pd.DataFrame:
    """The rows with the largest difference from the human captions first, in either direction; those with fewer than 30
    captions, and those that no human caption has, come after all others. Without human captions, in the order given.
    """
    last = sum(name.startswith("share") for name in table) - 1
    if f"human_share{last}" not in table:
        return table
    order = _difference(table, last).abs().where(table["captions"] >= ENOUGH, -1.0)
    return table.loc[order.fillna(-2.0).sort_values(ascending=False, kind="stable").index]


def object_table(table: pd.DataFrame, attribute: Attribute) -> pd.DataFrame:
    """One row per object: captions, how many name each value, the share of the last value (of each, for more than two)
    with its interval, and the same of the human captions. Shares and differences are in percent."""
    columns = {"object": table["object"], "captions": table["captions"]}
    columns |= {f"name {value}": table[f"count{index}"] for index, value in enumerate(attribute.values)}
    places = range(len(attribute.values))
    for index in places[-1:] if len(places) == 2 else places:
        value = attribute.values[index]
        columns[f"share {value}"] = 100 * table[f"share{index}"]
        columns[f"95% of share {value}"] = share_intervals(table[f"low{index}"], table[f"high{index}"], "captions")
        if f"human_share{index}" in table:
            difference, half = _difference(table, index), NORMAL * table[f"error{index}"]
            known = difference.index.isin(_testable(table).index) & (half > 0)
            columns[f"humans: share {value}"] = 100 * table[f"human_share{index}"]
            columns[f"difference {value}"] = 100 * difference
            columns[f"95% of difference {value}"] = [  # `−3 to 9`, in percentage points
                f"{number(100 * low, 0)} to {number(100 * high, 0)}" if enough else "few captions"
                for low, high, enough in zip(difference - half, difference + half, known, strict=True)
            ]
    if "human_captions" in table:
        columns["human captions"] = table["human_captions"]
    first = [name for name in columns if "difference" in name]  # what the page is about is seen without a scroll
    return pd.DataFrame({name: columns[name] for name in ("object", *first, *columns)})


def share_intervals(low: pd.Series, high: pd.Series, what: str) -> list[str]:
    """`57% to 78%`, or `few captions`."""
    pairs = zip(low, high, strict=True)
    return [f"few {what}" if pd.isna(start) else f"{percent(start)} to {percent(end)}" for start, end in pairs]


# charts

BINS = "How many objects have which share. Objects with few captions lie at the ends by chance."


def distribution_chart(table: pd.DataFrame, attribute: Attribute, model: str):
    """How many objects have which share of the last value: the model's as bars, in the colour of the value that most
    of these captions name, and the human captions' as a grey line."""
    index, edges = len(attribute.values) - 1, np.linspace(0, 1, 21)
    middle = edges[:-1] + 0.025
    figure = graph_objects().Figure()
    objects, _ = np.histogram(table[f"share{index}"].dropna(), edges)
    colours = np.where(middle < 1 / len(attribute.values), ORANGE_MARK, BLUE_MARK)
    figure.add_bar(x=middle, y=objects, name=escape(model), marker_color=colours, showlegend=False)
    if f"human_share{index}" in table:
        objects, _ = np.histogram(table[f"human_share{index}"].dropna(), edges)
        line = {"color": GREY, "shape": "hvh", "width": 2.5}
        figure.add_scatter(x=middle, y=objects, name="human captions", mode="lines", line=line)
    return _laid_out(figure, f"share of the captions with an object that name {attribute.values[index]}", "objects")


def beside_rows(table: pd.DataFrame, attribute: Attribute, most: int = MOST) -> tuple[pd.DataFrame, int]:
    """The objects of `beside_chart`, from the one that goes least with the last value beside the human captions to the
    one that goes most; at most so many, those with the largest difference. Then of how many objects they are."""
    index = len(attribute.values) - 1
    enough = table[(table["captions"] >= ENOUGH) & table[f"human_share{index}"].notna()]
    largest = by_difference(enough)[:most]
    return largest.loc[_difference(largest, index).sort_values(kind="stable").index], len(enough)


def beside_chart(table: pd.DataFrame, attribute: Attribute, model: str, most: int = MOST):
    """Two dots per object, which its row names: the model's share of the last value and, in grey, the human captions'.

    The model's is orange if it is significantly lower, blue if higher. Sorted by the difference; see `beside_rows`.
    """
    index = len(attribute.values) - 1
    rows, _ = beside_rows(table, attribute, most)
    apart = _significant(_testable(table), index)
    difference = apart.reindex(rows.index).fillna(0.0)
    value, other = attribute.values[-1], attribute.values[0] if index == 1 else "another value"
    names = [escape(name) for name in rows["object"]]
    figure = graph_objects().Figure()
    ends = rows[[f"human_share{index}", f"share{index}"]].assign(gap=np.nan).to_numpy().ravel()  # one line, with gaps
    line = {"color": GREY, "width": 1.5}
    figure.add_scatter(x=ends, y=np.repeat(names, 3), mode="lines", line=line, showlegend=False, hoverinfo="skip")
    for title, prefix, part, colour in (
        ("human captions", "human_", rows, GREY),
        (f"{model}: {other} more often than people", "", rows[difference < 0], ORANGE_MARK),
        (f"{model}: {value} more often", "", rows[difference > 0], BLUE_MARK),
        (f"{model}: no significant difference, or too few captions", "", rows[difference == 0], GREY),
    ):
        hover, whose = [], "human captions" if prefix else model
        for row in part.to_dict("records"):
            low, high = row[f"{prefix}low{index}"], row[f"{prefix}high{index}"]
            interval = "" if pd.isna(low) else f" [{percent(low)}, {percent(high)}]"
            share, count = percent(row[f"{prefix}share{index}"]), int(row[f"{prefix}captions"])
            hover.append(f"{escape(row['object'])}, {escape(whose)}: {share}{interval} of {count:,} captions")
        marker = {"size": 11, "color": colour, "symbol": "circle-open" if prefix else "circle"}
        figure.add_scatter(
            x=part[f"{prefix}share{index}"],
            y=[escape(name) for name in part["object"]],
            mode="markers",
            name=escape(title),
            marker=marker | {"line_width": 2 if prefix else 0},
            hovertext=hover,
            hoverinfo="text",
        )
    height = MARGINS + 24 * max(3, len(rows))
    _laid_out(figure, f"share of the captions with the object that name {escape(value)}", "", height)
    order = {"categoryorder": "array", "categoryarray": names, "dtick": 1}
    return figure.update_layout(yaxis=order, legend={"traceorder": "normal"})


def beside_note(table: pd.DataFrame, attribute: Attribute) -> str:
    """Which objects `beside_chart` shows."""
    shown, count = beside_rows(table, attribute)
    most = f"the {len(shown)} with the largest difference of the {count}" if count > MOST else "all"
    return (
        f"Objects with {ENOUGH} captions or more: {most}, sorted by the difference between the two dots. "
        "Colour: significant after Holm's correction. Hover over a dot for its interval; the table has the "
        "intervals of differences."
    )


def score_chart(table: pd.DataFrame, metric: str, directions: Sequence[str]):
    """Distribution over objects of a score of each value (the paper's Figure 5), as boxes with their points."""
    figure = graph_objects().Figure()
    for direction, colour in zip(directions, (ORANGE_MARK, BLUE_MARK, GREY, *[GREY] * len(directions)), strict=False):
        if f"{metric} {direction}" in table:
            figure.add_box(
                x=table[f"{metric} {direction}"],
                name=escape(direction),
                boxpoints="all",
                jitter=0.4,
                marker_color=colour,
                hovertext=[escape(name) for name in table["object"]],
            )
    figure = _laid_out(figure, metric.replace("_", " ") + ", one point per object", "")
    return figure.update_layout(xaxis={"range": None, "autorange": True, "tickformat": None}, showlegend=False)


def _laid_out(figure, across: str, up: str, height: int = 380):
    return figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 20, "b": 46},
        dragmode=False,
        bargap=0.08,
        xaxis={"title": {"text": across}, "range": [-0.03, 1.03], "zeroline": False, "tickformat": ".0%"},
        yaxis={"title": {"text": up}, "automargin": True, "zeroline": False},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0},
    )

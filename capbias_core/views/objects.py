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

from capbias_core.aggregate.ranking import ALPHA, holm
from capbias_core.aggregate.resampling import NORMAL
from capbias_core.errors import need
from capbias_core.measures.base import of_images
from capbias_core.measures.gender_score import COOCCURRENCE as METRIC
from capbias_core.measures.gender_score import COOCCURRENCE_COUNT as COUNT
from capbias_core.measures.gender_score import METRIC as GENDER_SCORE
from capbias_core.measures.gender_score import cooccurrence as counts
from capbias_core.measures.gender_score_common import Sums, gendered, set_rows
from capbias_core.measures.gender_score_common import object_rows as rows_by_object
from capbias_core.prepare.tasks import rows_by_image
from capbias_core.runs.plan import Request, plan
from capbias_core.runs.run import job_of
from capbias_core.types import Attribute, counted, silent
from capbias_core.views.charts import BLUE_MARK, GREY, MARGINS, ORANGE_MARK
from capbias_core.views.results import attribute_of_run, current_runs, object_rows
from capbias_core.views.sentence import Answer, number
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


ENOUGH = 30  # captions, for an object to be named in the answer and in the chart beside human captions
MOST = 30  # objects in that chart
BIN = 0.05
BINS = "How many objects have which share. Objects with few captions lie at the ends by chance."
DISTANCE, SCORE = "Gender Object Distance", "Gender Score"
HEIGHT = 380
ROW = 24


def percent(share: float) -> str:
    """`68%`; `none` for a share that is not there."""
    return "none" if pd.isna(share) else f"{100 * share:.0f}%"


def object_answer(table: pd.DataFrame, overall: Sequence[float], n: int, model: str, attribute: Attribute) -> Answer:
    """Which objects go with a value more than beside human captions; without those, more than other objects do.

    table: analysis.objects.beside_human. overall: the share of each value over all captions with an object. Only
    objects with 30 captions are named, and only with a difference that chance does not explain.
    """
    shares = ", ".join(f"{value} {percent(share)}" for value, share in zip(attribute.values, overall, strict=True))
    support = f"Of {n:,} captions that name one value and an object: {shares}. Read the shares together with the counts"
    support += ": the labelled images need not show each value equally often."
    most = [_most(table, place, share) for place, share in enumerate(overall)]
    going = [_told(row, place, value, overall[place]) for place, row, value in _there(most, attribute)]
    if "human_share0" not in table:
        going = going or ["no object is clearly associated with one value more than the others"]
        return Answer(f"{model}: {'; '.join(going)}.", support)
    other = "".join(f"{own}. " for own in going)
    if _testable(table).empty:
        said = f"no object has {ENOUGH} captions of the captioner and of people, so none can be compared"
        return Answer(f"{model}: {said}.", f"{other}{support}")
    departing = [_departing(table, place) for place in range(len(overall))]
    there = _there(departing, attribute)
    parts = [
        f"{f'When {model} mentions ' * (not number)}“{row['object']}”{', it says' if not number else ':'} {value} "
        f"{percent(row[f'share{place}'])} of the time (people: {percent(row[f'human_share{place}'])})"
        for number, (place, row, value) in enumerate(there)
    ]
    objects = counted(len(_testable(table)), "object")
    tested = f"tested image by image, Holm over {objects} with {ENOUGH} captions on both sides"
    if parts:
        shown = {place for place, _, _ in there}
        rest = [value for place, value in enumerate(attribute.values) if place not in shown]
        none = f"No object is clearly mentioned more with {' or '.join(rest)} than in human captions. " if rest else ""
        counts = "; ".join(_beside(row, place, value) for place, row, value in there)
        return Answer(
            f"{'; '.join(parts)}.",
            f"{counts}. The largest significant difference toward each value, {tested}. {none}{support}",
        )
    said = "no object is clearly mentioned with one value more than in human captions"
    return Answer(f"{model}: {said}.", f"Differences {tested}. {other}{support}")


def _there(rows: Sequence[pd.Series | None], attribute: Attribute) -> list[tuple[int, pd.Series, str]]:
    """The rows that there are, with the place and the name of their value."""
    pairs = zip(rows, attribute.values, strict=True)
    return [(place, row, value) for place, (row, value) in enumerate(pairs) if row is not None]


def _most(table: pd.DataFrame, place: int, overall: float) -> pd.Series | None:
    """The object with the highest share of a value, told apart from all objects together; None for none."""
    kept = table[(table["captions"] >= ENOUGH) & (table[f"low{place}"] > overall)]
    return None if kept.empty else kept.sort_values([f"share{place}", "captions"]).iloc[-1]


def _told(row: pd.Series, place: int, value: str, overall: float) -> str:
    share = f"{_share(row, place)} of {row['captions']:,} captions"
    return f"“{row['object']}” is mentioned with {value} in {share} (all objects: {percent(overall)})"


def comparable(table: pd.DataFrame) -> bool:
    """Whether any object has enough captions of the captioner and of people."""
    return "human_captions" in table and not _testable(table).empty


def _testable(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table["captions"] >= ENOUGH) & (table["human_captions"] >= ENOUGH)]


def _departing(table: pd.DataFrame, place: int) -> pd.Series | None:
    """The object that goes with a value most beyond the human captions, told apart from them; None for none."""
    kept = _testable(table)
    error, difference = kept[f"error{place}"], _difference(kept, place)
    known = (error > 0) & difference.notna()
    p = holm(erfc((difference[known].abs() / error[known] / math.sqrt(2)).to_numpy()))
    told = difference[known][(p < ALPHA) & (difference[known] > 0)]
    return None if told.empty else kept.loc[told.idxmax()]


def _beside(row: pd.Series, place: int, value: str) -> str:
    return (
        f"“{row['object']}”, {value}: {_share(row, place)} of {row['captions']:,} captions, "
        f"{_share(row, place, 'human_')} of {int(row['human_captions']):,} human captions"
    )


def _share(row: pd.Series, place: int, side: str = "") -> str:
    """`68% [57%, 78%]`"""
    share, low, high = (percent(row[f"{side}{name}{place}"]) for name in ("share", "low", "high"))
    return f"{share} [{low}, {high}]"


def object_table(table: pd.DataFrame, attribute: Attribute) -> pd.DataFrame:
    """One row per object: captions, how many name each value, the share of the last value (of each, for more than two)
    with its interval, and the same of the human captions. Shares and differences are in percent."""
    shown = {"object": table["object"], "captions": table["captions"]}
    shown |= {f"name {value}": table[f"count{place}"] for place, value in enumerate(attribute.values)}
    places = range(len(attribute.values))[-1:] if len(attribute.values) == 2 else range(len(attribute.values))
    for place in places:
        value = attribute.values[place]
        shown[f"share {value}"] = 100 * table[f"share{place}"]
        shown[f"95% of share {value}"] = _intervals(table, place)
        if f"human_share{place}" in table:
            shown[f"humans: share {value}"] = 100 * table[f"human_share{place}"]
            shown[f"difference {value}"] = 100 * _difference(table, place)
            shown[f"95% of difference {value}"] = _intervals_of_difference(table, place)
    if "human_captions" in table:
        shown["human captions"] = table["human_captions"]
    first = [name for name in shown if "difference" in name]  # what the page is about is seen without a scroll
    return pd.DataFrame({name: shown[name] for name in ("object", *first, *shown)})


def _intervals(table: pd.DataFrame, place: int) -> list[str]:
    pairs = zip(table[f"low{place}"], table[f"high{place}"], strict=True)
    return ["few captions" if pd.isna(low) else f"{percent(low)} to {percent(high)}" for low, high in pairs]


def _intervals_of_difference(table: pd.DataFrame, place: int) -> list[str]:
    """`−3 to 9`, in percentage points, of objects with enough captions on both sides."""
    middle, half, enough = _difference(table, place), NORMAL * table[f"error{place}"], _testable(table).index
    told = middle.index.isin(enough) & (half > 0)
    return [
        f"{number(100 * low, 0)} to {number(100 * high, 0)}" if known else "few captions"
        for low, high, known in zip(middle - half, middle + half, told, strict=True)
    ]


def _difference(table: pd.DataFrame, place: int) -> pd.Series:
    return table[f"share{place}"] - table[f"human_share{place}"]


def by_difference(table: pd.DataFrame) -> pd.DataFrame:
    """The rows with the largest difference from the human captions first, in either direction; those with fewer than 30
    captions, and those that no human caption has, come after all others. Without human captions, in the order given.

    table: analysis.objects.beside_human.
    """
    last = sum(name.startswith("share") for name in table) - 1
    if f"human_share{last}" not in table:
        return table
    order = _difference(table, last).abs().where(table["captions"] >= ENOUGH, -1.0)
    return table.loc[order.fillna(-2.0).sort_values(ascending=False, kind="stable").index]


def counted_objects(workspace: Workspace, spec: RunSpec, human: Item | None) -> tuple[Ratios, pd.DataFrame]:
    """What a run of co-occurrence counts, and a row an object, `by_difference` where there are human captions."""
    if human is None:
        own = ratios(workspace, spec)
        return own, own.rows
    own, table = beside_people(workspace, spec, human)
    return own, by_difference(table)


def distribution_chart(table: pd.DataFrame, attribute: Attribute, model: str):
    """How many objects have which share of the last value: the model's as bars, in the colour of the value that most
    of these captions name, and the human captions' as a grey line."""
    need("A chart", "plotly")
    import plotly.graph_objects as go

    place = len(attribute.values) - 1
    edges = np.linspace(0, 1, round(1 / BIN) + 1)
    middle = edges[:-1] + BIN / 2
    figure = go.Figure()
    counts, _ = np.histogram(table[f"share{place}"].dropna(), edges)
    colours = np.where(middle < 1 / len(attribute.values), ORANGE_MARK, BLUE_MARK)
    figure.add_bar(x=middle, y=counts, name=escape(model), marker_color=colours, showlegend=False)
    if f"human_share{place}" in table:
        counts, _ = np.histogram(table[f"human_share{place}"].dropna(), edges)
        line = {"color": GREY, "shape": "hvh", "width": 2.5}
        figure.add_scatter(x=middle, y=counts, name="human captions", mode="lines", line=line)
    value = attribute.values[place]
    return _laid_out(figure, f"share of the captions with an object that name {value}", "objects", HEIGHT)


def beside_rows(table: pd.DataFrame, attribute: Attribute, most: int = MOST) -> tuple[pd.DataFrame, int]:
    """The objects of `beside_chart`, from the one that goes least with the last value beside the human captions to the
    one that goes most; at most so many, those with the largest difference. Then of how many objects they are."""
    place = len(attribute.values) - 1
    own = table[(table["captions"] >= ENOUGH) & table[f"human_share{place}"].notna()]
    kept = by_difference(own)[:most]
    return kept.loc[_difference(kept, place).sort_values(kind="stable").index], len(own)


def beside_chart(table: pd.DataFrame, attribute: Attribute, model: str, most: int = MOST):
    """Two dots per object, which its row names: the model's share of the last value and, in grey, the human captions'.

    The model's is orange where it is lower and blue where it is higher. Sorted by the difference; see `beside_rows`.
    """
    need("A chart", "plotly")
    import plotly.graph_objects as go

    place = len(attribute.values) - 1
    rows, _ = beside_rows(table, attribute, most)
    difference = _difference(rows, place)
    value, other = attribute.values[-1], attribute.values[0] if place == 1 else "another value"
    names = [escape(name) for name in rows["object"]]
    figure = go.Figure()
    ends = rows[[f"human_share{place}", f"share{place}"]].assign(gap=np.nan).to_numpy().ravel()  # one line, with gaps
    line = {"color": GREY, "width": 1.5}
    figure.add_scatter(x=ends, y=np.repeat(names, 3), mode="lines", line=line, showlegend=False, hoverinfo="skip")
    for title, prefix, own, colour in (
        ("human captions", "human_", rows, GREY),
        (f"{model}: {other} more often than people", "", rows[difference < 0], ORANGE_MARK),
        (f"{model}: {value} as often or more often", "", rows[difference >= 0], BLUE_MARK),
    ):
        symbol = "circle-open" if prefix else "circle"
        figure.add_scatter(
            x=own[f"{prefix}share{place}"],
            y=[escape(name) for name in own["object"]],
            mode="markers",
            name=escape(title),
            marker={"size": 11, "color": colour, "symbol": symbol, "line_width": 2 if prefix else 0},
            hovertext=[_hover(row, prefix, place, model) for row in own.to_dict("records")],
            hoverinfo="text",
        )
    height = MARGINS + ROW * max(3, len(rows))
    _laid_out(figure, f"share of the captions with the object that name {escape(value)}", "", height)
    order = {"categoryorder": "array", "categoryarray": names, "dtick": 1}
    return figure.update_layout(yaxis=order, legend={"traceorder": "normal"})


def beside_note(table: pd.DataFrame, attribute: Attribute) -> str:
    """Which objects `beside_chart` shows."""
    shown, every = beside_rows(table, attribute)
    most = f"the {len(shown)} with the largest difference of the {every}" if every > MOST else "all"
    return (
        f"Objects with {ENOUGH} captions or more: {most}, sorted by the difference between the two dots. A dot's "
        "interval stands beside it under the mouse; those of differences are in the table."
    )


def _hover(row: dict, prefix: str, place: int, model: str) -> str:
    """Object, whose captions, share with its interval, and how many captions."""
    whose = "human captions" if prefix else model
    low, high = row[f"{prefix}low{place}"], row[f"{prefix}high{place}"]
    interval = "" if pd.isna(low) else f" [{percent(low)}, {percent(high)}]"
    share = percent(row[f"{prefix}share{place}"])
    return f"{escape(row['object'])}, {escape(whose)}: {share}{interval} of {int(row[f'{prefix}captions']):,} captions"


def short_names(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """analysis.objects.scores_by_object with columns that fit: `Male`, `ratio Male` for those of the metric."""
    return table.rename(columns=lambda name: name.removeprefix(metric).strip("_ ").replace("_", " "))


def score_of(measure: str) -> tuple[str, str]:
    """What a measure of objects scores, in words, and its metric."""
    return (SCORE, "gender_score") if measure == GENDER_SCORE else (DISTANCE, "gender_object_distance")


def score_chart(table: pd.DataFrame, metric: str, directions: Sequence[str]):
    """Distribution over objects of a score of each value (the paper's Figure 5), as boxes with their points."""
    need("A chart", "plotly")
    import plotly.graph_objects as go

    figure = go.Figure()
    for direction, colour in zip(directions, (ORANGE_MARK, BLUE_MARK, GREY, *[GREY] * len(directions)), strict=False):
        column = f"{metric} {direction}"
        if column in table:
            figure.add_box(
                x=table[column],
                name=escape(direction),
                boxpoints="all",
                jitter=0.4,
                marker_color=colour,
                hovertext=[escape(name) for name in table["object"]],
            )
    figure = _laid_out(figure, metric.replace("_", " ") + ", one point per object", "", HEIGHT)
    return figure.update_layout(xaxis={"range": None, "autorange": True, "tickformat": None}, showlegend=False)


def _laid_out(figure, across: str, up: str, height: int):
    return figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 20, "b": 46},
        dragmode=False,
        bargap=0.08,
        xaxis={"title": {"text": across}, "range": [-0.03, 1.03], "zeroline": False, "tickformat": ".0%"},
        yaxis={"title": {"text": up}, "automargin": True, "zeroline": False},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0},
    )

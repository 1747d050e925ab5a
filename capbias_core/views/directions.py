"""Both directions of a metric, value to task words (A->T) and back (T->A): rows, the plane, a sentence, a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Annotated, Any

import numpy as np
import pandas as pd

from capbias_core.aggregate import provisional
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.measures import dbac
from capbias_core.measures.options import Option
from capbias_core.measures.registry import METRICS, variants_of
from capbias_core.types import A_TO_T, T_TO_A, counted
from capbias_core.views.charts import GREY, MEASURED, error_bars, graph_objects, name_places, name_points
from capbias_core.views.published import measured_of
from capbias_core.views.sentence import Answer, decimals, intervals_over, measure, with_interval
from capbias_core.views.tables import value_text
from capbias_core.views.view import Shown
from capbias_core.workspace.store import Workspace

WAYS = (A_TO_T, T_TO_A)
NAMES = ("DBAC", "DBAC_verbs", "DBAC_equations", "DBAC_accuracy", "DPA")
# Metric and direction of each way, by what the pair is called.
MEASURES = {
    **{name: {way: (name, way) for way in WAYS} for name in NAMES},
    "DBA": {A_TO_T: ("DBA_O_crossfit", ""), T_TO_A: ("DBA_G_crossfit", "")},
}
# What captioners that are compared have in common.
WAY = ("encoder", "variant", "seeds")
ALIKE = ("model", "attribute", *WAY)
NUMBERS = ("value", "ci_low", "ci_high")
# Metrics and directions that stand beside a pair.
BESIDE = (("LIC", ""), ("BA_crossfit", ""))
CONSTANT = {name: ((f"{name}_constant", A_TO_T), (f"{name}_added", A_TO_T)) for name in ("DBAC", "DBAC_verbs")}
# Metrics that must have one sign before a direction is stated: the variants, and what reading adds to a constant
# attacker.
VARIANTS = {**dict.fromkeys(dbac.VARIANTS, tuple(dbac.VARIANTS)), "DBAC_verbs": ("DBAC_verbs",)}
ADDED = {**dict.fromkeys(dbac.VARIANTS, dbac.ADDED), "DBAC_verbs": "DBAC_verbs_added"}
UNCLEAR, DISAGREE = "the interval contains 0", "the variants disagree"
NOT_BEYOND, NOT_COMPARED = (
    "an attacker that reads no text may explain it",
    "not compared with an attacker that reads no text",
)


ADVICE = (
    "Images to add to the training set follow the DBAC paper's advice; capbias has not tested that it helps. It "
    "is given only where a direction is shown."
)
BELOW_TABLE = (
    "± is the standard deviation over attacker seeds. A direction is shown if every variant that was measured has its "
    "sign, and if reading captions adds to an attacker that reads no text; all by their intervals."
)


def both_directions(
    workspace: Workspace,
    collection: Annotated[str, Option("the collection", metavar="NAME")],
    attribute: Annotated[str, Option("the attribute (default: as the page Answer)", metavar="NAME")] = "",
    metric: Annotated[str, Option(f"one of: {', '.join(MEASURES)} (default: the first measured)", metavar="NAME")] = "",
) -> Shown:
    """The captioners that were measured alike in both directions of a metric; of several settings that of most."""
    rows, attribute, _ = measured_of(workspace, collection, attribute, each_seeds=True)
    known = measures_in(rows)
    if not known:
        raise CapbiasError(f"Nothing of {collection} is measured in both directions.", "Score it with --metric dbac.")
    if metric and metric not in known:
        raise unknown_name("metric in both directions", metric, known)
    name = metric or known[0]
    frame = directions(rows, name)
    comparable = frame[(frame[list(WAY)] == list(ways_measured(frame)[0])).all(axis=1)]
    shown, text = directions_shown(comparable, rows, name), directions_answer(comparable, rows, name, attribute)
    notes = (text.support, text.details, measured_otherwise(frame, comparable), *shown.notes)
    return replace(shown, sentence=text.headline, notes=tuple(filter(None, notes)))


def directions_shown(frame: pd.DataFrame, rows: pd.DataFrame, name: str) -> Shown:
    """Rows of `directions` of captioners measured alike as a view, whose sentence is in `directions_answer`."""
    return Shown(
        title=f"{name} in both directions",
        rows=frame,
        notes=(f"{basis(frame)} Value [{intervals_over(rows)}]. {BELOW_TABLE}", of_tasks(ADVICE, name)),
        table=directions_table(frame, rows, name),
        chart=lambda: plane(frame, name),
    )


def directions(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    """One row per captioner, attribute, encoder, variant and number of seeds for which both directions were measured.

    rows: of the results table. Columns: those of ALIKE, `A->T` and `T->A` with `_low` and `_high` for the 95% interval,
    `A->T_n` and `T->A_n`.
    """
    rows, sides = rows.assign(variant=variants_of(rows)), []
    for way, (metric, direction) in MEASURES[measure].items():
        side = rows[(rows["metric"] == metric) & (rows["direction"] == direction) & rows["value"].notna()]
        names = {"value": way, "ci_low": f"{way}_low", "ci_high": f"{way}_high", "n": f"{way}_n"}
        sides.append(side[[*ALIKE, *NUMBERS, "n"]].rename(columns=names))
    return sides[0].merge(sides[1], on=list(ALIKE))


def stated(row: Mapping[str, Any], rows: pd.DataFrame, name: str) -> dict[str, tuple[int, str]]:
    """Of each direction the sign that may be stated, 1 or -1, and ''; or 0 and why none may.

    The metric, each variant of it that was measured alike and what reading adds to a constant attacker must have this
    sign, all clear of 0. row: of `directions`. rows: results.
    """
    of_row = [rows[column] == row[column] for column in ("model", "attribute", "encoder")]
    matching, signs = rows[np.logical_and.reduce([*of_row, variants_of(rows) == row["variant"]])], {}
    for way in WAYS:
        sign, of_way = _sign(row[f"{way}_low"], row[f"{way}_high"]), matching[matching["direction"] == way]
        variants, added = (
            of_way[of_way["metric"].isin(names)] for names in (VARIANTS.get(name, ()), [ADDED.get(name)])
        )
        reasons = {
            UNCLEAR: not sign,
            DISAGREE: not _all_have(sign, variants),
            NOT_COMPARED: name in ADDED and added.empty,
            NOT_BEYOND: not _all_have(sign, added),
        }
        reason = next((text for text, applies in reasons.items() if applies), "")
        signs[way] = (0 if reason else sign, reason)
    return signs


def _all_have(sign: int, rows: pd.DataFrame) -> bool:
    return all(_sign(low, high) == sign for low, high in zip(rows["ci_low"], rows["ci_high"], strict=True))


def _sign(low: float | None, high: float | None) -> int:
    if low is None or high is None or pd.isna(low):
        return 0
    return 1 if low > 0 else -1 if high < 0 else 0


def ways_measured(frame: pd.DataFrame) -> list[tuple]:
    """How captioners were measured, as values of WAY: first what most captioners share, then most seeds."""
    groups = frame.groupby(list(WAY), sort=False)["model"].nunique()
    return sorted(groups.index, key=lambda way: (-groups[way], -way[-1]))


def measures_in(rows: pd.DataFrame) -> list[str]:
    """The pairs that were measured for some captioner."""
    return [measure for measure in MEASURES if len(directions(rows, measure))]


def beside(
    rows: pd.DataFrame, model: str, attribute: str, encoder: str, measure: str = ""
) -> dict[tuple[str, str], dict | None]:
    """For LIC, of this encoder, and BA the captioner's row with most seeds, or None; beside DBAC also what a constant
    attacker has of A->T, and what this one adds."""
    mine = rows[(rows["model"] == model) & (rows["attribute"] == attribute) & rows["value"].notna()]
    mine = mine[mine["encoder"].isin([encoder, ""])] if encoder else mine
    rows_by_key = {}
    for key in (*CONSTANT.get(measure, ()), *BESIDE):
        of_metric = mine[(mine["metric"] == key[0]) & (mine["direction"] == key[1])].sort_values(
            "seeds", ascending=False
        )
        rows_by_key[key] = of_metric.iloc[0].to_dict() if len(of_metric) else None
    return rows_by_key


# the plane

HEIGHT, BELOW = 520, 66  # pixels of the chart, and those of them above and below the plot


def plane(frame: pd.DataFrame, name: str):
    """A point with both intervals for each captioner: A->T across, T->A up, lines at 0.

    frame: of `directions`, one row a captioner. name: of the metric.
    """
    hover = [
        "<br>".join([escape(row["model"]), *(f"{measure(name, way)} {_span(row, name, way)}" for way in WAYS)])
        for row in frame.to_dict("records")
    ]
    bars = {way: error_bars(frame[way], frame[f"{way}_low"], frame[f"{way}_high"], MEASURED, 1.5) for way in WAYS}
    figure = graph_objects().Figure()
    figure.add_scatter(
        x=frame[A_TO_T],
        y=frame[T_TO_A],
        mode="markers",
        marker={"size": 10, "color": MEASURED},
        hoverinfo="text",
        hovertext=hover,
        error_x=bars[A_TO_T],
        error_y=bars[T_TO_A],
    )
    for line in (figure.add_vline, figure.add_hline):
        line(0, line={"dash": "dash", "color": GREY, "width": 1.5})
    ends = {}  # of the axes: 0, every interval, and room for names
    for way in WAYS:
        shown = frame[[f"{way}_low", f"{way}_high", way]]
        low, high = min(0.0, shown.min().min()), max(0.0, shown.max().max())
        room = (0.25 if way == A_TO_T else 0.15) * (high - low or 1.0)
        ends[way] = low - room, high + room

    def share(values: Any, way: str) -> Any:
        """Values as shares of the plot, from the left or the bottom."""
        return (values - ends[way][0]) / (ends[way][1] - ends[way][0])

    across, down = share(frame[A_TO_T], A_TO_T), 1 - share(frame[T_TO_A], T_TO_A)
    zero_x, zero_y = share(0, A_TO_T), 1 - share(0, T_TO_A)
    lines = [(zero_x - 0.002, 0, zero_x + 0.002, 1), (0, zero_y - 0.002, 1, zero_y + 0.002)]
    for x, y, row in zip(across, down, frame.to_dict("records"), strict=True):
        left, right = (share(row[f"{A_TO_T}_{end}"], A_TO_T) for end in ("low", "high"))
        bottom, top = (share(row[f"{T_TO_A}_{end}"], T_TO_A) for end in ("low", "high"))
        intervals = (left, y - 0.002, right, y + 0.002), (x - 0.002, 1 - top, x + 0.002, 1 - bottom)
        lines += [box for box in intervals if np.isfinite(box).all()]
    models = list(frame["model"])
    places = name_places(np.stack([across, down], axis=1), models, HEIGHT - BELOW, lines=lines)
    name_points(figure, frame[A_TO_T], frame[T_TO_A], models, places, list(ends.values()))
    titles = {A_TO_T: "from the value to the task words", T_TO_A: "from the task words to the value"}
    axes = {
        way: {"title": {"text": f"{measure(name, way)}: {title}"}, "zeroline": False, "range": list(ends[way])}
        for way, title in titles.items()
    }
    return figure.update_layout(
        height=HEIGHT,
        margin={"l": 10, "r": 10, "t": 10, "b": BELOW - 10},
        showlegend=False,
        dragmode=False,
        xaxis=axes[A_TO_T],
        yaxis=axes[T_TO_A],
    )


def _span(row: dict, name: str, way: str) -> str:
    metric = MEASURES[name][way][0]
    digits = decimals(metric, METRICS[metric].scale)
    return with_interval(row[way], row[f"{way}_low"], row[f"{way}_high"], digits)


# sentences and the table

# What a direction above 0 says, by metric: DBAC reads the whole caption, the others the objects and values alone.
CAPTION_SAYS = (
    "T→A above 0: with objects masked, the captions reveal more of the image's objects than human captions do. A→T "
    "above 0: with {attribute} words masked, they reveal more of the labelled {attribute}, or name objects more often."
)
LABELS_SAY = (
    "T→A above 0: the objects on an image go more with the {attribute} that the model's captions name than with that "
    "in the human ones. A→T above 0: the labelled {attribute} goes more with the objects that they name."
)
# What the DBAC paper (section 2) advises to add to the training images where a direction is above 0.
IMAGES = {T_TO_A: "these objects, other value", A_TO_T: "this value, without these objects"}
BOTH_KINDS = "both kinds"


def of_tasks(text: str, name: str) -> str:
    """A text on objects as one on the task words of this metric."""
    return text.replace("objects", "verbs") if name == "DBAC_verbs" else text


def directions_answer(frame: pd.DataFrame, rows: pd.DataFrame, name: str, attribute: str) -> Answer:
    """One claim: how many captioners reveal more than people do in the direction in which most differ (A->T of equals);
    or why there is no conclusion. The other direction is in the support.

    rows: results, with other variants and those of the constant attacker if measured.
    """
    signs = [stated(row, rows, name) for row in frame.to_dict("records")]
    counts = {way: Counter(sign for sign, _ in (of_row[way] for of_row in signs)) for way in WAYS}
    reasons = {way: Counter(reason for _, reason in (of_row[way] for of_row in signs) if reason) for way in WAYS}
    what = {A_TO_T: attribute, T_TO_A: "of the objects"}
    first = max(WAYS, key=lambda way: len(frame) - counts[way][0])
    more, less = counts[first][1], counts[first][-1]
    side, number, rest = ("more", more, less) if more else ("less", less, 0)
    verb, measured_with = "reveals" if number == 1 else "reveal", way_text(frame.iloc[0][list(WAY)])
    headline = (
        f"{number} of {counted(len(frame), 'captioner')} {verb} {side} {what[first]} than people do "
        f"({measure(name, first)}; {measured_with}){f', {rest} less' if rest else ''}."
    )
    if not more and not less:
        reason, _ = (reasons[A_TO_T] + reasons[T_TO_A]).most_common(1)[0]
        headline = f"{name} ({measured_with}): no conclusion, {reason}."
    lines = []
    for way in WAYS:
        parts = [f"{counts[way][sign]} {word}" for sign, word in ((1, "more"), (-1, "less")) if counts[way][sign]]
        parts = parts if way != first else []
        if reasons[way]:
            why = "; ".join(f"{reason} ({n})" for reason, n in reasons[way].most_common())
            parts.append(f"no conclusion for {counts[way][0]} of {len(frame)}: {why}")
        if parts:
            lines.append(f"{way.replace('->', '→')}: {', '.join(parts)}.")
    says = of_tasks((CAPTION_SAYS if name.startswith("DBAC") else LABELS_SAY).format(attribute=attribute), name)
    return Answer(
        of_tasks(headline, name),
        " ".join([*lines, says, "Counts use 95% intervals."]),
        details="For a captioner not trained on these human captions, this is a difference, not amplification.",
    )


def way_text(way: Sequence) -> str:
    """How captioners were measured, in a few words. way: values of WAY."""
    *parts, seeds = way
    named = [str(part).replace("_", " ") for part in parts if part]
    return ", ".join([*named, counted(int(seeds), "seed")] if seeds else named) or "all images"


def measured_otherwise(frame: pd.DataFrame, shown: pd.DataFrame) -> str:
    """Which captioners were measured, but otherwise than those that are shown, and how; '' if none was.

    frame: as `directions` gives it. shown: those rows of it that are measured alike.
    """
    rest = frame[~frame["model"].isin(shown["model"])]
    others = [f"{', '.join(group['model'])} ({way_text(way)})" for way, group in rest.groupby(list(WAY), sort=False)]
    return f"Other settings (choose them under Measured with): {'; '.join(others)}." if others else ""


def basis(frame: pd.DataFrame) -> str:
    """n of both directions, attacker and seeds; of several captioners from the fewest to the most."""
    first, sizes = frame.iloc[0], []
    for way in (T_TO_A, A_TO_T):
        low, high = int(frame[f"{way}_n"].min()), int(frame[f"{way}_n"].max())
        sizes.append(f"{way.replace('->', '→')} {low:,}" + (f" to {high:,}" if low != high else ""))
    what = "test images per seed" if first["seeds"] else "captions"
    attacker = f"; attacker {first['encoder']}" if first["encoder"] else ""
    seeds = f", {counted(first['seeds'], 'seed')}" if first["seeds"] else ""
    return f"{', '.join(sizes)} {what}{attacker}{seeds}."


def explained(name: str) -> str:
    """The explanations of the metrics of a pair."""
    metrics = dict.fromkeys(metric for metric, _ in (*MEASURES[name].values(), *CONSTANT.get(name, ())))
    return " ".join(f"{metric}: {METRICS[metric].explanation}" for metric in metrics)


def _other_text(row: dict | None, seeds: int) -> str:
    """A value of another metric, with its number of seeds if that is not the table's; '' for None."""
    if row is None:
        return ""
    other = row["seeds"] not in (0, seeds) and not provisional(row)  # which names its seeds
    return value_text(row) + (f" ({counted(row['seeds'], 'seed')})" if other else "")


def directions_table(frame: pd.DataFrame, rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """One row a captioner: both directions, what to collect, and beside them LIC, BA and DBAC's constant attacker."""
    table = []
    for row in frame.sort_values(T_TO_A, ascending=False).to_dict("records"):
        signs, others = stated(row, rows, name), beside(rows, row["model"], row["attribute"], row["encoder"], name)
        kinds = [text for way, text in IMAGES.items() if signs[way][0] > 0]
        kinds = [BOTH_KINDS] if len(kinds) == len(IMAGES) else kinds
        open_ = [f"{way.replace('->', '→')}: {signs[way][1]}" for way in IMAGES if signs[way][1]]
        if any(reason == DISAGREE for _, reason in signs.values()):  # no advice where the variants disagree
            kinds, open_ = [], [f"none, {DISAGREE}"]
        table.append(
            {
                "captioner": row["model"],
                **{measure(name, way): _span(row, name, way) for way in IMAGES},
                "images to add": of_tasks("; ".join([*kinds, *open_]) or "none by this metric", name),
                **{measure(*key): _other_text(other, row["seeds"]) for key, other in others.items()},
            }
        )
    return pd.DataFrame(table)

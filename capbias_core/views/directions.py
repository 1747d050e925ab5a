"""Both directions of a metric, value to task words (A->T) and back (T->A): rows, the plane, a sentence, a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

import numpy as np
import pandas as pd

from capbias_core.errors import need
from capbias_core.measures.registry import METRICS, variants_of
from capbias_core.types import A_TO_T, T_TO_A, counted
from capbias_core.views.charts import GREY, MEASURED, Box, name_places, name_points
from capbias_core.views.sentence import Answer, contradicted, decimals, limit, measure, number
from capbias_core.views.tables import value_text

NAMES = ("DBAC", "DBAC_verbs", "DBAC_equations", "DBAC_accuracy", "DPA")
# Metric and direction of each way, by what the pair is called.
MEASURES = {
    **{name: {way: (name, way) for way in (A_TO_T, T_TO_A)} for name in NAMES},
    "DBA": {A_TO_T: ("DBA_O_crossfit", ""), T_TO_A: ("DBA_G_crossfit", "")},
}
# What captioners that are compared have in common.
WAY = ("encoder", "variant", "seeds")
ALIKE = ("model", "attribute", *WAY)
NUMBERS = ("value", "ci_low", "ci_high")
# Metrics and directions that stand beside a pair.
BESIDE = (("LIC", ""), ("BA_crossfit", ""))
CONSTANT = {name: ((f"{name}_constant", A_TO_T), (f"{name}_added", A_TO_T)) for name in ("DBAC", "DBAC_verbs")}


def directions(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    """One row per captioner, attribute, encoder, variant and number of seeds for which both directions were measured.

    rows: of the results table. Columns: those of ALIKE, `A->T` and `T->A` with `_low` and `_high` for the 95% interval,
    `A->T_n` and `T->A_n`.
    """
    rows, sides = rows.assign(variant=variants_of(rows)), []
    for way, (metric, direction) in MEASURES[measure].items():
        own = rows[(rows["metric"] == metric) & (rows["direction"] == direction) & rows["value"].notna()]
        names = {"value": way, "ci_low": f"{way}_low", "ci_high": f"{way}_high", "n": f"{way}_n"}
        sides.append(own[[*ALIKE, *NUMBERS, "n"]].rename(columns=names))
    return sides[0].merge(sides[1], on=list(ALIKE))


def signs(row: dict, added: dict | None = None) -> dict[str, int]:
    """Of each direction 1 where it is above 0 by its interval, -1 where it is below, 0 where that is unclear.

    row: of `directions`. added: the row of what the attacker adds to a constant one's A->T, which must then have the
    same sign.
    """
    across = _sign(row[f"{A_TO_T}_low"], row[f"{A_TO_T}_high"])
    if added is not None and across != _sign(added["ci_low"], added["ci_high"]):
        across = 0
    return {A_TO_T: across, T_TO_A: _sign(row[f"{T_TO_A}_low"], row[f"{T_TO_A}_high"])}


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
    own = rows[(rows["model"] == model) & (rows["attribute"] == attribute) & rows["value"].notna()]
    own = own[own["encoder"].isin([encoder, ""])] if encoder else own
    found = {}
    for key in (*CONSTANT.get(measure, ()), *BESIDE):
        alike = own[(own["metric"] == key[0]) & (own["direction"] == key[1])].sort_values("seeds", ascending=False)
        found[key] = alike.iloc[0].to_dict() if len(alike) else None
    return found


# What the DBAC paper (section 2) advises to add to the training images.
ADVICE = {T_TO_A: "these objects, other value", A_TO_T: "this value, without these objects"}
HEIGHT = 520
# Of its pixels, those above and below the plot.
BELOW = 66
# Where the quadrants are named, which captioners' names keep off: left, top, right, bottom in shares of the plot.
CORNERS = ((0, 0, 1, 0.12), (0, 0.88, 1, 1))
# Narrow, so that they stay in their quadrant in a narrow window.
QUADRANTS = (
    ("add both kinds<br>of images", 1, 1),
    ("add images:<br>these objects,<br>other value", 0, 1),
    ("add images:<br>this value, without<br>these objects", 1, 0),
    ("no advice", 0, 0),
)


def plane(frame: pd.DataFrame, name: str):
    """A point with both intervals for each captioner: A->T across, T->A up, lines at 0, quadrants named.

    frame: of `directions`, one row a captioner. name: of the metric.
    """
    need("A chart", "plotly")
    import plotly.graph_objects as go

    figure = go.Figure(
        go.Scatter(
            x=frame[A_TO_T],
            y=frame[T_TO_A],
            mode="markers",
            marker={"size": 10, "color": MEASURED},
            hoverinfo="text",
            hovertext=[_hover(row, name) for row in frame.to_dict("records")],
            error_x=_error(frame, A_TO_T),
            error_y=_error(frame, T_TO_A),
        )
    )
    for line in (figure.add_vline, figure.add_hline):
        line(0, line={"dash": "dash", "color": GREY, "width": 1.5})
    for text, x, y in QUADRANTS:
        figure.add_annotation(
            text=of_tasks(text, name),
            x=x,
            y=y,
            xref="x domain",
            yref="y domain",
            showarrow=False,
            font={"color": GREY, "size": 13},
            xanchor="right" if x else "left",
            yanchor="top" if y else "bottom",
            align="right" if x else "left",
        )
    ends = {way: _range(frame, way) for way in (A_TO_T, T_TO_A)}
    lines = [*_zero_lines(ends), *_intervals(frame, ends)]
    places = name_places(_in_plot(frame, ends), list(frame["model"]), HEIGHT - BELOW, CORNERS, lines)
    name_points(figure, frame[A_TO_T], frame[T_TO_A], list(frame["model"]), places, list(ends.values()))
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 10, "r": 10, "t": 10, "b": BELOW - 10},
        showlegend=False,
        dragmode=False,
        xaxis=_axis(f"{name} A→T: from the value to the task words", *ends[A_TO_T]),
        yaxis=_axis(f"{name} T→A: from the task words to the value", *ends[T_TO_A]),
    )
    return figure


def _axis(title: str, low: float, high: float) -> dict:
    return {"title": {"text": title}, "zeroline": False, "range": [low, high]}


def _in_plot(frame: pd.DataFrame, ends: dict[str, tuple[float, float]]) -> np.ndarray:
    """(N, 2): how far right and how far down each point lies, as shares of the plot."""
    shares = [(frame[way] - low) / (high - low) for way, (low, high) in ends.items()]
    return np.stack([shares[0], 1 - shares[1]], axis=1)


def _intervals(frame: pd.DataFrame, ends: dict[str, tuple[float, float]]) -> list[Box]:
    """The boxes of the lines of intervals, as shares of the plot."""
    found = []
    for (across, down), row in zip(_in_plot(frame, ends), frame.to_dict("records"), strict=True):
        at = {
            way: [(row[f"{way}_{end}"] - low) / (high - low) for end in ("low", "high")]
            for way, (low, high) in ends.items()
        }
        (left, right), (bottom, top) = at[A_TO_T], at[T_TO_A]
        found += [(left, down - 0.002, right, down + 0.002), (across - 0.002, 1 - top, across + 0.002, 1 - bottom)]
    return [box for box in found if np.isfinite(box).all()]


def _zero_lines(ends: dict[str, tuple[float, float]]) -> list[Box]:
    """The boxes of the lines at 0, as shares of the plot: left, top, right, bottom."""
    across, up = (-low / (high - low) for low, high in ends.values())
    return [(across - 0.002, 0, across + 0.002, 1), (0, 1 - up - 0.002, 1, 1 - up + 0.002)]


def _error(frame: pd.DataFrame, way: str) -> dict:
    return {
        "type": "data",
        "symmetric": False,
        "array": (frame[f"{way}_high"] - frame[way]).fillna(0),
        "arrayminus": (frame[way] - frame[f"{way}_low"]).fillna(0),
        "color": MEASURED,
        "thickness": 1.5,
        "width": 0,
    }


def _range(frame: pd.DataFrame, way: str) -> tuple[float, float]:
    """0, every interval, and room for the names of the quadrants, in a narrow window across too."""
    ends = frame[[f"{way}_low", f"{way}_high", way]]
    low, high = min(0.0, ends.min().min()), max(0.0, ends.max().max())
    room = (0.35 if way == A_TO_T else 0.25) * (high - low or 1.0)
    return low - room, high + room


def _hover(row: dict, name: str) -> str:
    ways = [f"{measure(name, way)} {_span(row, name, way)}" for way in (A_TO_T, T_TO_A)]
    return "<br>".join([escape(row["model"]), *ways])


def _span(row: dict, name: str, way: str) -> str:
    metric = MEASURES[name][way][0]
    digits = decimals(metric, METRICS[metric].scale)
    if pd.isna(row[f"{way}_low"]):
        return number(row[way], digits)
    return f"{number(row[way], digits)} [{limit(row[f'{way}_low'], digits)}, {limit(row[f'{way}_high'], digits)}]"


# What a direction above 0 says, by metric: DBAC reads the whole caption, the others the objects and values alone.
CAPTION_SAYS = (
    "T→A above 0: with objects masked, the captions reveal more of the image's objects than human captions do. A→T "
    "above 0: with {attribute} words masked, they reveal more of the labelled {attribute}, or name objects more often."
)
LABELS_SAY = (
    "T→A above 0: the objects on an image go more with the {attribute} that the model's captions name than with that "
    "in the human ones. A→T above 0: the labelled {attribute} goes more with the objects that they name."
)


def of_tasks(text: str, name: str) -> str:
    """A text on objects as one on the task words of this metric."""
    return text.replace("objects", "verbs") if name == "DBAC_verbs" else text


def directions_answer(frame: pd.DataFrame, rows: pd.DataFrame, name: str, attribute: str) -> Answer:
    """How many captioners reveal more than people in each direction, and what limits that.

    rows: results, with those of the constant attacker if measured.
    """
    above, below = ({way: _clear(frame, way, sign) for way in (A_TO_T, T_TO_A)} for sign in (1, -1))
    limits = []
    for way in (A_TO_T, T_TO_A):
        if split := _split(frame, rows, name, way):
            limits.append(f"Another variant of {name} has the opposite sign of {_arrow(way)} for {len(split)}.")
    if name in CONSTANT:
        added = [_others(rows, own, name)[CONSTANT[name][1]] for own in frame.to_dict("records")]
        if known := [row for row in added if row]:
            shown = sum((row["ci_low"] or 0) > 0 for row in known)
            limits.append(f"A→T beats an attacker that reads no text for {shown} of {len(known)}.")
    what = {A_TO_T: f"more {attribute}", T_TO_A: "more of the objects"}
    parts = [
        f"{above[way]} of {counted(len(frame), 'captioner') if way == A_TO_T else len(frame)} "
        f"{'reveals' if above[way] == 1 else 'reveal'} {what[way]} than people do ({measure(name, way)})"
        + (f", {below[way]} less" if below[way] else "")
        for way in (A_TO_T, T_TO_A)
    ]
    says = of_tasks((CAPTION_SAYS if name.startswith("DBAC") else LABELS_SAY).format(attribute=attribute), name)
    return Answer(
        of_tasks("; ".join(parts) + ".", name),
        " ".join([*limits, says, "Counts use 95% intervals."]),
        details="For a captioner not trained on these human captions, this is a difference, not amplification.",
    )


def _clear(frame: pd.DataFrame, way: str, sign: int) -> int:
    """How many captioners have an interval of this direction above (1) or below 0 (-1)."""
    return int(((frame[f"{way}_low"] > 0) if sign > 0 else (frame[f"{way}_high"] < 0)).sum())


def _arrow(way: str) -> str:
    return way.replace("->", "→")


def _split(frame: pd.DataFrame, rows: pd.DataFrame, name: str, way: str) -> set[str]:
    """Captioners of which another variant of this metric has the other sign in a direction."""
    alike = rows[rows["encoder"].isin(frame["encoder"])]
    return {model for model, direction in contradicted(alike, name) if direction == way} & set(frame["model"])


def _others(rows: pd.DataFrame, row: dict, name: str) -> dict[tuple[str, str], dict | None]:
    return beside(rows, row["model"], row["attribute"], row["encoder"], name)


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
    found = [
        f"{', '.join(own['model'])} ({way_text(way)})" for way, own in rest.groupby(list(WAY), sort=False) if len(own)
    ]
    return f"Other settings (choose them under Measured with): {'; '.join(found)}." if found else ""


def basis(frame: pd.DataFrame) -> str:
    """n of both directions, attacker and seeds; of several captioners from the fewest to the most."""
    first = frame.iloc[0]
    sizes = [f"{way.replace('->', '→')} {_from_to(frame[f'{way}_n'])}" for way in (T_TO_A, A_TO_T)]
    what = "test images per seed" if first["seeds"] else "captions"
    attacker = f"; attacker {first['encoder']}" if first["encoder"] else ""
    seeds = f", {counted(first['seeds'], 'seed')}" if first["seeds"] else ""
    return f"{', '.join(sizes)} {what}{attacker}{seeds}."


def _from_to(numbers: pd.Series) -> str:
    low, high = int(numbers.min()), int(numbers.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def explained(name: str) -> str:
    """What the metrics of a pair say of themselves."""
    metrics = dict.fromkeys(metric for metric, _ in (*MEASURES[name].values(), *CONSTANT.get(name, ())))
    return " ".join(f"{metric}: {METRICS[metric].explanation}" for metric in metrics)


def _advice(found: dict[str, int], split: Collection[str]) -> str:
    """Which images to add. found: of `signs`. split: directions in which another variant has the other sign."""
    kinds = [text for way, text in ADVICE.items() if found[way] > 0 and way not in split]
    unclear = [_arrow(way) for way in ADVICE if not found[way] and way not in split]
    if len(kinds) == len(ADVICE):
        return "both kinds"
    if len(unclear) == len(ADVICE):
        return "unclear both ways"
    open_ = [f"{way} unclear" for way in unclear] + [f"{way.replace('->', '→')}: variants disagree" for way in split]
    return "; ".join([*kinds, *open_]) or "none by this metric"


def directions_table(frame: pd.DataFrame, rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """One row a captioner: both directions, what to collect, and beside them LIC, BA and DBAC's constant attacker."""
    table, added = [], CONSTANT[name][1] if name in CONSTANT else None
    split = {way: _split(frame, rows, name, way) for way in ADVICE}
    for row in frame.sort_values(T_TO_A, ascending=False).to_dict("records"):
        others = _others(rows, row, name)
        table.append(
            {
                "captioner": row["model"],
                **{measure(name, way): _span(row, name, way) for way in (T_TO_A, A_TO_T)},
                "images to add": of_tasks(
                    _advice(
                        signs(row, others.get(added) if added else None),
                        [way for way in ADVICE if row["model"] in split[way]],
                    ),
                    name,
                ),
                **{measure(*other): value_text(found) if found else "" for other, found in others.items()},
            }
        )
    return pd.DataFrame(table)

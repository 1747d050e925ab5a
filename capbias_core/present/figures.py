"""Plotly figures from result rows. Colours and fonts come from the page's theme; the neutral point is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.errors import need
from capbias_core.measures.registry import METRICS, variants_of
from capbias_core.present.colour import BLUE_MARK, GREY, MEASURED, ORANGE_MARK
from capbias_core.present.sentence import Second, better_text, interval_over, measure, signed
from capbias_core.types import Attribute, counted

ROW_HEIGHT, STEP_HEIGHT = 34, 24
FOR_NUMBERS = 1.3
MARGINS = 96
TYPE = 14  # pixels
# Properties of a figure that are lengths in pixels, wherever they stand.
LENGTHS = {"size", "thickness", "width", "arrowwidth", "standoff", "ax", "ay", "xshift", "yshift", "l", "r", "t", "b"}


def chart_series(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each chart of intervals by its name, such as `DBAC A→T`, in the order of the metrics.

    One row per captioner: a metric of people's captions alone has no chart, and a value that is not defined no dot.
    Coverage and the like are in the name; so are attacker and attribute where there are several.
    """
    of_people = [name for name, metric in METRICS.items() if metric.side == "human"]
    rows = rows[rows["value"].notna() & ~rows["metric"].isin(of_people)]
    apart = [name for name in ("encoder", "attribute") if rows.loc[rows[name] != "", name].nunique() > 1]
    rows = rows.assign(variant=variants_of(rows))
    found: dict[str, pd.DataFrame] = {}
    for (metric, direction, said, *more), own in rows.groupby(["metric", "direction", "variant", *apart], sort=False):
        name = " ".join(filter(None, (measure(metric, direction), said.replace("_", " "), *more)))
        found[name] = own
    order = [*METRICS]
    return dict(sorted(found.items(), key=lambda pair: (order.index(pair[1]["metric"].iloc[0]), pair[0])))


def interval_chart(
    rows: pd.DataFrame, metric: str, attribute: Attribute, letters: dict[str, str], second: Second | None = None
):
    """A dot and its 95% interval for each captioner, highest value on top, with the neutral point as a line.

    rows: results of one metric and direction, one row a captioner. The letters stand at the right; captioners
    that share one are not told apart. second: by captioner a hollow dot under the first, such as
    `sentence.second_dots`.
    """
    need("A chart", "plotly")
    import plotly.graph_objects as go

    rows = rows.sort_values("value")
    neutral = METRICS[metric].neutral(len(attribute.values))
    low, high = rows["ci_low"].fillna(rows["value"]), rows["ci_high"].fillna(rows["value"])
    names = [escape(name) for name in rows["model"]]
    hover = [
        f"{metric} {row.value:,.2f}"
        + (f" [{row.ci_low:.2f}, {row.ci_high:.2f}] {interval_over(row._asdict())}" if pd.notna(row.ci_low) else "")
        + (f"<br>±{row.spread:.2f} std over {counted(int(row.seeds), 'seed')}" if pd.notna(row.spread) else "")
        for row in rows.itertuples()
    ]
    figure = go.Figure(
        go.Scatter(
            x=rows["value"],
            y=names,
            mode="markers",
            customdata=rows["model"],
            hovertext=hover,
            hoverinfo="y+text",
            marker={"size": 11, "color": MEASURED},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": high - rows["value"],
                "arrayminus": rows["value"] - low,
                "color": MEASURED,
                "thickness": 2.5,
                "width": 0,
            },
        )
    )
    beside = {"x": 1.01, "xref": "paper", "showarrow": False, "xanchor": "left"}
    said = [
        beside | {"y": name, "text": letters[model]}
        for model, name in zip(rows["model"], names, strict=True)
        if model in letters and len(letters) > 1
    ]
    if second:
        dots = [(name, *second[model]) for model, name in zip(rows["model"], names, strict=True) if model in second]
        also, value, first, last = (list(own) for own in zip(*dots, strict=True))
        figure.add_scatter(
            x=value,
            y=also,
            mode="markers",
            customdata=[model for model in rows["model"] if model in second],
            hovertext=[f"LIC_by_H {a:.2f} [{b:.2f}, {c:.2f}]" for a, b, c in zip(value, first, last, strict=True)],
            hoverinfo="y+text",
            marker={"size": 9, "symbol": "circle-open", "color": MEASURED, "line": {"width": 2}},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": np.subtract(last, value),
                "arrayminus": np.subtract(value, first),
                "color": MEASURED,
                "thickness": 1,
                "width": 0,
            },
        )
    if math.isfinite(neutral):
        neutral_line(figure, neutral, METRICS[metric].reference_line)
    # All at once: one by one, each makes all of the others anew.
    figure.update_layout(annotations=[*figure.layout.annotations, *said], showlegend=False)
    name = measure(metric, rows["direction"].iloc[0])
    encoders = [own for own in rows["encoder"].unique() if own]
    name += f" ({encoders[0]})" if len(encoders) == 1 else ""
    return _finished(figure, f"{name} ({better_text(metric, len(attribute.values))})", len(rows), right=90)


def logit_waterfall(words: Sequence[str], values: np.ndarray, intercept: float, ends: Attribute, largest: float):
    """How a caption's logit adds up: the intercept, every word in order, and the sum as the last bar.

    words: T words as they are shown. values: (T,) what each adds, positive toward the second of the two values of ends.
    largest: the axis goes this far to either side, so that two captions can be compared.
    """
    need("A chart", "plotly")
    import plotly.graph_objects as go

    steps = [intercept, *map(float, values)]
    total = sum(steps)
    figure = go.Figure(
        go.Waterfall(
            orientation="h",
            y=list(range(len(steps) + 1)),
            x=[*steps, total],
            measure=["absolute", *["relative"] * len(values), "total"],
            text=[signed(step, 2) for step in (*steps, total)],
            textposition="outside",
            cliponaxis=False,
            hoverinfo="none",
            connector={"line": {"color": GREY, "width": 1}},
            increasing={"marker": {"color": BLUE_MARK}},
            decreasing={"marker": {"color": ORANGE_MARK}},
            totals={"marker": {"color": GREY}},
        )
    )
    figure.add_vline(x=0, line={"dash": "dash", "color": GREY, "width": 1.5})
    names = ["intercept", *map(escape, words), "sum"]
    title = f"← {escape(ends.values[0])} · logit · {escape(ends.values[1])} →"
    figure.update_layout(
        height=MARGINS + STEP_HEIGHT * len(names),
        margin={"l": 10, "r": 40, "t": 10, "b": 46},
        showlegend=False,
        xaxis={"title": {"text": title}, "zeroline": False, "range": [-largest, largest]},
        yaxis={"tickvals": list(range(len(names))), "ticktext": names, "autorange": "reversed", "automargin": True},
        dragmode=False,
    )
    return figure


def furthest(values: np.ndarray, intercept: float) -> float:
    """How far from 0 the sums of a waterfall get, with room for the numbers beside its bars.

    >>> furthest(np.array([1.0, -3.0]), 0.0)
    2.6
    """
    sums = intercept + np.cumsum([0.0, *values])
    return FOR_NUMBERS * float(abs(sums).max())


def neutral_line(figure, neutral: float, name: str) -> None:
    figure.add_vline(x=neutral, line={"dash": "dash", "color": GREY, "width": 1.5})
    figure.add_annotation(
        x=neutral,
        y=1.0,
        yref="paper",
        yanchor="bottom",
        showarrow=False,
        text=f"{name} {neutral:g}",
        font={"color": GREY},
    )


def _finished(figure, title: str, rows: float, right: int):
    figure.update_layout(
        height=int(MARGINS + ROW_HEIGHT * max(rows, 3)),
        margin={"l": 10, "r": right, "t": 34, "b": 46},
        showlegend=False,
        xaxis={"title": {"text": title}, "zeroline": False},
        yaxis={"automargin": True},
        dragmode=False,
    )
    return figure


def enlarged(figure, times: float):
    """A copy with type, marks, lines and margins so many times as large, for whatever room it is given."""
    import plotly.graph_objects as go

    content = figure.to_dict()
    margin = {name: length * times for name, length in content["layout"].get("margin", {}).items()}
    data, layout = _longer(content["data"], times), _longer(content["layout"], times)
    layout = {name: own for name, own in layout.items() if name not in ("height", "width", "template")}
    larger = go.Figure(data, layout | {"margin": margin})
    font = {"size": TYPE * times}
    larger.update_layout(font=font, legend={"font": font})
    larger.for_each_annotation(lambda own: own.update(font={"size": own.font.size or TYPE * times}))
    for update in (larger.update_xaxes, larger.update_yaxes):
        update(tickfont=font, title={"font": font})
    return larger


def _longer(part: Any, times: float, name: str = "") -> Any:
    """A part of a figure with its lengths multiplied."""
    if isinstance(part, dict):
        return {key: _longer(own, times, key) for key, own in part.items()}
    if name in LENGTHS and isinstance(part, int | float) and not isinstance(part, bool):
        return part * times
    if isinstance(part, list | tuple):
        return [_longer(own, times) for own in part]
    return part

"""What charts share: colours and marks, names beside points, intervals of captioners."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from capbias_core.errors import need
from capbias_core.measures.registry import METRICS, variants_of
from capbias_core.types import Attribute, counted
from capbias_core.views.palette import BLUE, GREY, MEASURED, MOST, ORANGE
from capbias_core.views.palette import BLUE_MARK as BLUE_MARK
from capbias_core.views.palette import COLOURS as COLOURS
from capbias_core.views.palette import ORANGE_MARK as ORANGE_MARK
from capbias_core.views.sentence import (
    Second,
    better_text,
    differ_in_length,
    interval,
    interval_over,
    intervals_over,
    measure,
)

# colours and marks

DASHES = ("solid", "dash", "dot", "dashdot", "longdashdot")
SHAPES = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down", "star", "cross")
SHAPES += ("triangle-right", "diamond-tall", "triangle-left", "star-diamond")
DOTTED = "-dot"


def ramp(value: float, largest: float) -> str:
    """A signed value to a CSS colour: orange below 0, blue above, clear at 0, strongest at the largest value."""
    strength = min(1.0, abs(value) / largest) if largest > 0 else 0.0
    red, green, blue = ORANGE if value < 0 else BLUE
    return f"rgba({red},{green},{blue},{MOST * strength:.2f})"


def encoder_shapes(names: Iterable[str]) -> dict[str, str]:
    """The mark of each encoder, in the order given; with a dot inside where shapes run out.

    >>> encoder_shapes(["lstm", "rnn", "lstm"])
    {'lstm': 'circle', 'rnn': 'square'}
    """
    shapes = [shape + dot for dot in ("", DOTTED) for shape in SHAPES]
    return {name: shapes[index % len(shapes)] for index, name in enumerate(dict.fromkeys(names))}


def opened(shape: str) -> str:
    """The same shape, of a printed value.

    >>> opened("star"), opened("star-dot")
    ('star-open', 'star-open-dot')
    """
    plain = shape.removesuffix(DOTTED)
    return f"{plain}-open{shape.removeprefix(plain)}"


# parts of Plotly figures

MARGINS = 96  # pixels above and below the rows of a chart
ROW, BELOW = 44, 0.27  # pixels of a row of two lines; how far below it a second dot lies, in rows
TYPE = 14  # pixels


def graph_objects():
    """Plotly's graph objects, imported here because Plotly takes a second. Raises CapbiasError without Plotly."""
    need("A chart", "plotly")
    import plotly.graph_objects as go

    return go


def error_bars(value: pd.Series, low: pd.Series, high: pd.Series, colour: str, thickness: float) -> dict[str, Any]:
    """Lines from low to high around values; none where an end is missing."""
    above, below = (high - value).fillna(0.0), (value - low).fillna(0.0)
    ends = {"type": "data", "symmetric": False, "array": above, "arrayminus": below}
    return ends | {"color": colour, "thickness": thickness, "width": 0}


def neutral_line(figure, neutral: float, name: str) -> None:
    """Draw the neutral point as a dashed line with its name above."""
    figure.add_vline(x=neutral, line={"dash": "dash", "color": GREY, "width": 1.5})
    above = {"x": neutral, "y": 1.0, "yref": "paper", "yanchor": "bottom", "showarrow": False}
    figure.add_annotation(**above, text=f"{name} {neutral:g}", font={"color": GREY})


def enlarged(figure, times: float):
    """A copy with type, marks, lines and margins so many times as large, for whatever room it is given."""
    # Properties that are lengths in pixels, wherever they stand.
    lengths = {"size", "thickness", "width", "arrowwidth", "standoff", "ax", "ay", "xshift", "yshift", *"lrtb"}

    def longer(part: Any, name: str = "") -> Any:
        if isinstance(part, dict):
            return {key: longer(value, key) for key, value in part.items()}
        if name in lengths and isinstance(part, int | float) and not isinstance(part, bool):
            return part * times
        return [longer(value) for value in part] if isinstance(part, list | tuple) else part

    content = figure.to_dict()
    margin = {name: length * times for name, length in content["layout"].get("margin", {}).items()}
    layout = {
        name: part for name, part in longer(content["layout"]).items() if name not in ("height", "width", "template")
    }
    larger = graph_objects().Figure(longer(content["data"]), layout | {"margin": margin})
    font = {"size": TYPE * times}
    larger.update_layout(font=font, legend={"font": font})
    larger.for_each_annotation(lambda text: text.update(font={"size": text.font.size or TYPE * times}))
    for update in (larger.update_xaxes, larger.update_yaxes):
        update(tickfont=font, title={"font": font})
    return larger


# names beside points: none over another, over a point or out of the chart
#
# A page's window is not known when a chart is made, so a position counts as free only if it is free in all of them:
# left or right of each other name, or above or below it, both in the smallest window and in the largest. A name's edges
# move evenly with the window, so it is then free in all between.

# Pixels: a plot in the narrowest and the widest window; shares of its usual height, since a chart that is presented
# fills the window; a letter and a line of a name; a point with its margin.
WIDTHS, HEIGHTS = (280, 1400), (0.75, 1.7)
LETTER, LINE, POINT = 7.5, 17, 8
LONGEST_NAME = 24
# Right, left, above and below, for each distance; those next to the point need no line to it.
SIDES = ((1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1), (1, 0), (-1, 0))
NEAR = 14
CLOSE = (NEAR, 28, 45, 62)
GRID = (15, 29)  # how many positions across and down are tried further off
Box = tuple[float, float, float, float]


class Place(NamedTuple):
    """Where the middle of a name goes: so many pixels right of and below its point, or in shares of the plot from the
    left and the top."""

    across: float
    down: float
    of_plot: bool = False


def cut(name: str) -> str:
    """Only as much of a name as there is room for."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def name_places(
    points: np.ndarray, names: Sequence[str], height: float, taken: Sequence[Box] = (), lines: Sequence[Box] = ()
) -> list[Place | None]:
    """Where each name goes; None if no position is free.

    points: (N, 2), the share of the plot's width from the left and of its height from the top. height: of the plot in
    pixels, usually. taken: boxes that names keep off as well: left, top, right, bottom, in the same shares. lines: such
    boxes too, which are only kept off if a position near the point allows it. The first names are placed first, so the
    same points always give the same positions.
    """
    sizes = np.array([WIDTHS, np.multiply(height, HEIGHTS)]).T  # (2, 2): the smallest and the largest plot

    def around(middle: np.ndarray, half: Sequence[float] | np.ndarray) -> np.ndarray:
        """(2, 4): left, top, right and bottom in the smallest and the largest plot. middle: (2, 2)."""
        return np.concatenate([middle - np.array(half), middle + np.array(half)], axis=1)

    scale = np.tile(sizes, 2)
    full = [np.array(box) * scale for box in taken] + [around(point * sizes, (POINT, POINT)) for point in points]
    thin = [np.array(box) * scale for box in lines]
    grid = [Place(x, y, True) for x in np.linspace(0, 1, GRID[0]) for y in np.linspace(0, 1, GRID[1])]
    places: list[Place | None] = []
    for point, name in zip(points, names, strict=True):
        half = np.array([len(cut(name)) * LETTER, LINE]) / 2
        close = [Place(x * (far * 0.8 + half[0]), y * far) for far, (x, y) in product(CLOSE, SIDES)]
        # Positions all over the plot, the nearest first. In shares of it, so that names never meet as it widens.
        far = sorted(grid, key=lambda place: float(np.hypot(place.across - point[0], place.down - point[1])))
        near_others, far_others = np.array(full + thin), np.array(full)
        for place in chain(close, far):
            shift = np.array([place.across, place.down])
            box = around(shift * sizes if place.of_plot else point * sizes + shift, half)
            others = far_others if place.of_plot else near_others
            after, before = box[:, :2] >= others[..., 2:], box[:, 2:] <= others[..., :2]
            inside = (box[:, :2] >= 0).all() and (box[:, 2:] <= sizes).all()
            if inside and np.any(after.all(axis=1) | before.all(axis=1), axis=-1).all():
                full.append(box)
                places.append(place)
                break
        else:
            places.append(None)
    return places


def name_points(
    figure, across, up, names: Sequence[str], places: Sequence[Place | None], ends: Sequence[tuple[float, float]]
) -> None:
    """Write names where `name_places` puts them, with a line to the point from further off.

    ends: the lowest and the highest value that the plot shows, across and up.
    """
    (left, right), (bottom, top) = ends
    for x, y, name, place in zip(across, up, names, places, strict=True):
        if not place:
            continue
        far = place.of_plot or abs(place.down) > NEAR or place.down == 0
        at = {"ax": place.across, "ay": place.down}
        if place.of_plot:
            at = {"ax": left + place.across * (right - left), "ay": top - place.down * (top - bottom)}
            at |= {"axref": "x", "ayref": "y"}
        colour = GREY if far else "rgba(0,0,0,0)"
        line = {"showarrow": True, "arrowhead": 0, "arrowwidth": 1, "arrowcolor": colour, "standoff": 6, "borderpad": 0}
        figure.add_annotation(x=x, y=y, **at, **line, text=escape(cut(name)), font={"size": 13})


# charts of intervals


def chart_series(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each chart of intervals by its name, such as `DBAC A→T`, in the order of the metrics.

    One row per captioner: a metric of people's captions alone has no chart, and a value that is not defined no dot.
    Coverage and the like are in the name; so are attacker and attribute where there are several.
    """
    of_people = [name for name, metric in METRICS.items() if metric.side == "human"]
    rows = rows[rows["value"].notna() & ~rows["metric"].isin(of_people)]
    apart = [name for name in ("encoder", "attribute") if rows.loc[rows[name] != "", name].nunique() > 1]
    rows = rows.assign(variant=variants_of(rows))
    series: dict[str, pd.DataFrame] = {}
    for (metric, direction, variant, *more), group in rows.groupby(
        ["metric", "direction", "variant", *apart], sort=False
    ):
        series[" ".join(filter(None, (measure(metric, direction), variant.replace("_", " "), *more)))] = group
    order = [*METRICS]
    return dict(sorted(series.items(), key=lambda pair: (order.index(pair[1]["metric"].iloc[0]), pair[0])))


def interval_chart(
    rows: pd.DataFrame,
    metric: str,
    attribute: Attribute,
    letters: dict[str, str],
    second: Second | None = None,
    answered: str = "",
    words: Mapping[str, float] | None = None,
):
    """A dot and its 95% interval for each captioner, highest value on top, with the neutral point as a line.

    Left of it the name and the number of images, right of it the number, the verdict and the letters; captioners that
    share a letter do not differ significantly. rows: results of one metric and direction, one row a captioner. second:
    by captioner a hollow dot below the first, such as `sentence.second_dots`. answered: whose name is bold. words:
    average words of a caption by captioner, shown if they differ much.
    """
    rows = rows.sort_values("value").reset_index(drop=True)
    words = words if words and differ_in_length(words) else {}
    labels, tails, hover = [], [], []
    for row in rows.to_dict("records"):
        name, letter = escape(row["model"]), letters.get(row["model"], "") if len(letters) > 1 else ""
        images = int(np.nan_to_num(row["training"]) + np.nan_to_num(row["n"]))
        size = [f"{images:,} images"] if images else []
        size += [f"{words[row['model']]:.0f} words"] if row["model"] in words else []
        labels.append(two_lines(f"<b>{name}</b>" if row["model"] == answered else name, ", ".join(size)))
        verdict = row["verdict"] if isinstance(row["verdict"], str) else ""
        tails.append((interval(pd.Series(row)), " ".join(filter(None, (verdict, f"({letter})" if letter else "")))))
        text = f"{name}<br>{metric} {row['value']:,.2f}"
        text += f" [{row['ci_low']:.2f}, {row['ci_high']:.2f}] {interval_over(row)}" if pd.notna(row["ci_low"]) else ""
        text += (
            f"<br>±{row['spread']:.2f} std over {counted(int(row['seeds']), 'seed')}" if pd.notna(row["spread"]) else ""
        )
        hover.append(text)
    figure = graph_objects().Figure()
    common = {"mode": "markers", "hoverinfo": "text", "cliponaxis": False}
    figure.add_scatter(
        **common,
        x=rows["value"],
        y=rows.index,
        hovertext=hover,
        marker={"size": 11, "color": MEASURED},
        error_x=error_bars(rows["value"], rows["ci_low"], rows["ci_high"], MEASURED, 2.5),
    )
    if second:
        has_second = rows[rows["model"].isin(list(second))]
        dots = pd.DataFrame([second[model] for model in has_second["model"]], columns=["value", "low", "high"])
        figure.add_scatter(
            **common,
            x=dots["value"],
            y=has_second.index - BELOW,
            name="LIC_by_H",
            hovertext=[f"LIC_by_H {a:.2f} [{b:.2f}, {c:.2f}]" for a, b, c in dots.itertuples(index=False)],
            marker={"size": 9, "symbol": "circle-open", "color": MEASURED, "line": {"width": 2}},
            error_x=error_bars(dots["value"], dots["low"], dots["high"], MEASURED, 1),
        )
    neutral = METRICS[metric].neutral(len(attribute.values))
    if math.isfinite(neutral):
        neutral_line(figure, neutral, METRICS[metric].reference_line)
    beside = {"x": 1, "xref": "paper", "xshift": 10, "showarrow": False, "xanchor": "left", "align": "left"}
    shown = [beside | {"y": index, "text": two_lines(*tail)} for index, tail in enumerate(tails)]
    # All at once: one by one, each makes all of the others anew.
    figure.update_layout(annotations=[*figure.layout.annotations, *shown])
    encoders = [name for name in rows["encoder"].unique() if name]
    title = measure(metric, rows["direction"].iloc[0]) + (f" ({encoders[0]})" if len(encoders) == 1 else "")
    better = better_text(metric, len(attribute.values))
    over = f"lines: intervals, {intervals_over(rows)}" if rows["ci_low"].notna().any() else ""
    return figure.update_layout(
        height=MARGINS + 18 + ROW * max(len(rows), 2),
        margin={"l": 10, "r": 20 + LETTER * max(len(line) for tail in tails for line in tail), "t": 34, "b": 64},
        showlegend=False,
        xaxis={"title": {"text": two_lines(f"{title} ({better})", over)}, "zeroline": False},
        yaxis={"tickvals": list(rows.index), "ticktext": labels, "range": [-0.7, len(rows) - 0.4], "automargin": True}
        | {"showgrid": False, "zeroline": False},
        dragmode=False,
    )


def two_lines(first: str, below: str) -> str:
    """A text and a smaller one below it, as Plotly writes them; the first alone if there is no second."""
    return f'{first}<br><span style="font-size:85%">{below}</span>' if below else first

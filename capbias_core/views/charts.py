"""What charts share: colours and marks, names beside points, intervals of captioners, SVG without a chart library."""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from capbias_core.errors import need
from capbias_core.measures.registry import METRICS, variants_of
from capbias_core.types import Attribute, counted
from capbias_core.views.sentence import Second, better_text, interval, interval_over, measure, signed

ORANGE = (194, 87, 12)
BLUE = (29, 95, 168)
GREY = "#8A94A3"
# Lines and points on either ground: lighter than the ramp's ends, with a contrast of 3 or more on both themes.
MEASURED = "#3B82D0"
ORANGE_MARK = "#D9701F"
BLUE_MARK = "#3B82D0"

MOST = 0.65  # opacity at full strength: the text on it keeps a contrast of 4.5 in both themes


def ramp(value: float, largest: float) -> str:
    """A signed value to a CSS colour: orange below 0, blue above, clear at 0, strongest at the largest value."""
    strength = min(1.0, abs(value) / largest) if largest > 0 else 0.0
    red, green, blue = ORANGE if value < 0 else BLUE
    return f"rgba({red},{green},{blue},{MOST * strength:.2f})"


# With a contrast of 3 or more on both themes and, seen with any of the three kinds of colour blindness, apart from each
# other and from the grey of printed values. More colours would come too close.
COLOURS = (BLUE_MARK, ORANGE_MARK, "#7C549E", "#AB4400", "#16745E")
DASHES = ("solid", "dash", "dot", "dashdot", "longdashdot")
SHAPES = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "x",
    "triangle-down",
    "star",
    "cross",
    "triangle-right",
    "diamond-tall",
    "triangle-left",
    "star-diamond",
)
DOTTED = "-dot"


class Look(NamedTuple):
    """How lines and marks of a captioner are drawn, as Plotly names it."""

    colour: str
    dash: str


def captioner_looks(names: Iterable[str]) -> dict[str, Look]:
    """Each captioner with a look of its own; those that come most often, as the fullest compared, with other colours.

    names: of rows, in any order.

    >>> captioner_looks(["fc", "nic", "sat", "nic"])["nic"]
    Look(colour='#3B82D0', dash='solid')
    """
    looks = [Look(colour, dash) for dash in DASHES for colour in COLOURS]
    counts = Counter(names)
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    return {name: looks[place % len(looks)] for place, name in enumerate(ordered)}


def encoder_shapes(names: Iterable[str]) -> dict[str, str]:
    """Each encoder with a shape of its own, in the order given; with a dot inside where shapes run out.

    >>> encoder_shapes(["lstm", "rnn", "lstm"])
    {'lstm': 'circle', 'rnn': 'square'}
    """
    shapes = [shape + dot for dot in ("", DOTTED) for shape in SHAPES]
    return {name: shapes[place % len(shapes)] for place, name in enumerate(dict.fromkeys(names))}


def opened(shape: str) -> str:
    """The same shape, of a printed value.

    >>> opened("star"), opened("star-dot")
    ('star-open', 'star-open-dot')
    """
    plain = shape.removesuffix(DOTTED)
    return f"{plain}-open{shape.removeprefix(plain)}"


# Pixels: a plot in the narrowest and the widest window, a letter and a line of the name, a point with its margin.
WIDTHS = (280, 1400)
# Of the usual height, since a chart that is presented fills the window.
HEIGHTS = (0.75, 1.7)
LETTER, LINE = 7.5, 17
POINT = 8
LONGEST_NAME = 24
# Right, left, above and below, for each distance; those next to the point need no line to it.
SIDES = ((1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1), (1, 0), (-1, 0))
NEAR = 14
CLOSE = (NEAR, 28, 45, 62)
# How many places across and down are tried further off.
GRID = (15, 29)
Box = tuple[float, float, float, float]


class Place(NamedTuple):
    """Where the middle of a name goes: so many pixels right of and below its point, or in shares of the plot from the
    left and the top."""

    across: float
    down: float
    of_plot: bool = False

    def middle(self, point: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """In pixels of plots of these sizes, (..., 2). point: in shares of them."""
        own = np.array([self.across, self.down])
        return own * sizes if self.of_plot else point * sizes + own


def name_places(
    points: np.ndarray, names: Sequence[str], height: float, taken: Sequence[Box] = (), lines: Sequence[Box] = ()
) -> list[Place | None]:
    """Where each name goes; None if no place is free.

    points: (N, 2), the share of the plot's width from the left and of its height from the top. height: of the plot in
    pixels, usually. taken: boxes that names keep off as well: left, top, right, bottom, in the same shares. lines: such
    boxes too, which are only kept off if a place near the point allows it. The first names are placed first, so the
    same points always give the same places.
    """
    sizes = np.array([WIDTHS, np.multiply(height, HEIGHTS)]).T
    scale = np.tile(sizes, 2)
    full = [np.array(box) * scale for box in taken] + [_around(point * sizes, POINT, POINT) for point in points]
    thin = [np.array(box) * scale for box in lines]
    found = []
    for point, name in zip(points, names, strict=True):
        half = np.array([len(cut(name)) * LETTER, LINE]) / 2
        place = _free(_close(half), point, half, sizes, full + thin) or _free(_far(point), point, half, sizes, full)
        if place:
            full.append(_around(place.middle(point, sizes), *half))
        found.append(place)
    return found


def _close(half: np.ndarray) -> Iterator[Place]:
    for distance in CLOSE:
        for across, down in SIDES:
            yield Place(across * (distance * 0.8 + half[0]), down * distance)


def _far(point: np.ndarray) -> list[Place]:
    """Places all over the plot, the nearest first. In shares of it, so that names never meet as it widens."""
    places = [Place(x, y, True) for x in np.linspace(0, 1, GRID[0]) for y in np.linspace(0, 1, GRID[1])]
    return sorted(places, key=lambda place: float(np.hypot(place.across - point[0], place.down - point[1])))


def _free(
    places: Iterable[Place], point: np.ndarray, half: np.ndarray, sizes: np.ndarray, held: Sequence[np.ndarray]
) -> Place | None:
    """The first place that is free whatever the size. sizes: (2, 2), the smallest and the largest. held: boxes."""
    others = np.array(held)
    for place in places:
        box = _around(place.middle(point, sizes), *half)
        inside = (box[:, :2] >= 0).all() and (box[:, 2:] <= sizes).all()
        if inside and _apart(box, others).all():
            return place
    return None


def _around(middle: np.ndarray, half_width: float, half_height: float) -> np.ndarray:
    """(2, 4): left, top, right and bottom in the smallest and the largest window. middle: (2, 2)."""
    half = np.array([half_width, half_height])
    return np.concatenate([middle - half, middle + half], axis=1)


def _apart(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(N,) booleans: which of (N, 2, 4) boxes a box keeps off, on the same side of it in both windows."""
    after, before = box[:, :2] >= others[..., 2:], box[:, 2:] <= others[..., :2]
    return np.any(after.all(axis=1) | before.all(axis=1), axis=-1)


def cut(name: str) -> str:
    """Only as much of a name as there is room for."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


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
        figure.add_annotation(
            x=x,
            y=y,
            **at,
            text=escape(cut(name)),
            font={"size": 13},
            showarrow=True,
            arrowhead=0,
            arrowwidth=1,
            arrowcolor=GREY if far else "rgba(0,0,0,0)",
            standoff=6,
            borderpad=0,
        )


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


SVG_WIDTH, SVG_ROW, TOP, BOTTOM = 720, 30, 26, 34
SVG_LETTER = 7.0  # pixels of a letter at this size of type
SVG_TYPE = 13
TICKS = 5
# What `pictures` draws on white, and what it is on the ground and in the ink of a page: ground, ink and grid.
THEMED = {
    "fill: rgb(255, 255, 255)": "fill: none",
    "rgb(27, 39, 51)": "currentColor",
    "stroke: rgb(235, 240, 248); stroke-opacity: 1": "stroke: currentColor; stroke-opacity: 0.15",
}


def interval_svg(
    rows: pd.DataFrame,
    metric: str,
    attribute: Attribute,
    letters: dict[str, str],
    second: Second | None = None,
    title: str = "",
) -> str:
    """A dot and its 95% interval for each captioner, highest value on top, beside the neutral point and the number.

    rows: results of one metric, one row a captioner. letters, second: as of `figures.interval_chart`.
    """
    second = second or {}
    rows, low, high = intervals_in_order(rows)
    neutral = METRICS[metric].neutral(len(attribute.values))
    tails = [_tail(row, letters) for _, row in rows.iterrows()]
    left = 16 + SVG_LETTER * max(map(len, rows["model"]))
    right = SVG_WIDTH - 12 - SVG_LETTER * max(map(len, tails))
    scale = scale_of(low, high, neutral, second)

    def place(value: float) -> str:
        return f"{left + (right - left) * scale(value) / 100:.1f}"

    bottom = TOP + SVG_ROW * len(rows)
    parts = [_ticks(scale, place, bottom)]
    if math.isfinite(neutral):
        at = place(neutral)
        parts.append(
            f'<line x1="{at}" x2="{at}" y1="{TOP - 6}" y2="{bottom}" stroke="{GREY}" stroke-dasharray="5 4"/>'
            f'<text x="{at}" y="{TOP - 11}" text-anchor="middle">{METRICS[metric].reference_line} {neutral:g}</text>'
        )
    for number, (_, row) in enumerate(rows.iterrows()):
        y = TOP + SVG_ROW * (number + 0.5)
        if dot := second.get(row["model"]):
            at, first, last = map(place, dot)
            parts.append(
                f'<line x1="{first}" x2="{last}" y1="{y + 10:.1f}" y2="{y + 10:.1f}" stroke="{MEASURED}" opacity=".7"/>'
                f'<circle cx="{at}" cy="{y + 10:.1f}" r="3.5" fill="white" stroke="{MEASURED}" stroke-width="1.5"/>'
            )
        parts.append(
            f'<text x="{left - 10:.1f}" y="{y + 4:.1f}" text-anchor="end">{escape(row["model"])}</text>'
            f'<line x1="{place(low[row.name])}" x2="{place(high[row.name])}" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke="{MEASURED}" stroke-width="2.5"/>'
            f'<circle cx="{place(row["value"])}" cy="{y:.1f}" r="5" fill="{MEASURED}"/>'
            f'<text x="{right + 10:.1f}" y="{y + 4:.1f}">{escape(tails[number])}</text>'
        )
    over = next(filter(None, (interval_over(row) for row in rows.to_dict("records"))), "")
    axis = f"{title or metric} ({better_text(metric, len(attribute.values))})" + (
        f", [interval, {over}]" if over else ""
    )
    parts.append(f'<text x="{(left + right) / 2:.1f}" y="{bottom + 32}" text-anchor="middle">{escape(axis)}</text>')
    named = escape(f"{title or metric} of each captioner")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SVG_WIDTH} {bottom + BOTTOM + 6}" width="{SVG_WIDTH}" '
        f'height="{bottom + BOTTOM + 6}" role="img" aria-label="{named}" font-family="Helvetica, Arial, sans-serif" '
        f'font-size="{SVG_TYPE}" fill="currentColor"><title>{named}</title>{"".join(parts)}</svg>'
    )


def part_svg(svg: bytes, name: str) -> str:
    """A chart of Plotly as part of a page: named, in the page's ink, with ids that no other chart has and that stay.

    Plotly makes up a number for the ids of each chart and for the class of each trace. name: of the chart, different
    from the others'.
    """
    text = re.sub(r' trace[0-9a-f]{6}"', '"', svg.decode())
    for drawn, own in THEMED.items():
        text = text.replace(drawn, own)
    made_up = re.search(r'id="defs-(\w+)"', text)
    if made_up:
        text = text.replace(made_up[1], f"c{zlib.crc32(name.encode()):x}")
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(name)}" ', 1)


def _tail(row: pd.Series, letters: dict[str, str]) -> str:
    """`8.7 [6.9, 10.4] · a · amplifies`"""
    told = letters.get(row["model"], "") if len(letters) > 1 else ""
    return " · ".join(filter(None, (interval(row), told, row.get("verdict", ""))))


def _ticks(scale: Scale, place, bottom: float) -> str:
    """Round numbers under the axis."""
    step = 10 ** math.floor(math.log10(scale.width))
    step = next((step * part for part in (0.1, 0.2, 0.5, 1, 2, 5) if scale.width / (step * part) <= TICKS), step * 10)
    first = math.ceil(scale.low / step)
    last = math.floor((scale.low + scale.width) / step)
    return (
        f'<line x1="{place(scale.low)}" x2="{place(scale.low + scale.width)}" y1="{bottom}" y2="{bottom}" '
        'stroke="currentColor" opacity=".4"/>'
        + "".join(
            f'<text x="{place(own * step)}" y="{bottom + 15}" text-anchor="middle" opacity=".8">{own * step:g}</text>'
            for own in range(first, last + 1)
        )
    )


PADDING = 0.06


def intervals_in_order(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Rows as they are drawn, highest value on top, and the ends of their intervals; the value where there is none."""
    rows = rows.sort_values("value", ascending=False)
    return rows, rows["ci_low"].fillna(rows["value"]), rows["ci_high"].fillna(rows["value"])


def scale_of(low: pd.Series, high: pd.Series, neutral: float, second: Second) -> Scale:
    """The scale of intervals, with those of second dots and the neutral point where there is one."""
    drawn = [*low, *high, *(end for dot in second.values() for end in dot)]
    drawn += [neutral] if math.isfinite(neutral) else []
    return Scale(min(drawn), max(drawn))


class Scale:
    """A value to its place on a bar, in percent, with some room at both ends."""

    def __init__(self, low: float, high: float):
        room = PADDING * ((high - low) or 1.0)
        self.low, self.width = low - room, (high - low) + 2 * room

    def __call__(self, value: float) -> float:
        return 100 * (value - self.low) / self.width

"""What charts share: colours and marks, names beside points, intervals of captioners, SVG without a chart library."""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from capbias_core.errors import need
from capbias_core.measures.registry import METRICS, variants_of
from capbias_core.types import Attribute, counted
from capbias_core.views.sentence import Second, better_text, interval, interval_over, measure

# colours and marks

# The ends of the diverging ramp, orange to blue, readable for the colour-blind on light and dark grounds.
ORANGE, BLUE = (194, 87, 12), (29, 95, 168)
MOST = 0.65  # its opacity at full strength: text on it keeps a contrast of 4.5 in both themes
GREY = "#8A94A3"
# Lines and points on either ground: lighter than the ramp's ends, with a contrast of 3 or more on both themes.
ORANGE_MARK, BLUE_MARK = "#D9701F", "#3B82D0"
MEASURED = BLUE_MARK

# The colours of all charts that need several. With a contrast of 3 or more on both themes and, seen with any of the
# three kinds of colour blindness, apart from each other and from the grey of printed values. More would come too close.
COLOURS = (BLUE_MARK, ORANGE_MARK, "#965A96", "#D20F69", "#69690F")
DASHES = ("solid", "dash", "dot", "dashdot", "longdashdot")
SHAPES = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down", "star", "cross")
SHAPES += ("triangle-right", "diamond-tall", "triangle-left", "star-diamond")
DOTTED = "-dot"


class Look(NamedTuple):
    """How lines and marks of a captioner are drawn, as Plotly names it."""

    colour: str
    dash: str


def ramp(value: float, largest: float) -> str:
    """A signed value to a CSS colour: orange below 0, blue above, clear at 0, strongest at the largest value."""
    strength = min(1.0, abs(value) / largest) if largest > 0 else 0.0
    red, green, blue = ORANGE if value < 0 else BLUE
    return f"rgba({red},{green},{blue},{MOST * strength:.2f})"


def captioner_looks(names: Iterable[str]) -> dict[str, Look]:
    """The look of each captioner: a colour and, where colours run out, a dash. The most frequent get other colours.

    names: of rows, in any order.

    >>> captioner_looks(["fc", "nic", "sat", "nic"])["nic"]
    Look(colour='#3B82D0', dash='solid')
    """
    looks = [Look(colour, dash) for dash in DASHES for colour in COLOURS]
    counts = Counter(names)
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    return {name: looks[place % len(looks)] for place, name in enumerate(ordered)}


def encoder_shapes(names: Iterable[str]) -> dict[str, str]:
    """The mark of each encoder, in the order given; with a dot inside where shapes run out.

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


# parts of Plotly figures

MARGINS = 96  # pixels above and below the rows of a chart
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
    found: list[Place | None] = []
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
                found.append(place)
                break
        else:
            found.append(None)
    return found


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
    rows: pd.DataFrame, metric: str, attribute: Attribute, letters: dict[str, str], second: Second | None = None
):
    """A dot and its 95% interval for each captioner, highest value on top, with the neutral point as a line.

    rows: results of one metric and direction, one row a captioner. The letters stand at the right; captioners
    that share one are not told apart. second: by captioner a hollow dot under the first, such as
    `sentence.second_dots`.
    """
    rows = rows.sort_values("value")
    neutral = METRICS[metric].neutral(len(attribute.values))
    names = dict(zip(rows["model"], map(escape, rows["model"]), strict=True))
    hover = [
        f"{metric} {row.value:,.2f}"
        + (f" [{row.ci_low:.2f}, {row.ci_high:.2f}] {interval_over(row._asdict())}" if pd.notna(row.ci_low) else "")
        + (f"<br>±{row.spread:.2f} std over {counted(int(row.seeds), 'seed')}" if pd.notna(row.spread) else "")
        for row in rows.itertuples()
    ]
    common = {"mode": "markers", "hoverinfo": "y+text"}
    figure = graph_objects().Figure()
    figure.add_scatter(
        **common,
        x=rows["value"],
        y=[names[model] for model in rows["model"]],
        customdata=rows["model"],
        hovertext=hover,
        marker={"size": 11, "color": MEASURED},
        error_x=error_bars(rows["value"], rows["ci_low"], rows["ci_high"], MEASURED, 2.5),
    )
    if second:
        models = [model for model in names if model in second]
        dots = pd.DataFrame([second[model] for model in models], columns=["value", "low", "high"])
        figure.add_scatter(
            **common,
            x=dots["value"],
            y=[names[model] for model in models],
            customdata=models,
            hovertext=[f"LIC_by_H {a:.2f} [{b:.2f}, {c:.2f}]" for a, b, c in dots.itertuples(index=False)],
            marker={"size": 9, "symbol": "circle-open", "color": MEASURED, "line": {"width": 2}},
            error_x=error_bars(dots["value"], dots["low"], dots["high"], MEASURED, 1),
        )
    if math.isfinite(neutral):
        neutral_line(figure, neutral, METRICS[metric].reference_line)
    beside = {"x": 1.01, "xref": "paper", "showarrow": False, "xanchor": "left"}
    shown = [beside | {"y": names[model], "text": letters[model]} for model in rows["model"] if model in letters]
    # All at once: one by one, each makes all of the others anew.
    figure.update_layout(annotations=[*figure.layout.annotations, *(shown if len(letters) > 1 else ())])
    encoders = [name for name in rows["encoder"].unique() if name]
    name = measure(metric, rows["direction"].iloc[0]) + (f" ({encoders[0]})" if len(encoders) == 1 else "")
    return figure.update_layout(
        height=int(MARGINS + 34 * max(len(rows), 3)),
        margin={"l": 10, "r": 90, "t": 34, "b": 46},
        showlegend=False,
        xaxis={"title": {"text": f"{name} ({better_text(metric, len(attribute.values))})"}, "zeroline": False},
        yaxis={"automargin": True},
        dragmode=False,
    )


class Scale:
    """A value to its position on a bar, in percent, with some room at both ends."""

    def __init__(self, low: float, high: float):
        room = 0.06 * ((high - low) or 1.0)
        self.low, self.width = low - room, (high - low) + 2 * room

    def __call__(self, value: float) -> float:
        return 100 * (value - self.low) / self.width


def intervals_in_order(
    rows: pd.DataFrame, neutral: float, second: Second
) -> tuple[pd.DataFrame, pd.Series, pd.Series, Scale]:
    """Rows as they are drawn, highest value on top; the ends of their intervals, the value where there is none; and
    the scale of all of them, of second dots and of the neutral point where there is one."""
    rows = rows.sort_values("value", ascending=False)
    low, high = rows["ci_low"].fillna(rows["value"]), rows["ci_high"].fillna(rows["value"])
    drawn = [*low, *high, *(end for dot in second.values() for end in dot)]
    drawn += [neutral] if math.isfinite(neutral) else []
    return rows, low, high, Scale(min(drawn), max(drawn))


# A chart as SVG: a file for a paper, or a part of a report. No chart library, no font, no script. Text and lines take
# the colour of what the chart stands in (`currentColor`), so that it suits both themes.
SVG_WIDTH, SVG_ROW, TOP, BOTTOM = 720, 30, 26, 34
SVG_LETTER = 7.0  # pixels of a letter at this size of type
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

    rows: results of one metric, one row a captioner. letters, second: as of `interval_chart`.
    """
    second = second or {}
    neutral = METRICS[metric].neutral(len(attribute.values))
    rows, low, high, scale = intervals_in_order(rows, neutral, second)
    letters = letters if len(letters) > 1 else {}
    tails = [  # `8.7 [6.9, 10.4] · a · amplifies`
        " · ".join(filter(None, (interval(row), letters.get(row["model"], ""), row.get("verdict", ""))))
        for _, row in rows.iterrows()
    ]
    left = 16 + SVG_LETTER * max(map(len, rows["model"]))
    right = SVG_WIDTH - 12 - SVG_LETTER * max(map(len, tails))

    def place(value: float) -> str:
        return f"{left + (right - left) * scale(value) / 100:.1f}"

    bottom = TOP + SVG_ROW * len(rows)
    step = 10 ** math.floor(math.log10(scale.width))
    step = next((step * part for part in (0.1, 0.2, 0.5, 1, 2, 5) if scale.width / (step * part) <= TICKS), step * 10)
    ticks = range(math.ceil(scale.low / step), math.floor((scale.low + scale.width) / step) + 1)
    parts = [
        f'<line x1="{place(scale.low)}" x2="{place(scale.low + scale.width)}" y1="{bottom}" y2="{bottom}" '
        'stroke="currentColor" opacity=".4"/>',
        *(
            f'<text x="{place(tick * step)}" y="{bottom + 15}" text-anchor="middle" opacity=".8">{tick * step:g}</text>'
            for tick in ticks
        ),
    ]
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
    axis = f"{title or metric} ({better_text(metric, len(attribute.values))}){f', [interval, {over}]' if over else ''}"
    parts.append(f'<text x="{(left + right) / 2:.1f}" y="{bottom + 32}" text-anchor="middle">{escape(axis)}</text>')
    named, height = escape(f"{title or metric} of each captioner"), bottom + BOTTOM + 6
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SVG_WIDTH} {height}" width="{SVG_WIDTH}" '
        f'height="{height}" role="img" aria-label="{named}" font-family="Helvetica, Arial, sans-serif" '
        f'font-size="13" fill="currentColor"><title>{named}</title>{"".join(parts)}</svg>'
    )


def part_svg(svg: bytes, name: str) -> str:
    """A chart of Plotly as part of a page: named, in the page's ink, with ids that no other chart has and that stay.

    Plotly makes up a number for the ids of each chart and for the class of each trace. name: of the chart, different
    from the others'.
    """
    text = re.sub(r' trace[0-9a-f]{6}"', '"', svg.decode())
    for drawn, themed in THEMED.items():
        text = text.replace(drawn, themed)
    if made_up := re.search(r'id="defs-(\w+)"', text):
        text = text.replace(made_up[1], f"c{zlib.crc32(name.encode()):x}")
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(name)}" ', 1)

"""The charts of views: a Plotly figure for each kind, and a forest as HTML, which needs no script and loads at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.aggregate.estimate import VERDICTS
from capbias_core.errors import CapbiasError, need
from capbias_core.measures.registry import METRICS
from capbias_core.views.palette import BLUE_MARK, COLOURS, GREY, ORANGE_MARK
from capbias_core.views.sentence import better_text
from capbias_core.views.view import Field, Forest, Lines, Scatter, View

LINE = 34  # pixels of a captioner in a forest
MOST_POINTS = 400  # more cannot be told from each other
TICKS = 6
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down", "star", "cross")
OPEN = ("inconclusive", "not significant")  # verdicts whose mark is hollow


def drawable(view: View, rows: pd.DataFrame) -> bool:
    """Whether rows fill the view's chart: lines need two places, a scatter both of its axes."""
    if view.chart is None or rows.empty:
        return False
    points = drawn(view, rows)
    if isinstance(view.chart, Lines):
        return points[view.chart.x].nunique() > 1
    if isinstance(view.chart, Scatter):
        return {view.chart.x, view.chart.y} <= set(points[view.chart.by or view.across])
    return points["value"].notna().any()


def figure(view: View, rows: pd.DataFrame, read: str = "") -> Any:
    """The view's chart as a Plotly figure. read: the line of `by` that is emphasised. Raises CapbiasError without
    Plotly, and for more points than can be read."""
    need("A chart", "plotly")
    if view.chart is None:
        raise CapbiasError(f"{view.question} has no chart.", "Write csv, json or tex.")
    if len(drawn(view, rows)) > MOST_POINTS:
        raise CapbiasError(f"A chart of {len(rows):,} numbers cannot be read.", "Choose fewer, or write csv or tex.")
    kinds = {Forest: _forest, Lines: _lines, Scatter: _scatter}
    return kinds[type(view.chart)](view, rows, read)


def drawn(view: View, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a view's chart, each with its number as `text`."""
    column = _valued(view)
    only = list(getattr(view.chart, "only", ()))
    if view.across and isinstance(view.chart, Forest) and not (view.chart.panel or view.chart.series):
        known = list(dict.fromkeys(rows[view.across]))
        only = [name for name in only or known if name in known][:1]
    points = rows[rows[view.across].isin(only)] if only else rows
    if where := getattr(view.chart, "where", ""):
        points = points[points[where].astype(bool)]
    points = points[points["value"].notna()]
    texts = [view.field_of(column, str(row.get(view.across, "")), row).text(row) for row in points.to_dict("records")]
    return points.assign(text=texts)


def _valued(view: View) -> Field:
    return next(column for column in view.columns if column.low)


def _reference(chart: Forest, points: pd.DataFrame, values: int = 2) -> float:
    """Where the reference line of a forest is: at `neutral` of its rows if they have it; nan for none."""
    if chart.reference is not None or chart.diverging:
        return chart.reference or 0.0
    if len(points) and "neutral" in points:
        return float(points["neutral"].iloc[0])
    metric = METRICS.get(points["metric"].iloc[0]) if len(points) and "metric" in points else None
    return metric.neutral(values) if metric else 0.0


def axis_title(chart: Forest, points: pd.DataFrame) -> str:
    """What the axis of a forest shows, and which end is better."""
    title = points.attrs.get("title", chart.title)
    if chart.diverging and (ends := points.attrs.get("ends")):
        return f"← {ends[0]} · {title} · {ends[1]} →"
    names = list(dict.fromkeys(points["metric"])) if "metric" in points else []
    one = len(names) == 1 and names[0] in METRICS and "title" not in points.attrs
    title = title or ", ".join(names)
    return f"{title} ({better_text(names[0])})" if one else title


def ticks(low: float, high: float, most: int = TICKS) -> list[float]:
    """Round numbers within two ends, at most so many.

    >>> ticks(-0.3, 8.6)
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    if not high > low:
        return [low]
    step = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(step * times for times in (1, 2, 5, 10, 20) if (high - low) / (step * times) <= most)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 10) + 0.0 for number in range(first, last + 1)]


# a forest as HTML


def forest_html(view: View, rows: pd.DataFrame, read: str = "", clickable: bool = False) -> str:
    """The view's forest as HTML; its lines are buttons with `data-name` if they are clickable. Texts are escaped."""
    chart, points = view.chart, drawn(view, rows)
    assert isinstance(chart, Forest)
    if points.empty:
        return ""
    reference = _reference(chart, points)
    numbers = points[["value", "low", "high"]].to_numpy(dtype=float)
    known = numbers[np.isfinite(numbers)]
    if math.isfinite(reference):
        known = np.append(known, reference)
    low, high = float(known.min()), float(known.max())
    edge = (high - low) * 0.04 or 1.0
    low, high = low - edge, high + edge

    def at(value: float) -> str:
        return f"{(value - low) / (high - low):.2%}"

    series = list(dict.fromkeys(points[chart.series])) if chart.series else [""]
    colours = _colours(chart, series)
    marks = ticks(low, high)
    grid = "".join(f'<span class="grid" style="left:{at(tick)}"></span>' for tick in marks)
    if math.isfinite(reference):
        grid += f'<span class="zero" style="left:{at(reference)}"></span>'
    tag = "button" if clickable else "div"
    lines = []
    for name, of_line in points.groupby(view.by, sort=False):
        parts, texts = [], []
        for row in of_line.to_dict("records"):
            place = series.index(row[chart.series]) if chart.series else 0
            height = f"{(place + 1) / (len(series) + 1):.0%}"
            colour = _colour(chart, colours, row, chart.series)
            if pd.notna(row["low"]):
                width = f"{(row['high'] - row['low']) / (high - low):.2%}"
                style = f"left:{at(row['low'])};width:{width};top:{height};background:{colour}"
                parts.append(f'<span class="bar" style="{style}"></span>')
            fill = "var(--background-color, Canvas)" if _is_open(row, reference) else colour
            style = f"left:{at(row['value'])};top:{height};border-color:{colour};background:{fill}"
            parts.append(f'<span class="dot" style="{style}"></span>')
            texts.append(escape(row["text"]))
        row = of_line.iloc[0]
        tails = [escape(str(row.get(column) or "")) for column in ("verdict", "letters")]
        spoken = escape(f"{name}: {'; '.join(of_line['text'])} {' '.join(tails)}".strip())
        attributes = (
            f' data-name="{escape(str(name))}" aria-label="{spoken}" aria-pressed="{str(name == read).lower()}"'
        )
        lines.append(
            f'<{tag} class="line{" read" if name == read else ""}"{attributes if clickable else ""}>'
            f'<span class="name" title="{escape(str(name))}">{escape(str(name))}</span>'
            f'<span class="track">{grid}{"".join(parts)}</span>'
            f'<span class="number">{"<br>".join(texts)}</span><span class="tail">{tails[0]}</span>'
            f'<span class="tail">{tails[1]}</span></{tag}>'
        )
    axis = "".join(f'<span class="tick" style="left:{at(tick)}">{_tick(tick)}</span>' for tick in marks)
    foot = f'<div class="line foot" aria-hidden="true"><span></span><span class="track">{axis}</span></div>'
    legend = "".join(
        f'<span><i style="background:{colours[name]}"></i>{escape(str(name))}</span>' for name in series if name
    )
    legend = f'<div class="legend">{legend}</div>' if legend else ""
    kind = "cb-forest double" if chart.series else "cb-forest"
    return (
        f'<div class="{kind}" role="group" aria-label="{escape(view.question)}">{legend}'
        f'<div class="lines">{"".join(lines)}{foot}</div>'
        f'<div class="title">{escape(axis_title(chart, points))}</div></div>'
    )


def forest_height(view: View, rows: pd.DataFrame) -> int:
    """Pixels of `forest_html`, so that its place can be kept free."""
    assert isinstance(view.chart, Forest)
    lines = drawn(view, rows)[view.by].nunique()
    return (44 if view.chart.series else LINE) * lines + 48 + (26 if view.chart.series else 0)


def _tick(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def _colours(chart: Forest, series: Sequence[str]) -> dict[str, str]:
    if chart.diverging:  # the first series has the colours of both sides, the others are what it is compared with
        both = f"linear-gradient(90deg, {ORANGE_MARK} 50%, {BLUE_MARK} 50%)"
        return {name: GREY if number else both for number, name in enumerate(series)}
    plain = [colour for colour in COLOURS if colour != ORANGE_MARK]  # orange is the first value's side alone
    if len(series) == 2:  # the second is what the first is compared with
        plain = [BLUE_MARK, GREY]
    return {name: plain[number % len(plain)] for number, name in enumerate(series)}


def _colour(chart: Forest, colours: Mapping[str, str], row: Mapping[str, Any], series: str) -> str:
    own = colours[row[series]] if series else BLUE_MARK
    if chart.diverging and own != GREY:  # orange is the first value's side, and means nothing else
        return ORANGE_MARK if row["value"] < 0 else BLUE_MARK
    return own


def _is_open(row: Mapping[str, Any], reference: float) -> bool:
    """Whether a mark is hollow: the verdict is inconclusive, or without a verdict the interval holds the reference."""
    if row.get("verdict") in (*OPEN, *VERDICTS):
        return row["verdict"] in OPEN
    return bool(pd.notna(row["low"]) and math.isfinite(reference) and row["low"] <= reference <= row["high"])


# Plotly


def _bars(points: pd.DataFrame, colour: str, ends: tuple[str, str, str] = ("value", "low", "high")) -> dict[str, Any]:
    value, low, high = (points[name].astype(float) for name in ends)
    above, below = (high - value).fillna(0.0), (value - low).fillna(0.0)
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "color": colour,
        "thickness": 2.5,
        "width": 0,
    }


def _laid_out(shown: Any, height: int, **more: Any) -> Any:
    clear = "rgba(0,0,0,0)"
    common = {"dragmode": False, "plot_bgcolor": clear, "paper_bgcolor": clear, "font": {"size": 14}}
    return shown.update_layout(**(common | {"height": height} | more))


def _forest(view: View, rows: pd.DataFrame, read: str) -> Any:
    """A line for each captioner, in a panel for each value of `panel`."""
    from plotly.subplots import make_subplots

    chart, points = view.chart, drawn(view, rows)
    assert isinstance(chart, Forest)
    panels = list(dict.fromkeys(points[chart.panel])) if chart.panel else [""]
    parts = [points[points[chart.panel] == panel] if chart.panel else points for panel in panels]
    sizes = [LINE * max(2, part[view.by].nunique()) for part in parts]
    height = sum(sizes) + 80 * len(sizes)
    shown = make_subplots(
        rows=len(parts), cols=1, row_heights=sizes, vertical_spacing=60 / height if len(parts) > 1 else 0
    )
    series = list(dict.fromkeys(points[chart.series])) if chart.series else [""]
    colours = _colours(chart, series)
    notes, right = [], 20
    for number, part in enumerate(parts, start=1):
        names = list(dict.fromkeys(part[view.by]))
        reference = _reference(chart, part)
        for place, name in enumerate(series):
            of_series = part[part[chart.series] == name] if chart.series else part
            shift = (place - (len(series) - 1) / 2) * 0.28
            colour = [_colour(chart, colours, row, chart.series) for row in of_series.to_dict("records")]
            for one in dict.fromkeys(colour):  # an error bar has one colour for its trace
                same = of_series[[each == one for each in colour]]
                symbols = ["circle-open" if _is_open(row, reference) else "circle" for row in same.to_dict("records")]
                shown.add_scatter(
                    x=same["value"],
                    y=same[view.by].map(names.index) + shift,
                    mode="markers",
                    name=escape(str(name)),
                    showlegend=bool(name) and number == 1 and one == colour[0],
                    customdata=[escape(str(line)) for line in same[view.by]],
                    text=[escape(text) for text in same["text"]],
                    hovertemplate="%{customdata}: %{text}<extra></extra>",
                    marker={"size": 11, "color": one, "symbol": symbols, "line": {"width": 2, "color": one}},
                    error_x=_bars(same, one),
                    cliponaxis=False,
                    row=number,
                    col=1,
                )
        if not chart.series:
            for row in part.to_dict("records"):
                tail = "  ".join(filter(None, (row["text"], row.get("verdict"), row.get("letters"))))
                right = max(right, 20 + round(7.4 * len(tail)))
                where = {"x": 1, "xref": f"x{number if number > 1 else ''} domain", "y": names.index(row[view.by])}
                notes.append(
                    where
                    | {
                        "yref": f"y{number if number > 1 else ''}",
                        "text": escape(tail),
                        "xanchor": "left",
                        "xshift": 12,
                    }
                    | {"showarrow": False, "align": "left", "font": {"size": 13}}
                )
        if math.isfinite(reference):
            shown.add_vline(x=reference, line={"dash": "dash", "color": GREY, "width": 1.5}, row=number, col=1)
        labels = [f"<b>{escape(str(name))}</b>" if name == read else escape(str(name)) for name in names]
        shown.update_yaxes(
            tickvals=list(range(len(names))),
            ticktext=labels,
            range=[len(names) - 0.5, -0.5],
            automargin=True,
            showgrid=False,
            zeroline=False,
            row=number,
            col=1,
        )
        title = f"{panels[number - 1]}" if chart.panel else axis_title(chart, part)
        shown.update_xaxes(title=escape(title), zeroline=False, row=number, col=1)
    shown.update_layout(annotations=[*shown.layout.annotations, *notes])
    legend = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}
    return _laid_out(shown, height, margin={"l": 10, "r": right, "t": 40, "b": 50}, legend=legend)


def _lines(view: View, rows: pd.DataFrame, read: str) -> Any:
    import plotly.graph_objects as go

    chart, points, shown = view.chart, drawn(view, rows), go.Figure()
    assert isinstance(chart, Lines)
    for number, (name, of_line) in enumerate(points.groupby(view.by, sort=False)):
        colour = BLUE_MARK if name == read else GREY
        shown.add_scatter(
            x=of_line[chart.x],
            y=of_line["value"],
            mode="lines+markers",
            name=escape(str(name)),
            error_y=_bars(of_line, colour),
            customdata=[escape(str(line)) for line in of_line[view.by]],
            text=[escape(text) for text in of_line["text"]],
            hovertemplate="%{customdata}, %{x}: %{text}<extra></extra>",
            line={"color": colour, "dash": DASHES[number % len(DASHES)], "width": 3 if name == read else 1.5},
            marker={"size": 9, "symbol": SYMBOLS[number % len(SYMBOLS)]},
        )
    yaxis = {"title": escape(chart.title), "zerolinecolor": GREY}
    return _laid_out(shown, 360, margin={"l": 10, "r": 10, "t": 20, "b": 40}, xaxis={"type": "category"}, yaxis=yaxis)


def _scatter(view: View, rows: pd.DataFrame, read: str) -> Any:
    import plotly.graph_objects as go

    chart, points = view.chart, drawn(view, rows)
    assert isinstance(chart, Scatter)
    across, up = (
        points[points[chart.by or view.across] == side].drop_duplicates(view.by).set_index(view.by)
        for side in (chart.x, chart.y)
    )
    both = across.join(up, rsuffix="_up", how="inner").reset_index()
    colours = [BLUE_MARK if name == read else GREY for name in both[view.by]]
    shown = go.Figure()
    for colour in dict.fromkeys(colours):
        part = both[[each == colour for each in colours]]
        shown.add_scatter(
            x=part["value"],
            y=part["value_up"],
            mode="markers+text",
            text=[escape(str(name)) for name in part[view.by]],
            textposition="top right",
            customdata=[f"{escape(a)}; {escape(b)}" for a, b in zip(part["text"], part["text_up"], strict=True)],
            hovertemplate="%{text}: %{customdata}<extra></extra>",
            marker={"size": 11, "color": colour},
            error_x=_bars(part, colour),
            error_y=_bars(part, colour, ("value_up", "low_up", "high_up")),
            cliponaxis=False,
        )
    places = {"left": (0, "left"), "right": (1, "right"), "bottom": (0, "bottom"), "top": (1, "top")}
    for corner, text in chart.corners.items():
        (y, yanchor), (x, xanchor) = (places[side] for side in corner.split())
        at = {"x": x, "y": y, "xref": "paper", "yref": "paper", "xanchor": xanchor, "yanchor": yanchor}
        shown.add_annotation(**at, text=escape(text), showarrow=False, font={"color": GREY, "size": 13})
    for line in (shown.add_vline, shown.add_hline):
        line(0, line={"dash": "dash", "color": GREY, "width": 1.5})
    return _laid_out(
        shown,
        460,
        showlegend=False,
        margin={"l": 10, "r": 20, "t": 20, "b": 50},
        xaxis={"title": escape(chart.x_title or chart.x), "zeroline": False},
        yaxis={"title": escape(chart.y_title or chart.y), "zeroline": False},
    )

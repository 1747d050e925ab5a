"""The charts of views: a Plotly figure for each kind, and a forest as HTML, which needs no script and loads at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.aggregate.estimate import VERDICTS
from capbias_core.errors import CapbiasError, need
from capbias_core.measures.registry import METRICS
from capbias_core.views.markup import html
from capbias_core.views.palette import BLUE_MARK, COLOURS, GREY, ORANGE_MARK
from capbias_core.views.sentence import better_text
from capbias_core.views.view import Forest, Scatter, View

LINE = 34  # pixels of a captioner in a forest
MOST_POINTS = 400  # more cannot be told from each other
TICKS = 6
OPEN = ("inconclusive", "not significant")  # verdicts whose mark is hollow
DASHED = {"dash": "dash", "color": GREY, "width": 1.5}


def drawable(view: View, rows: pd.DataFrame) -> bool:
    """Whether rows fill the view's chart: a scatter needs both of its axes."""
    if view.chart is None or rows.empty:
        return False
    points = drawn(view, rows)
    if isinstance(view.chart, Scatter):
        return {view.chart.x, view.chart.y} <= set(points[view.chart.by])
    return points["value"].notna().any()


def figure(view: View, rows: pd.DataFrame, read: str = "") -> Any:
    """The view's chart as a Plotly figure. read: the line of `by` that is emphasised. Raises CapbiasError without
    Plotly, and for more points than can be read."""
    need("A chart", "plotly")
    if view.chart is None:
        raise CapbiasError(f"{view.question} has no chart.", "Write csv, json or tex.")
    points = drawn(view, rows)
    if len(points) > MOST_POINTS:
        raise CapbiasError(f"A chart of {len(rows):,} numbers cannot be read.", "Choose fewer, or write csv or tex.")
    if isinstance(view.chart, Scatter):
        return _scatter(view.chart, view.by, points, read)
    return _forest(view.chart, view.by, points, read)


def drawn(view: View, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a view's chart, each with its number as `text`; of a forest also `mark`, the value of its series,
    `colour`, and `hollow`, whether its verdict is inconclusive or, without one, its interval holds the reference."""
    chart = view.chart
    column = next(column for column in view.columns if column.low)
    if isinstance(chart, Forest):
        only = list(chart.only)
        if view.across and not (chart.panel or chart.series):
            known = list(dict.fromkeys(rows[view.across]))
            only = [name for name in only or known if name in known][:1]
        rows = rows[rows[view.across].isin(only)] if only else rows
        rows = rows[rows[chart.where].astype(bool)] if chart.where else rows
    points = rows[rows["value"].notna()]
    texts = [view.field_of(column, str(row.get(view.across, "")), row).text(row) for row in points.to_dict("records")]
    points = points.assign(text=texts)
    if not isinstance(chart, Forest):
        return points
    points["mark"] = points[chart.series] if chart.series else ""
    marks = list(dict.fromkeys(points["mark"]))
    # Orange is the first value's side, and means nothing else; grey is what the first mark is compared with.
    plain = [BLUE_MARK, GREY] if len(marks) == 2 else [colour for colour in COLOURS if colour != ORANGE_MARK]
    colours = dict(zip(marks, plain * len(marks), strict=False))
    if chart.diverging:
        colours = {mark: GREY if number else BLUE_MARK for number, mark in enumerate(marks)}
    points["colour"] = points["mark"].map(colours)
    if chart.diverging:
        points.loc[(points["value"] < 0) & (points["colour"] != GREY), "colour"] = ORANGE_MARK
    reference = reference_of(chart, points)
    crosses = points["low"].le(reference) & points["high"].ge(reference)
    verdicts = points.get("verdict", pd.Series("", points.index))
    points["hollow"] = verdicts.isin(OPEN).where(verdicts.isin([*OPEN, *VERDICTS]), crosses)
    return points


def reference_of(chart: Forest, points: pd.DataFrame) -> float:
    """Where the reference line of a forest is: at `neutral` of its rows if they have it; nan for none."""
    if chart.reference is not None or chart.diverging or points.empty:
        return chart.reference or 0.0
    if "neutral" in points:
        return float(points["neutral"].iloc[0])
    metric = METRICS.get(points["metric"].iloc[0])
    return metric.neutral(2) if metric else 0.0


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
    """The view's forest as HTML; its lines are buttons with `data-name` if they are clickable."""
    chart, points = view.chart, drawn(view, rows)
    assert isinstance(chart, Forest)
    if points.empty:
        return ""
    reference = reference_of(chart, points)
    numbers = points[["value", "low", "high"]].to_numpy(dtype=float)
    known = numbers[np.isfinite(numbers)]
    if math.isfinite(reference):
        known = np.append(known, reference)
    low, high = float(known.min()), float(known.max())
    edge = (high - low) * 0.04 or 1.0
    low, high = low - edge, high + edge

    def at(value: float) -> str:
        return f"{(value - low) / (high - low):.2%}"

    marks, lines = list(dict.fromkeys(points["mark"])), []
    for name, of_line in points.groupby(view.by, sort=False):
        tails = [str(of_line.iloc[0].get(column) or "") for column in ("verdict", "letters")]
        spoken = f"{name}: {'; '.join(of_line['text'])} {' '.join(tails)}".strip()
        line = {"name": str(name), "read": name == read, "tails": tails, "spoken": spoken}
        lines.append(line | {"marks": [_mark(row, marks, at, high - low) for row in of_line.to_dict("records")]})
    both = f"linear-gradient(90deg, {ORANGE_MARK} 50%, {BLUE_MARK} 50%)"  # the first of a diverging chart has two sides
    colours = points[points["mark"] != ""].drop_duplicates("mark").set_index("mark")["colour"].to_dict()
    legend = {mark: both if chart.diverging and colour != GREY else colour for mark, colour in colours.items()}
    return html(
        "forest",
        question=view.question,
        double=bool(chart.series),
        legend=legend,
        ticks={tick: at(tick) for tick in ticks(low, high)},
        zero=at(reference) if math.isfinite(reference) else "",
        lines=lines,
        tag="button" if clickable else "div",
        title=axis_title(chart, points),
    )


def _mark(row: dict, marks: Sequence[str], at: Callable[[float], str], width: float) -> dict[str, Any]:
    """A point with its interval, in places of a line. at: of a value. width: of the whole line."""
    mark = {"at": at(row["value"]), "top": f"{(marks.index(row['mark']) + 1) / (len(marks) + 1):.0%}"}
    mark |= {"text": row["text"], "colour": row["colour"]}
    mark["fill"] = "var(--background-color, Canvas)" if row["hollow"] else row["colour"]
    if pd.notna(row["low"]):
        mark |= {"low": at(row["low"]), "width": f"{(row['high'] - row['low']) / width:.2%}"}
    return mark


def forest_height(view: View, rows: pd.DataFrame) -> int:
    """Pixels of `forest_html`, so that its place can be kept free."""
    assert isinstance(view.chart, Forest)
    lines = drawn(view, rows)[view.by].nunique()
    return (44 if view.chart.series else LINE) * lines + 48 + (26 if view.chart.series else 0)


# Plotly


def _bars(points: pd.DataFrame, colour: str, ends: tuple[str, str, str] = ("value", "low", "high")) -> dict[str, Any]:
    value, low, high = (points[name].astype(float) for name in ends)
    above, below = (high - value).fillna(0.0), (value - low).fillna(0.0)
    return {"symmetric": False, "array": above, "arrayminus": below, "color": colour, "thickness": 2.5, "width": 0}


def _laid_out(shown: Any, height: int, **more: Any) -> Any:
    clear = "rgba(0,0,0,0)"
    look = {"dragmode": False, "plot_bgcolor": clear, "paper_bgcolor": clear, "font": {"size": 14}}
    return shown.update_layout(height=height, **look, **more)


def _forest(chart: Forest, by: str, points: pd.DataFrame, read: str) -> Any:
    """A line for each captioner, in a panel for each value of `panel`."""
    from plotly.subplots import make_subplots

    parts = [part for _, part in points.groupby(chart.panel, sort=False)] if chart.panel else [points]
    sizes = [LINE * max(2, part[by].nunique()) for part in parts]
    height = sum(sizes) + 80 * len(sizes)
    spacing = 60 / height if len(parts) > 1 else 0
    shown = make_subplots(rows=len(parts), cols=1, row_heights=sizes, vertical_spacing=spacing)
    marks, right = list(dict.fromkeys(points["mark"])), 20
    for number, part in enumerate(parts, start=1):
        place, names = {"row": number, "col": 1}, list(dict.fromkeys(part[by]))
        named = set()
        for (mark, colour), same in part.groupby(["mark", "colour"], sort=False):  # an error bar has one colour
            shown.add_scatter(
                x=same["value"],
                y=same[by].map(names.index) + (marks.index(mark) - (len(marks) - 1) / 2) * 0.28,
                mode="markers",
                name=escape(str(mark)),
                showlegend=bool(mark) and number == 1 and mark not in named,
                customdata=[escape(str(line)) for line in same[by]],
                text=[escape(text) for text in same["text"]],
                hovertemplate="%{customdata}: %{text}<extra></extra>",
                marker={"size": 11, "color": colour, "line": {"width": 2, "color": colour}}
                | {"symbol": ["circle-open" if hollow else "circle" for hollow in same["hollow"]]},
                error_x=_bars(same, colour),
                cliponaxis=False,
                **place,
            )
            named.add(mark)
        for row in part.to_dict("records") if not chart.series else ():
            tail = "  ".join(filter(None, (row["text"], row.get("verdict"), row.get("letters"))))
            right = max(right, 20 + round(7.4 * len(tail)))
            look = {"showarrow": False, "align": "left", "font": {"size": 13}, "xanchor": "left", "xshift": 12}
            shown.add_annotation(
                x=1,
                xref="x domain",
                y=names.index(row[by]),
                text=escape(tail),
                exclude_empty_subplots=False,
                **look,
                **place,
            )
        if math.isfinite(reference := reference_of(chart, part)):
            shown.add_vline(x=reference, line=DASHED, **place)
        labels = [f"<b>{escape(str(name))}</b>" if name == read else escape(str(name)) for name in names]
        look = {"automargin": True, "showgrid": False, "zeroline": False, "range": [len(names) - 0.5, -0.5]}
        shown.update_yaxes(tickvals=list(range(len(names))), ticktext=labels, **look, **place)
        title = str(part[chart.panel].iloc[0]) if chart.panel else axis_title(chart, part)
        shown.update_xaxes(title=escape(title), zeroline=False, **place)
    legend = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}
    return _laid_out(shown, height, margin={"l": 10, "r": right, "t": 40, "b": 50}, legend=legend)


def _scatter(chart: Scatter, by: str, points: pd.DataFrame, read: str) -> Any:
    import plotly.graph_objects as go

    across, up = (points[points[chart.by] == side].drop_duplicates(by).set_index(by) for side in (chart.x, chart.y))
    both = across.join(up, rsuffix="_up", how="inner").reset_index()
    shown = go.Figure()
    for is_read, part in both.groupby(both[by] == read):
        colour = BLUE_MARK if is_read else GREY
        shown.add_scatter(
            x=part["value"],
            y=part["value_up"],
            mode="markers+text",
            text=[escape(str(name)) for name in part[by]],
            textposition="top right",
            customdata=[f"{escape(a)}; {escape(b)}" for a, b in zip(part["text"], part["text_up"], strict=True)],
            hovertemplate="%{text}: %{customdata}<extra></extra>",
            marker={"size": 11, "color": colour},
            error_x=_bars(part, colour),
            error_y=_bars(part, colour, ("value_up", "low_up", "high_up")),
            cliponaxis=False,
        )
    places = {"left": 0, "right": 1, "bottom": 0, "top": 1}
    for corner, text in chart.corners.items():
        up_side, side = corner.split()
        at = {"xref": "paper", "yref": "paper", "xanchor": side, "yanchor": up_side, "showarrow": False}
        shown.add_annotation(
            x=places[side], y=places[up_side], text=escape(text), font={"color": GREY, "size": 13}, **at
        )
    for line in (shown.add_vline, shown.add_hline):
        line(0, line=DASHED)
    titles = {
        f"{axis}axis": {"title": escape(title), "zeroline": False}
        for axis, title in zip("xy", chart.titles, strict=True)
    }
    return _laid_out(shown, 460, showlegend=False, margin={"l": 10, "r": 20, "t": 20, "b": 50}, **titles)

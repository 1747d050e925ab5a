"""Numbers that need no chart of their own: a dot and its interval each, in a panel for each metric."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.measures.registry import METRICS
from capbias_core.views.charts import GREY, MARGINS, MEASURED, error_bars, graph_objects
from capbias_core.views.sentence import measure, with_interval
from capbias_core.views.tables import PARTS, result_columns, row_table
from capbias_core.views.view import Shown

MOST_DOTS = 400
PANEL, DOT, GAP = 40, 18, 70  # pixels of an empty panel, of a dot, and between panels


def shown_rows(
    title: str, rows: pd.DataFrame, sentence: str = "", notes: Sequence[str] = (), table: pd.DataFrame | None = None
) -> Shown:
    """Result rows as a view. table: for a reader (default: a line per number)."""
    table = row_table(rows) if table is None else table
    return Shown(title, result_columns(rows), sentence, tuple(filter(None, notes)), table, lambda: rows_chart(rows))


def rows_chart(rows: pd.DataFrame):
    """A panel for each metric and direction of result rows: a dot and its 95% interval for each row."""
    telling = [name for name in (*PARTS, "attribute", "condition") if name != "direction"]
    named = ["model", *(name for name in telling if rows[name].nunique() > 1)]
    labels = [" · ".join(filter(None, map(str, row))) for row in rows[named].itertuples(index=False, name=None)]
    panels = [measure(*row) for row in rows[["metric", "direction"]].itertuples(index=False, name=None)]
    neutral = {
        measure(name, way): METRICS[name].neutral(2)
        for name, way in set(zip(rows["metric"], rows["direction"], strict=True))
        if name in METRICS and METRICS[name].neutral(2) == 0 and METRICS[name].range[0] < 0
    }
    return dots_chart(rows.assign(label=labels, panel=panels), neutral)


def dots_chart(rows: pd.DataFrame, neutral: dict[str, float] | None = None):
    """A panel below the other for each value of `panel`: a dot and its interval for each row, in their order.

    rows: panel, label, value, and ci_low and ci_high if there are intervals. neutral: panel -> where a dashed line
    stands. Raises CapbiasError for more than MOST_DOTS numbers.
    """
    known = rows[rows["value"].notna()]
    if len(known) > MOST_DOTS:
        raise CapbiasError(f"A chart of {len(known):,} numbers cannot be read.", "Choose fewer, or write csv or tex.")
    graph_objects()
    from plotly.subplots import make_subplots

    panels = {str(name): part for name, part in known.groupby("panel", sort=False)}
    sizes = [PANEL + DOT * len(part) for part in panels.values()] or [PANEL]
    height = MARGINS + sum(sizes) + GAP * (len(sizes) - 1)
    figure = make_subplots(
        rows=len(sizes),
        cols=1,
        subplot_titles=[escape(name) for name in panels],
        row_heights=sizes,
        vertical_spacing=GAP / height if len(sizes) > 1 else 0,
    )
    for panel_row, (name, part) in enumerate(panels.items(), start=1):
        labels = part["label"].map(lambda label: escape(str(label)))
        low, high = (part[end] if end in part else pd.Series(float("nan"), part.index) for end in ("ci_low", "ci_high"))
        texts = [with_interval(*numbers, 2) for numbers in zip(part["value"], low, high, strict=True)]
        figure.add_scatter(
            x=part["value"],
            y=labels,
            mode="markers",
            marker={"size": 9, "color": MEASURED},
            error_x=error_bars(part["value"], low, high, MEASURED, 2),
            hoverinfo="text",
            hovertext=[f"{label}: {text}" for label, text in zip(labels, texts, strict=True)],
            row=panel_row,
            col=1,
        )
        order = list(dict.fromkeys(labels))[::-1]
        ends = [-0.7, len(order) - 0.3]
        figure.update_yaxes(
            categoryorder="array", categoryarray=order, range=ends, automargin=True, row=panel_row, col=1
        )
        figure.update_xaxes(zeroline=False, row=panel_row, col=1)
        if neutral and name in neutral:
            figure.add_vline(x=neutral[name], line={"dash": "dash", "color": GREY, "width": 1.5}, row=panel_row, col=1)
    margin = {"l": 10, "r": 20, "t": 34, "b": 30}
    return figure.update_layout(height=height, margin=margin, showlegend=False, dragmode=False)

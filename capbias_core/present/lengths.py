"""Leakage against length: a line a captioner, over captions that are cut after more and more words."""

from __future__ import annotations

from html import escape

import pandas as pd

from capbias_core.errors import need
from capbias_core.present.table import value_text

LENGTHS = (
    "Where captions are cut alike, a captioner that writes more has no more words to give something away. Cuts keep "
    "the first words; what comes later may matter more or less. Captions that are shorter than a cut stay whole. The "
    "points of a line rest on the same images."
)


def lengths_chart(rows: pd.DataFrame, metric: str, neutral: float):
    """A dot and its 95% interval for each cut, over the mean words of a caption. rows: of one metric (`by_length`)."""
    need("A chart", "plotly")
    import plotly.graph_objects as go

    figure = go.Figure()
    for name, own in rows.groupby("of", sort=False):
        above, below = own["ci_high"] - own["value"], own["value"] - own["ci_low"]
        figure.add_scatter(
            x=own["words"],
            y=own["value"],
            error_y={"array": above, "arrayminus": below, "thickness": 1.5, "width": 0},
            mode="lines+markers",
            name=escape(str(name)),
            customdata=own["cut"],
            hovertemplate="%{customdata}: %{y:.1f} at %{x:.0f} words<extra>%{fullData.name}</extra>",
        )
    figure.add_hline(y=neutral, line_dash="dash", line_width=1, line_color="grey")
    figure.update_layout(
        xaxis_title="mean words of a caption",
        yaxis_title=metric,
        height=380,
        margin={"l": 0, "r": 0, "t": 8, "b": 0},
        legend={"orientation": "h", "y": -0.25},
    )
    return figure


def lengths_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a captioner and cut: mean words, and each metric with its interval."""
    found: dict[tuple, dict] = {}
    for row in rows.to_dict("records"):
        own = found.setdefault((row["of"], row["cut"]), {"captioner": row["of"], "cut": row["cut"]})
        own["words"] = f"{row['words']:.1f}"
        own[row["metric"]] = value_text(row)
    return pd.DataFrame(found.values()).fillna("")

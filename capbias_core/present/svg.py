"""A chart of intervals as SVG: a file for a paper, or a part of a report. No chart library, no font, no script.

Text and lines take the colour of what the chart stands in (`currentColor`), so that it suits both themes.
"""

from __future__ import annotations

import math
import re
import zlib
from html import escape

import pandas as pd

from capbias_core.measures.registry import METRICS
from capbias_core.present.colour import GREY, MEASURED
from capbias_core.present.rows import Scale, intervals_in_order, scale_of
from capbias_core.present.sentence import Second, better_text, interval, interval_over
from capbias_core.types import Attribute

WIDTH, ROW, TOP, BOTTOM = 720, 30, 26, 34
LETTER = 7.0  # pixels of a letter at this size of type
TYPE = 13
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
    left = 16 + LETTER * max(map(len, rows["model"]))
    right = WIDTH - 12 - LETTER * max(map(len, tails))
    scale = scale_of(low, high, neutral, second)

    def place(value: float) -> str:
        return f"{left + (right - left) * scale(value) / 100:.1f}"

    bottom = TOP + ROW * len(rows)
    parts = [_ticks(scale, place, bottom)]
    if math.isfinite(neutral):
        at = place(neutral)
        parts.append(
            f'<line x1="{at}" x2="{at}" y1="{TOP - 6}" y2="{bottom}" stroke="{GREY}" stroke-dasharray="5 4"/>'
            f'<text x="{at}" y="{TOP - 11}" text-anchor="middle">{METRICS[metric].reference_line} {neutral:g}</text>'
        )
    for number, (_, row) in enumerate(rows.iterrows()):
        y = TOP + ROW * (number + 0.5)
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
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + BOTTOM + 6}" width="{WIDTH}" '
        f'height="{bottom + BOTTOM + 6}" role="img" aria-label="{named}" font-family="Helvetica, Arial, sans-serif" '
        f'font-size="{TYPE}" fill="currentColor"><title>{named}</title>{"".join(parts)}</svg>'
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

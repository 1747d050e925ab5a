"""A signed number as a small picture for a table: a bar to the left below 0, to the right above."""

from __future__ import annotations

from urllib.parse import quote

import pandas as pd

from capbias_core.present.colour import BLUE_MARK, GREY, ORANGE_MARK
from capbias_core.types import Attribute

WIDTH, HEIGHT, THICK = 64, 60, 16


def signed_bar(value: float) -> str:
    """An SVG in a data URI, to be shown beside the number as text. value: -1 to 1."""
    middle = WIDTH / 2
    size = min(1.0, abs(value)) * middle
    left, colour = (middle - size, ORANGE_MARK) if value < 0 else (middle, BLUE_MARK)
    top = (HEIGHT - THICK) / 2
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">'
        f'<rect x="{left:.1f}" y="{top}" width="{size:.1f}" height="{THICK}" fill="{colour}"/>'
        f'<path d="M{middle} 8V{HEIGHT - 8}" stroke="{GREY}"/></svg>'
    )
    return f"data:image/svg+xml,{quote(drawing, safe=' /:=')}"


def lean(rows: pd.DataFrame, attribute: Attribute) -> pd.Series:
    """How far each caption leans: of two values the probability of the second minus that of the first, -1 to 1; of more
    that of the predicted value above chance, 0 to 1.

    rows: of analysis.caption_filters.caption_rows.
    """
    if len(attribute.values) == 2:
        return rows["p1"] - rows["p0"]
    chance = 1 / len(attribute.values)
    return (rows["score"] - chance) / (1 - chance)

"""The rows of METRICS for what a captioner's words rest on in the photograph."""

from __future__ import annotations

from capbias_core.metrics.attribution_score import attribution_even, attribution_pixels, attribution_score
from capbias_core.metrics.base import Metric, no_neutral
from capbias_core.metrics.pointing_game import pointing_game

FAMILY = "attribution"
_MAPS = "Selvaraju et al., ICCV 2017"
_TABLE = "the DBAC paper, Table 4"

ATTRIBUTION_ROWS = (
    Metric(
        "attribution_score",
        "attribution score, the map outside people",
        FAMILY,
        100,
        no_neutral,
        "lower",
        (0, 100),
        f"{_TABLE}; {_MAPS}",
        function=attribution_score,
        explanation="Share of the map at the captioner's word for a value (what it rests on) that lies outside people. "
        "High: it rests on the scene. Compare with attribution_even, the score of an even map.",
    ),
    Metric(
        "attribution_pixels",
        "attribution score by pixels",
        FAMILY,
        100,
        no_neutral,
        "lower",
        (0, 100),
        f"{_TABLE}; {_MAPS}, section 4.1",
        function=attribution_pixels,
        explanation="Of the pixels where the map has 15% of its maximum or more, the share outside people: the other "
        "reading of the paper's definition.",
    ),
    Metric(
        "attribution_even",
        "attribution score of an even map",
        FAMILY,
        100,
        no_neutral,
        "neutral",
        (0, 100),
        f"{_TABLE}; {_MAPS}",
        function=attribution_even,
        explanation="Share of these photographs outside people: what a map that says nothing would score.",
    ),
    Metric(
        "pointing_game",
        "pointing game, the maximum on a person",
        FAMILY,
        100,
        no_neutral,
        "higher",
        (0, 100),
        "Zhang et al., ECCV 2016",
        function=pointing_game,
        explanation="Share of the maps whose maximum lies on a person. A map that says nothing would score 100 minus "
        "attribution_even.",
    ),
)

# What a user asks for -> the rows that answer it.
ATTRIBUTION_FAMILIES = {"attribution": tuple(row.name for row in ATTRIBUTION_ROWS)}

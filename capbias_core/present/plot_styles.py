"""A look of its own for each captioner and each encoder, the same in every chart of a page.

A captioner has a colour and, where colours run out, a dash; an encoder has the shape of a mark. So no look means two
things. An open mark was printed by a paper, a filled one measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from capbias_core.present.colour import BLUE_MARK, ORANGE_MARK

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

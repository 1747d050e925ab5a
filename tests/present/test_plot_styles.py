"""Colours, dashes and shapes: none twice, none that the colour-blind or either theme cannot show."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest

from capbias_core.views.charts import COLOURS, DASHES, GREY, SHAPES, captioner_looks, encoder_shapes, opened

ROOT = Path(__file__).resolve().parents[2]
# Machado, Oliveira and Fernandes 2009, table 1, severity 1: what people with each kind of colour blindness see.
SEEN = {
    "all colours": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
# Ottosson 2020: linear sRGB to OKLab, in which distances are about as large as they look.
TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
APART = 0.08


def linear(colour: str) -> np.ndarray:
    """#RRGGBB as linear sRGB, (3,)."""
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def looks_like(colour: str, seen) -> np.ndarray:
    return TO_LAB @ np.cbrt(TO_CONES @ np.clip(np.asarray(seen) @ linear(colour), 0, 1))


def contrast(colour: str, ground: str) -> float:
    """WCAG 2.2: relative luminances, the lighter over the darker."""
    light = sorted(linear(one) @ [0.2126, 0.7152, 0.0722] + 0.05 for one in (colour, ground))
    return light[1] / light[0]


@pytest.mark.parametrize("seen", SEEN.values(), ids=SEEN)
def test_colours_are_apart_for_everyone(seen):
    places = [looks_like(colour, seen) for colour in (*COLOURS, GREY)]
    assert min(np.linalg.norm(one - other) for one, other in itertools.combinations(places, 2)) >= APART


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_show_on_the_ground_of_each_theme(theme):
    ground = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"][theme]["backgroundColor"]
    assert min(contrast(colour, ground) for colour in COLOURS) >= 3


def test_no_two_of_25_captioners_look_alike_and_names_decide():
    names = [f"m{number}" for number in range(25)]
    looks = captioner_looks(names)
    assert len(set(looks.values())) == 25 == len(COLOURS) * len(DASHES)
    assert captioner_looks(names[::-1]) == looks
    assert len({look.colour for look in captioner_looks(names[:5]).values()}) == 5


def test_captioners_with_most_values_have_colours_that_no_other_has():
    looks = captioner_looks([*"abcdefg", *"cdefg"])
    assert [looks[name].dash for name in "cdefg"] == ["solid"] * 5
    assert len({looks[name].colour for name in "cdefg"}) == 5


def test_every_shape_is_plotlys_and_none_comes_twice():
    shapes = encoder_shapes(map(str, range(2 * len(SHAPES))))
    every = [*shapes.values(), *map(opened, shapes.values())]
    assert len(set(every)) == 4 * len(SHAPES)
    go.Scatter(marker={"symbol": every})  # raises for one that it has not

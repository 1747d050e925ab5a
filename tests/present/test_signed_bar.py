"""Bars of a table: worked out by hand."""

from __future__ import annotations

import re
from urllib.parse import unquote
from xml.etree import ElementTree

import pandas as pd
import pytest

from capbias_core.attributes import get_attribute
from capbias_core.views.captions import lean, signed_bar
from capbias_core.views.charts import BLUE_MARK, ORANGE_MARK


@pytest.mark.parametrize(
    ("value", "left", "width", "colour"),
    [
        (-1, 0, 32, ORANGE_MARK),
        (-0.5, 16, 16, ORANGE_MARK),
        (0, 32, 0, BLUE_MARK),
        (0.25, 32, 8, BLUE_MARK),
        (3, 32, 32, BLUE_MARK),
    ],
)
def test_a_bar_goes_from_the_middle_to_its_side(value, left, width, colour):
    uri = signed_bar(value)
    assert re.fullmatch(r"data:image/svg\+xml,[\w%/:= .-]+", uri)
    bar = ElementTree.fromstring(unquote(uri.partition(",")[2]))[0]
    assert bar.attrib | {"x": float(bar.attrib["x"]), "width": float(bar.attrib["width"])} == bar.attrib | {
        "x": left,
        "width": width,
        "fill": colour,
    }


def test_how_far_captions_lean():
    two = pd.DataFrame({"p0": [0.9, 0.5, 0.2], "p1": [0.1, 0.5, 0.8]})
    assert lean(two, get_attribute("gender")).tolist() == pytest.approx([-0.8, 0.0, 0.6])
    nine = get_attribute("emotion")
    assert lean(pd.DataFrame({"score": [1 / 9, 5 / 9, 1.0]}), nine).tolist() == pytest.approx([0.0, 0.5, 1.0])

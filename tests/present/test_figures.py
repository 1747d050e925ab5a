"""The waterfall of a logit: worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from capbias_core.attributes import get_attribute
from capbias_core.views.charts import furthest, logit_waterfall

GENDER = get_attribute("gender")


def test_a_logit_adds_up_from_the_intercept_over_the_words_to_the_sum():
    figure = logit_waterfall(["a", "<b>tie</b>", "a"], np.array([0.25, 1.0, -0.5]), -0.25, GENDER, 2.0)
    (bars,) = figure.data
    assert list(bars.x) == [-0.25, 0.25, 1.0, -0.5, 0.5]
    assert list(bars.measure) == ["absolute", "relative", "relative", "relative", "total"]
    assert list(bars.text) == ["−0.25", "+0.25", "+1.00", "−0.50", "+0.50"]
    # A word that comes twice has two bars, and a caption is only text.
    assert list(figure.layout.yaxis.ticktext) == ["intercept", "a", "&lt;b&gt;tie&lt;/b&gt;", "a", "sum"]
    assert list(bars.y) == [0, 1, 2, 3, 4] and tuple(figure.layout.xaxis.range) == (-2.0, 2.0)
    assert figure.layout.xaxis.title.text == "← Female · logit · Male →"


def test_the_axis_holds_every_sum_on_the_way():
    assert furthest(np.array([1.0, -3.0]), 0.5) == pytest.approx(1.5 * 1.3)
    assert furthest(np.array([]), -2.0) == pytest.approx(2.0 * 1.3)

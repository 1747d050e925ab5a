"""What present mode draws: a caption with its values printed, and a chart with everything larger."""

import re

import numpy as np
import plotly.graph_objects as go

from capbias_core.attributes import get_attribute
from capbias_core.views.charts import enlarged
from capbias_core.views.words import LARGE, large_words

GENDER = get_attribute("gender")


def test_every_word_has_its_value_and_which_value_it_pushes_toward():
    tokens = ["a", GENDER.mask_token, "in", "<b>tie</b>"]
    html = large_words(tokens, np.array([0.001, 0.4, -0.25, 1.5]), GENDER, ["a", "man", "in", "<b>tie</b>"])
    assert re.findall(r"<small>(.*?)</small>", html) == ["0.00", "masked, 0.40 Male", "0.25 Female", "1.50 Male"]
    assert ">man</span>" in html and GENDER.mask_token not in html
    assert "<b>" not in html and "&lt;b&gt;tie&lt;/b&gt;" in html
    assert all(int(size) >= 28 for size in re.findall(r"\.cb-large span .*?clamp\((\d+)px", LARGE))


def test_an_enlarged_chart_has_larger_type_and_marks_and_the_same_values():
    figure = go.Figure(go.Scatter(x=[1, 2], y=[3, 4], marker={"size": 10}, error_x={"array": [1, 1], "thickness": 2}))
    figure.add_annotation(x=1, y=3, ax=20, ay=-14, text="name", font={"size": 13})
    figure.add_annotation(x=2, y=4, text="no size of its own")
    figure.update_layout(height=400, margin={"l": 10, "r": 90, "t": 10, "b": 40}, xaxis={"range": [0, 5]})
    larger = enlarged(figure, 2)
    (points,), (named, usual) = larger.data, larger.layout.annotations
    assert list(points.x) == [1, 2] and list(points.y) == [3, 4] and list(larger.layout.xaxis.range) == [0, 5]
    assert points.marker.size == 20 and points.error_x.thickness == 4 and list(points.error_x.array) == [1, 1]
    assert (named.x, named.ax, named.ay, named.font.size) == (1, 40, -28, 26) and usual.font.size == 28
    assert larger.layout.margin.r == 180 and larger.layout.height is None and larger.layout.xaxis.tickfont.size == 28
    assert figure.data[0].marker.size == 10 and figure.layout.height == 400, "the figure itself stays"

"""A chart as a file: the data that it draws, worked out by hand, and pictures where a browser can draw them."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from capbias_core.attributes import plain_attribute
from capbias_core.errors import CapbiasError
from capbias_core.types import Result
from capbias_core.views import pictures
from capbias_core.views.charts import interval_chart, interval_svg
from tests import sentences

ROOT = Path(__file__).resolve().parents[2]
ATTRIBUTE = plain_attribute("group", ("A", "B"))


def rows(*more: Result) -> pd.DataFrame:
    like = {"encoder": "ngram", "scale": 100, "seeds": 2, "n": 9, "interval": "refits"}
    own = [
        Result("group", "nic & <b>", "LIC", 2.0, ci_low=1.0, ci_high=4.0, **like),
        Result("group", "sat", "LIC", -1.0, ci_low=-2.0, ci_high=0.5, **like),
        *more,
    ]
    return pd.DataFrame([result.row() for result in own])


def test_the_data_of_a_chart_are_what_it_draws():
    figure = interval_chart(rows(), "LIC", ATTRIBUTE, {}, {})
    found = pictures.figure_data(figure).set_index("y")
    assert found.loc["nic & <b>", ["x", "x_low", "x_high"]].tolist() == [2.0, 1.0, 4.0]
    assert found.loc["sat", ["x", "x_low", "x_high"]].tolist() == [-1.0, -2.0, 0.5]
    assert found["x_title"].iloc[0].startswith("LIC (ngram)")


def test_the_data_of_panels_bars_and_heat_maps():
    figure = make_subplots(1, 2, subplot_titles=("one", "two &amp; more"))
    figure.add_bar(x=["a", "b"], y=[1, 2], name="first", error_y={"type": "data", "array": [0.5, 0.25]}, row=1, col=1)
    figure.add_scatter(x=[3], y=[4], name="second", row=1, col=2)
    figure.update_xaxes(title_text="left", row=1, col=1)
    figure.update_xaxes(title_text="right", row=1, col=2)
    found = pictures.figure_data(figure)
    assert found["series"].tolist() == ["first", "first", "second"]
    assert found["x_title"].tolist() == ["left", "left", "right"]
    assert found["panel"].tolist() == ["one", "one", "two & more"]
    assert found["y_low"].tolist()[:2] == [0.5, 1.75] and math.isnan(found["y_low"].iloc[2])
    cells = pictures.figure_data(go.Figure(go.Heatmap(x=["u", "v"], y=["w"], z=[[1.0, 2.0]])))
    assert cells.to_dict("records") == [{"x": "u", "y": "w", "z": 1.0}, {"x": "v", "y": "w", "z": 2.0}]
    assert pictures.figure_data(go.Figure()).empty


def test_the_data_of_dots_say_whose_they_are():
    figure = go.Figure()
    figure.add_scatter(x=[1, 2, None], y=[0, 0, None], mode="lines", hoverinfo="skip")  # joins the dots
    figure.add_scatter(x=[None], y=[None], name="key", hoverinfo="skip")
    figure.add_scatter(x=[1, 2], y=[0, 1], hovertext=["<b>a &amp; b</b><br>1 of 2", "c"], hoverinfo="text")
    figure.update_yaxes(tickvals=[0, 1], ticktext=["bat &lt;", "ball"])
    found = pictures.figure_data(figure)
    assert found.to_dict("records") == [
        {"x": 1, "y": "bat <", "about": "a & b; 1 of 2"},
        {"x": 2, "y": "ball", "about": "c"},
    ]
    figure.add_scatter(x=[3, 4], y=[0, 1], mode="lines", hoverinfo="skip")
    assert pictures.figure_data(figure)["x"].tolist() == [1, 2, 3, 4], "a trend or a band is drawn, and no line of gaps"


@pytest.mark.browser
@pytest.mark.parametrize(("format", "start"), [("svg", b"<svg")])
def test_a_picture_is_drawn(format, start):
    if lack := pictures.pictures_lack():
        pytest.skip(lack)
    data = pictures.picture(interval_chart(rows(), "LIC", ATTRIBUTE, {}, {}), format)
    assert data.startswith(start)
    if format == "svg":
        assert b">sat<" in data and b"http://" not in data.replace(b"http://www.w3.org", b"")


def test_a_chart_as_svg_puts_points_where_their_values_are():
    """The distance of two dots on the page is that of their values; the interval's ends lie around the dot."""
    text = interval_svg(rows(), "LIC", ATTRIBUTE, {"nic & <b>": "b", "sat": "a"}, {"sat": (0.5, 0.25, 1.0)})
    first, second, last = [float(own) for own in re.findall(r'<circle cx="([\d.]+)"', text)]  # highest value first
    ends = [tuple(map(float, own)) for own in re.findall(r'<line x1="([\d.]+)" x2="([\d.]+)"[^>]*stroke-width', text)]
    dots, scale = (first, last), (first - last) / 3.0
    assert scale > 0
    for dot, (low, high), below, above in zip(dots, ends, (1.0, 1.0), (2.0, 1.5), strict=True):
        assert (dot - low, high - dot) == (pytest.approx(below * scale, abs=0.2), pytest.approx(above * scale, abs=0.2))
    assert second - last == pytest.approx(1.5 * scale, abs=0.2), "the hollow dot of sat: 0.5 beside -1.0"
    assert "nic &amp; &lt;b&gt;" in text and "<b>" not in text and "2.0 [1.0, 4.0] · b" in text


def test_a_browser_that_never_answers_is_ended(tmp_path, monkeypatch):
    if lack := pictures.pictures_lack():
        pytest.skip(lack)
    silent = tmp_path / "chromium"
    silent.write_text("#!/bin/sh\nexec sleep 30\n")
    silent.chmod(0o755)
    monkeypatch.setenv("BROWSER_PATH", str(silent))
    monkeypatch.setattr(pictures, "SECONDS", 2)
    monkeypatch.setattr(pictures, "TRIES", 1)
    with sentences.raises(CapbiasError):
        pictures.picture(go.Figure(), "svg")

"""Charts: names that overlap nowhere, colours for everyone, and a chart as a file."""

import tomllib
from itertools import combinations, product
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from capbias_core.attributes import plain_attribute
from capbias_core.errors import CapbiasError
from capbias_core.views import charts, pictures
from tests import sentences
from tests.views.rows import frame, row

HEIGHT = 450
# Of the type that charts have at 13 pixels: no wider a letter, no higher a line.
LETTER, LINE = 7.2, 16


def boxes(points, names, places, width, height=HEIGHT) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of each name in pixels of a plot so wide and high."""
    found = []
    for (across, down), name, place in zip(points, names, places, strict=True):
        start = (0, 0) if place.of_plot else (across * width, down * height)
        scale = (width, height) if place.of_plot else (1, 1)
        x, y = start[0] + place.across * scale[0], start[1] + place.down * scale[1]
        half = len(charts.cut(name)) * LETTER / 2
        found.append((x - half, y - LINE / 2, x + half, y + LINE / 2))
    return found


def overlap(one, other) -> bool:
    left, right = max(one[0], other[0]), min(one[2], other[2])
    return left < right and max(one[1], other[1]) < min(one[3], other[3])


CASES = {
    "apart": np.array([[0.2, 0.2], [0.8, 0.8], [0.2, 0.8]]),
    "one point": np.full((10, 2), 0.5),
    "close together": np.random.default_rng(3).normal([0.55, 0.45], 0.015, (10, 2)),
    "a line across": np.stack([np.linspace(0.05, 0.95, 12), np.full(12, 0.5)], axis=1),
    "fourteen": np.random.default_rng(7).normal(0.5, 0.15, (14, 2)),
    "in the corners": np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
}


@pytest.mark.parametrize("case", CASES)
def test_no_name_lies_over_another_or_leaves_the_plot(case):
    points = CASES[case]
    names = [f"transformer {number}"[: 3 + 3 * (number % 5)] for number in range(len(points))]
    places = charts.name_places(points, names, HEIGHT)
    assert None not in places and places == charts.name_places(points, names, HEIGHT)
    for width, height in product((280, 420, 700, 1000, 1400), (350, HEIGHT, 700)):
        found = boxes(points, names, places, width, height)
        assert not [pair for pair in combinations(found, 2) if overlap(*pair)]
        assert all(box[0] >= 0 and box[1] >= 0 and box[2] <= width and box[3] <= height for box in found)
        for across, down in points:
            x, y = across * width, down * height
            assert not any(overlap(box, (x - 5, y - 5, x + 5, y + 5)) for box in found)


ROOT = Path(__file__).resolve().parents[2]
# Machado, Oliveira and Fernandes 2009, table 1, severity 1: what people with each kind of colour blindness see.
SEEN = {
    "all colours": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
# Ottosson 2020: linear sRGB to OKLab, in which distances are about as large as they look.
TO_CONES = """0.4122214708 0.5363325363 0.0514459929 0.2119034982 0.6806995451 0.1073969566 0.0883024619 0.2817188376
    0.6299787005"""
TO_LAB = """0.2104542553 0.7936177850 -0.0040720468 1.9779984951 -2.4285922050 0.4505937099 0.0259040371 0.7827717662
    -0.8086757660"""
TO_CONES, TO_LAB = (np.array(text.split(), dtype=float).reshape(3, 3) for text in (TO_CONES, TO_LAB))
APART, WITH_ALL_COLOURS = 0.08, 0.14


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


def test_colours_are_apart_for_everyone_and_show_on_the_ground_of_each_theme():
    for seen in SEEN.values():
        places = [looks_like(colour, seen) for colour in (*charts.COLOURS, charts.GREY)]
        assert min(np.linalg.norm(one - other) for one, other in combinations(places, 2)) >= APART
    seen = [looks_like(colour, SEEN["all colours"]) for colour in charts.COLOURS]
    assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) >= WITH_ALL_COLOURS
    themes = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"]
    for theme in ("light", "dark"):
        assert min(contrast(colour, themes[theme]["backgroundColor"]) for colour in charts.COLOURS) >= 3


def test_every_shape_is_plotlys_and_none_comes_twice():
    shapes = charts.encoder_shapes(map(str, range(2 * len(charts.SHAPES))))
    every = [*shapes.values(), *map(charts.opened, shapes.values())]
    assert len(set(every)) == 4 * len(charts.SHAPES)
    go.Scatter(marker={"symbol": every})  # raises for one that it has not


ATTRIBUTE = plain_attribute("group", ("A", "B"))


ROWS = frame(
    row("LIC", 2.0, 1.0, 4.0, model="nic & <b>", attribute="group"),
    row("LIC", -1.0, -2.0, 0.5, model="sat", attribute="group"),
)


def test_the_data_of_a_chart_are_what_it_draws():
    figure = charts.interval_chart(ROWS, "LIC", ATTRIBUTE, {}, {})
    found = pictures.figure_data(figure).set_index("y")
    assert found.loc["nic & <b>", ["x", "x_low", "x_high"]].tolist() == [2.0, 1.0, 4.0]
    assert found.loc["sat", ["x", "x_low", "x_high"]].tolist() == [-1.0, -2.0, 0.5]
    assert found["x_title"].iloc[0].startswith("LIC (ngram)")
    # Panels, bars and heat maps.
    figure = make_subplots(1, 2, subplot_titles=("one", "two &amp; more"))
    figure.add_bar(x=["a", "b"], y=[1, 2], name="first", error_y={"type": "data", "array": [0.5, 0.25]}, row=1, col=1)
    figure.add_scatter(x=[3], y=[4], name="second", row=1, col=2)
    figure.update_xaxes(title_text="right", row=1, col=2)
    found = pictures.figure_data(figure)
    assert found["panel"].tolist() == ["one", "one", "two & more"]
    assert found["x_title"].tolist()[2:] == ["right"] and found["y_low"].tolist()[:2] == [0.5, 1.75]
    cells = pictures.figure_data(go.Figure(go.Heatmap(x=["u", "v"], y=["w"], z=[[1.0, 2.0]])))
    assert cells.to_dict("records") == [{"x": "u", "y": "w", "z": 1.0}, {"x": "v", "y": "w", "z": 2.0}]


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
def test_a_picture_is_drawn():
    if lack := pictures.pictures_lack():
        pytest.skip(lack)
    data = pictures.picture(charts.interval_chart(ROWS, "LIC", ATTRIBUTE, {}, {}), "svg", "LIC (mine, gender)")
    assert data.startswith(b"<svg") and b">sat<" in data and b">LIC (mine, gender)<" in data
    assert b"http://" not in data.replace(b"http://www.w3.org", b"")


def test_intervals_of_captioners_have_their_numbers_beside_them():
    rows = ROWS.assign(verdict=["amplifies", "inconclusive"])
    second = {"sat": (0.5, 0.25, 1.0)}
    lengths = {"sat": 91.2, "nic & <b>": 10.2}
    figure = charts.interval_chart(rows, "LIC", ATTRIBUTE, {"nic & <b>": "b", "sat": "a"}, second, "sat", lengths)
    low, high = figure.layout.yaxis.ticktext
    assert low.startswith("<b>sat</b><br>") and "3,160 images, 91 words" in low
    assert high.startswith("nic &amp; &lt;b&gt;<br>") and "10 words" in high
    texts = [note.text for note in figure.layout.annotations]
    assert texts[0] == "neutral 0" and texts[1].startswith("−1.0 [−2.0, 0.5]<br>")
    assert "inconclusive (a)" in texts[1] and "amplifies (b)" in texts[2]
    found = pictures.figure_data(figure)
    assert found["y"].tolist() == ["sat", "nic & <b>", "sat"] and found["x"].tolist() == [-1.0, 2.0, 0.5]
    assert found["x_low"].tolist() == [-2.0, 1.0, 0.25] and found["x_high"].tolist() == [0.5, 4.0, 1.0]
    assert "±1.00 std over 10 seeds" in figure.data[0].hovertext[0]
    # One captioner has no letters, lengths that hardly differ are left out, and so is an interval that is missing.
    alone = ROWS[1:].assign(metric="LIC_M", ci_low=None, ci_high=None, spread=None)
    figure = charts.interval_chart(alone, "LIC_M", ATTRIBUTE, {"sat": "a"}, words={"sat": 10.0, "nic": 10.1})
    assert [note.text for note in figure.layout.annotations] == ["chance 25", "−1.0"]
    assert "words" not in figure.layout.yaxis.ticktext[0] and "std" not in figure.data[0].hovertext[0]


@pytest.mark.long
def test_a_browser_that_never_answers_is_ended(tmp_path, monkeypatch):
    if lack := pictures.pictures_lack():
        pytest.skip(lack)
    silent = tmp_path / "chromium"
    silent.write_text("#!/bin/sh\nexec sleep 30\n")
    silent.chmod(0o755)
    monkeypatch.setenv("BROWSER_PATH", str(silent))
    for name, value in (("SECONDS", 1), ("TRIES", 1)):
        monkeypatch.setattr(pictures, name, value)
    with sentences.raises(CapbiasError):
        pictures.picture(go.Figure(), "svg")

"""Names beside points: apart from each other, from the points and inside the plot, whatever the window's width."""

from itertools import combinations, product

import numpy as np
import plotly.graph_objects as go
import pytest

from capbias_core.views.charts import cut, name_places, name_points

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
        half = len(cut(name)) * LETTER / 2
        found.append((x - half, y - LINE / 2, x + half, y + LINE / 2))
    return found


def overlap(one, other) -> bool:
    left, right = max(one[0], other[0]), min(one[2], other[2])
    return left < right and max(one[1], other[1]) < min(one[3], other[3])


def close_together(n: int) -> np.ndarray:
    return np.random.default_rng(3).normal([0.55, 0.45], 0.015, (n, 2))


CASES = {
    "apart": np.array([[0.2, 0.2], [0.8, 0.8], [0.2, 0.8]]),
    "one point": np.full((10, 2), 0.5),
    "close together": close_together(10),
    "a line across": np.stack([np.linspace(0.05, 0.95, 12), np.full(12, 0.5)], axis=1),
    "fourteen": np.random.default_rng(7).normal(0.5, 0.15, (14, 2)),
    "in the corners": np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
}


@pytest.mark.parametrize("case", CASES)
def test_no_name_lies_over_another_or_leaves_the_plot(case):
    points = CASES[case]
    names = [f"transformer {number}"[: 3 + 3 * (number % 5)] for number in range(len(points))]
    places = name_places(points, names, HEIGHT)
    assert None not in places and places == name_places(points, names, HEIGHT)
    for width, height in product((280, 420, 700, 1000, 1400), (350, HEIGHT, 700)):
        found = boxes(points, names, places, width, height)
        assert not [pair for pair in combinations(found, 2) if overlap(*pair)]
        assert all(box[0] >= 0 and box[1] >= 0 and box[2] <= width and box[3] <= height for box in found)
        for across, down in points:
            x, y = across * width, down * height
            assert not any(overlap(box, (x - 5, y - 5, x + 5, y + 5)) for box in found)


def test_names_keep_off_lines_and_a_narrow_window_does_not_cost_a_wide_one_its_names():
    line = (0.3, 0.49, 0.9, 0.51)
    (place,) = name_places(np.array([[0.5, 0.5]]), ["name"], HEIGHT, (), [line])
    for width in (280, 700, 1400):
        (box,) = boxes(np.array([[0.5, 0.5]]), ["name"], [place], width)
        assert not overlap(box, (0.3 * width, 0.49 * HEIGHT, 0.9 * width, 0.51 * HEIGHT))
    wall = (0.0, 0.0, 1.0, 0.2), (0.0, 0.8, 1.0, 1.0)  # 24 letters are 180 pixels, too many beside it in 280
    long = ["instructblip_short_2024 b"] * 3
    points = np.array([[0.5, 0.4], [0.5, 0.5], [0.5, 0.6]])
    assert None not in name_places(points, long, HEIGHT, wall)


def test_a_name_without_a_free_place_is_left_to_the_hover():
    crowd = close_together(40)
    names = ["a captioner with a long name"] * 40
    places = name_places(crowd, names, HEIGHT)
    assert None in places
    kept = [number for number, place in enumerate(places) if place]
    for width in (280, 620, 1400):
        found = boxes(crowd[kept], [names[0]] * len(kept), [places[number] for number in kept], width)
        assert not [pair for pair in combinations(found, 2) if overlap(*pair)]
    figure = go.Figure()
    name_points(figure, crowd[:, 0], crowd[:, 1], names, places, [(0, 1), (0, 1)])
    assert len(figure.layout.annotations) == len(kept)

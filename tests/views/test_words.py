"""Words of a caption and what they add: in colour, large, as a sum: worked out by hand."""

import re

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from capbias_core.attributes import get_attribute
from capbias_core.views import words as view
from capbias_core.views.captions import CaptionScores, captions_with
from capbias_core.views.charts import enlarged

GENDER = get_attribute("gender")


def test_captions_with_a_word_come_by_what_it_adds_there():
    captions = ["a tie", "a tie and a tie", "no ties", "tie"]
    words = np.array([[0.0], [0.5], [0.0], [0.4], [0.0], [0.0], [0.3], [0.0], [0.9], [-0.6]])
    table = pd.DataFrame({"masked": captions})
    offsets = np.cumsum([0, *(len(caption.split()) for caption in captions)])
    scores = CaptionScores(None, GENDER, table, words, offsets)  # pyright: ignore[reportArgumentType]
    assert captions_with(scores, "tie", 2) == (3, [1, 3])  # 0.4 + 0.3, then 0.6 the other way, then 0.5
    assert captions_with(scores, "tie", 9) == (3, [1, 3, 0])
    assert captions_with(scores, "hat", 9) == (0, [])


def test_what_a_word_adds_is_there_without_a_mouse_and_a_caption_is_only_text():
    html = view.coloured_words(["<b>x</b>"], np.ones(1), GENDER, alone=np.array([True]))
    assert "<b>" not in html and "&lt;b&gt;" in html
    html = view.coloured_words(["cake", "<gender>"], np.array([-0.4, 0.1]), GENDER, ["cake", "man"])
    assert 'tabindex="0"' in html and html.count("tabindex") == 1  # a stop per caption, not per word
    assert 'data-adds="(−0.40 Female)"' in html and 'data-adds="(masked, +0.10)"' in html
    html = view.coloured_words(["a", "cake"], np.array([0.3, 0.3]), GENDER, plain={"a"})
    assert html.count("background:") == 1 and html.count("+0.30 Male") == 2, "a function word has no colour"
    assert ".cb-words:focus-visible" in view.STYLE and "attr(data-adds)" in view.STYLE


def test_of_a_caption_of_110_000_words_a_browser_gets_the_first():
    words, values = ["dog"] * 110_000, np.ones(110_000)
    texts = [view.coloured_words(words, values, GENDER), view.large_words(words, values, GENDER, words)]
    assert all(text.count(">dog<") == 1_000 and "and 109,000 more words" in text for text in texts)
    (bars,) = view.logit_waterfall(words, values, 0.5, GENDER, 1.0).data
    assert len(bars.x) == 1_003 and bars.x[-2:] == (109_000, 110_000.5), "intercept, words, the others, sum"


def test_every_word_has_its_value_and_which_value_it_pushes_toward():
    tokens = ["a", GENDER.mask_token, "in", "<b>tie</b>"]
    html = view.large_words(tokens, np.array([0.001, 0.4, -0.25, 1.5]), GENDER, ["a", "man", "in", "<b>tie</b>"])
    assert re.findall(r"<small>(.*?)</small>", html) == ["0.00", "masked, 0.40 Male", "0.25 Female", "1.50 Male"]
    assert ">man</span>" in html and GENDER.mask_token not in html
    assert "<b>" not in html and "&lt;b&gt;tie&lt;/b&gt;" in html
    assert html.count("background:") == 3
    plain = view.large_words(tokens, np.array([0.001, 0.4, -0.25, 1.5]), GENDER, tokens, {"a", "in"})
    assert plain.count("background:") == 1, "a function word has no colour"
    assert all(int(size) >= 28 for size in re.findall(r"\.cb-large span .*?clamp\((\d+)px", view.LARGE))


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


def test_a_logit_adds_up_from_the_intercept_over_the_words_to_the_sum():
    figure = view.logit_waterfall(["a", "<b>tie</b>", "a"], np.array([0.25, 1.0, -0.5]), -0.25, GENDER, 2.0)
    (bars,) = figure.data
    assert list(bars.x) == [-0.25, 0.25, 1.0, -0.5, 0.5]
    assert list(bars.measure) == ["absolute", "relative", "relative", "relative", "total"]
    assert list(bars.text) == ["−0.25", "+0.25", "+1.00", "−0.50", "+0.50"]
    # A word that comes twice has two bars, and a caption is only text.
    assert list(figure.layout.yaxis.ticktext) == ["intercept", "a", "&lt;b&gt;tie&lt;/b&gt;", "a", "sum"]
    assert list(bars.y) == [0, 1, 2, 3, 4] and tuple(figure.layout.xaxis.range) == (-2.0, 2.0)
    assert figure.layout.xaxis.title.text == "← Female · logit · Male →"


def test_the_axis_holds_every_sum_on_the_way():
    assert view.furthest(np.array([1.0, -3.0]), 0.5) == pytest.approx(1.5 * 1.3)
    assert view.furthest(np.array([]), -2.0) == pytest.approx(2.0 * 1.3)

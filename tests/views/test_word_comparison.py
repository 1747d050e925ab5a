"""The words of a set beside those of human captions: which are chosen, named, and drawn grey; worked out by hand."""

import html
import re
from urllib.parse import parse_qs, urlencode, urlsplit

import pandas as pd
import pytest

from capbias_core.attributes import get_attribute
from capbias_core.measures.word_comparison import ENDS
from capbias_core.views import word_comparison as view
from capbias_core.views.charts import BLUE_MARK, GREY, ORANGE_MARK
from tests import sentences

GENDER = get_attribute("gender")
# What words add in the captions of a captioner by a corpus table: positive toward Male.
CORPUS = pd.DataFrame(
    {
        "word": ["<gender>", "tie", "dress", "kite", "to"],
        "mean0": [0.5, 0.9, -1.0, 0.1, 0.4],
        "count": [99, 50, 40, 30, 90],
    }
).assign(share0=0.25, share1=0.5)
NUMBERS = ["toward", *(name for side, ends in ENDS.items() for name in (side, *ends)), "tested", "count", "human_count"]
# More; not significantly other; the other way in human captions, so toward Female on both sides together; only human.
NONE = (None, None)
COMPARED = pd.DataFrame.from_dict(
    {
        "tie": [1, 0.8, 0.4, 1.2, 0.3, 0.1, 0.5, 0.5, 0.2, 0.8, True, 20, 18],
        "dress": [0, 0.7, 0.5, 0.9, 0.6, 0.3, 0.9, 0.1, -0.1, 0.3, True, 15, 30],
        "kite": [0, -0.1, -0.4, 0.2, 0.5, 0.1, 0.9, -0.6, -0.9, -0.3, True, 12, 12],
        "sofa": [0, 0.0, *NONE, 0.2, *NONE, -0.2, *NONE, False, 0, 25],
    },
    orient="index",
    columns=NUMBERS,
)
COMPARED = COMPARED.rename_axis("word").reset_index().astype({"toward": int})


@pytest.fixture
def table() -> pd.DataFrame:
    return view.word_table(CORPUS, COMPARED)


def test_a_word_keeps_its_direction_and_gets_the_numbers_of_the_comparison(table):
    found = table.set_index("word")
    assert found["toward"].to_dict() == {"dress": 0, "kite": 1, "sofa": 0, "tie": 1, "to": 1}
    assert found["significant"].to_dict() == {
        **{"dress": "no", "kite": "yes", "sofa": "not tested", "tie": "yes"},
        "to": "not tested",
    }
    assert found["certain"].to_dict() == {
        **{"dress": "yes", "kite": "no", "sofa": "not tested", "tie": "yes"},
        "to": "not tested",
    }
    kite = found.loc["kite", ["mean", "captioner", "human", "difference", "low", "high"]]
    assert tuple(kite) == (0.1, 0.1, -0.5, 0.6, 0.3, 0.9), "toward Male, as in the captioner's captions"
    assert tuple(found.loc["kite", ["captioner_low", "captioner_high", "human_low"]]) == (-0.2, 0.4, -0.9)
    assert found.loc["sofa", "count"] == 0 and found["strength"].round(2).dropna().to_dict() == {
        **{"dress": 0.65, "kite": 0.2, "sofa": 0.1, "tie": 0.55}
    }
    alone = view.word_table(CORPUS).set_index("word")
    assert alone["strength"].to_dict() == {"tie": 0.9, "dress": 1.0, "kite": 0.1, "to": 0.4} and "low" not in alone


def test_words_that_differ_come_first_and_rare_ones_are_left_out(table):
    assert view.top_words(table, 10, 9)["word"].tolist() == ["dress", "sofa", "tie", "kite"]
    assert view.top_words(table, 26, 9)["word"].tolist() == ["dress", "tie", "kite"]
    assert view.top_words(table, 10, 1)["word"].tolist() == ["dress", "tie"]
    assert view.top_words(view.word_table(CORPUS), 35, 9)["word"].tolist() == ["dress", "tie", "to"]


def test_of_three_values_each_word_stands_for_each():
    corpus = CORPUS.assign(mean1=[0.0, 0.2, 0.3, 0, 0], mean2=[0.0, -0.5, 0.4, 0, 0], share2=0.1)
    of_value = COMPARED[COMPARED["word"] == "dress"].assign(toward=2)
    top = view.top_words(view.word_table(corpus, of_value), 10, 5)
    assert top[["word", "toward", "mean", "captioner"]].to_numpy().tolist() == [["dress", 2, 0.4, 0.7]]
    alone = view.top_words(view.word_table(corpus), 10, 5)
    assert alone[["word", "toward"]].to_numpy().tolist() == [
        *[["tie", 0], ["to", 0], ["kite", 0]],
        *[["dress", 1], ["tie", 1], ["dress", 2]],
    ]


def test_only_words_that_differ_significantly_are_named(table):
    none = table.assign(significant=table["significant"].replace("yes", "no"))
    less = table.assign(captioner=table["human"], human=table["captioner"])
    many = pd.concat([table[table["word"] == "tie"]] * 12)
    said = {
        "two": table,
        "none": none,
        "less": less,
        "many": many,
        "no word tested": table.assign(significant="not tested"),
    }
    for name, rows in said.items():
        sentences.check(f"words compared, {name}", view.comparison_sentence(rows, GENDER, "sat"))
    for word in ("tie", "kite", "dress", "sofa", "to"):
        assert f"{word} (" not in view.comparison_sentence(none, GENDER, "sat")


def test_the_chart_is_grey_where_the_interval_contains_0(table):
    top = view.top_words(table, 10, 3)
    figure = view.word_chart(top, GENDER, "sat", {"sofa"})
    people, *ours, key = figure.data
    assert list(people.customdata) == ["dress", "sofa", "kite", "tie"]
    assert list(people.x) == [-0.6, -0.2, -0.5, 0.3] and list(people.error_x.arrayminus) == pytest.approx(
        [0.3, 0, 0.4, 0.2]
    )
    shown = {
        word: (x, trace.marker.color, x - less, x + more)
        for trace in ours
        for word, x, less, more in zip(
            trace.customdata, trace.x, trace.error_x.arrayminus, trace.error_x.array, strict=True
        )
    }
    assert shown == {
        "dress": (-0.7, ORANGE_MARK, pytest.approx(-0.9), pytest.approx(-0.5)),
        "sofa": (0, GREY, 0, 0),
        "kite": (0.1, GREY, pytest.approx(-0.2), pytest.approx(0.4)),
        "tie": (0.8, BLUE_MARK, pytest.approx(0.4), pytest.approx(1.2)),
    }
    assert list(figure.layout.yaxis.ticktext) == ["dress", "sofa (function word)", "<b>kite</b>", "<b>tie</b>"]
    assert key.name.startswith("sat") and people.name == "human captions"
    figure = view.word_chart(view.top_words(view.word_table(CORPUS), 10, 3), GENDER, "sat", {"to"})
    *ours, _ = figure.data
    assert {(word, x) for trace in ours for word, x in zip(trace.customdata, trace.x, strict=True)} == {
        *[("dress", -1.0), ("kite", 0.1), ("to", 0.4), ("tie", 0.9)]
    }
    assert {trace.marker.color for trace in ours} == {ORANGE_MARK, BLUE_MARK}
    assert list(figure.layout.yaxis.ticktext) == ["dress", "kite", "to (function word)", "tie"]
    hostile = top.assign(word="<i>x</i>")
    assert "<i>x" not in str(view.word_chart(hostile, GENDER, "<i>x</i>", set()).layout)


def test_rows_for_a_file_have_each_number_with_its_interval(table):
    rows = view.word_frame(view.top_words(table, 10, 3), GENDER, "sat", {"sofa"}).set_index("word")
    assert rows.loc["tie"].to_dict() == {
        **{"captioner": "sat", "kind": "", "toward": "Male", "value": 0.8, "ci_low": 0.4, "ci_high": 1.2, "n": 20},
        **{"certain": "yes", "human": 0.3, "human_low": 0.1, "human_high": 0.5, "human_n": 18},
        **{"difference": 0.5, "difference_low": 0.2, "difference_high": 0.8, "significant": "yes"},
    }
    assert rows.loc["sofa", "kind"] == view.FUNCTION and rows["certain"].tolist() == ["yes", "not tested", "yes", "no"]
    cells = view.word_cells(rows.reset_index()).set_index("word")
    assert cells.loc["tie", ["value", "difference"]].tolist() == ["0.80 [0.40, 1.20]", "0.50 [0.20, 0.80]"]
    assert cells.loc["sofa", "value"] == "0.00"
    alone = view.word_frame(view.word_table(CORPUS), GENDER, "sat", set())
    assert list(alone) == ["captioner", "word", "kind", "toward", "value", "n"]
    assert view.word_cells(alone)["value"].tolist() == ["0.90", "1.00", "0.10", "0.40"]


def test_each_word_links_to_its_captions(table):
    top = view.top_words(table, 10, 3).assign(word=["tie", "a&b", "<i>", "sofa"])
    figure = view.word_chart(top, GENDER, "sat", link=lambda word: f"Captions?{urlencode({'word': word})}")
    labels = [label.removeprefix("<b>") for label in figure.layout.yaxis.ticktext]
    addresses = [html.unescape(re.findall('href="([^"]+)"', label)[0]) for label in labels]
    assert {parse_qs(urlsplit(address).query)["word"][0] for address in addresses} == set(top["word"])
    assert any("&lt;i&gt;" in label for label in labels) and not any("<i>" in label for label in labels)

"""The words of a set beside those of human captions: which are chosen, named, and drawn grey; worked out by hand."""

import pandas as pd
import pytest

from capbias_core.attributes import get_attribute, plain_attribute
from capbias_core.views import word_comparison as view
from capbias_core.views.answer import word_rows
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
NUMBERS = ["toward", "captioner", "human", "difference", "low", "high", "p", "count", "human_count"]
# More; not significantly other; the other way in human captions, so toward Female on both sides together; only human.
COMPARED = pd.DataFrame.from_dict(
    {
        "tie": [1, 0.8, 0.3, 0.5, 0.2, 0.8, 0.01, 20, 18],
        "dress": [0, 0.7, 0.6, 0.1, -0.1, 0.3, 1.0, 15, 30],
        "kite": [0, -0.1, 0.5, -0.6, -0.9, -0.3, 0.02, 12, 12],
        "sofa": [0, 0.0, 0.2, -0.2, -0.3, 0.1, None, 0, 25],
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
    kite = found.loc["kite", ["mean", "captioner", "human", "difference", "low", "high"]]
    assert tuple(kite) == (0.1, 0.1, -0.5, 0.6, 0.3, 0.9), "toward Male, as in the captioner's captions"
    assert found.loc["sofa", "count"] == 0 and found["strength"].round(2).dropna().to_dict() == {
        **{"dress": 0.65, "kite": 0.2, "sofa": 0.1, "tie": 0.55}
    }
    alone = view.word_table(CORPUS).set_index("word")
    assert alone["strength"].to_dict() == {"tie": 0.9, "dress": 1.0, "kite": 0.1, "to": 0.4} and "p" not in alone


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
    said = {"two": table, "none": none, "less": less, "many": many, "no word tested": table.assign(p=None)}
    for name, rows in said.items():
        sentences.check(f"words compared, {name}", view.comparison_sentence(rows, GENDER, "sat"))
    for word in ("tie", "kite", "dress", "sofa", "to"):
        assert f"{word} (" not in view.comparison_sentence(none, GENDER, "sat")


def test_the_chart_is_grey_where_nothing_differs(table):
    top = view.top_words(table, 10, 3)
    people, sat, key = view.word_chart(top, GENDER, "sat", {"sofa"}).data
    assert list(sat.customdata) == list(people.customdata) == ["dress", "sofa", "kite", "tie"]
    assert list(sat.x) == [-0.7, 0, 0.1, 0.8] and list(people.x) == [-0.6, -0.2, -0.5, 0.3]
    assert list(sat.marker.color) == [GREY, GREY, BLUE_MARK, BLUE_MARK]
    assert key.name.startswith("sat") and people.name == "human captions"
    figure = view.word_chart(view.top_words(view.word_table(CORPUS), 10, 3), GENDER, "sat", {"to"})
    (sat, _) = figure.data
    assert list(sat.x) == [-1.0, 0.1, 0.4, 0.9] and set(sat.marker.color) == {ORANGE_MARK, BLUE_MARK}
    assert list(figure.layout.yaxis.ticktext) == ["dress", "kite", "to (function word)", "tie"]
    hostile = top.assign(word="<b>x</b>")
    assert "<b>x" not in str(view.word_chart(hostile, GENDER, "<b>x</b>", set()).layout)


def test_the_answer_has_grey_bars_and_says_so(table):
    rows = word_rows(view.top_words(table, 10, 3), GENDER, "Captions", {}).split("cb-name")[1:]
    colours = {row.split("word=")[1].split('"')[0]: row.split("background:")[1].split('"')[0] for row in rows}
    assert colours == {"tie": BLUE_MARK, "kite": BLUE_MARK, "dress": GREY, "sofa": GREY}
    by_word = {row.split("word=")[1].split('"')[0]: row for row in rows}
    assert "significant: no" in by_word["dress"] and "not tested" in by_word["sofa"]
    assert "+0.50 [+0.20, +0.80]<" in by_word["tie"]
    plain = word_rows(view.top_words(view.word_table(CORPUS), 10, 3), GENDER, "Captions", {})
    assert "50 captions" in plain and GREY not in plain.split("cb-axis")[0]
    three = plain_attribute("mood", ("a", "b", "c"))
    assert "b, 50 captions" in word_rows(view.word_table(CORPUS), three, "Captions", {})

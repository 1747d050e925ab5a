"""The words of a set beside those of human captions, and words whose use changed: chosen, signed and named; by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from capbias_core.attributes import get_attribute
from capbias_core.measures.word_comparison import ENDS
from capbias_core.types import Attribute
from capbias_core.views import words as view
from capbias_core.views.draw import axis_title, drawn, figure, forest_html
from capbias_core.views.palette import BLUE_MARK, GREY, ORANGE_MARK
from capbias_core.views.view import Forest
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
OPTIONS = view.WordsOptions(top=6)


@pytest.fixture
def table() -> pd.DataFrame:
    return view.word_table(CORPUS, COMPARED)


def test_a_word_keeps_its_direction_and_gets_the_numbers_of_the_comparison(table):
    found = table.set_index("word")
    assert found["toward"].to_dict() == {"dress": 0, "kite": 1, "sofa": 0, "tie": 1, "to": 1}
    tested = {"sofa": "not tested", "to": "not tested"}
    assert found["significant"].to_dict() == {"dress": "no", "kite": "yes", "tie": "yes", **tested}
    assert found["certain"].to_dict() == {"dress": "yes", "kite": "no", "tie": "yes", **tested}
    kite = found.loc["kite", ["mean", "captioner", "human", "difference", "low", "high"]]
    assert tuple(kite) == (0.1, 0.1, -0.5, 0.6, 0.3, 0.9), "toward Male, as in the captioner's captions"
    assert tuple(found.loc["kite", ["captioner_low", "captioner_high", "human_low"]]) == (-0.2, 0.4, -0.9)
    strength = {"dress": 0.65, "kite": 0.2, "sofa": 0.1, "tie": 0.55}
    assert found.loc["sofa", "count"] == 0 and found["strength"].round(2).dropna().to_dict() == strength
    alone = view.word_table(CORPUS).set_index("word")
    assert alone["strength"].to_dict() == {"tie": 0.9, "dress": 1.0, "kite": 0.1, "to": 0.4} and "low" not in alone


def test_words_that_differ_come_first_and_rare_ones_are_left_out(table):
    for known, least, number, words in (
        (table, 10, 9, ["dress", "sofa", "tie", "kite"]),
        (table, 26, 9, ["dress", "tie", "kite"]),
        (table, 10, 1, ["dress", "tie"]),
        (view.word_table(CORPUS), 35, 9, ["dress", "tie", "to"]),
    ):
        assert view.top_words(known, least, number)["word"].tolist() == words


def test_rows_are_signed_by_side_and_sorted_from_the_first_value_to_the_second(table):
    rows = view.rows_of_words(table, GENDER, "sat", OPTIONS, {"sofa"})
    assert rows["line"].tolist() == ["dress", "dress", "kite", "kite", "tie", "tie"], "a function word is left out"
    own, people = (rows[rows["captioner"] == name].set_index("word") for name in ("sat", "people"))
    numbers = ["value", "low", "high", "difference", "difference_low", "difference_high", "n"]
    assert own.loc["dress", numbers].tolist() == [-0.7, -0.9, -0.5, -0.1, -0.3, 0.1, 15], "negative toward Female"
    assert own.loc["tie", numbers].tolist() == [0.8, 0.4, 1.2, 0.5, 0.2, 0.8, 20]
    assert people.loc["dress", numbers[:3]].tolist() == [-0.6, -0.9, -0.3] and people.loc["tie", "n"] == 18
    assert own["verdict"].to_dict() == {"dress": "", "kite": view.LESS, "tie": view.MORE}
    assert own["toward"].to_dict() == {"dress": "Female", "kite": "Male", "tie": "Male"}
    texts = view.WORDS.table(rows).texts.set_index("word")
    assert texts.loc["tie", ["sat", "people", "difference"]].tolist() == [
        *["+0.80 [0.40, 1.20]", "+0.30 [0.10, 0.50]", "+0.50 [0.20, 0.80]"]
    ]
    same = view.rows_of_words(table, GENDER, "people", OPTIONS, {"sofa"})
    assert set(same["captioner"]) == {"people", "people (human)"}
    alone = view.rows_of_words(view.word_table(CORPUS), GENDER, "sat", OPTIONS, set())
    assert alone[["word", "value"]].to_numpy().tolist() == [["dress", -1.0], ["kite", 0.1], ["to", 0.4], ["tie", 0.9]]


def test_of_three_values_each_word_stands_for_each():
    three = Attribute("hair", "Hair", ("red", "dark", "fair"))
    corpus = CORPUS.assign(mean1=[0.0, 0.2, 0.3, 0, 0], mean2=[0.0, -0.5, 0.4, 0, 0], share2=0.1)
    of_value = COMPARED[COMPARED["word"] == "dress"].assign(toward=2)
    top = view.top_words(view.word_table(corpus, of_value), 10, 5)
    assert top[["word", "toward", "mean", "captioner"]].to_numpy().tolist() == [["dress", 2, 0.4, 0.7]]
    rows = view.rows_of_words(view.word_table(corpus), three, "sat", view.WordsOptions(top=15), set())
    assert {row.line: row.value for row in rows.itertuples()} == {
        **{"tie (red)": 0.9, "to (red)": 0.4, "kite (red)": 0.1},
        **{"dress (dark)": 0.3, "tie (dark)": 0.2, "dress (fair)": 0.4},
    }
    assert isinstance(view.WORDS.chart, Forest) and "←" not in axis_title(view.WORDS.chart, drawn(view.WORDS, rows))


def test_only_words_that_differ_significantly_are_named(table):
    none = table.assign(significant=table["significant"].replace("yes", "no"))
    less = table.assign(captioner=table["human"], human=table["captioner"])
    many = pd.concat([table[table["word"] == "tie"].assign(word=f"tie{number}") for number in range(12)])
    said = {"two": table, "none": none, "less": less, "many": many, "alone": view.word_table(CORPUS)}
    for name, rows in said.items():
        text = view.sentence_of(view.rows_of_words(rows, GENDER, "sat", OPTIONS, set()), "sat", "gender")
        sentences.check(f"words compared, {name}", text)
        assert sum(part.strip("();,.").isdigit() for part in text.split()) <= 3, "at most three numbers"
        assert name != "none" or "tie" not in text


def test_a_chart_has_the_colour_of_the_side_and_grey_people(table):
    rows = view.rows_of_words(table, GENDER, "<i>sat</i>", OPTIONS, {"sofa"}).replace("tie", "<b>tie</b>")
    html = forest_html(view.WORDS, rows, clickable=True)
    assert "<b>" not in html and "<i>sat" not in html and 'data-name="&lt;b&gt;tie&lt;/b&gt;"' in html
    assert "← Female" in html and "Male →" in html and html.count("more</span>") == 1
    lines = {word: html.split(f'data-name="{word}"')[1].split("</button>")[0] for word in ("dress", "kite")}
    assert ORANGE_MARK in lines["dress"] and BLUE_MARK not in lines["dress"] and GREY in lines["dress"]
    assert BLUE_MARK in lines["kite"] and "Canvas" in lines["kite"], "hollow: its interval contains 0"
    shown = figure(view.WORDS, rows)
    assert {trace.marker.color for trace in shown.data} == {ORANGE_MARK, BLUE_MARK, GREY}
    assert sum(bool(trace.showlegend) for trace in shown.data) == 2
    assert "<i>sat" not in str(shown.data)


def test_lean_of_words_that_changed():
    before, after = np.zeros((200, 2)), np.zeros((200, 2))
    code = np.arange(200) % 2
    after[(code == 1) & (np.arange(200) < 100), 0] = 1
    after[:, 1] = before[:, 1] = 1
    table = view.lean_changes(csr_array(before), csr_array(after), code, GENDER).set_index("word")
    assert table.loc[0, ["before", "after", "change"]].tolist() == [0, 50, 50]
    half = 1.959964 * 100 * math.sqrt(np.var([0, 1], ddof=0) / 99)
    assert table.loc[0, ["low", "high"]].tolist() == pytest.approx([50 - half, 50 + half])
    assert table.loc[1, "change"] == 0 and table.loc[1, "p"] == 1 and table.loc[0, "p"] < 1e-6

"""Words of a captioner beside those of human captions, and the captions with a word: worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from capbias_core.attributes import get_attribute
from capbias_core.views.captions import CaptionScores, captions_with
from capbias_core.views.words import beside_human, top_words, where_words_come_from, word_chart

GENDER = get_attribute("gender")


def corpus(**words: tuple[float, int]) -> pd.DataFrame:
    """Mean and count of each word."""
    return pd.DataFrame([{"word": word, "mean0": mean, "count": count} for word, (mean, count) in words.items()])


CAPTIONER = corpus(tie=(0.8, 50), dress=(-1.0, 40), to=(0.4, 90), kite=(-0.6, 30), sofa=(-0.2, 20))
# Half as strong; weaker; the other way; in too few; in none.
HUMAN = corpus(tie=(0.4, 60), dress=(-0.49, 70), to=(-0.4, 99), kite=(-0.9, 9))


@pytest.fixture
def beside() -> pd.DataFrame:
    return beside_human(top_words(CAPTIONER, 10, 3), HUMAN, 10)


def test_a_word_comes_with_the_data_if_people_use_it_alike(beside):
    found = beside.set_index("word")
    assert found["from_data"].to_dict() == {"dress": False, "kite": False, "sofa": False, "tie": True, "to": False}
    assert found["human_mean"].drop("sofa").to_dict() == {"dress": -0.49, "kite": -0.9, "tie": 0.4, "to": -0.4}
    assert np.isnan(found.at["sofa", "human_mean"]) and found.at["sofa", "human_count"] == 0


def test_of_three_values_a_word_is_compared_by_the_value_that_it_pushes_toward():
    own = pd.DataFrame({"word": ["toy", "cane"], "mean0": [0.6, -0.1], "mean1": [-0.1, 0.1], "mean2": [-0.5, 0.8]})
    people = own.assign(mean0=[0.1, 0.0], mean2=[0.9, 0.5], count=20)
    found = beside_human(top_words(own.assign(count=20), 10, 1), people, 10).set_index("word")
    assert found["human_mean"].to_dict() == {"toy": 0.1, "cane": 0.5}
    assert found["from_data"].to_dict() == {"toy": False, "cane": True}


def test_the_sentence_says_which_words_come_from_where(beside):
    said = where_words_come_from(beside, "sat", 10)
    data, own = said.split(". Not so there ")
    assert data.endswith("the data may explain them: tie") and "sat may add them: dress, kite, sofa, to." in own
    assert own.endswith("no interval here: with other captions a word may change sides.")
    assert where_words_come_from(beside[:0], "sat", 10) == ""


def test_the_chart_has_both_bars_of_a_word_and_marks_function_words(beside):
    figure = word_chart(beside, GENDER, "sat", "people", {"to"})
    people, sat, key = figure.data
    assert key.name == "sat" and not sat.showlegend, "bars of two colours have a key of neither"
    assert list(sat.customdata) == list(people.customdata) == ["dress", "kite", "sofa", "to", "tie"]
    assert list(sat.x) == [-1.0, -0.6, -0.2, 0.4, 0.8] and list(people.x)[3:] == [-0.4, 0.4]
    assert list(figure.layout.yaxis.ticktext) == ["dress", "kite", "sofa", "to (function word)", "tie"]
    assert len({*sat.marker.color}) == 2 and sat.marker.color[0] != sat.marker.color[-1]
    hostile = beside.assign(word="<b>x</b>")
    assert "<b>x" not in str(word_chart(hostile, GENDER, "<b>x</b>", "<b>x</b>", set()).layout)


def test_captions_with_a_word_come_by_what_it_adds_there():
    captions = ["a tie", "a tie and a tie", "no ties", "tie"]
    words = np.array([[0.0], [0.5], [0.0], [0.4], [0.0], [0.0], [0.3], [0.0], [0.9], [-0.6]])
    table = pd.DataFrame({"masked": captions})
    offsets = np.cumsum([0, *(len(caption.split()) for caption in captions)])
    scores = CaptionScores(None, GENDER, table, words, offsets)  # pyright: ignore[reportArgumentType]
    assert captions_with(scores, "tie", 2) == (3, [1, 3])  # 0.4 + 0.3, then 0.6 the other way, then 0.5
    assert captions_with(scores, "tie", 9) == (3, [1, 3, 0])
    assert captions_with(scores, "hat", 9) == (0, [])

"""Notes under the scores: whose they are, and when the readings of DBAC disagree."""

import re

import pandas as pd
import pytest

from capbias_core.attackers import attacker_entry
from capbias_core.attributes import get_attribute, plain_attribute
from capbias_core.present import sentence
from capbias_core.present.rows import cross_table
from capbias_core.present.sentence import chance_warning, named_notes, variants_warning


def rows(*given) -> pd.DataFrame:
    frame = pd.DataFrame(given, columns=["model", "metric", "direction", "ci_low", "ci_high"])
    return frame.assign(encoder="ngram", alignment="constant")


def test_a_note_of_some_captioners_names_them():
    notes = [("a", ("same", "1 image")), ("b", ("same", "2 images")), ("c", ("same", "2 images"))]
    assert named_notes(notes) == ["same", "a: 1 image", "b, c: 2 images"]


@pytest.mark.parametrize(("interval", "warned"), [("refits", False), ("images", True)])
def test_an_interval_of_one_trained_attacker_carries_no_claim(interval, warned):
    own = pd.DataFrame(
        {
            "model": "updn",
            "metric": ["LIC", "LIC_by_H", "LIC_M", "LIC_D", "SC", "SC_D"],
            "value": [4.4, 3.0, 50.0, 45.6, 70.0, 66.0],
            "spread": 2.0,
            "ci_low": [2.3, 2.0, 49, 44, 69, 65],
            "ci_high": [6.5, 4.0, 51, 47, 71, 67],
            "interval": interval,
            "verdict": "" if warned else "amplifies",
            "scale": 100.0,
            "seeds": 4,
            "training": 2844,
            "n": 316,
        }
    )
    said = sentence.answer(own, "updn", get_attribute("gender"), attacker_entry("minilm"), True)
    assert ("⚠ Provisional" in said.support) == warned and ("amplifies" not in said.headline) == warned
    assert "4 seeds (standard error over seeds 1.00), each with 2,844 training and 316 test images" in said.support


SAID = {
    "amplifies": "m amplifies gender bias: LIC (ngram, preview) 4.4 [2.3, 6.5], LIC_by_H 1.0 [0.5, 1.5].",
    "reduces": "m shows less gender bias than the human captions: LIC (ngram, preview) 4.4 [2.3, 6.5], LIC_by_M −1.0 "
    "[−1.5, −0.5].",
    "inconclusive": "m: more predictable than human captions, amplification inconclusive: "
    "LIC (ngram, preview) 4.4 [2.3, 6.5], LIC_by_H 1.0 [0.5, 1.5].",
}


@pytest.mark.parametrize("verdict", SAID)
@pytest.mark.parametrize("trained", [True, False])
def test_the_headline_follows_the_verdict(verdict, trained):
    rows = pd.DataFrame(
        {
            "model": "m",
            "metric": ["LIC", "LIC_by_H", "LIC_by_M", "LIC_M", "LIC_D", "SC", "SC_D"],
            "value": [4.4, 1.0, -1.0, 50.0, 45.6, 70.0, 66.0],
            "spread": 1.0,
            "ci_low": [2.3, 0.5, -1.5, 49, 44, 69, 65],
            "ci_high": [6.5, 1.5, -0.5, 51, 47, 71, 67],
            "interval": "refits",
            "verdict": verdict,
            "scale": 100.0,
            "seeds": 10,
            "training": 2844,
            "n": 316,
        }
    )
    said = sentence.answer(rows, "m", get_attribute("gender"), attacker_entry("ngram"), trained)
    assert trained is False or said.headline == SAID[verdict]
    if not trained and verdict != "inconclusive":
        assert "amplif" not in said.headline and "less gender bias than" not in said.headline
    assert ("simpler wording" in said.support) == (verdict == "inconclusive")
    assert sentence.second_dots(rows, "LIC") == {"m": (1.0, 0.5, 1.5)} and not sentence.second_dots(rows, "LIC_M")
    table = cross_table(rows.assign(metric=rows["metric"].replace({"SC": "LIC_HM", "SC_D": "LIC_MH"})), "m")
    cells = re.findall(r"<span>(.*?)</span>", table)
    assert cells == [
        *("trained on human captions", "45.6", "70.0", "<b>+1.0</b> [+0.5, +1.5]"),
        *("trained on m", "66.0", "50.0", "<b>−1.0</b> [−1.5, −0.5]"),
    ]
    assert cross_table(rows, "m") == "", "no such scores, no table"


def test_readings_that_disagree_clear_of_zero_are_named():
    text = variants_warning(
        rows(
            ("sat", "DBAC", "A->T", 5, 10),
            ("sat", "DBAC_equations", "A->T", -9, -3),
            ("sat", "DBAC", "T->A", 5, 10),
            ("sat", "DBAC_equations", "T->A", -1, 9),
            ("nic", "LIC", "", -3, -1),
        )
    )
    assert "sat A→T" in text and "T→A" not in text and "nic" not in text


def test_readings_that_agree_or_cannot_be_told_say_nothing():
    assert variants_warning(rows(("sat", "DBAC", "A->T", 5, 10), ("sat", "DBAC_equations", "A->T", 1, 3))) == ""
    assert variants_warning(rows(("sat", "DBAC", "A->T", 5, 10), ("sat", "DBAC_equations", "A->T", -1, 3))) == ""
    assert variants_warning(rows(("sat", "DBAC", "A->T", 5, 10))) == ""


@pytest.mark.parametrize(
    ("value", "low", "high", "values", "said"),
    [
        (54.4, 44.9, 64.0, 2, "SC 54.4 [44.9, 64.0], chance 50.0"),
        (41.0, 30.0, 52.0, 3, "SC 41.0 [30.0, 52.0], chance 33.3"),
        (50.0, None, None, 2, "SC 50.0, chance 50.0"),
        (63.8, 60.1, 67.5, 2, ""),
        (41.0, 36.0, 46.0, 3, ""),
    ],
)
def test_words_reveal_nothing_where_guesses_are_not_above_chance(value, low, high, values, said):
    row = {"metric": "SC", "value": value, "ci_low": low, "ci_high": high, "scale": 100.0, "spread": None, "seeds": 10}
    found = chance_warning(pd.Series(row), plain_attribute("sky", tuple("abc")[:values]))
    assert said in found and bool(found) == bool(said)

"""Notes under the scores: whose they are, and when the readings of DBAC disagree."""

import doctest

import pandas as pd
import pytest

from capbias_core.attributes import get_attribute
from capbias_core.present import sentence
from capbias_core.present.sentence import named_notes, variants_warning


def rows(*given) -> pd.DataFrame:
    return pd.DataFrame(given, columns=["model", "metric", "direction", "ci_low", "ci_high"])


def test_examples():
    assert doctest.testmod(sentence).failed == 0


def test_a_note_of_some_captioners_names_them():
    notes = [("a", ("same", "1 image")), ("b", ("same", "2 images")), ("c", ("same", "2 images"))]
    assert named_notes(notes) == ["same", "a: 1 image", "b, c: 2 images"]


@pytest.mark.parametrize(("spread", "low", "warned"), [(6.8, 2.3, True), (4.3, 2.3, False), (6.8, -0.1, False)])
def test_seeds_that_differ_by_more_than_the_score_are_warned_of(spread, low, warned):
    own = pd.DataFrame(
        {
            "model": "updn",
            "metric": ["LIC", "LIC_M", "LIC_D", "SC", "SC_D"],
            "value": [4.4, 50.0, 45.6, 70.0, 66.0],
            "spread": spread,
            "ci_low": [low, 49, 44, 69, 65],
            "ci_high": [6.5, 51, 47, 71, 67],
            "scale": 100.0,
            "seeds": 2,
            "n": 316,
        }
    )
    said = sentence.answer(own, "updn", get_attribute("gender"), "MiniLM", True)
    assert ("⚠ LIC differs more between seeds (±6.8)" in said.support) == warned


def test_readings_that_disagree_clear_of_zero_are_named():
    text = variants_warning(
        rows(
            ("sat", "DBAC", "A->T", 5, 10),
            ("sat", "DBAC_code", "A->T", -9, -3),
            ("sat", "DBAC", "T->A", 5, 10),
            ("sat", "DBAC_code", "T->A", -1, 9),
            ("nic", "LIC", "", -3, -1),
        )
    )
    assert "sat A→T" in text and "T→A" not in text and "nic" not in text


def test_readings_that_agree_or_cannot_be_told_say_nothing():
    assert variants_warning(rows(("sat", "DBAC", "A->T", 5, 10), ("sat", "DBAC_code", "A->T", 1, 3))) == ""
    assert variants_warning(rows(("sat", "DBAC", "A->T", 5, 10), ("sat", "DBAC_code", "A->T", -1, 3))) == ""
    assert variants_warning(rows(("sat", "DBAC", "A->T", 5, 10))) == ""

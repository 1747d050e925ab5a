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


@pytest.mark.parametrize(("interval", "warned"), [("refits", False), ("images", True)])
def test_an_interval_of_one_trained_attacker_carries_no_claim(interval, warned):
    own = pd.DataFrame(
        {
            "model": "updn",
            "metric": ["LIC", "LIC_M", "LIC_D", "SC", "SC_D"],
            "value": [4.4, 50.0, 45.6, 70.0, 66.0],
            "spread": 2.0,
            "ci_low": [2.3, 49, 44, 69, 65],
            "ci_high": [6.5, 51, 47, 71, 67],
            "interval": interval,
            "scale": 100.0,
            "seeds": 2,
            "training": 2844,
            "n": 316,
        }
    )
    said = sentence.answer(own, "updn", get_attribute("gender"), "MiniLM", True)
    assert ("⚠ Provisional" in said.support) == warned and ("amplifies" not in said.headline) == warned
    assert "2,844 training and 316 test images" in said.support


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

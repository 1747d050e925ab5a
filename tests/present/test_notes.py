"""Notes under the scores: whose they are, and when the readings of DBAC disagree."""

from dataclasses import replace

import pandas as pd
import pytest

from capbias_core.attackers import attacker_entry
from capbias_core.attributes import get_attribute, plain_attribute
from capbias_core.measures.lic_baseline import Plainness
from capbias_core.present import sentence
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
            "metric": ["LIC", "LIC_M", "LIC_D", "SC", "SC_D"],
            "value": [4.4, 50.0, 45.6, 70.0, 66.0],
            "spread": 2.0,
            "ci_low": [2.3, 49, 44, 69, 65],
            "ci_high": [6.5, 51, 47, 71, 67],
            "interval": interval,
            "verdict": "" if warned else "amplifies",
            "scale": 100.0,
            "seeds": 2,
            "training": 2844,
            "n": 316,
        }
    )
    said = sentence.answer(own, "updn", get_attribute("gender"), attacker_entry("minilm"), True)
    assert ("⚠ Provisional" in said.support) == warned and ("amplifies" not in said.headline) == warned
    assert "2,844 training and 316 test images" in said.support


SAID = {
    "amplifies": "m amplifies gender bias: LIC (ngram, preview) 4.4 [2.3, 6.5], baseline 1.0.",
    "reduces": "m shows less gender bias than the human captions: LIC (ngram, preview) 4.4 [2.3, 6.5], baseline 1.0.",
    "not shown": "m: more predictable than the human captions, which plainer captions alone can produce: "
    "LIC (ngram, preview) 4.4 [2.3, 6.5], baseline 1.0.",
}


@pytest.mark.parametrize("verdict", SAID)
@pytest.mark.parametrize("trained", [True, False])
def test_the_headline_follows_the_verdict(verdict, trained):
    rows = pd.DataFrame(
        {
            "model": "m",
            "metric": ["LIC", "LIC_baseline", "LIC_M", "LIC_D", "SC", "SC_D"],
            "value": [4.4, 1.0, 50.0, 45.6, 70.0, 66.0],
            "ci_low": [2.3, 0.5, 49, 44, 69, 65],
            "ci_high": [6.5, 1.5, 51, 47, 71, 67],
            "interval": "refits",
            "verdict": verdict,
            "scale": 100.0,
            "seeds": 10,
            "training": 2844,
            "n": 316,
        }
    )
    said = sentence.answer(rows, "m", get_attribute("gender"), attacker_entry("ngram"), trained).headline
    assert trained is False or said == SAID[verdict]
    assert trained or ("amplif" not in said and "less gender bias than" not in said)
    of_baseline = rows["metric"] == "LIC_baseline"
    for highest in (-0.5, 0.5):  # shown to have lost what gives away, or not shown: either way no baseline
        lost = rows.assign(
            value=rows["value"].mask(of_baseline, -1.0), ci_high=rows["ci_high"].mask(of_baseline, highest)
        )
        said = sentence.answer(lost, "m", get_attribute("gender"), attacker_entry("ngram"), trained).headline
        assert ("how far plainness reaches is not known here" in said) == (verdict == "not shown")
        assert sentence.baselines(lost) == {}
    excess = pd.DataFrame([rows.iloc[0].to_dict() | {"metric": "LIC_excess", "value": 3.4, "ci_low": 0.0}])
    scaled = pd.concat([rows, excess], ignore_index=True)
    said = sentence.answer(scaled, "m", get_attribute("gender"), attacker_entry("ngram"), trained).headline
    assert ("how far plainness reaches is not known here" in said) == (verdict == "not shown")
    assert sentence.baselines(scaled) == {} and list(sentence.baselines(rows)) == ["m"]


def test_captions_that_are_no_plainer_are_not_said_to_be():
    """100 words for people's 10, or as many but more varied ones: plainness explains neither."""
    rows = pd.DataFrame(
        {
            "model": "m",
            "metric": ["LIC", "LIC_baseline", "LIC_M", "LIC_D", "SC", "SC_D"],
            "value": [4.4, 1.0, 50.0, 45.6, 70.0, 66.0],
            "ci_low": [2.3, 0.5, 49, 44, 69, 65],
            "ci_high": [6.5, 1.5, 51, 47, 71, 67],
            "interval": "refits",
            "verdict": "not shown",
            "scale": 100.0,
            "seeds": 10,
            "training": 2844,
            "n": 316,
        }
    )
    plain = Plainness(0.4, 0.3, 7.0, 8.0, 0.01, 0.04, 0.5, 0.1, 0.1, length=9.0, human_length=10.0)
    for changed, word, length in (
        ({}, "plainer", False),
        ({"length": 100.0, "variety": 12.0}, "longer", True),
        ({"variety": 9.0}, "otherwise worded", False),
    ):
        own = replace(plain, **changed)
        said = sentence.answer(rows, "m", get_attribute("gender"), attacker_entry("ngram"), None, own)
        assert f"which {word} captions alone can produce" in said.headline
        assert ("100 words, people's 10: part of LIC may be length" in said.support) == length


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

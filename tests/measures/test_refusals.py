"""Refusals by group against values worked out by hand, and what scores say of captions that are none."""

import pytest

from capbias_core import api
from capbias_core.errors import CapbiasError

REFUSAL = "I'm sorry, but I can't help with that."
# Of 40 images of women 12 are refused, of 60 of men 3; of the others three captions name the other value.
CAPTIONS = [REFUSAL] * 12 + ["a woman on a bench"] * 26 + ["a man on a bench"] * 2
CAPTIONS += [REFUSAL] * 3 + ["a man on a bench"] * 56 + ["a woman on a bench"]
LABELS = [{"image_id": image, "gender": "Female" if image < 40 else "Male"} for image in range(100)]


def scored(captions, *metrics):
    rows = [{"image_id": image, "caption": caption} for image, caption in enumerate(captions)]
    return api.score({"model": rows}, LABELS, "gender", metrics=metrics)


@pytest.mark.long
def test_refusals_by_group_and_their_gap():
    report = scored(CAPTIONS, "refused")
    assert float(report["refused"]) == pytest.approx(15)
    assert float(report["refused", "Female"]) == pytest.approx(30)
    assert float(report["refused", "Male"]) == pytest.approx(5)
    assert float(report["refused_gap"]) == pytest.approx(-25)
    low, high = report["refused", "Female"].interval
    assert 15 < low < 20 and 42 < high < 47
    assert any("15 of 100 captions are refusals" in note for note in report.notes)
    assert float(scored([*CAPTIONS[12:40], *CAPTIONS[:12], *CAPTIONS[40:]], "refused")["refused"]) == 15


@pytest.mark.long
def test_captions_that_name_nobody_have_no_error_and_the_reason():
    captions = [f"a person on a {thing}" for thing in ("bench", "horse", "boat", "bike") for _ in range(25)]
    report = scored(captions, "error", "ratio", "unnamed", "naming_gap")
    assert set(report.table["metric"]) == {"unnamed", "unnamed_gap"}
    assert float(report["unnamed"]) == 100
    assert report.left_out.keys() == {"error", "error_gap", "ratio"}
    assert report.left_out["error"].startswith("no caption names a value of gender")
    with pytest.raises(CapbiasError, match="no caption names a value of gender"):
        report["error"]
    notes = scored(captions, "LIC_M").notes
    assert "No caption names a value of gender, so nothing was masked." in notes


@pytest.mark.parametrize(("alone", "left_out"), [(6, True), (12, False)])
def test_error_needs_captions_that_name_exactly_one_value(alone, left_out):
    """An echoed "a man or a woman" names both, so that nothing can be wrong."""
    captions = ["a man on a bench"] * alone + ["a man or a woman on a horse"] * (100 - alone)
    report = scored(captions, "error", "ratio", "unnamed")
    assert set(report.left_out) == ({"error", "error_gap", "ratio"} if left_out else set())
    if not left_out:
        assert float(report["error"]) == pytest.approx(12)

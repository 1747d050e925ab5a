"""Refusals by group against values worked out by hand, and what scores say of captions that are none."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from capbias_core import api
from capbias_core.aggregate import HIGHER_SHARE, Metric
from capbias_core.errors import CapbiasError
from capbias_core.measures.registry import MEASURES
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.types import silent
from capbias_core.workspace.sources import data_of
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

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
    low, high = report["refused_gap"].interval
    assert -45 < low < high < -8
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


def test_a_ratio_to_no_caption_is_not_defined():
    for texts, expected in ((["a man"] * 3, float("nan")), (["a man", "a man", "a woman"], 2)):
        assert float(scored(texts, "ratio")["ratio"]) == pytest.approx(expected, nan_ok=True)


# A caption as other programs leave it.
WRAPPED = {
    "reasoning": "<think>It may be a man or a woman.</think>\n{}",
    "reasoning without its start": "A man? A woman?\n</think>\n\n{}",
    "tokens": "<s> {}</s><pad>",
    "prompt": "USER: Is this a man or a woman? ASSISTANT: {}",
    "label": "Caption: {}",
    "JSON": '```json\n{{"caption": "{}"}}\n```',
}
LETTERS = {
    "sub-words": {" ": " ▁"},
    "soft hyphens": {"man": "m\u00adan"},
    "full width": {"man": "ｍａｎ"},
    "look-alikes": {"man": "m\u0430n"},
    "entities": {" on ": " &amp; "},
}


@pytest.fixture(scope="module")
def plain():
    return scored(CAPTIONS, "ratio", "error", "refused")


@pytest.mark.parametrize("name", [*WRAPPED, *LETTERS])
@pytest.mark.long
def test_a_caption_counts_the_same_however_a_program_left_it(plain, name):
    """Ratio and error of the wrapped captions are those of the plain ones."""
    texts = [WRAPPED.get(name, "{}").format(caption) for caption in CAPTIONS]
    for letters, other in LETTERS.get(name, {}).items():
        texts = [text.replace(letters, other) for text in texts]
    found = scored(texts, "ratio", "error", "refused")
    columns = ["metric", "group", "value", "ci_low", "ci_high", "n"]
    pd.testing.assert_frame_equal(found.table[columns], plain.table[columns])
    assert any(re.search("(85|100) of 100 captions (held|were)|hold fields or lists", note) for note in found.notes)


def test_missing_captions_do_not_count():
    texts = [
        caption if place % 10 else ("nan", "None", "N/A", "null")[place % 4] for place, caption in enumerate(CAPTIONS)
    ]
    kept = [place for place in range(100) if place % 10]
    found = scored(texts, "error")
    expected = np.mean([("a man" in CAPTIONS[place]) if place < 40 else ("woman" in CAPTIONS[place]) for place in kept])
    assert (found["error"].n, float(found["error"])) == (90, pytest.approx(100 * expected))


def test_a_further_metric_of_the_counts_has_its_row_if_captions_name_nobody(tmp_path):
    workspace = Workspace(tmp_path)
    labels = [{"image_id": image, "gender": "Male" if image % 2 else "Female"} for image in range(8)]
    keep(workspace, captions=[{"image_id": image, "caption": "a red bench"} for image in range(8)], labels=labels)
    (spec,) = plan(workspace, Question("c", ("m",), "labels", "gender", ("error",)))
    facts = (*HIGHER_SHARE, "source", "explanation")
    named = Metric("named", "named", *facts, of=lambda unnamed, n: 1 - unnamed / n, reads=("unnamed", "captions"))
    measure = replace(MEASURES["ratio_error"], metrics=(named,))
    (row,) = measure.run(data_of(workspace, spec), measure.options(), silent).results
    assert (row.metric, row.value, row.n) == ("named", 0, 8)


@pytest.mark.parametrize(("alone", "left_out"), [(0, True), (1, True), (6, True), (12, False)])
def test_error_needs_captions_that_name_exactly_one_value(alone, left_out):
    """An echoed "a man or a woman" names both, so that nothing can be wrong."""
    captions = ["a man on a bench"] * alone + ["a man or a woman on a horse"] * (100 - alone)
    report = scored(captions, "error", "ratio", "unnamed")
    assert set(report.left_out) == ({"error", "error_gap", "ratio"} if left_out else set())
    if not left_out:
        assert float(report["error"]) == pytest.approx(12)

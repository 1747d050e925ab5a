"""Gaps of what captions say between groups: against a count by hand, and as runs leave them."""

import json

import numpy as np
import pandas as pd
import pytest

from capbias_core.api import score
from capbias_core.attributes import get_attribute
from capbias_core.question import Question
from capbias_core.runs.plan import plan, useful
from capbias_core.runs.run import run_one
from capbias_core.types import silent
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

GENDER = get_attribute("gender")


@pytest.mark.long
def test_values_named_wrongly_by_group_make_up_the_papers_error(coco_bias):
    """nic 14.25 on 10,780 images (LIC, Table 1, prints 14.3); by group counted anew in plain Python."""
    captions, labels = coco_bias / "results" / "nic.json", coco_bias / "annotations" / "attributes.csv"
    found = score(captions, labels, "gender", metrics=["naming_gap", "error"]).table.query("group == ''")
    found = found.set_index("metric")["value"]
    table = pd.read_csv(labels, dtype=str).set_index("image_id")["gender"]
    frame = pd.DataFrame(json.loads(captions.read_text())).astype(str)
    frame = frame.assign(label=frame["image_id"].map(table)).query("label in @GENDER.values")
    assert len(frame) == 10780 and round(found["error"], 2) == 14.25
    words = [set(text.split()) for text in frame["caption"]]
    women, men = (np.array([not own.isdisjoint(GENDER.words[value]) for own in words]) for value in GENDER.values)
    male = frame["label"] == "Male"
    gap = 100 * ((women & ~men)[male].mean() - (men & ~women)[~male].mean())
    left = 100 * ((~women & ~men)[male].mean() - (~women & ~men)[~male].mean())
    assert found["error_gap"] == pytest.approx(gap) and found["unnamed_gap"] == pytest.approx(left)


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    """Forty images of each gender, all of whose captions name a man."""
    table = pd.DataFrame({"image_id": range(80), "sex": ["Female"] * 40 + ["Male"] * 40})
    said = ["a nice man with a big dog"] * 40 + ["a happy man feeds a dog"] * 40
    keep(found := Workspace(tmp_path), labels=table, captions={"mine": table[["image_id"]].assign(caption=said)})
    return found


def test_runs_give_values_groups_and_gaps(workspace):
    request = Question("c", ("mine",), "labels", "gender", ("length", "naming_gap", "error", "refused"))
    specs, reasons = useful(plan(workspace, request), request)
    assert not reasons
    rows = pd.DataFrame([row.row() for spec in specs for row in run_one(workspace, spec, silent).results])
    value = rows.set_index(["metric", "group"])["value"]
    by_hand = {"length": (7, 6), "error": (100, 0), "unnamed": (0, 0), "refused": (0, 0)}
    assert set(rows["metric"]) == {own for name in by_hand for own in (name, f"{name}_gap")} | {"ratio"}
    for name, (women, men) in by_hand.items():
        assert (value[name, "Female"], value[name, "Male"]) == (women, men), name
        assert value[f"{name}_gap", ""] == men - women, name
    assert value["error", ""] == 50
    assert not (rows["ci_low"] == rows["ci_high"]).any()
    assert rows.loc[rows["metric"] == "unnamed_gap", "ci_low"].isna().all(), "0 in both groups: nothing is known of it"
    women = rows.set_index(["metric", "group"]).loc[("error", "Female")]
    wilson = [100 * (1 - 1.96**2 / (40 + 1.96**2)), 100]
    assert [women["ci_low"], women["ci_high"]] == pytest.approx(wilson, abs=0.01), "40 images"

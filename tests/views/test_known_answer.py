"""The controlled sets C1 to C4: made as the paper says, and measured where their answer is known."""

import pandas as pd
import pytest

from capbias_core.prepare.known_answer import CONTROL, IMBALANCE, known_set
from capbias_core.views.known_answer import SEES, known_answers, known_basis, known_sentence, known_table, known_truth


@pytest.mark.parametrize(("name", "more", "less"), [("C1", 30, 20), ("C2", 35, 15), ("C3", 40, 10), ("C4", 45, 5)])
def test_sets_and_truth_are_those_of_the_paper(name, more, less):
    """Table 2 and section 5.1: of each object 50 captions of each value, split by verb, the other way for women."""
    own = known_set(name, times=1)
    frame = own.captions.merge(own.labels)
    assert len(frame) == 300 and frame["image_id"].is_unique
    verbs = {"bed": ("lying", "sitting"), "frisbee": ("throwing", "playing"), "umbrella": ("holding", "walking")}
    for thing, pair in verbs.items():
        for value, counts in (("Male", (more, less)), ("Female", (less, more))):
            captions = frame.loc[(frame["objects"] == thing) & (frame["gender"] == value), "caption"]
            assert tuple(captions.str.contains(f" {verb} ").sum() for verb in pair) == counts
            assert captions.str.contains(thing).all() and len(captions) == 50
    assert [known_truth(name, "Q") for name in IMBALANCE] == [0.6, 0.7, 0.8, 0.9]
    assert [known_truth(name, "LIC") for name in IMBALANCE] == pytest.approx([36, 49, 64, 81])
    assert {known_truth(name, "BA") for name in IMBALANCE} == {0.5}


@pytest.fixture(scope="module")
def measured() -> pd.DataFrame:
    return known_answers(times=100, seeds=3, sets=(*IMBALANCE, CONTROL))


@pytest.mark.long
def test_the_intervals_hold_the_known_answers(measured):
    """100 times the paper's size; BA and DPA have the same answer on all four."""
    assert not measured.duplicated(["model", "metric"]).any()
    rows = measured[measured["model"] != CONTROL].set_index(["model", "metric"])
    assert set(rows.index) == {(name, metric) for name in IMBALANCE for metric in SEES}
    for (name, metric), row in rows.iterrows():
        truth = known_truth(name, metric)
        if metric == "DPA":
            assert row["value"] == truth == 2 / 3 and pd.isna(row["ci_low"]), "every seed gives the same"
            assert "0.667" in row["method"] and row["n"] == 3000
        else:
            assert row["ci_low"] <= truth <= row["ci_high"], (name, metric, row["value"])


@pytest.mark.long
def test_the_control_moves_what_counts_objects(measured):
    """Of 150 captions of each value 120 name its object and 15 each other one. b of umbrella and frisbee is 120/135, of
    bed 1/2. By the value the usual object is guessed, right in 80%, and the other two are not, right in 90% each."""
    rows = measured[measured["model"] == CONTROL].set_index("metric")["value"]
    assert rows["BA"] == pytest.approx((2 * 120 / 135 + 0.5) / 3, abs=1e-3)
    assert rows["DPA"] == pytest.approx((0.8 + 0.9 + 0.9) / 3, abs=0.01)


@pytest.mark.long
def test_metrics_that_see_the_language_rise_and_the_others_do_not(measured):
    assert [name for name, sees in SEES.items() if not sees] == ["BA", "DPA"]
    assert known_sentence(measured) == (
        "Q and LIC rise with the bias of the verbs; BA and DPA do not see it. "
        "Where objects depend on values (control), BA and DPA see that."
    )
    flat = measured.assign(value=measured["value"].where(measured["metric"] != "LIC", 36.0))
    assert known_sentence(flat).startswith("Q rise with the bias of the verbs; LIC, BA and DPA do not see it.")
    table = known_table(measured)
    assert list(table.columns) == ["metric", *IMBALANCE, CONTROL] and table["C4"].str.contains("known").all()
    printed = table.set_index("metric")["C4"].str.extract("printed: (.*)")[0]
    assert printed.tolist() == ["0.89", "72.0", "0.50", "0.50"], "w_H, LIC_H, BA_H and DPA_H of DBAC's Table 3"
    assert known_basis(measured).startswith("Attacker ngram, 3 seeds with 3,000 test captions each.")

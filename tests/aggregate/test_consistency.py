"""Consistency of metrics: the papers' own figures from their printed rows, cases by hand, bad files, the command."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from capbias_core.aggregate.comparison import coefficient_of_variation, conflict_score, pearson
from capbias_core.load.published import published_results
from capbias_core.types import RESULT_COLUMNS
from capbias_core.views.consistency import agreement, alignment, consistency, variation

# DBAC's tables of CVs, and the tables of scores that they follow from: (LIC, DBAC).
CV_TABLES = {"5a": ("11", "10"), "5b": ("12b", "12a"), "6a": ("14", "13"), "6b": ("15b", "15a")}


@pytest.fixture(scope="module")
def published() -> pd.DataFrame:
    return published_results()


def table_of(published: pd.DataFrame, paper: str, name: str) -> pd.DataFrame:
    return published[(published["paper"] == paper) & (published["table"] == name)]


def cv_pairs(published: pd.DataFrame, name: str) -> list[tuple[str, str, float, float]]:
    """Captioner, metric, printed CV, CV from the printed scores."""
    found = []
    for metric, source in zip(("LIC", "DBAC"), CV_TABLES[name], strict=True):
        printed = table_of(published, "dbac", name).query(f"metric == 'CV_{metric}'").set_index("model")["value"]
        ours = variation(table_of(published, "dbac", source)).set_index("model")["value"]
        assert len(printed) == len(ours) == 13
        found += [(model, metric, printed[model], ours[model]) for model in printed.index]
    return found


def near(printed: float, ours: float) -> bool:
    return abs(printed - ours) <= max(0.1, 0.02 * abs(printed))


# gold


@pytest.mark.parametrize("name", ["5a", "6a"])
def test_every_cv_of_encoders_from_scratch_follows_from_the_scores(published, name):
    pairs = cv_pairs(published, name)
    assert len(pairs) == 26
    assert [pair for pair in pairs if not near(*pair[2:])] == []


def test_a_mean_of_zero_leaves_the_cv_blank_with_the_reason(published):
    row = variation(table_of(published, "dbac", "15b")).set_index("model").loc["nic_equalizer"]
    assert math.isnan(row["value"]) and row["method"] == "blank: the mean over encoders is 0" and row["n"] == 4


@pytest.mark.parametrize(
    ("metric", "judges", "conflict", "ranking"),
    [("LIC", "lstm_bi, bert_ft", 11.11, 0.926), ("imagecaptioner2", "sat, grit", 0.0, 0.961)],
)
def test_two_judges_as_in_imagecaptioner2_table_4(published, metric, judges, conflict, ranking):
    rows = agreement(table_of(published, "imgcap2", "4"))
    rows = rows[rows["condition"] == metric].set_index("metric")
    assert set(rows["encoder"]) == {judges} and set(rows["n"]) == {9}
    assert rows.loc["conflict_score", "value"] == pytest.approx(conflict, abs=0.005)
    assert rows.loc["conflict_score", "scale"] == 100 and rows.loc["ranking_consistency", "scale"] == 1
    assert rows.loc["ranking_consistency", "value"] == pytest.approx(ranking, abs=0.0005)


@pytest.mark.parametrize(("metric", "expected"), [("LIC", 0.547), ("imagecaptioner2", 0.801)])
def test_human_alignment_as_in_imagecaptioner2_table_5(published, metric, expected):
    rows = alignment(table_of(published, "imgcap2", "5")).set_index("condition")
    row = rows.loc[f"{metric}; anonymous_bench"]
    assert (row["metric"], row["n"]) == ("human_alignment", 9)
    assert row["value"] == pytest.approx(expected, abs=0.0005)


# by hand


def results(*rows, **columns) -> pd.DataFrame:
    """Rows of (model, encoder, value), LIC of one table unless columns say otherwise."""
    frame = pd.DataFrame(rows, columns=["model", "encoder", "value"])
    other = {"paper": "measured", "table": "", "attribute": "gender", "metric": "LIC", "direction": "", "condition": ""}
    frame = frame.assign(**(other | {"scale": 1.0} | columns))
    return frame.reindex(columns=list(RESULT_COLUMNS))


def test_cv_by_hand():
    assert coefficient_of_variation(np.array([2.0, 4.0, 6.0])) == 0.5, "std 2 (ddof 1) over mean 4"
    assert coefficient_of_variation(np.array([-2.0, -4.0, -6.0])) == 0.5, "over the size of the mean"
    assert math.isnan(coefficient_of_variation(np.array([3.0])))
    assert math.isnan(coefficient_of_variation(np.array([-1.0, 1.0])))
    assert math.isnan(coefficient_of_variation(np.array([0.1, 0.2, -0.3]))), "a mean of 0 but for rounding"


def test_judges_by_hand():
    assert conflict_score([1, -1, 2, 0], [1, 1, 2, -3]) == 25.0, "only the second; 0 is not above 0"
    assert pearson([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert pearson([0, 1, 0, 1], [0, 0, 1, 1]) == pytest.approx(0)
    assert math.isnan(pearson([1, 2], [1, 2])) and math.isnan(pearson([1, 2, 3], [2, 2, 2]))


def test_a_conflict_of_intervals_needs_one_above_0_and_one_below():
    """Three captioners change sign from x to y: of a both intervals are clear, of b one contains 0, of c one is 0."""
    ends = {
        ("a", "x"): (1.0, 3.0),
        ("a", "y"): (-3.0, -1.0),
        ("b", "x"): (1.0, 3.0),
        ("b", "y"): (-3.0, 1.0),
        ("c", "x"): (0.0, 3.0),
        ("c", "y"): (-3.0, -1.0),
        ("d", "x"): (1.0, 3.0),
        ("d", "y"): (1.0, 3.0),
    }
    frame = results(*((model, by, sum(own) / 2) for (model, by), own in ends.items()))
    with_ends = frame.assign(ci_low=[own[0] for own in ends.values()], ci_high=[own[1] for own in ends.values()])
    rows = agreement(with_ends).set_index("metric")
    assert rows.loc["conflict_score", "value"] == 75.0 and rows.loc["clear_conflict_score", "value"] == 25.0
    assert "clear_conflict_score" not in set(agreement(frame)["metric"]), "nothing to say without intervals"


def test_groups_never_mix_conditions_directions_or_attributes():
    frame = pd.concat(
        [
            results(("a", "x", 1.0), ("a", "y", 3.0)),
            results(("a", "x", 5.0), condition="masked_person"),
            results(("a", "y", 9.0), direction="T->A"),
            results(("a", "y", 9.0), attribute="race"),
        ]
    )
    rows = variation(frame)
    assert list(rows["value"].notna()) == [True, False, False, False]
    assert rows["value"][0] == pytest.approx(math.sqrt(2) / 2)
    assert list(rows["condition"]) == ["LIC", "LIC; masked_person", "LIC", "LIC"]


def test_a_cv_has_a_noise_floor_and_an_interval_without_it():
    """Values 10 and 30 of 3 seeds each, half widths 4.30265 and 8.6053: errors 1 and 2 (t(0.975, 2) = 4.30265).

    The floor is sqrt((1 + 4) / 2) / 20 = 0.0791. F = 200 / 2.5 = 80 with 1 and 4 degrees of freedom: p 0.0009, so the
    interval starts above 0; 11 and 9 have F = 2 / 2.5 = 0.8, below its mean: it starts at 0.
    """
    frame = results(("a", "x", 10.0), ("a", "y", 30.0), ("b", "x", 11.0), ("b", "y", 9.0))
    half = np.array([4.30265, 8.6053] * 2)
    low, high = frame["value"] - half, frame["value"] + half
    frame = frame.assign(ci_low=low, ci_high=high, seeds=3, interval="refits")
    differ, alike = variation(frame).to_dict("records")
    assert differ["spread"] == pytest.approx(0.0791, abs=1e-4) and differ["spread_kind"] == "noise floor"
    assert 0 < differ["ci_low"] < differ["value"] < differ["ci_high"]
    assert alike["ci_low"] == 0 and alike["spread"] == pytest.approx(0.1581, abs=1e-4)
    over_images = variation(frame.assign(interval="images"))
    assert over_images["ci_low"].isna().all() and over_images["spread"].isna().all()


def test_two_values_of_one_encoder_are_not_mixed():
    frame = results(("a", "x", 1.0), ("a", "x", 2.0), ("a", "y", 3.0), ("b", "x", 1.0), ("b", "y", 3.0))
    rows = consistency(frame)
    first, second = rows[rows["metric"] == "cv"].to_dict("records")
    assert math.isnan(first["value"]) and "several values for x" in first["method"]
    assert second["value"] == pytest.approx(math.sqrt(2) / 2)
    assert rows[rows["metric"] != "cv"]["value"].isna().all() and "a with x" in rows["method"].iloc[-1]


def test_judges_are_compared_on_the_captioners_that_both_have():
    frame = results(
        ("a", "x", 1.0),
        ("b", "x", 2.0),
        ("c", "x", 3.0),
        ("d", "x", 9.0),
        ("c", "y", 6.0),
        ("b", "y", 4.0),
        ("a", "y", -2.0),
    )
    conflict, ranking = agreement(frame).to_dict("records")
    assert (conflict["n"], conflict["value"]) == (3, pytest.approx(100 / 3))
    assert ranking["value"] == pytest.approx(pearson([1, 2, 3], [-2, 4, 6]))


def test_human_scores_of_a_file_are_matched_by_name():
    frame = results(("att2in", "x", 1.0), ("nic", "x", 2.0), ("nic_plus", "x", 4.0), ("other", "x", 9.0))
    row = alignment(frame, pd.Series({"Att2In": 10.0, "NIC": 20.0, "NIC+": 40.0})).iloc[0]
    assert (row["n"], row["value"]) == (3, pytest.approx(1.0)) and row["encoder"] == "x"
    few = alignment(frame, pd.Series({"Att2In": 10.0, "NIC": 20.0})).iloc[0]
    assert math.isnan(few["value"]) and "at least 3 captioners" in few["method"]
    twice = alignment(frame, pd.Series({"Att2In": 1.0, "NIC": 2.0, "NIC+": 4.0, "nic plus": 5.0})).iloc[0]
    assert math.isnan(twice["value"]) and "same name" in twice["method"]


@pytest.mark.parametrize("column", ["coverage", "object", "group", "alignment"])
def test_what_was_measured_on_other_images_or_objects_is_judged_apart(column):
    """Two series of one metric stand beside each other; both used to be one with several values a captioner."""
    own = results(("a", "x", 1.0), ("b", "x", 2.0), ("c", "x", 4.0), metric="LIC_M").assign(**{column: ""})
    other = own.assign(value=[4.0, 2.0, 1.0], **{column: "something"})
    rows = alignment(pd.concat([own, other]), pd.Series({"a": 1.0, "b": 2.0, "c": 4.0}))
    found = rows.set_index("condition")["value"]
    assert found["LIC_M"] == pytest.approx(1.0) and found["LIC_M; something"] < 0


# files


# the command

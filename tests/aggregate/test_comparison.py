"""How encoders, judges and people compare: the figures of papers from their printed rows, and cases by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from capbias_core import cli
from capbias_core.aggregate.comparison import (
    NO_LABEL,
    OPEN,
    coefficient_of_variation,
    conflict_score,
    label_agreement,
    learned,
    pearson,
    sensitivity,
    unlearned_note,
)
from capbias_core.load.published import published_results
from capbias_core.types import RESULT_COLUMNS
from capbias_core.views.consistency import agreement, alignment, consistency, variation
from capbias_core.workspace.store import Workspace

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


@pytest.mark.parametrize("column", ["coverage", "object", "group", "alignment"])
def test_what_was_measured_on_other_images_or_objects_is_judged_apart(column):
    """Two series of one metric stand beside each other; both used to be one with several values a captioner."""
    own = results(("a", "x", 1.0), ("b", "x", 2.0), ("c", "x", 4.0), metric="LIC_M").assign(**{column: ""})
    other = own.assign(value=[4.0, 2.0, 1.0], **{column: "something"})
    rows = alignment(pd.concat([own, other]), pd.Series({"a": 1.0, "b": 2.0, "c": 4.0}))
    found = rows.set_index("condition")["value"]
    assert found["LIC_M"] == pytest.approx(1.0) and found["LIC_M; something"] < 0


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


# attackers that are no better than chance


def accuracy_row(encoder: str, metric: str, low: float, model: str = "sat", interval: str = "refits") -> dict:
    known = {"attribute": "gender", "model": model, "encoder": encoder, "metric": metric, "scale": 100.0}
    return known | {"value": low + 5, "ci_low": low, "ci_high": low + 10, "interval": interval, "training": 100}


def test_an_accuracy_whose_interval_contains_chance_was_not_learnt():
    rows = pd.DataFrame(
        [
            accuracy_row("rnn", "SC", 49.0),
            accuracy_row("rnn", "LIC", 3.0),
            accuracy_row("rnn", "DBAC", 3.0),
            accuracy_row("rnn", "LIC", 3.0, model="nic"),
            accuracy_row("lstm", "SC", 60.0),
            accuracy_row("lstm", "SC_D", 50.0),
            accuracy_row("lstm", "LIC", 3.0),
            accuracy_row("ngram", "SC", 40.0),
            accuracy_row("ngram", "SC_D", 51.0),
            accuracy_row("one", "SC", 40.0, interval="images"),
        ]
    )
    assert learned(rows, {"gender": 2}).tolist() == [False, False, False, True, False, False, False, True, True, True]
    assert unlearned_note(rows, {"gender": 2}) == (
        "No better than chance (95% interval of its accuracy): lstm (sat), rnn (sat)."
    )
    agreeing = rows.assign(interval=rows["interval"].where(rows["metric"] != "SC_D", ""), value=50.0)
    agreeing.loc[rows["metric"] == "SC_D", ["ci_low", "ci_high"]] = float("nan")
    by_value = learned(agreeing, {"gender": 2})
    assert by_value.tolist() == [False, False, False, True, False, False, False, False, False, True], "50 in every seed"
    assert learned(rows, {"gender": 3}).all(), "chance of three values is a third"
    assert learned(rows, {"race": 2}).all() and unlearned_note(rows, {}) == ""


def test_an_accuracy_below_chance_was_not_learnt():
    """Guessing wrong more often than by chance is no knowledge of the captions; `only` has no interval."""
    rows = pd.DataFrame(
        [accuracy_row("rnn", "SC", 30.0), accuracy_row("lstm", "SC", 51.0), accuracy_row("only", "SC", 40.0)]
    )
    rows.loc[2, ["ci_low", "ci_high", "interval"]] = [float("nan"), float("nan"), ""]
    assert learned(rows, {"gender": 2}).tolist() == [False, True, False]
    assert learned(rows.assign(value=rows["value"] + 10), {"gender": 2}).tolist() == [False, True, True]


def test_the_sign_of_a_single_attacker_is_open():
    rows = pd.DataFrame([accuracy_row("rnn", "LIC", 3.0), accuracy_row("lstm", "LIC", 3.0, interval="images")])
    assert sensitivity(rows, ()).signs == {"sat": {"rnn": 1, "lstm": OPEN}}
    untrained = rows.assign(training=0)
    assert sensitivity(untrained, ()).signs == {"sat": {"rnn": 1, "lstm": 1}}


# labels of several people

VALUES = ("Female", "Male")


def test_every_image_is_counted_once():
    one = pd.Series({"1": "Female", "2": "Female", "3": "Male", "4": "Male"})
    other = pd.Series({"1": "Female", "2": "Male", "3": "Male", "5": "Female"})
    found = label_agreement(one, other, VALUES)
    assert found.counts.to_numpy().tolist() == [[1, 1, 0], [0, 1, 1], [1, 0, 0]]
    assert list(found.counts.columns) == [*VALUES, NO_LABEL]
    assert (found.images, found.same) == (3, 2)
    assert found.differ.to_numpy().tolist() == [["2", "Female", "Male"]]


def test_kappa_and_interval_are_those_of_others():
    rng = np.random.default_rng(0)
    one = pd.Series(rng.choice(["a", "b", "c"], 200))
    other = one.where(rng.random(200) < 0.7, pd.Series(rng.choice(["a", "b", "c"], 200)))
    found = label_agreement(one, other, ("a", "b", "c"))
    assert found.kappa == pytest.approx(cohen_kappa_score(one, other))
    tenth = pd.Series(["a"] * 10)
    # Wilson's interval of 8 in 10, as Newcombe (1998) and any table print it: 0.490 to 0.943.
    eight = label_agreement(tenth, pd.Series(["a"] * 8 + ["b"] * 2), ("a", "b"))
    assert eight.interval == pytest.approx((0.490, 0.943), abs=5e-4)


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "labels.csv"
    first = ["F" if n % 2 else "M" for n in range(10)]
    second = ["F" if n < 4 else own for n, own in enumerate(first)]
    pd.DataFrame({"image_id": range(10), "first": first, "second": second}).to_csv(path, index=False)
    asked = ["import", str(path), "--kind", "attributes", "--collection", "c", "--workspace", str(tmp_path / "home")]
    assert cli.main([*asked, "--attribute", "gender=first", "gender=second"]) == 0
    return tmp_path / "home"


@pytest.mark.long
def test_columns_of_several_annotators_are_a_table_each(place, capsys):
    tables = {
        item.name: item.details["attributes"]["gender"]["column"] for item in Workspace(place).items("attributes")
    }
    assert tables == {"labels first": "first", "labels second": "second"}
    asked = ["labels", "compare", "--collection", "c", "--workspace", str(place)]
    capsys.readouterr()
    assert cli.main([*asked, "--keep", "agreed"]) == 0
    printed = capsys.readouterr().out
    assert "give the same label to 8 of 10 images that both label, 80.0% [49.0, 94.3]" in printed
    agreed = Workspace(place).item("attributes", "agreed", "c")
    assert agreed.images == 8 and agreed.source == "where labels first and labels second agree"
    assert cli.main(asked) == 2, "three tables now: which two is not guessed"
    assert "not 3. Name two of: labels first" in capsys.readouterr().err
    assert cli.main([*asked, "labels first"]) == 2 and cli.main([*asked, "--attribute", "age"]) == 2

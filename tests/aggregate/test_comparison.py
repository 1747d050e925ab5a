"""How encoders, judges and people compare: the figures of papers from their printed rows, and cases by hand."""

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

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
from capbias_core.errors import CapbiasError
from capbias_core.load.published import published_results
from capbias_core.types import RESULT_COLUMNS
from capbias_core.views.agreement import agreement, alignment, consistency, variation


def table_of(paper: str, name: str) -> pd.DataFrame:
    published = published_results()
    return published[(published["paper"] == paper) & (published["table"] == name)]


def test_judges_as_in_imagecaptioner2_tables_4_and_5():
    rows, people = agreement(table_of("imgcap2", "4")), alignment(table_of("imgcap2", "5")).set_index("measure")
    for metric, judges, conflict, ranking, human in (
        ("LIC", "lstm_bi, bert_ft", 11.11, 0.926, 0.547),
        ("imagecaptioner2", "sat, grit", 0.0, 0.961, 0.801),
    ):
        own = rows[rows["measure"] == metric].set_index("metric")
        assert set(own["encoder"]) == {judges} and set(own["n"]) == {9}
        assert own.loc["conflict_score", "value"] == pytest.approx(conflict, abs=0.005)
        assert own.loc["ranking_consistency", "value"] == pytest.approx(ranking, abs=0.0005)
        row = people.loc[metric]
        assert (row["metric"], row["condition"], row["n"]) == ("human_alignment", "anonymous_bench", 9)
        assert row["value"] == pytest.approx(human, abs=0.0005)


def results(*rows, **columns) -> pd.DataFrame:
    """Rows of (model, encoder, value), LIC of one table unless columns say otherwise."""
    frame = pd.DataFrame(rows, columns=["model", "encoder", "value"])
    other = {"paper": "measured", "table": "", "attribute": "gender", "metric": "LIC", "direction": "", "condition": ""}
    frame = frame.assign(**(other | {"scale": 1.0} | columns))
    return frame.reindex(columns=list(RESULT_COLUMNS))


def test_cv_and_judges_by_hand():
    assert coefficient_of_variation(np.array([2.0, 4.0, 6.0])) == 0.5, "std 2 (ddof 1) over mean 4"
    assert coefficient_of_variation(np.array([-2.0, -4.0, -6.0])) == 0.5, "over the size of the mean"
    assert math.isnan(coefficient_of_variation(np.array([3.0])))
    assert math.isnan(coefficient_of_variation(np.array([-1.0, 1.0])))
    assert math.isnan(coefficient_of_variation(np.array([0.1, 0.2, -0.3]))), "a mean of 0 but for rounding"
    assert "nic_equalizer" not in set(variation(table_of("dbac", "15b"))["model"]), "its mean over encoders is 0"
    # Two judges.
    assert conflict_score([1, -1, 2, 0], [1, 1, 2, -3]) == 25.0, "only the second; 0 is not above 0"
    assert pearson([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert pearson([0, 1, 0, 1], [0, 0, 1, 1]) == pytest.approx(0)
    assert math.isnan(pearson([1, 2], [1, 2])) and math.isnan(pearson([1, 2, 3], [2, 2, 2]))


def test_a_conflict_of_intervals_needs_one_above_0_and_one_below():
    """Three captioners change sign from x to y: of a both intervals are clear, of b one contains 0, of c one is 0."""
    above, below = (1.0, 3.0), (-3.0, -1.0)
    ends = [above, below, above, (-3.0, 1.0), (0.0, 3.0), below, above, above]
    frame = results(*((*own, sum(pair) / 2) for own, pair in zip(product("abcd", "xy"), ends, strict=True)))
    low, high = zip(*ends, strict=True)
    rows = agreement(frame.assign(ci_low=low, ci_high=high)).set_index("metric")
    assert rows.loc["conflict_score", "value"] == 75.0 and rows.loc["clear_conflict_score", "value"] == 25.0
    assert "clear_conflict_score" not in set(agreement(frame)["metric"]), "nothing to say without intervals"


def test_a_cv_has_a_noise_floor():
    """Values 10 and 30 of 3 seeds each, half widths 4.30265 and 8.6053: errors 1 and 2 (t(0.975, 2) = 4.30265), so the
    floor is sqrt((1 + 4) / 2) / 20 = 0.0791; of 11 and 9, whose mean is half as large, it is twice that."""
    frame = results(("a", "x", 10.0), ("a", "y", 30.0), ("b", "x", 11.0), ("b", "y", 9.0))
    half = np.array([4.30265, 8.6053] * 2)
    low, high = frame["value"] - half, frame["value"] + half
    frame = frame.assign(ci_low=low, ci_high=high, seeds=3, interval="refits")
    differ, alike = variation(frame).to_dict("records")
    assert differ["spread"] == pytest.approx(0.0791, abs=1e-4)
    assert alike["spread"] == pytest.approx(0.1581, abs=1e-4)
    assert variation(frame.assign(interval="images"))["spread"].isna().all()


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
    assert rows["value"].tolist() == pytest.approx([math.sqrt(2) / 2]) and rows["condition"].tolist() == [""]


@pytest.mark.parametrize("column", ["coverage", "object", "group", "alignment"])
def test_what_was_measured_on_other_images_or_objects_is_judged_apart(column):
    """Two series of one metric stand beside each other; both used to be one with several values a captioner."""
    own = results(("a", "x", 1.0), ("b", "x", 2.0), ("c", "x", 4.0), metric="LIC_M").assign(**{column: ""})
    other = own.assign(value=[4.0, 2.0, 1.0], **{column: "something"})
    rows = alignment(pd.concat([own, other]), pd.Series({"a": 1.0, "b": 2.0, "c": 4.0}))
    found = rows.set_index("condition")["value"]
    assert found[""] == pytest.approx(1.0) and found["something"] < 0


def test_two_values_of_one_encoder_are_not_mixed():
    frame = results(("a", "x", 1.0), ("a", "x", 2.0), ("a", "y", 3.0), ("b", "x", 1.0), ("b", "y", 3.0))
    with pytest.raises(CapbiasError, match="a LIC x"):
        consistency(frame)


def test_judges_are_compared_on_the_captioners_that_both_have():
    frame = results(*zip("abcdcba", "xxxxyyy", [1.0, 2.0, 3.0, 9.0, 6.0, 4.0, -2.0], strict=True))
    conflict, ranking = agreement(frame).to_dict("records")
    assert (conflict["n"], conflict["value"]) == (3, pytest.approx(100 / 3))
    assert ranking["value"] == pytest.approx(pearson([1, 2, 3], [-2, 4, 6]))


def test_human_scores_of_a_file_are_matched_by_name():
    frame = results(("att2in", "x", 1.0), ("nic", "x", 2.0), ("nic_plus", "x", 4.0), ("other", "x", 9.0))
    row = alignment(frame, pd.Series({"Att2In": 10.0, "NIC": 20.0, "NIC+": 40.0})).iloc[0]
    assert (row["n"], row["value"]) == (3, pytest.approx(1.0)) and row["encoder"] == "x"
    assert alignment(frame, pd.Series({"Att2In": 10.0, "NIC": 20.0})).empty
    with pytest.raises(CapbiasError):
        alignment(frame, pd.Series({"Att2In": 1.0, "NIC": 2.0, "NIC+": 4.0, "nic plus": 5.0}))


def accuracy_row(encoder: str, metric: str, low: float, model: str = "sat", interval: str = "refits") -> dict:
    known = {"attribute": "gender", "model": model, "encoder": encoder, "metric": metric, "scale": 100.0}
    known |= {"interval": interval, "training": 100, "seeds": 10}
    return known | {"value": low + 5, "ci_low": low, "ci_high": low + 10}


def test_an_accuracy_whose_interval_contains_chance_was_not_learnt():
    """`nic` has no accuracy, `one` a single attacker."""
    given = [("rnn", "SC", 49.0), ("rnn", "LIC", 3.0), ("rnn", "DBAC", 3.0), ("rnn", "LIC", 3.0, "nic")]
    given += [("lstm", "SC", 60.0), ("lstm", "SC_D", 50.0), ("lstm", "LIC", 3.0)]
    given += [("ngram", "SC", 40.0), ("ngram", "SC_D", 51.0), ("one", "SC", 40.0, "sat", "images")]
    rows = pd.DataFrame([accuracy_row(*own) for own in given])
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
    worse = pd.DataFrame([accuracy_row("rnn", "SC", 30.0), accuracy_row("lstm", "SC", 51.0)])
    assert learned(worse, {"gender": 2}).tolist() == [False, True], "wrong more often than by chance"


def test_the_sign_of_a_single_attacker_is_open():
    rows = pd.DataFrame([accuracy_row("rnn", "LIC", 3.0), accuracy_row("lstm", "LIC", 3.0, interval="images")])
    assert sensitivity(rows, ()).signs == {"sat": {"rnn": 1, "lstm": OPEN}}
    assert sensitivity(rows.assign(training=0), ()).signs == {"sat": {"rnn": 1, "lstm": 1}}


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

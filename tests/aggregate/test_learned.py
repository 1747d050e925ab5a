"""Attackers that are no better than chance, by the interval of their accuracy."""

import pandas as pd

from capbias_core.aggregate.comparison import OPEN, learned, signs_of, unlearned_note


def row(encoder: str, metric: str, low: float, model: str = "sat", interval: str = "refits") -> dict:
    known = {"attribute": "gender", "model": model, "encoder": encoder, "metric": metric, "scale": 100.0}
    return known | {"value": low + 5, "ci_low": low, "ci_high": low + 10, "interval": interval, "training": 100}


def test_an_accuracy_whose_interval_contains_chance_was_not_learnt():
    rows = pd.DataFrame(
        [
            row("rnn", "SC", 49.0),
            row("rnn", "LIC", 3.0),
            row("rnn", "DBAC", 3.0),
            row("rnn", "LIC", 3.0, model="nic"),
            row("lstm", "SC", 60.0),
            row("lstm", "SC_D", 50.0),
            row("lstm", "LIC", 3.0),
            row("ngram", "SC", 40.0),
            row("ngram", "SC_D", 51.0),
            row("one", "SC", 40.0, interval="images"),
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
    rows = pd.DataFrame([row("rnn", "SC", 30.0), row("lstm", "SC", 51.0), row("only", "SC", 40.0)])
    rows.loc[2, ["ci_low", "ci_high", "interval"]] = [float("nan"), float("nan"), ""]
    assert learned(rows, {"gender": 2}).tolist() == [False, True, False]
    assert learned(rows.assign(value=rows["value"] + 10), {"gender": 2}).tolist() == [False, True, True]


def test_the_sign_of_a_single_attacker_is_open():
    rows = pd.DataFrame([row("rnn", "LIC", 3.0), row("lstm", "LIC", 3.0, interval="images")])
    assert signs_of(rows) == {"sat": {"rnn": 1, "lstm": OPEN}}
    untrained = rows.assign(training=0)
    assert signs_of(untrained) == {"sat": {"rnn": 1, "lstm": 1}}

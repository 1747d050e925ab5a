"""Both directions side by side: which are above 0, what that means, and the page."""

import pandas as pd

from capbias_core.types import A_TO_T, T_TO_A
from capbias_core.views.directions import (
    directions,
    directions_table,
    measured_otherwise,
    measures_in,
    plane,
    ways_measured,
)


def row(model, metric, direction, value, low, high, **more) -> dict:
    usual = {"paper": "measured", "attribute": "gender", "encoder": "ngram", "coverage": "with_references"}
    usual |= {"spread": None, "scale": 100.0, "run_id": "r", "seeds": 5, "n": 490, "ci_low": low, "ci_high": high}
    usual |= dict.fromkeys(("table", "condition", "spread_kind", "method"), "")
    return usual | {"model": model, "metric": metric, "direction": direction, "value": value} | more


def pair(model, across, up, metric="DBAC", **more) -> list[dict]:
    return [row(model, metric, way, *values, **more) for way, values in (("A->T", across), ("T->A", up))]


def test_a_direction_without_an_interval_clear_of_0_is_unclear():
    """What is clear is in test_sentences.py."""
    rows = pd.DataFrame([*pair("m", (1, -1, 2), (1, None, None)), *pair("n", (1, -1, 2), (-2, -3, -1))])
    table = directions_table(directions(rows, "DBAC"), rows, "DBAC").set_index("captioner")
    assert table["images to add"].to_dict() == {"m": "unclear both ways", "n": "A→T unclear"}
    lonely = pd.DataFrame([row("lonely", "DBAC", "A->T", 1, 0, 2), row("lonely", "LIC", "", 5.0, 4.0, 6.0)])
    assert directions(lonely, "DBAC").empty


def test_only_what_was_measured_alike_stands_together():
    across, up = row("m", "DBAC", "A->T", 1, 0.5, 2), row("m", "DBAC", "T->A", 1, 0.5, 2, encoder="lstm")
    mixed = pd.DataFrame([across, up, row("m", "DBAC", "T->A", 3, 2, 4, seeds=10)])
    assert directions(mixed, "DBAC").empty and measures_in(mixed) == []
    # DBAC is over the images with references, be they all of one captioner's or a part of another's.
    rows = [*pair("part", (1, 0.5, 2), (1, 0.5, 2)), *pair("whole", (1, 0.5, 2), (1, 0.5, 2), coverage="")]
    found = directions(pd.DataFrame(rows), "DBAC")
    assert list(found["model"]) == ["part", "whole"] and len(ways_measured(found)) == 1


def test_dba_is_a_pair_of_two_metrics():
    """The cross-fitted ones, whose intervals can be read."""
    rows = [
        row("m", "DBA_O_crossfit", "", 1, 0.5, 2, encoder=""),
        row("m", "DBA_G_crossfit", "", -1, -2, -0.5, encoder=""),
    ]
    found = directions(pd.DataFrame(rows), "DBA").iloc[0]
    assert (found["A->T"], found["T->A"]) == (1, -1)
    (shown,) = directions_table(directions(pd.DataFrame(rows), "DBA"), pd.DataFrame(rows), "DBA")["DBA A→T"]
    assert shown == "1.00 [0.50, 2.00]", "as many decimals as DBA_O has"


def test_a_name_cannot_bring_markup_into_the_plane():
    rows = pd.DataFrame(pair("<b>x</b>", (1, 0.5, 2), (1, 0.5, 2)))
    figure = plane(directions(rows, "DBAC"), "DBAC")
    assert "&lt;b&gt;x&lt;/b&gt;" in [annotation.text for annotation in figure.layout.annotations]
    assert "<b>" not in figure.data[0].hovertext[0]


def test_the_way_that_most_captioners_share_comes_first_and_others_are_named():
    """Three captioners by 5 seeds and one by 10: the three are shown, and the fourth is said with its way."""
    kept = {"encoder": "ngram", "variant": "", A_TO_T: 1.0, T_TO_A: 1.0}
    models = [("a", 5), ("b", 5), ("c", 5), ("d", 10)]
    frame = pd.DataFrame([{"model": name, "seeds": seeds, **kept} for name, seeds in models])
    assert ways_measured(frame) == [("ngram", "", 5), ("ngram", "", 10)]
    shown = frame[frame["seeds"] == 5]
    assert measured_otherwise(frame, shown).endswith("d (ngram, 10 seeds).")
    assert measured_otherwise(shown, shown) == ""

"""Both directions side by side: which may be stated, what that means, and the plane."""

import pandas as pd
import pytest

from capbias_core.types import A_TO_T, T_TO_A
from capbias_core.views.directions import (
    directions,
    directions_answer,
    directions_table,
    measured_otherwise,
    measures_in,
    plane,
    stated,
    ways_measured,
)
from tests.views.rows import pair, row

UP, DOWN, OPEN = (9, 5, 13), (-9, -13, -5), (1, -1, 3)
SECOND = "these objects, other value"
# Rows beside DBAC's and what may be stated of both directions: (metric, across, up), ..., signs, images to add.
EVIDENCE = {
    "all agree": (UP, UP, [("DBAC_added", UP, UP), ("DBAC_equations", UP, UP)], (1, 1), "both kinds"),
    "no other variant": (DOWN, UP, [("DBAC_added", DOWN, UP)], (-1, 1), SECOND),
    "the other sign": (
        UP, UP, [("DBAC_added", UP, UP), ("DBAC_equations", DOWN, UP)], (0, 1),
        "none, the variants disagree",
    ),
    "an unclear variant": (
        UP, UP, [("DBAC_added", UP, UP), ("DBAC_equations", UP, UP), ("DBAC_accuracy", UP, OPEN)], (1, 0),
        "none, the variants disagree",
    ),
    "a constant attacker's": (
        DOWN, DOWN, [("DBAC_added", UP, OPEN)], (0, 0),
        "T→A: an attacker that reads no text may explain it; A→T: an attacker that reads no text may explain it",
    ),
    "not compared": (
        UP, OPEN, [], (0, 0),
        "T→A: the interval contains 0; A→T: not compared with an attacker that reads no text",
    ),
    "without intervals": (
        (1, None, None), DOWN, [("DBAC_added", UP, DOWN)], (0, -1), "A→T: the interval contains 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", EVIDENCE)
def test_a_direction_is_stated_only_if_everything_agrees(case):
    across, up, beside, signs, images = EVIDENCE[case]
    rows = pd.DataFrame(
        [*pair("m", across, up), *(own for metric, *ends in beside for own in pair("m", *ends, metric))]
    )
    # Rows of another captioner, attacker or alignment are no evidence.
    others = ({"model": "n"}, {"encoder": "lstm"}, {"alignment": "contextual"}, {"attribute": "race"})
    against = [row("DBAC_equations", *DOWN, direction=way, **own) for own in others for way in (A_TO_T, T_TO_A)]
    rows = pd.concat([rows, pd.DataFrame(against)], ignore_index=True)
    points = directions(rows, "DBAC")
    (found,) = points.to_dict("records")
    assert tuple(sign for sign, _ in stated(found, rows, "DBAC").values()) == signs
    assert directions_table(points, rows, "DBAC")["images to add"].tolist() == [images]
    headline = directions_answer(points, rows, "DBAC", "gender").headline
    assert headline.count(".") == 1 and len(headline.split()) < 20, "one claim"
    assert ("no conclusion" in headline) == (signs == (0, 0)) == ("people do" not in headline)
    if any(signs):
        assert ("A→T" in headline) == (signs[0] != 0), "the direction that is stated"


def test_variants_have_one_headline():
    """Whichever variant is looked at: of one captioner they do not state different directions."""
    metrics = {"DBAC": DOWN, "DBAC_equations": UP, "DBAC_accuracy": UP, "DBAC_added": UP}
    rows = pd.DataFrame([own for metric, ends in metrics.items() for own in pair("m", ends, ends, metric)])
    for name in ("DBAC", "DBAC_equations", "DBAC_accuracy"):
        (found,) = directions(rows, name).to_dict("records")
        assert {sign for sign, _ in stated(found, rows, name).values()} == {0}


def test_a_direction_alone_is_no_pair():
    lonely = pd.DataFrame([row("DBAC", 1, 0, 2, direction=A_TO_T), row("LIC", 5, 4, 6)])
    assert directions(lonely, "DBAC").empty


def test_only_what_was_measured_alike_stands_together():
    ways = ({"direction": A_TO_T}, {"direction": T_TO_A, "encoder": "lstm"}, {"direction": T_TO_A, "seeds": 5})
    mixed = pd.DataFrame([row("DBAC", 1, 0.5, 2, **own) for own in ways])
    assert directions(mixed, "DBAC").empty and measures_in(mixed) == []
    # DBAC is over the images with references, be they all of one captioner's or a part of another's.
    rows = [*pair("part", (1, 0.5, 2), (1, 0.5, 2)), *pair("whole", (1, 0.5, 2), (1, 0.5, 2), coverage="")]
    found = directions(pd.DataFrame(rows), "DBAC")
    assert list(found["model"]) == ["part", "whole"] and len(ways_measured(found)) == 1


def test_dba_is_a_pair_of_two_metrics():
    """The cross-fitted ones, whose intervals can be read."""
    rows = [row(f"DBA_{own}_crossfit", *ends, encoder="") for own, *ends in (("O", 1, 0.5, 2), ("G", -1, -2, -0.5))]
    rows = pd.DataFrame(rows)
    found = directions(rows, "DBA")
    assert found[["A->T", "T->A"]].to_numpy().tolist() == [[1, -1]]
    (shown,) = directions_table(found, rows, "DBA")["DBA A→T"]
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

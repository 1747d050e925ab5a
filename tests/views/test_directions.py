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
from tests.views.rows import pair, row


def test_a_direction_without_an_interval_clear_of_0_is_unclear():
    """What is clear is in test_sentences.py."""
    rows = pd.DataFrame([*pair("m", (1, -1, 2), (1, None, None)), *pair("n", (1, -1, 2), (-2, -3, -1))])
    table = directions_table(directions(rows, "DBAC"), rows, "DBAC").set_index("captioner")
    assert table["images to add"].to_dict() == {"m": "unclear both ways", "n": "A→T unclear"}
    # Nor is one clear that a constant attacker has too: what others add holds 0 for `m`, and not for `n`.
    added = [row("DBAC_added", *ends, model=own, direction=A_TO_T) for own, *ends in (("m", 1, -1, 3), ("n", 3, 1, 5))]
    rows = pd.DataFrame([*pair("m", (9, 5, 13), (9, 5, 13)), *pair("n", (9, 5, 13), (-9, -13, -5)), *added])
    table = directions_table(directions(rows, "DBAC"), rows, "DBAC").set_index("captioner")["images to add"]
    assert table.to_list() == ["these objects, other value; A→T unclear", "this value, without these objects"]
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

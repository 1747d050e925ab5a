"""Both directions side by side: which are above 0, what that means, and the page."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from capbias_core.analysis.directions import directions, measures_in, ways_measured
from capbias_core.present.directions import (
    basis,
    directions_answer,
    directions_table,
    explained,
    measured_otherwise,
    plane,
)
from capbias_core.types import A_TO_T, RESULT_COLUMNS, T_TO_A
from tests.app import to_tab

ROOT = Path(__file__).resolve().parents[2]


def row(model, metric, direction, value, low, high, **more) -> dict:
    given = {
        "paper": "measured",
        "table": "",
        "attribute": "gender",
        "model": model,
        "metric": metric,
        "encoder": "ngram",
        "direction": direction,
        "condition": "",
        "coverage": "with_references",
        "value": value,
        "spread": None,
        "spread_kind": "",
        "scale": 100.0,
        "run_id": "r",
        "seeds": 5,
        "n": 490,
        "ci_low": low,
        "ci_high": high,
        "method": "",
    }
    return given | more


def pair(model, across, up, metric="DBAC", **more) -> list[dict]:
    return [row(model, metric, way, *values, **more) for way, values in (("A->T", across), ("T->A", up))]


ROWS = pd.DataFrame(
    [
        *pair("one", (10, 5, 15), (20, 15, 25)),
        *pair("two", (-10, -15, -5), (20, 15, 25)),
        *pair("three", (10, 5, 15), (-20, -25, -15)),
        *pair("four", (-10, -15, -5), (-20, -25, -15)),
        *pair("five", (1, -5, 7), (20, 15, 25)),
        row("one", "LIC", "", 5.0, 4.0, 6.0),
        row("one", "LIC", "", 9.0, 8.0, 9.5, encoder="lstm_bi", seeds=10),
        row("lonely", "DBAC", "A->T", 1, 0, 2),
    ],
    columns=list(RESULT_COLUMNS),
)


def advice(rows: pd.DataFrame) -> dict[str, str]:
    return directions_table(directions(rows, "DBAC"), rows, "DBAC").set_index("captioner")["images to add"].to_dict()


def test_images_to_add_by_the_intervals():
    assert advice(ROWS) == {
        "one": "both kinds",
        "two": "objects with the other value",
        "three": "values without their usual objects",
        "four": "none by this metric",
        "five": "objects with the other value; A→T unclear",
    }
    nothing = [*pair("m", (1, -1, 2), (1, None, None)), *pair("n", (1, -1, 2), (-2, -3, -1))]
    assert advice(pd.DataFrame(nothing)) == {"m": "unclear both ways", "n": "A→T unclear"}


def test_a_direction_that_a_constant_attacker_has_too_is_unclear():
    """What attackers add holds 0 for the first captioner, and is above it for the second."""
    added = [row("one", "DBAC_added", "A->T", 1, -1, 3), row("three", "DBAC_added", "A->T", 3, 1, 5)]
    found = advice(pd.DataFrame([*ROWS.to_dict("records"), *added]))
    assert found["one"] == "objects with the other value; A→T unclear"
    assert found["three"] == "values without their usual objects"


def test_only_what_was_measured_alike_stands_together():
    mixed = pd.DataFrame(
        [
            row("m", "DBAC", "A->T", 1, 0.5, 2),
            row("m", "DBAC", "T->A", 1, 0.5, 2, encoder="lstm"),
            row("m", "DBAC", "T->A", 3, 2, 4, seeds=10),
        ]
    )
    assert directions(mixed, "DBAC").empty and measures_in(mixed) == []


def test_captioners_all_of_whose_images_have_references_stand_beside_others():
    """DBAC rests on the images with references, be they all of one captioner's or a part of another's."""
    rows = pd.DataFrame(
        [*pair("part", (1, 0.5, 2), (1, 0.5, 2)), *pair("whole", (1, 0.5, 2), (1, 0.5, 2), coverage="")]
    )
    (alone,) = ways_measured(directions(rows, "DBAC"))
    assert list(directions(rows, "DBAC")["model"]) == ["part", "whole"], alone


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
    assert "DBA_O" in explained("DBA") and "DBA_G" in explained("DBA")


def test_the_answer_counts_intervals_clear_of_zero():
    text = directions_answer(directions(ROWS, "DBAC"), ROWS, "DBAC", "gender")
    up, across = text.headline.split("; ")
    assert up == "DBAC T→A is above 0 for 3 of 5 captioners and below for 2"
    assert across == "DBAC A→T is above 0 for 2 of 5 captioners and below for 2."
    assert "amplif" not in text.headline and "difference" in text.support
    assert "masked" in text.support, "DBAC reads the whole caption"
    assert "masked" not in directions_answer(directions(ROWS, "DBAC"), ROWS, "DPA", "gender").support


def test_the_basis_names_the_images_of_both_directions():
    rows = pd.DataFrame([*pair("one", (1, 0, 2), (1, 0, 2)), *pair("two", (1, 0, 2), (1, 0, 2), n=480)])
    rows.loc[1, "n"] = 300
    assert basis(directions(rows, "DBAC")) == (
        "T→A 300 to 480, A→T 480 to 490 test images per seed; attacker ngram, 5 seeds."
    )


def test_the_table_says_which_images_to_add_and_what_lic_is():
    table = directions_table(directions(ROWS, "DBAC"), ROWS, "DBAC").set_index("captioner")
    assert table.loc["two", "images to add"] == "objects with the other value"
    assert table.loc["one", "LIC"].startswith("5.0") and table.loc["two", "LIC"] == ""
    assert table.loc["three", "DBAC T→A"] == "−20.0 [−25.0, −15.0]"


def test_verbs_are_called_verbs():
    rows = ROWS.assign(metric=ROWS["metric"].str.replace("DBAC", "DBAC_verbs"))
    frame = directions(rows, "DBAC_verbs")
    table = directions_table(frame, rows, "DBAC_verbs").set_index("captioner")
    assert table.loc["two", "images to add"] == "verbs with the other value"
    said = directions_answer(frame, rows, "DBAC_verbs", "gender").support
    named = " ".join(note.text for note in plane(frame, "DBAC_verbs").layout.annotations)
    assert "verbs" in said and "verbs" in named and "objects" not in said + named + explained("DBAC_verbs")


def test_no_image_is_advised_where_another_variant_has_the_other_sign():
    rows = pd.DataFrame([*ROWS.to_dict("records"), *pair("one", (-9, -12, -6), (5, 1, 9), metric="DBAC_equations")])
    frame = directions(rows, "DBAC")
    table = directions_table(frame, rows, "DBAC").set_index("captioner")
    before = directions_table(frame, ROWS, "DBAC").set_index("captioner")
    assert before.loc["one", "images to add"] == "both kinds"
    assert table.loc["one", "images to add"] == "objects with the other value; A→T: variants disagree"
    assert table.drop("one")["images to add"].equals(before.drop("one")["images to add"])
    by_bert = pair("one", (-9, -12, -6), (-5, -9, -1), encoder="bert")
    also = pd.DataFrame([*ROWS.to_dict("records"), *by_bert])
    by_ngram = directions(also, "DBAC").query("encoder == 'ngram'")
    shown = directions_table(by_ngram, also, "DBAC").set_index("captioner")
    assert shown.loc["one", "images to add"] == "both kinds", "another attacker is no variant"
    others = [
        *pair("five", (-9, -12, -6), (5, 1, 9), "DBAC_equations"),
        *pair("five", (9, 6, 12), (5, 1, 9), "DBAC_accuracy"),
    ]
    unclear = pd.DataFrame([*rows.to_dict("records"), *others])
    assert directions_answer(frame, unclear, "DBAC", "gender") == directions_answer(frame, rows, "DBAC", "gender")
    said = directions_answer(frame, rows, "DBAC", "gender").headline
    assert (
        "A→T is above 0 for 2 of 5 captioners and below for 2, though another variant has the other sign for 1." in said
    )


def test_what_a_constant_attacker_has_stands_beside_dbac():
    rows = pd.DataFrame(
        [
            *ROWS.to_dict("records"),
            row("one", "DBAC_constant", "A->T", 8.0, 7.0, 9.0),
            row("one", "DBAC_constant", "T->A", 1.0, 0.0, 2.0),
            row("one", "DBAC_added", "A->T", 2.0, -1.0, 5.0),
        ]
    )
    table = directions_table(directions(rows, "DBAC"), rows, "DBAC").set_index("captioner")
    assert table.loc["one", "DBAC_constant A→T"] == "8.0 [7.0, 9.0]"
    assert table.loc["one", "DBAC_added A→T"] == "2.0 [−1.0, 5.0]"
    for low, beyond in ((-1.0, "0."), (1.0, "1.")):
        rows.loc[rows["metric"] == "DBAC_added", "ci_low"] = low
        said = directions_answer(directions(rows, "DBAC"), rows, "DBAC", "gender").headline
        assert said.endswith(
            "A→T is above 0 for 2 of 5 captioners and below for 2, "
            f"and by more than an attacker that reads nothing for {beyond[0]}."
        )


def test_the_plane_has_a_point_a_captioner_and_holds_every_interval():
    frame = directions(ROWS, "DBAC")
    figure = plane(frame, "DBAC")
    points = figure.data[0]
    assert sorted(zip(points.x, points.y, strict=True)) == sorted(zip(frame["A->T"], frame["T->A"], strict=True))
    assert figure.layout.xaxis.range[0] < -15 and figure.layout.xaxis.range[1] > 15
    assert figure.layout.yaxis.range[0] < -25 and figure.layout.yaxis.range[1] > 25
    texts = " ".join(annotation.text for annotation in figure.layout.annotations)
    assert "T→A only" in texts and "A→T only" in texts and "both ways" in texts


def test_a_name_cannot_bring_markup_into_the_plane():
    rows = pd.DataFrame(pair("<b>x</b>", (1, 0.5, 2), (1, 0.5, 2)))
    figure = plane(directions(rows, "DBAC"), "DBAC")
    assert "&lt;b&gt;x&lt;/b&gt;" in [annotation.text for annotation in figure.layout.annotations]
    assert "<b>" not in figure.data[0].hovertext[0]


def test_ten_captioners_close_together_are_all_named():
    rows = pd.DataFrame(
        [own for n in range(10) for own in pair(f"captioner {n}", (5 + n / 50, 3, 8), (4 + n / 60, 2, 9))]
    )
    texts = [annotation.text for annotation in plane(directions(rows, "DBAC"), "DBAC").layout.annotations]
    assert set(texts) >= {f"captioner {n}" for n in range(10)}


@pytest.mark.long
def test_the_page_opens_and_measures(tmp_path, monkeypatch):
    """On the demo: first a button that says what it costs, then the plane."""
    testing = pytest.importorskip("streamlit.testing.v1")
    from capbias_core.runs.engine import engine_for
    from capbias_core.workspace.ingest import load_demo

    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path))
    engine = engine_for(str(tmp_path))
    load_demo(engine.workspace)
    for item in engine.workspace.items("captions"):
        if item.name not in ("amplifier", "plain"):
            engine.workspace.delete(item)
    page = testing.AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    page = to_tab(page, "Directions").run()
    assert not page.exception
    page.button(key="measure_now").click().run()
    assert not page.exception
    engine.wait([run.run_id for run in engine.workspace.runs()])
    page = page.run()
    assert not page.exception
    assert [run.status for run in engine.workspace.runs()] == ["finished"] * 4
    shown = page.dataframe[0].value
    assert set(shown["captioner"]) == {"amplifier", "plain"}


def test_the_way_that_most_captioners_share_comes_first_and_others_are_named():
    """Three captioners by 5 seeds and one by 10: the three are shown, and the fourth is said with its way."""
    kept = {"encoder": "ngram", "variant": "", A_TO_T: 1.0, T_TO_A: 1.0}
    models = [("a", 5), ("b", 5), ("c", 5), ("d", 10)]
    frame = pd.DataFrame([{"model": name, "seeds": seeds, **kept} for name, seeds in models])
    assert ways_measured(frame) == [("ngram", "", 5), ("ngram", "", 10)]
    shown = frame[frame["seeds"] == 5]
    assert measured_otherwise(frame, shown).endswith("d (ngram, 10 seeds).")
    assert measured_otherwise(shown, shown) == ""

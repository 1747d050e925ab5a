"""The leaderboard: one comparison per attribute, what is marked and not ranked, order, length and refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.errors import CapbiasError
from capbias_core.measures.lic import LONGER
from capbias_core.views.leaderboard import OTHER_IMAGES, OTHER_SETTINGS, leaderboard, leads, sorted_captioners
from capbias_core.views.results import comparisons
from capbias_core.views.view import exported, scope
from capbias_core.workspace.store import Workspace
from tests import sentences
from tests.collections_ import keep
from tests.pages.synthetic import IMAGES, fill, more_labels, score

REFUSED = 30


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Workspace:
    """Gender of three captioners and of one on other images; hair of two, of one with other seeds."""
    made = Workspace(tmp_path_factory.mktemp("leaderboard"))
    fill(made)
    first = made.frame(made.item("captions", "first", "c").hash)[["image_id", "caption"]]
    longer = first.assign(caption=first["caption"] + " in a long field of green grass under a blue sky on a fine day")
    longer.loc[: REFUSED - 1, "caption"] = "I'm sorry, but I can't help with identifying people in images."
    keep(made, captions={"longer": longer, "few": first.head(100)})
    score(made, captioners=("first", "second", "longer", "few"), metrics=("lic",), seeds=4, words=False)
    table = more_labels(made, "hair", np.tile(["dark", "fair"], IMAGES // 2).tolist())
    score(made, captioners=("first",), table=table, attribute="hair", metrics=("lic",), seeds=4, words=False)
    score(made, captioners=("second",), table=table, attribute="hair", metrics=("lic",), seeds=3, words=False)
    return made


def test_cells_are_those_of_the_results(workspace):
    shown = leaderboard(scope(workspace, "c"))
    rows = shown.rows.set_index(["captioner", "attribute"])
    found = scope(workspace, "c", "gender").comparison
    results = workspace.results(found.run_ids).set_index(["model", "metric"])
    for name in ("first", "second", "longer"):
        of = rows.loc[name, "gender"]
        assert of[["value", "ci_low", "ci_high", "verdict"]].tolist() == (
            results.loc[(name, "LIC"), ["value", "ci_low", "ci_high", "verdict"]].tolist()
        )
        assert of["mark"] == "" and of["letters"]
    # Only the captioner that writes more than people has the control for length beside.
    words = {name: rows.loc[name, "gender"]["words"] for name in ("first", "longer")}
    assert words["longer"] > LONGER * words["first"]
    assert rows.loc["longer", "gender"]["cut"] == results.loc[("longer", "LIC_cut"), "value"]
    assert np.isnan(rows.loc["first", "gender"]["cut"])
    assert rows.loc["longer", "gender"]["refusals"] == pytest.approx(100 * REFUSED / IMAGES)
    assert rows.loc["first", "gender"]["refusals"] == 0


def test_what_is_measured_otherwise_is_marked_and_not_ranked(workspace):
    rows = leaderboard(scope(workspace, "c")).rows.set_index(["captioner", "attribute"])
    assert rows.loc["few", "gender"]["mark"] == OTHER_IMAGES and rows.loc["few", "gender"]["letters"] == ""
    assert rows.loc["second", "hair"]["mark"] == OTHER_SETTINGS and rows.loc["second", "hair"]["seeds"] == 3
    assert rows.loc["first", "hair"]["mark"] == ""
    text = str(exported(leaderboard(scope(workspace, "c")), "x.txt"))
    assert "(other images)" in text and "(other settings)" in text and "not measured" in text


def test_order():
    rows = pd.DataFrame(
        [("a", "gender", 1.0, "", 9.0), ("b", "gender", 3.0, "", 8.0), ("c", "gender", 5.0, OTHER_IMAGES, 7.0)],
        columns=["captioner", "attribute", "value", "mark", "words"],
    ).assign(refusals=0.0, images=10)
    rows = pd.concat([rows, rows.tail(1).assign(captioner="d", attribute="race", mark="", value=9.0)])
    assert sorted_captioners(rows, "gender") == ["b", "a", "c", "d"], "marked ones after, then those without a value"
    assert sorted_captioners(rows, "words")[0] == "a" and sorted_captioners(rows, "captioner") == list("abcd")
    with pytest.raises(CapbiasError):
        sorted_captioners(rows, "gendre")


def test_it_leads_with_several_attributes_or_many_captioners(workspace):
    found = comparisons(workspace, "c")
    assert leads(found)
    of_gender = [item for item in found if item.attribute.name == "gender"]
    assert not leads(of_gender)


def test_the_command(workspace, tmp_path, capsys):
    command = ["view", "leaderboard", "--collection", "c", "--workspace", str(workspace.folder)]
    for name in ("x.csv", "x.tex", "x.svg"):
        assert cli.main([*command, "--output", str(tmp_path / name)]) == 0
    assert len(pd.read_csv(tmp_path / "x.csv")) == 6
    assert "first" in (tmp_path / "x.svg").read_text()
    capsys.readouterr()
    assert cli.main([*command, "--sort", "images", "--output", str(tmp_path / "x.txt")]) == 0
    sentences.check("view leaderboard", capsys.readouterr().err.replace(str(tmp_path), ""), numbers=False)
    assert cli.main([*command, "--sort", "gendre"]) == 2

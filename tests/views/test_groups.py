"""Groups that cross: cells by hand, what is refused, and scores by labelled value beside an independent count."""

import numpy as np
import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.measures.training import AttackerTrainer
from capbias_core.prepare.labels import LEAST, crossed, parts_of
from capbias_core.types import Attribute
from capbias_core.views.groups import beyond_parts, by_value, cells_left_out
from capbias_core.views.view import scope
from capbias_core.workspace.derived import cross, keep_crossed
from capbias_core.workspace.store import Workspace
from tests import sentences
from tests.collections_ import keep

SIZES = {"Female, a": 120, "Female, b": 110, "Male, a": 170, "Male, b": 40}


def test_names_and_words_of_a_crossed_attribute():
    gender, race, age = (get_attribute(name) for name in ("gender", "race", "age"))
    own = crossed(gender, race, dict.fromkeys(("Female, Dark", "Female, Light", "Male, Dark", "Male, Light"), LEAST))
    assert own.values == ("Female, Dark", "Female, Light", "Male, Dark", "Male, Light")
    assert own.masked_words == gender.masked_words and own.mask_token == "<gender>"
    both = crossed(gender, age, {"Female, old": LEAST, "Male, old": LEAST, "Male, young": LEAST - 1})
    assert both.values == ("Female, old", "Male, old") and "Male, young (99)" in both.note
    assert both.masked_words == gender.masked_words | age.masked_words and both.mask_token == "<group>"
    one, other = (Attribute(name, name, ("x", "Other"), {"Other": (f"{name}ish",)}) for name in "ab")
    assert crossed(one, other, {"x, x": LEAST, "Other, Other": LEAST}).masked_words == {"aish", "bish"}
    with sentences.raises(CapbiasError):
        crossed(gender, race, {"Female, Dark": LEAST - 1, "Male, Light": LEAST})
    assert parts_of("gender x race") == ("gender", "race") and parts_of("x") is None and parts_of("gender") is None


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """Captions that give the cell `Female, a` away and no other."""
    found, rng = Workspace(tmp_path_factory.mktemp("crossed")), np.random.default_rng(1)
    cells = [cell for cell, size in SIZES.items() for _ in range(size)]
    labels = pd.DataFrame({"image_id": range(len(cells)), "half": ["left", "right"] * (len(cells) // 2)})
    labels = labels.assign(gender=[cell[:-3] for cell in cells], group=[cell[-1] for cell in cells])
    others = [f"a man {where} a {thing}" for where in ("in", "on") for thing in ("car", "road")]
    said = ["a woman on a pink sofa" if cell == "Female, a" else rng.choice(others) for cell in cells]
    captions = {"model": labels[["image_id"]].assign(caption=said)}
    keep(found, labels=labels, captions=captions, attribute=("gender", "group=group", "half=half"))
    return found


@pytest.mark.long
def test_cells_are_counted_and_small_ones_left_out(workspace):
    found = cross(workspace, "c", "gender", "group")
    assert found.counts == SIZES and found.refused == ("Male, b",)
    assert found.line().endswith("left out with fewer than 100 images: Male, b 40")
    with sentences.raises(CapbiasError):
        cross(workspace, "c", "gender", "agee")


@pytest.fixture
def scored(workspace, monkeypatch):
    """Scores gender crossed with another attribute: the run, its flags, the attackers' guesses, and which are right."""
    guessed, held_out = [], AttackerTrainer.held_out
    noted = lambda self, *given: guessed.append(held_out(self, *given)) or guessed[-1]  # noqa: E731
    monkeypatch.setattr(AttackerTrainer, "held_out", noted)

    def score(second: str):
        name = keep_crossed(workspace, "c", cross(workspace, "c", "gender", second)).name
        place = ["--collection", "c", "--workspace", str(workspace.folder), "--attribute", name]
        assert cli.main(["score", *place, "--metric", "lic", "--seeds", "3"]) == 0
        run, (own,) = scope(workspace, "c", name).comparison.runs[0], guessed
        return run, place, own, own.probabilities.argmax(axis=1) == own.label

    return score


@pytest.mark.long
def test_scores_by_value_and_beyond_both_attributes(workspace, capsys, scored):
    run, place, own, right = scored("group")
    assert "chance for LIC_M and LIC_D is 11.11." in capsys.readouterr().err
    found = by_value(workspace, run)
    for label, value in enumerate(run.spec.attribute["values"]):
        sure = (own.probabilities.max(axis=1) * right)[own.label == label]
        assert found[value].value == pytest.approx(100 * sure.mean())
    assert found["Female, a"].value > found["Male, a"].value + 20
    capsys.readouterr()
    assert cli.main(["view", "by-value", *place]) == 0
    printed = capsys.readouterr()
    assert "Female, a" in printed.out
    # Guesses that tell nothing name one of three cells in 33%, each part in 67%: 11 points less than the product.
    assert beyond_parts(workspace, run) is None and cells_left_out(run) == 1
    assert "and so 1 cell left out" in printed.err
    assert cli.main(["view", "by-value", *place[:-1], "age"]) == 2


@pytest.mark.long
def test_what_is_beyond_both_attributes(workspace, scored):
    run, _, own, right = scored("half")
    guesses, labels = own.probabilities, own.label
    beyond = beyond_parts(workspace, run)
    assert beyond is not None and dict(beyond.parts).keys() == {"gender", "half"} and cells_left_out(run) == 0
    # In the order Female left, Female right, Male left, Male right.
    female = guesses[:, :2].sum(axis=1) > guesses[:, 2:].sum(axis=1)
    left = guesses[:, [0, 2]].sum(axis=1) > guesses[:, [1, 3]].sum(axis=1)
    parts = [100 * (female == (labels < 2)), 100 * (left == (labels % 2 == 0))]
    means = [pd.Series(part).groupby(own.seed).mean() for part in (100 * right, *parts)]
    assert beyond.beyond == pytest.approx((means[0] - means[1] * means[2] / 100).mean())
    low, high = beyond.interval
    assert low is not None and high is not None and low < 0 < high, "halves are drawn without regard to captions"

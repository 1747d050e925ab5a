"""One choice of collection, attribute, setting and captioners, by the settings of runs."""

from dataclasses import replace

import pytest

from capbias_core.errors import CapbiasError
from capbias_core.question import Question
from capbias_core.runs.engine import run_all
from capbias_core.runs.plan import plan
from capbias_core.views.choose import choose
from capbias_core.workspace.spec import Setting
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

IMAGES = range(60)
LABELS = [{"image_id": image, "gender": ("Female", "Male")[image % 2]} for image in IMAGES]
CAPTIONS = [{"image_id": image, "caption": f"a {('cake', 'tie', 'dog')[image % 3]} in a room"} for image in IMAGES]
ASKED = Question("c", ("a", "b"), "labels", "gender", ("LIC_M", "unnamed"), seeds=2)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Workspace:
    made = Workspace(tmp_path_factory.mktemp("w"))
    keep(made, labels=LABELS, captions={"a": CAPTIONS, "b": CAPTIONS[:50]}, references=CAPTIONS)
    for question in (ASKED, replace(ASKED, seeds=3, references="human"), replace(ASKED, captions=("a",), seeds=1)):
        run_all(made, plan(made, question), "c")
    return made


def test_rows_of_one_setting_were_measured_alike_and_counts_fit_beside_them(workspace):
    rows = workspace.results()
    names = rows.groupby("setting")["setting_name"].unique().map(list)
    assert sorted(names.map(lambda each: each[0])) == ["", "ngram, 1 seed", "ngram, 2 seeds", "ngram, 3 seeds"]
    counted, guessed = rows[rows["metric"] == "unnamed"].iloc[0], rows[rows["metric"] == "LIC_M"]
    for setting in guessed["setting"].unique():
        assert Setting(setting).fits(counted["setting"]) and Setting(setting).fits(setting)
    assert not Setting(guessed["setting"].iloc[0]).fits(guessed["setting"].iloc[-1])


@pytest.mark.parametrize(
    ("given", "name", "captioners"),
    [
        ({}, "ngram, 3 seeds", ("b", "a")),
        ({"setting": "ngram, 2 seeds"}, "ngram, 2 seeds", ("b", "a")),
        ({"setting": "ngram, 1 seed", "captioners": ("a",)}, "ngram, 1 seed", ("a",)),
        ({"captioners": ("b",)}, "ngram, 3 seeds", ("b",)),
    ],
)
def test_what_is_not_given_is_chosen_in_one_place(workspace, given, name, captioners):
    choice = choose(workspace, **given)
    assert (choice.collection, choice.attribute, choice.setting.name) == ("c", "gender", name)
    assert sorted(choice.captioners) == sorted(captioners)


@pytest.mark.parametrize("given", [{"collection": "x"}, {"attribute": "x"}, {"setting": "x"}, {"captioners": ("x",)}])
def test_a_name_that_is_not_there_is_refused_with_those_that_are(workspace, given):
    with pytest.raises(CapbiasError, match="There is no .* 'x'"):
        choose(workspace, **given)

"""The Runs dialog, runs that pages start, the judge of Scores, and the page Images on real photographs."""

from __future__ import annotations

import pytest

from capbias_core.runs.durations import Expected
from capbias_core.runs.engine import engine_for
from capbias_core.runs.plan import plan
from capbias_core.workspace.ingest import DEMO, load_demo
from capbias_core.workspace.store import Workspace
from pages.ui import runs
from tests.app import errors, html, opened
from tests.pages.synthetic import score
from tests.runs.test_engine import fill

pytestmark = pytest.mark.long
MODELS = ("a", "b", "c")


@pytest.fixture
def queued(workspace) -> Workspace:
    """Three runs that another process has queued."""
    for spec in plan(workspace, fill(workspace.folder, models=MODELS)):
        workspace.enqueue(spec, "c", "of another process")
    return workspace


def keys(page) -> set[str]:
    return {button.key for button in page.button}


def states(workspace: Workspace) -> list[str]:
    return [run.status for run in workspace.runs()]


@pytest.mark.parametrize("view", ["Answer", "Labels"])
def test_all_runs_are_cancelled_and_repeated_in_the_dialog(queued, view):
    page = opened(view)
    assert "cancel_all" not in keys(page)
    page.button(key="open_runs").click().run()
    assert {"cancel_all", *(f"cancel_{run.run_id}" for run in queued.runs())} <= keys(page)
    page.button(key="cancel_all").click().run()
    assert states(queued) == ["cancelled"] * 3
    assert "3" in opened(view, runs="1").button(key="repeat_all").label
    page.button(key="repeat_all").click().run()
    ended = engine_for(str(queued.folder)).wait([run.run_id for run in queued.runs()])
    assert [run.status for run in ended] == ["finished"] * 3
    assert not keys(opened(view, runs="1")) & {"cancel_all", "repeat_all"}


def test_the_dialog_shows_how_a_number_was_made(queued):
    first, *others = queued.runs()
    for run in others:
        queued.end(run.run_id, "failed", "broken")
    page = opened("Table", runs="1")
    assert f"cancel_{first.run_id}" in keys(page) and "cancel_all" not in keys(page)
    page = opened("Answer", runs="1", run=others[0].run_id)
    tables = [table.value for table in page.dataframe]
    settings = next(table for table in tables if "setting" in table).set_index("setting")["value"]
    assert settings["captions"].startswith(others[0].spec.model) and "repeat" in keys(page)
    assert "broken" in html(page)


def test_a_page_is_drawn_again_when_a_run_ends(queued, monkeypatch):
    (bar,) = opened("Answer").get("progress")
    assert bar.proto.text.startswith("3 runs")
    first, *_ = queued.runs()
    queued.end(first.run_id, "failed", "broken")
    drawn = []
    monkeypatch.setattr(runs.st, "rerun", lambda: drawn.append("again"))
    monkeypatch.setattr(runs.st, "progress", lambda *_args, **_more: None)
    seconds = {run.run_id: 1.0 for run in queued.runs()}
    runs._poll.__wrapped__(engine_for(str(queued.folder)), None, Expected(seconds, 3.0, False))
    assert drawn == ["again"]


def test_words_that_the_answer_lacks_are_one_click(workspace):
    fill(workspace.folder, models=MODELS)
    score(workspace, captioners=MODELS, attribute="group", metrics=("lic",), human="", words=False)
    page = opened("Answer")
    assert "word=" not in html(page)
    page.button(key="words_now").click().run()
    engine_for(str(workspace.folder)).wait([run.run_id for run in workspace.runs()])
    assert "word=" in html(opened("Answer"))


@pytest.mark.parametrize(
    ("metric", "boxes"),
    [("LIC", set()), ("VL-LIC", {"Photographs"}), ("ImageCaptioner²", {"Photographs", "Judge", "Prompt"})],
)
def test_scores_asks_for_photographs_and_judge_of_metrics_that_read_them(workspace, metric, boxes):
    load_demo(workspace)
    page = opened("Table", collection=DEMO, seeds="1", metrics=metric)
    assert {box.label for box in page.selectbox} & {"Photographs", "Judge", "Prompt"} == boxes
    if "Judge" in boxes:
        assert "is not known here" in html(opened("Table", collection=DEMO, seeds="1", metrics=metric, judge="self"))


def test_masking_of_a_set_and_of_one_photograph(workspace):
    load_demo(workspace)
    sets = ("amplifier", "amplifier_masked_person")
    score(workspace, DEMO, sets, metrics=("lic",), human="", words=False)
    page = opened("Experiment", collection=DEMO, captioner="amplifier", seeds="2")
    assert errors(page) == [] and len(page.get("plotly_chart")) == 1
    table = next(table.value for table in page.dataframe if "masked" in table.value)
    assert list(table["masked"]) == ["original", "person"] and set(table["metric"]) == {"LIC_M"}
    page = opened("One photograph", collection=DEMO, captioner="amplifier", seeds="2")
    (layers,) = [
        picture for picture in map(str, (own.proto for own in page.image)) if "person in the foreground" in picture
    ]
    assert errors(page) == [] and page.selectbox(key="photograph").value in layers
    page = opened("Prepare", collection=DEMO, captioner="amplifier", seeds="2")
    assert errors(page) == [] and "outlines (8 photographs)" in html(page)

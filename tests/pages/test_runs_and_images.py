"""The Runs dialog, runs that pages start, the judge of Scores, and the page Images on real photographs."""

from __future__ import annotations

import pytest

from capbias_core.runs.engine import Expected, engine_for
from capbias_core.runs.plan import plan
from capbias_core.workspace.ingest import DEMO, load_demo
from capbias_core.workspace.store import Workspace
from pages.ui import runs
from tests.app import html, opened
from tests.pages.synthetic import score
from tests.runs.test_engine import fill

pytestmark = pytest.mark.long
MODELS = ("a", "b", "c")


@pytest.fixture
def queued(workspace) -> Workspace:
    """Three runs that another process has queued."""
    for spec in plan(workspace, fill(workspace.folder, models=MODELS)):
        workspace.enqueue(spec, "c")
    return workspace


def keys(page) -> set[str]:
    return {button.key for button in page.button}


def test_all_runs_are_cancelled_and_repeated_in_the_dialog(queued):
    page = opened("Labels and attributes")
    assert "cancel_all" not in keys(page)
    page.button(key="open_runs").click().run()
    assert {"cancel_all", *(f"cancel_{run.run_id}" for run in queued.runs())} <= keys(page)
    page.button(key="cancel_all").click().run()
    assert [run.status for run in queued.runs()] == ["cancelled"] * 3
    page.button(key="repeat_all").click().run()
    ended = engine_for(str(queued.folder)).wait([run.run_id for run in queued.runs()])
    assert [run.status for run in ended] == ["finished"] * 3
    assert not keys(opened("Labels and attributes", runs="1")) & {"cancel_all", "repeat_all"}


def test_the_dialog_shows_how_a_number_was_made_and_a_page_follows_its_runs(queued, monkeypatch):
    (bar,) = opened("Answer").get("progress")
    assert bar.proto.text.startswith("3 runs")
    expected = Expected({run.run_id: 1.0 for run in queued.runs()}, 3.0, False)
    first, *others = queued.runs()
    for run in others:
        queued.end(run.run_id, "failed", "broken")
    notes = []
    with monkeypatch.context() as patch:
        patch.setattr(runs, "note", notes.append)
        runs._show_failures(queued.runs())
    assert len(notes) == 2 and all("(LIC, ngram) failed: broken" in text for text in notes), "also of several attackers"
    page = opened("Answer", runs="1", run=others[0].run_id)
    assert f"cancel_{first.run_id}" in keys(page) and "cancel_all" not in keys(page)
    settings = next(table.value for table in page.dataframe if "setting" in table.value).set_index("setting")["value"]
    assert settings["captions"].startswith(others[0].spec.model) and "repeat" in keys(page)
    assert "broken" in html(page)
    drawn = []
    monkeypatch.setattr(runs.st, "rerun", lambda: drawn.append("again"))
    monkeypatch.setattr(runs.st, "progress", lambda *_args, **_more: None)
    runs._poll.__wrapped__(engine_for(str(queued.folder)), None, expected)
    assert drawn == ["again"], "two of the runs that it showed have ended"


def drawn(page) -> str:
    """The charts of a page as Plotly's JSON."""
    return "".join(chart.proto.spec for chart in page.get("plotly_chart"))


def test_words_that_the_answer_lacks_are_one_click(workspace):
    fill(workspace.folder, models=MODELS)
    score(workspace, captioners=MODELS, attribute="group", metrics=("lic",), human="", words=False)
    page = opened("Answer")
    assert "word=" not in drawn(page)
    page.button(key="words_now").click().run()
    engine_for(str(workspace.folder)).wait([run.run_id for run in workspace.runs()])
    assert "word=" in drawn(opened("Answer"))


def test_views_of_the_demo_with_photographs(workspace):
    load_demo(workspace)
    for metric, boxes in (("LIC", set()), ("VL-LIC", {"Photographs"}), ("ImageCaptioner²", {"Photographs", "Judge"})):
        page = opened("Table", collection=DEMO, seeds="1", metrics=metric)
        assert {box.label for box in page.selectbox} & {"Photographs", "Judge"} == boxes
    assert "is not known here" in html(opened("Table", collection=DEMO, seeds="1", metrics=metric, judge="self"))


def test_captions_with_a_photograph_are_listed_alone_and_a_missing_one_is_said(workspace):
    load_demo(workspace)
    score(workspace, DEMO, ("amplifier",), metrics=("ratio",))
    page = opened("Captions", collection=DEMO, with_photograph="1")
    images = [table.value["image"] for table in page.dataframe if "image" in table.value][0]
    photographs = set(workspace.frame(workspace.items("photographs", DEMO)[0].hash)["image_id"])
    assert set(images) == photographs and len(page.image) == 1
    (item,) = [item for item in workspace.items("captions", DEMO) if item.name == "amplifier"]
    other = next(image for image in workspace.frame(item.hash)["image_id"] if image not in photographs)
    page = opened("Captions", collection=DEMO, image=other)
    assert not page.image and "No photograph of this image; 8 images have one" in html(page)

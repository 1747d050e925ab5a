"""The Runs dialog, runs that pages start, and what pages show of photographs."""

from __future__ import annotations

import pytest

from capbias_core.runs.engine import Expected, engine_for
from capbias_core.runs.plan import plan
from capbias_core.workspace.ingest import DEMO, load_demo
from capbias_core.workspace.store import Workspace
from pages.ui import runs
from tests.app import html, opened
from tests.pages.synthetic import fill as fill_words
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
    expected = Expected({run.run_id: 1.0 for run in queued.runs()}, 3.0)
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


def test_words_that_the_answer_lacks_are_one_click(workspace):
    fill(workspace.folder, models=MODELS)
    score(workspace, captioners=MODELS, attribute="group", metrics=("lic",), human="", words=False)
    page = opened("Answer")
    assert "words_chart" not in str(page)
    page.button(key="score_read").click().run()
    engine_for(str(workspace.folder)).wait([run.run_id for run in workspace.runs()])
    assert "words_chart" in str(opened("Answer"))


def test_the_metrics_of_photographs_are_offered_where_there_are_some(workspace):
    fill_words(workspace)
    load_demo(workspace)
    for collection, offered in ((DEMO, True), ("c", False)):
        page = opened("Table", collection=collection)
        (metrics,) = [box for box in page.multiselect if box.label == "Metrics"]
        assert ("VL-LIC" in metrics.options) == offered

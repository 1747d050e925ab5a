"""The Runs page: all runs are cancelled, and all that did not finish repeated, with a click each; runs that other pages
show and start."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from capbias_core.attributes import plain_attribute
from capbias_core.runs.durations import Expected
from capbias_core.runs.engine import Engine, engine_for
from capbias_core.runs.plan import Request, plan
from capbias_core.workspace.labels import mapping_details
from capbias_core.workspace.store import Workspace
from pages.ui import running

ROOT = Path(__file__).resolve().parents[2]
MODELS = ("a", "b", "c")


@pytest.fixture
def workspace(tmp_path, monkeypatch) -> Workspace:
    """Three runs that another process has queued, and the page's workspace."""
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path))
    monkeypatch.chdir(ROOT)
    found = Workspace(tmp_path)
    labels = pd.DataFrame({"image_id": list(map(str, range(40))), "label": ["A", "B"] * 20})
    details = {"group": mapping_details(plain_attribute("group", ("A", "B")), "label", {"A": "A", "B": "B"})}
    found.keep("attributes", "labels", labels, "c", "test", {"attributes": details})
    for model in MODELS:
        frame = labels[["image_id"]].assign(caption_index=0, caption=[f"{model} of {own}" for own in labels["label"]])
        found.keep("captions", model, frame, "c", "test")
    for spec in plan(found, Request("c", MODELS, "labels", "group", ("lic",), seeds=2)):
        found.enqueue(spec, "c", "of another process")
    return found


def runs_page() -> AppTest:
    return AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/11_Runs.py").run()


def states(workspace: Workspace) -> list[str]:
    return [run.status for run in workspace.runs()]


def notes(page: AppTest) -> str:
    return " ".join(element.proto.body for element in page.get("html"))


@pytest.mark.long
def test_all_runs_are_cancelled_and_repeated_with_a_click_each(workspace):
    page = runs_page()
    assert not page.exception and "3 runs: 0 running, 3 waiting" in notes(page)
    assert [button.label for button in page.button if button.key == "cancel_all"] == ["Cancel all 3"]
    page.button(key="cancel_all").click().run()
    assert states(workspace) == ["cancelled"] * 3
    assert "3 runs did not finish (3 cancelled)" in notes(page) and "No run is under way" in notes(page)
    assert page.button(key="repeat_all").label == "Repeat all 3"
    page.button(key="repeat_all").click().run()
    engine: Engine = engine_for(str(workspace.folder))
    assert [run.status for run in engine.wait([run.run_id for run in workspace.runs()])] == ["finished"] * 3
    page.run()
    assert "did not finish" not in notes(page)
    assert not {button.key for button in page.button} & {"cancel_all", "repeat_all"}


@pytest.mark.long
def test_one_run_has_its_own_button_alone(workspace):
    first, *others = workspace.runs()
    for run in others:
        workspace.end(run.run_id, "failed", "broken")
    page = runs_page()
    assert f"cancel_{first.run_id}" in {button.key for button in page.button}
    assert "cancel_all" not in {button.key for button in page.button} and "(2 failed)" in notes(page)


@pytest.mark.long
def test_a_page_says_what_is_to_come_and_is_drawn_anew_when_a_run_ends(workspace, monkeypatch):
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    (bar,) = page.get("progress")
    assert re.match(r"3 runs to come, about \d+ s left · ", bar.proto.text.replace("\\", ""))
    first, *_ = workspace.runs()
    workspace.end(first.run_id, "failed", "broken")
    drawn = []
    monkeypatch.setattr(running.st, "rerun", lambda: drawn.append("anew"))
    monkeypatch.setattr(running.st, "progress", lambda *_args, **_more: None)
    engine, seconds = engine_for(str(workspace.folder)), {run.run_id: 1.0 for run in workspace.runs()}
    running._poll.__wrapped__(engine, None, Expected(seconds, 3.0, False))
    assert drawn == ["anew"], "one of three runs ended"


@pytest.mark.long
def test_the_front_page_finds_the_words_that_it_lacks_with_a_click(workspace):
    engine = engine_for(str(workspace.folder))
    engine.cancel_all()
    engine.repeat_all()
    engine.wait([run.run_id for run in workspace.runs()])
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    assert not page.exception and "No words yet for" in notes(page)
    assert "1 run: 0 done, 1 to do; about" in notes(page)
    page.button(key="words_now").click().run()
    engine.wait([run.run_id for run in workspace.runs()])
    page.run()
    assert not page.exception and "Click a word to read the captions with it" in notes(page)

"""What pages remember: never what was true before a run ended or an item went."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from capbias_core.runs.engine import Engine
from capbias_core.workspace.store import Workspace
from tests.runs.test_engine import fill, submit

testing = pytest.importorskip("streamlit.testing.v1")

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("app.py", "pages/2_Scores.py", "pages/6_Encoders.py")


def shown(page: str) -> list[str]:
    """The texts, tables and charts of a page, opened anew."""
    opened = testing.AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    opened.query_params["seeds"] = "2"
    opened = (opened if page == "app.py" else opened.switch_page(page)).run()
    assert not opened.exception
    texts = [own.proto.body for own in opened.get("html")]
    charts = [own.proto.spec for own in opened.get("plotly_chart")]
    return texts + [own.value.to_csv() for own in opened.dataframe] + charts


def test_pages_follow_what_runs_end_and_which_items_go(tmp_path, monkeypatch):
    import streamlit as st

    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path))
    request, engine = fill(tmp_path, models=("m", "other")), Engine(tmp_path)

    def one_run() -> None:
        engine.wait(submit(engine, replace(request, captions=("m",))))

    def another_run() -> None:
        engine.wait(submit(engine, request))

    def an_item_goes() -> None:
        workspace = Workspace(tmp_path)
        workspace.delete(workspace.item("captions", "other", "c"))

    earlier = {page: shown(page) for page in PAGES}
    for change in (one_run, another_run, an_item_goes):
        change()
        now = {page: shown(page) for page in PAGES}
        assert {page: own != earlier[page] for page, own in now.items()} == dict.fromkeys(PAGES, True), change.__name__
        st.cache_resource.clear()
        assert now == {page: shown(page) for page in PAGES}
        earlier = now

"""What pages remember: never what was true before a run ended or an item went."""

from __future__ import annotations

from dataclasses import replace

import pytest
import streamlit as st

from capbias_core.runs.engine import Engine
from capbias_core.workspace.store import Workspace
from tests.app import html, opened
from tests.runs.test_engine import fill, submit

pytestmark = pytest.mark.long

VIEWS = ("Answer", "Table", "Encoder sensitivity")


def everything(view: str) -> list[str]:
    """The texts, tables and charts of a page, opened anew."""
    page = opened(view, seeds="2")
    charts = [chart.proto.spec for chart in page.get("plotly_chart")]
    return [html(page), *(table.value.to_csv() for table in page.dataframe), *charts]


def test_pages_follow_what_runs_end_and_which_items_go(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path))
    request, engine = fill(tmp_path, models=("m", "other")), Engine(tmp_path)

    def one_run() -> None:
        engine.wait(submit(engine, replace(request, captions=("m",))))

    def another_run() -> None:
        engine.wait(submit(engine, request))

    def an_item_goes() -> None:
        workspace = Workspace(tmp_path)
        workspace.delete(workspace.item("captions", "other", "c"))

    earlier = {view: everything(view) for view in VIEWS}
    for change in (one_run, another_run, an_item_goes):
        change()
        now = {view: everything(view) for view in VIEWS}
        assert {view: own != earlier[view] for view, own in now.items()} == dict.fromkeys(VIEWS, True), change.__name__
        st.cache_resource.clear()
        assert now == {view: everything(view) for view in VIEWS}
        earlier = now

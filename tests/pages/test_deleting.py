"""Deleting what a page named, and nothing else, whatever another visitor has done since it was drawn."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from capbias_core.workspace.store import Item, Workspace

ROOT = Path(__file__).resolve().parents[2]


def keep(workspace: Workspace, name: str) -> Item:
    captions = [f"{name} of {place}" for place in range(4)]
    frame = pd.DataFrame({"image_id": list("abcd"), "caption_index": 0, "caption": captions})
    return workspace.keep("captions", name, frame, "c", "test")


def names(workspace: Workspace) -> set[str]:
    return {item.name for item in workspace.items()}


@pytest.fixture
def workspace(tmp_path, monkeypatch) -> Workspace:
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path))
    monkeypatch.chdir(ROOT)
    found = Workspace(tmp_path)
    keep(found, "victim")
    keep(found, "precious")
    return found


def confirming(workspace: Workspace, name: str) -> AppTest:
    """The Data page with the row of an item selected, before its deletion is confirmed."""
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/1_Data.py").run()
    items = workspace.items()[::-1]
    row = [item.name for item in items].index(name)
    page.session_state[f"kept {len(items)} {items[0].created}"] = {"selection": {"rows": [row], "columns": []}}
    page.run()
    assert not page.exception and any(f"{name} goes from c." in own.proto.body for own in page.get("html"))
    return page


def errors(page: AppTest) -> str:
    return " ".join(own.proto.body for own in page.get("html") if "cb-error" in own.proto.body)


@pytest.mark.long
def test_the_item_that_was_named_is_deleted_though_another_was_kept_meanwhile(workspace):
    page = confirming(workspace, "victim")
    keep(workspace, "new")
    page.button(key="delete").click().run()
    assert names(workspace) == {"precious", "new"} and not page.exception
    assert [own.value for own in page.success] == ["Deleted victim."]


@pytest.mark.long
def test_an_item_that_is_gone_or_has_changed_takes_no_other_along(workspace):
    page = confirming(workspace, "victim")
    workspace.delete(workspace.item("captions", "victim", "c"))
    page.button(key="delete").click().run()
    assert names(workspace) == {"precious"} and not page.exception and not page.success
    assert "victim has changed or is deleted" in errors(page)
    page = confirming(workspace, "precious")
    workspace.delete(workspace.item("captions", "precious", "c"))
    keep(workspace, "precious")  # the same captions, by whoever
    page.button(key="delete").click().run()
    assert names(workspace) == {"precious"} and "precious has changed or is deleted" in errors(page)
    page = confirming(workspace, "precious")
    other = pd.DataFrame({"image_id": ["a"], "caption_index": 0, "caption": ["other words"]})
    workspace.delete(workspace.item("captions", "precious", "c"))
    workspace.keep("captions", "precious", other, "c", "test")
    page.button(key="delete").click().run()
    assert names(workspace) == {"precious"} and "has changed" in errors(page)

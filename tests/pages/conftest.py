"""Workspaces of several tests: an empty one, and one with a scored, an unscored and an unlabelled collection."""

from __future__ import annotations

from pathlib import Path

import pytest

from capbias_core.question import DEFAULT_METRICS
from capbias_core.workspace.store import Workspace
from tests.browser import WINDOW
from tests.pages.synthetic import fill, score


@pytest.fixture(autouse=True)
def here(read_here):
    """No page that is drawn in this process waits for a child; servers have theirs."""


@pytest.fixture(scope="session")
def home(tmp_path_factory) -> Path:
    workspace = Workspace(tmp_path_factory.mktemp("pages"))
    for collection in ("scored", "unscored", "without labels"):
        fill(workspace, collection, labels=collection != "without labels")
    score(workspace, "scored", metrics=DEFAULT_METRICS)
    return Path(workspace.folder)


@pytest.fixture
def workspace(tmp_path, monkeypatch) -> Workspace:
    """An empty workspace, which the pages show."""
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path / "home"))
    return Workspace(tmp_path / "home")


@pytest.fixture(scope="module")
def context(chrome):
    """What windows share, so that only the first one loads Streamlit's scripts; with the requests to other machines."""
    made = chrome.new_context(**WINDOW)
    made.outside = []
    near = ("http://127.0.0.1", "https://127.0.0.1", "data:", "blob:")
    made.on("request", lambda request: None if request.url.startswith(near) else made.outside.append(request.url))
    yield made
    made.close()


@pytest.fixture
def window(context):
    """A new browser window; a request that leaves this machine fails the test."""
    page = context.new_page()
    yield page
    page.close()
    assert context.outside == []

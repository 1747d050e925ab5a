"""The Scores page asks which photographs a judge sees, and which judge, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from capbias_core.workspace.ingest import DEMO, load_demo
from capbias_core.workspace.store import Workspace
from tests.browser import open_page, server

pytestmark = pytest.mark.browser

JUDGE_BOXES = ("Photographs", "Judge", "Prompt")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    load_demo(Workspace(home))
    with server(home) as (address, _):
        yield address


@pytest.fixture(scope="module")
def page(chrome):
    return chrome.new_page(viewport={"width": 1280, "height": 1600})


def opened(page, address: str, metric: str, more: str = "") -> None:
    open_page(page, f"{address}/Scores?collection={DEMO}&seeds=1&metrics={metric}{more}")


def asks_for(page, *names: str) -> None:
    """Of JUDGE_BOXES, the page has these, once each, and no other."""
    if len(names) > 1:
        page.get_by_text("More choices").click()
    for name in JUDGE_BOXES:
        expect(page.get_by_role("combobox", name=name, exact=True)).to_have_count(int(name in names))


@pytest.mark.slow
def test_a_judge_is_chosen_where_one_is_asked_for(page, address):
    opened(page, address, "LIC")
    asks_for(page)
    opened(page, address, "VL-LIC")
    asks_for(page, JUDGE_BOXES[0])
    opened(page, address, "ImageCaptioner%C2%B2")
    asks_for(page, *JUDGE_BOXES)
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()


def test_a_captioner_that_is_not_known_is_said_to_be(page, address):
    opened(page, address, "ImageCaptioner%C2%B2", "&judge=self")
    expect(page.get_by_text("is not known here")).to_be_visible()

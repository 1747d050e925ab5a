"""The Scores page asks which photographs a judge sees, and which judge, in a real browser."""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import expect

from capbias_core.experiments.ingest import DEMO, load_demo
from capbias_core.experiments.store import Workspace
from tests.browser import browser, chromium, open_page, server

pytestmark = pytest.mark.browser

JUDGE_BOXES = ("Photographs that the judge sees", "Judge", "Prompt")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    load_demo(Workspace(home))
    with server(home) as (address, _):
        yield address


@pytest.fixture(scope="module")
def page():
    if not chromium():
        if os.environ.get("CAPBIAS_REQUIRE_BROWSER"):
            pytest.fail("CAPBIAS_REQUIRE_BROWSER is set, but there is no Chromium")
        pytest.skip("no Chromium on this machine; install it with: apt-get install chromium")
    with browser() as running:
        yield running.new_page(viewport={"width": 1280, "height": 1600})


def opened(page, address: str, metric: str, more: str = "") -> None:
    open_page(page, f"{address}/Scores?collection={DEMO}&seeds=1&metrics={metric}{more}")


def boxes(page) -> list[int]:
    """How often the page has each of JUDGE_BOXES."""
    return [page.get_by_role("combobox", name=name, exact=True).count() for name in JUDGE_BOXES]


def test_a_judge_is_chosen_where_one_is_asked_for(page, address):
    opened(page, address, "LIC")
    assert boxes(page) == [0, 0, 0]
    opened(page, address, "VL-LIC")
    assert boxes(page) == [1, 0, 0]
    opened(page, address, "ImageCaptioner%C2%B2")
    assert boxes(page) == [1, 1, 1]
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()


def test_a_captioner_that_is_not_known_is_said_to_be(page, address):
    opened(page, address, "ImageCaptioner%C2%B2", "&judge=self")
    expect(page.get_by_text("which is not known here")).to_be_visible()

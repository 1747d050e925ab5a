"""Present mode: one caption or one chart alone, its state in the address, and the way through the captions and out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from capbias_core.runs.engine import execute
from capbias_core.runs.plan import Request, plan
from capbias_core.workspace.store import Workspace
from tests.browser import server

pytestmark = pytest.mark.long
testing = pytest.importorskip("streamlit.testing.v1")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    from tests.pages.test_links import fill

    workspace = Workspace(tmp_path_factory.mktemp("presented"))
    fill(workspace, "scored")
    request = Request("scored", ("first",), "labels", "gender", ("lic",), "human", seeds=1, words=True)
    for spec in plan(workspace, request):
        assert workspace.enqueue(spec, "scored", "t")
        execute(str(workspace.folder), spec.run_id, "t")
    return Path(workspace.folder)


def opened(home: Path, monkeypatch, file: str, **query: str):
    monkeypatch.setenv("CAPBIAS_HOME", str(home))
    page = testing.AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for key, value in query.items():
        page.query_params[key] = value
    return page.switch_page(file).run()


def said(page, key: str) -> str:
    """What the address says of a key."""
    found = page.query_params[key]
    return found[-1] if isinstance(found, list) else found


def heading(page) -> str:
    (found,) = [own.value for own in page.html if own.value.startswith("<h1>")]
    return found


def test_the_arrow_keys_go_through_the_captions_of_the_page(home, monkeypatch):
    """In the order in which the page lists them; an end has no step further."""
    page = opened(home, monkeypatch, "pages/3_Captions.py", captioner="first")
    images = page.dataframe[0].value["image"].tolist()
    page.button(key="present_button").click().run()
    assert not page.exception and said(page, "present") == "1" and not len(page.dataframe)
    assert f"first, image {images[0]} (1 of " in heading(page) and page.button(key="present_Left").disabled
    assert any("cb-large" in own.value and "Labelled" in own.value for own in page.html)
    page.button(key="present_Right").click().run()
    page.button(key="present_Right").click().run()
    page.button(key="present_Left").click().run()
    assert f"image {images[1]} (2 of " in heading(page) and said(page, "at") == "2"
    page.button(key="present_leave").click().run()
    assert not page.exception and said(page, "present") == "0" and len(page.dataframe)
    assert said(page, "image") == images[1], "the page shows the image that was presented"


def test_a_link_opens_on_the_caption_of_an_image(home, monkeypatch):
    listed = opened(home, monkeypatch, "pages/3_Captions.py", captioner="first")
    third = listed.dataframe[0].value["image"].iloc[2]
    page = opened(home, monkeypatch, "pages/3_Captions.py", captioner="first", image=third, present="1")
    assert f"image {third} (3 of " in heading(page)
    beyond = opened(home, monkeypatch, "pages/3_Captions.py", captioner="first", at="99999", present="1")
    assert not beyond.exception and beyond.button(key="present_Right").disabled


def test_a_chart_is_presented_alone(home, monkeypatch):
    page = opened(home, monkeypatch, "pages/6_Encoders.py", present="1")
    assert not page.exception and not len(page.dataframe)
    assert len(page.get("plotly_chart")) == 1 and "One encoder cannot show" in heading(page)
    front = opened(home, monkeypatch, "app.py", present="1")
    assert not front.exception and "LIC" in heading(front) and not front.expander


@pytest.mark.browser
def test_the_way_out_stays_in_view_where_the_caption_is_higher_than_the_window(home, chrome):
    context = chrome.new_context(viewport={"width": 500, "height": 300})
    window = context.new_page()
    with server(home) as (address, _):
        window.goto(f"{address}/Captions?collection=scored&present=1")
        window.get_by_text(re.compile(r"Female\s\d+%")).first.wait_for()
        assert window.evaluate(
            "(own => own.scrollHeight > own.clientHeight)(document.querySelector('.st-key-presented'))"
        )
        expect(window.get_by_role("button", name="Leave")).to_be_in_viewport(ratio=1)
    context.close()

"""What a user does, in a real browser on a real server."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from capbias_core.workspace.store import Workspace
from tests.app import TABS, VIEWS
from tests.browser import choose, open_page, server, settled
from tests.pages.synthetic import fill
from tests.pages.test_servers import session, upload
from tests.runs.test_engine import until

pytestmark = [pytest.mark.browser, pytest.mark.long]
expect.set_options(timeout=30_000)

HOSTILE = (
    '<iframe srcdoc="<script>parent.pwned = 1</script>"></iframe> ![pixel](https://example.com/pixel.png) with a cat '
    "<img src=x onerror='window.pwned = 1'> $\\frac{1}{2}$ [link](https://example.com)"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory, home):
    """A server, on a copy of the workspace: its address, its process and the workspace."""
    folder = shutil.copytree(home, tmp_path_factory.mktemp("served") / "home")
    with server(folder) as (address, process):
        yield SimpleNamespace(address=address, process=process, workspace=Workspace(folder))


@pytest.fixture
def address(served) -> str:
    return served.address


def query_of(window) -> dict[str, list[str]]:
    return parse_qs(urlsplit(window.url).query, keep_blank_values=True)


def to_page(window, title: str) -> None:
    window.locator(".st-key-pages").get_by_role("link", name=title).click()
    arrived(window, title)


def arrived(window, title: str) -> None:
    """The page is drawn without a failure."""
    window.wait_for_function("title => document.title.startsWith(title)", arg=title)
    settled(window)
    assert window.locator("[data-testid=stException], .cb-error").all_inner_texts() == []


def back(window, title: str) -> None:
    """To the page before: a page that writes its choices into the address is one more step of Streamlit's history."""
    for _ in range(2):
        if not window.title().startswith(title):
            window.go_back()
            settled(window)
    arrived(window, title)


def to_tab(window, tab: str) -> None:
    window.get_by_role("radio", name=tab, exact=True).click()
    window.wait_for_url(re.compile(f"tab={re.escape(tab).replace(chr(92) + ' ', '[+]')}"))
    settled(window)


def drop(window, *files: Path) -> None:
    settled(window)
    window.locator("input[type=file]").first.set_input_files([str(path) for path in files])
    window.get_by_role("heading", name=re.compile("^2 · ")).or_(window.locator(".cb-error")).first.wait_for()
    settled(window)


def assert_harmless(window) -> None:
    assert window.evaluate("window.pwned") is None
    assert window.locator("iframe[srcdoc], img[src*='example.com'], img[src='x'], a[href*='example.com']").count() == 0


def loads_torch(process) -> bool:
    return "libtorch" in Path(f"/proc/{process.pid}/maps").read_text()


@pytest.mark.slow
def test_collection_and_choices_stay_from_page_to_page(window, address):
    """By the line of pages; back; a reload; arrow keys; a link in a second window."""
    open_page(window, f"{address}/?collection=without+labels")
    for title in ("Scores", "Images"):
        to_page(window, title)
        assert query_of(window)["collection"] == ["without labels"]
    back(window, "Scores")
    open_page(window, address)
    assert query_of(window)["collection"] == ["scored"], "it opens on what has an answer"
    to_page(window, "Captions")
    choose(window, "Captioner", "second")
    window.wait_for_url(re.compile("captioner=second"))
    window.get_by_role("textbox", name="Search").fill("f1")
    window.keyboard.press("Enter")
    window.wait_for_url(re.compile("q=f1"))
    settled(window)
    listed, link = window.get_by_text(re.compile(r" on \d+ of \d+ images")), window.url
    seen = listed.inner_text()
    window.reload()
    arrived(window, "Captions")
    assert window.url == link and listed.inner_text() == seen
    heading = window.get_by_role("heading", name=re.compile(r"^Image \d"))
    first = heading.inner_text()
    expect(window.get_by_role("button", name="Next")).to_be_enabled()
    for key, same in (("ArrowRight", False), ("ArrowLeft", True)):
        window.keyboard.press(key)
        (expect(heading).to_have_text if same else expect(heading).not_to_have_text)(first)
        settled(window)
    reader = window.context.new_page()
    open_page(reader, window.url)
    assert reader.get_by_text(re.compile(r" on \d+ of \d+ images")).inner_text() == seen
    assert query_of(reader) == query_of(window)
    reader.close()
    to_tab(window, "Objects")
    assert query_of(window)["captioner"] == ["second"] and "q" not in query_of(window)


BARRIERS = "rules => axe.run(document, {...rules, resultTypes: ['violations']}).then(found => found.violations)"
UPLOADER = "stFileUploader"
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}


@pytest.mark.parametrize("views", [("Answer", "Captions"), pytest.param(VIEWS, marks=pytest.mark.slow)])
def test_no_page_or_tab_has_a_barrier_in_either_theme(window, address, views):
    """By all of axe-core's rules in one theme, and those of colours in the other; but for Streamlit's uploader."""
    from axe_playwright_python.sync_playwright import Axe

    found = []
    open_page(window, f"{address}/Data?collection=scored")
    window.evaluate(Axe().axe_script)  # once: the browser loads no other page
    for view in views:
        title = next((title for title, tabs in TABS.items() if view in tabs), view)
        if view in (title, TABS.get(title, ("",))[0]):
            to_page(window, title)
        else:
            to_tab(window, view)
        for theme, rules in (("light", {}), ("dark", COLOURS)):
            window.emulate_media(color_scheme=theme)
            settled(window)
            broken = {rule["id"]: [each["html"] for each in rule["nodes"]] for rule in window.evaluate(BARRIERS, rules)}
            found += [(view, theme, rule, html) for rule in broken for html in broken[rule] if UPLOADER not in html]
    assert found == []


def test_a_server_without_sign_in_takes_uploads_of_open_sessions_only(served):
    with session(served.address, path="Data") as (own, elements):
        assert "without labels" in str(elements), "the collections"
        assert upload(served.address, own) == 204 and upload(served.address, "nobody") == 400


def test_from_files_to_the_answer_and_its_words(window, served, tmp_path):
    """Drop, Save, the answer, a word, a caption. Captions with markup are only shown."""
    who = ("a woman", "a man")
    texts = {
        "first.json": [f"{who[n % 2]} {HOSTILE} {('here', 'there')[n % 2]}" for n in range(60)],
        "second.json": [f"{who[n % 2]} {HOSTILE}" for n in range(60)],
        "human captions.json": [f"{who[n % 2]} stands {at}" for n in range(60) for at in ("up", "still")],
    }
    for name, captions in texts.items():
        each = len(captions) // 60
        rows = [{"image_id": number // each, "caption": text} for number, text in enumerate(captions)]
        human = [{"id": number} | row for number, row in enumerate(rows)]
        (tmp_path / name).write_text(json.dumps(rows if each == 1 else {"images": [], "annotations": human}))
    labels = [f"{n},{('Female', 'Male')[n % 2]}" for n in range(60)]
    (tmp_path / "labels.csv").write_text("\n".join(["image_id,gender", *labels]))
    open_page(window, f"{served.address}/Data?collection=mine")
    drop(window, *(tmp_path / name for name in (*texts, "labels.csv")))
    assert_harmless(window)
    window.get_by_role("button", name="Save", exact=True).click()
    words = window.locator(".st-key-words_chart button")
    words.first.wait_for(timeout=120_000)
    arrived(window, "Answer")
    assert query_of(window)["collection"] == ["mine"]
    kinds = {item.name: item.kind for item in served.workspace.items(collection="mine")}
    captions = dict.fromkeys(("first", "second"), "captions")
    assert kinds == {"labels": "labels", "human captions": "references"} | captions
    assert_harmless(window)
    words.last.press("Enter")
    window.wait_for_url(re.compile("line="))
    (word,) = query_of(window)["line"]
    window.get_by_role("heading", name=f"with “{word}”").wait_for()
    assert_harmless(window)
    assert not loads_torch(served.process)


@pytest.mark.slow
@pytest.mark.torch
def test_a_run_is_followed_cancelled_and_resumed_in_the_runs_dialog(window, tmp_path):
    home = tmp_path / "home"
    fill(Workspace(home))
    workspace = Workspace(home)

    def run():
        return workspace.runs()[0]

    with server(home) as (address, process):
        asked = "attacker_=lstm_bi&seeds__lstm_bi=1&sets=first&compared_with=none&metrics_=lic"
        open_page(window, f"{address}/Scores?collection=c&{asked}")
        window.get_by_role("button", name="Run", exact=True).click()
        until(lambda: workspace.runs() and "epoch" in run().message, 240)
        window.get_by_test_id("stProgress").first.wait_for()
        to_page(window, "Data")  # the page stays usable meanwhile
        window.get_by_role("button", name="Runs", exact=True).click()
        dialog = window.get_by_role("dialog")
        dialog.get_by_text(re.compile("epoch")).first.wait_for()
        window.wait_for_url(re.compile("runs=1"))
        window.reload()
        dialog.get_by_text(re.compile("epoch")).first.wait_for()
        assert run().status == "running"
        dialog.get_by_role("button", name="Cancel").click()
        until(lambda: run().status == "cancelled", 30)
        open_page(window, f"{address}/?runs=1&run={run().run_id}")
        dialog.get_by_role("button", name="Re-run").click()
        until(lambda: run().status == "running" and "epoch" in run().message, 120)
        dialog.get_by_role("button", name="Cancel").click()
        assert workspace.results().empty and not loads_torch(process)

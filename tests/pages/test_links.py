"""Links that one can trust: the same collection and view from page to page, after a reload, a way back, a new one."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect

from benchmarks.statistics.synthetic import Design, draw
from capbias_core.api import DEFAULT_METRICS
from capbias_core.runs.engine import execute
from capbias_core.runs.plan import Request, plan
from capbias_core.workspace.store import Workspace
from pages.ui.frame import navigation
from tests.browser import ROOT, choose, open_page, server, settled
from tests.collections_ import keep

pytestmark = [pytest.mark.browser, pytest.mark.long]

PAGES = [title for _, title, _ in navigation()]
COLLECTIONS = ("scored", "unscored", "without labels")
# Pages that are not about one collection show none, and keep it for the next.
EVERYWHERE = ("Data", "Attributes", "Runs")
IMAGES = 300


def fill(workspace: Workspace, collection: str) -> None:
    """Two captioners, human captions and, but for one collection, labels."""
    drawn = draw(Design(), IMAGES, len(collection), captioners=2)  # others, or they would share their runs
    ids = np.arange(IMAGES).astype(str)

    def captions(texts: list[str]) -> pd.DataFrame:
        whole = [
            f"{text} {('a woman', 'a man')[label]} with a dog" for text, label in zip(texts, drawn.labels, strict=True)
        ]
        return pd.DataFrame({"image_id": ids, "caption": whole})

    sets = {name: captions(texts) for name, texts in zip(("first", "second"), drawn.models, strict=True)}
    table = pd.DataFrame({"image_id": ids, "gender": np.where(drawn.labels == 1, "Male", "Female")})
    human = pd.concat(map(captions, drawn.humans[:2]))
    keep(
        workspace, collection, captions=sets, references=human, labels=None if collection == "without labels" else table
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """Three collections, of which one is scored."""
    workspace = Workspace(tmp_path_factory.mktemp("links"))
    for collection in COLLECTIONS:
        fill(workspace, collection)
    request = Request("scored", ("first", "second"), "labels", "gender", DEFAULT_METRICS, "human", words=True)
    for spec in plan(workspace, request):
        assert workspace.enqueue(spec, "scored", "t")
        execute(str(workspace.folder), spec.run_id, "t")
    return Path(workspace.folder)


@pytest.fixture(scope="module")
def address(home):
    with server(home) as (found, _):
        yield found


@pytest.fixture
def window(chrome):
    context = chrome.new_context(viewport={"width": 1280, "height": 1000})
    yield context.new_page()
    context.close()


def path_of(title: str) -> str:
    return "" if title == "Answer" else title.replace(" ", "_")


def query_of(window) -> dict[str, list[str]]:
    return parse_qs(urlsplit(window.url).query, keep_blank_values=True)


def check(window, title: str, collection: str) -> None:
    """The page of this title, about this collection, without a failure."""
    settled(window)
    failure = window.get_by_test_id("stException")
    assert failure.count() == 0, failure.first.inner_text()
    assert window.get_by_text("This app has encountered an error").count() == 0
    assert window.locator(".cb-error").count() == 0, window.locator(".cb-error").first.inner_text()
    assert title in window.title()
    assert query_of(window).get("collection") == [collection], window.url
    if title not in EVERYWHERE:
        picker = window.get_by_test_id("stSidebar").get_by_role("combobox", name="Collection")
        expect(picker).to_have_value(collection)


def by_sidebar(window, title: str) -> None:
    window.get_by_test_id("stSidebar").get_by_role("link", name=title).click()
    window.wait_for_function("title => document.title.startsWith(title)", arg=title)


def by_link(window, address: str, title: str, collection: str) -> None:
    open_page(window, f"{address}/{path_of(title)}?collection={collection.replace(' ', '+')}")


@pytest.mark.parametrize("collection", ["scored", pytest.param("without labels", marks=pytest.mark.slow)])
def test_every_page_keeps_the_collection_of_a_link(window, address, collection):
    """Round by sidebar, from a link to the front page; then back once."""
    by_link(window, address, "Answer", collection)
    for title in [*PAGES[1:], "Answer"]:
        by_sidebar(window, title)
        check(window, title, collection)
    window.go_back()
    window.wait_for_function("title => document.title.startsWith(title)", arg=PAGES[-1])
    check(window, PAGES[-1], collection)


@pytest.mark.slow
@pytest.mark.parametrize("collection", COLLECTIONS)
@pytest.mark.parametrize("first", PAGES)
def test_every_page_leads_to_every_other(window, address, first, collection):
    for title in PAGES:
        by_link(window, address, first, collection)
        check(window, first, collection)
        by_sidebar(window, title)
        check(window, title, collection)


@pytest.mark.parametrize(
    ("start", "collection", "button", "end"),
    [
        ("Answer", "scored", "Load captions", "Data"),
        ("Answer", "scored", "Try a caption", "Captions"),
        pytest.param("Answer", "without labels", "Load what is missing", "Data", marks=pytest.mark.slow),
        ("Data", "scored", "See the answer", "Answer"),
        pytest.param("Scores", "without labels", "Load what is missing", "Data", marks=pytest.mark.slow),
        pytest.param("Captions", "unscored", "Score these captions", "Captions", marks=pytest.mark.slow),
        pytest.param("Data", "unscored", "Score now", "Answer", marks=pytest.mark.slow),
        pytest.param("Objects", "without labels", "Load what is missing", "Data", marks=pytest.mark.slow),
        pytest.param("Alignment", "scored", "Keep word vectors", "Data", marks=pytest.mark.slow),
        pytest.param("Alignment", "without labels", "Load what is missing", "Data", marks=pytest.mark.slow),
    ],
)
def test_every_button_leads_on_in_the_same_collection(window, address, start, collection, button, end):
    by_link(window, address, start, collection)
    main = window.get_by_test_id("stMain")
    main.get_by_role("button", name=button).or_(main.get_by_role("link", name=button)).first.click()
    window.wait_for_function("title => document.title.startsWith(title)", arg=end)
    check(window, end, collection)


def test_back_from_where_a_button_led_is_the_view_that_was_left(window, address):
    by_link(window, address, "Alignment", "scored")
    choose(window, "Captioner in the answer", "second")
    window.wait_for_url(re.compile("primary=second"))
    settled(window)
    left = window.url
    window.get_by_test_id("stMain").get_by_role("button", name="Keep word vectors").click()
    window.wait_for_function("document.title.startsWith('Data')")
    settled(window)
    window.go_back()
    window.wait_for_function("document.title.startsWith('Alignment')")
    check(window, "Alignment", "scored")
    assert window.url == left


def test_a_link_is_the_same_view_after_a_reload_and_when_a_collection_came(window, chrome, address, home):
    """Another captioner and word are chosen; the address alone says so to a second reader, and nothing is a default."""
    by_link(window, address, "Captions", "scored")
    window.get_by_test_id("stSidebar").get_by_role("textbox", name="With the word").fill("f1")
    window.keyboard.press("Enter")
    window.wait_for_url(re.compile("word=f1"))
    settled(window)
    listed = re.compile(r"captions of \w+\..* Select")
    seen, link = window.get_by_text(listed).inner_text(), window.url
    assert {"collection", "by", "captioner", "against", "sort", "group", "word", "image", "page"} <= set(
        query_of(window)
    )
    window.reload()
    window.wait_for_selector("h1")
    check(window, "Captions", "scored")
    assert window.url == link and window.get_by_text(listed).inner_text() == seen

    workspace = Workspace(home)
    fill(workspace, "a first one")
    other = chrome.new_context(viewport={"width": 1280, "height": 1000})
    try:
        reader = other.new_page()
        open_page(reader, link)
        check(reader, "Captions", "scored")
        assert reader.get_by_text(listed).inner_text() == seen and query_of(reader) == query_of(window)
    finally:
        other.close()
        for item in workspace.items(collection="a first one"):
            workspace.delete(item)


def test_a_link_that_names_what_is_gone_says_so(window, address):
    open_page(window, f"{address}/Scores?collection=scored&sets=first&sets=nobody&attribute=hair")
    for what in ("the captioner 'nobody'", "the attribute 'hair'"):
        window.get_by_text(what).wait_for()
    assert query_of(window)["sets"] == ["first"] and query_of(window)["attribute"] == ["gender"]


def test_the_front_page_opens_on_an_answer_and_lists_every_collection(window, address, home):
    """The newest collection is not scored; the page opens on the one that is."""
    assert Workspace(home).collections()[0] != "scored"
    open_page(window, address)
    check(window, "Answer", "scored")
    listed = window.locator(".cb-rows", has_text="without labels").inner_text().split("\n")
    rows = {name: listed[place + 1 : place + 5] for place, name in enumerate(listed) if name in COLLECTIONS}
    assert rows == {
        "without labels": ["first, second", "none", "human", "not yet"],
        "unscored": ["first, second", "gender", "human", "not yet"],
        "scored": ["first, second", "gender", "human", "yes"],
    }
    window.locator(".cb-rows").get_by_role("link", name="unscored").click()
    window.get_by_text("nothing is scored").wait_for()
    check(window, "Answer", "unscored")


@pytest.mark.parametrize("collection", ["unscored", "without labels"])
def test_no_page_fails_where_little_is_known(home, monkeypatch, collection):
    testing = pytest.importorskip("streamlit.testing.v1")
    monkeypatch.setenv("CAPBIAS_HOME", str(home))
    for file in [ROOT / "app.py", *sorted((ROOT / "pages").glob("[0-9]*.py"))]:
        page = testing.AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        page.query_params["collection"] = collection
        if file.name != "app.py":
            page = page.switch_page(f"pages/{file.name}")
        page.run()
        assert not page.exception and 'class="cb-error"' not in " ".join(own.proto.body for own in page.get("html")), (
            file.name
        )


def test_metrics_without_any_value_have_no_chart(tmp_path, monkeypatch):
    """Captions that name nobody have no ratio."""
    testing = pytest.importorskip("streamlit.testing.v1")
    workspace = Workspace(tmp_path)
    fill(workspace, "nameless")
    for item in workspace.items("captions"):
        own = workspace.frame(item.hash).assign(caption="a dog in the park")
        workspace.keep("captions", item.name, own, "nameless", "drawn")
    for spec in plan(workspace, Request("nameless", ("first",), "labels", "gender", ("ratio",))):
        assert workspace.enqueue(spec, "nameless", "t")
        execute(str(workspace.folder), spec.run_id, "t")
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path))
    page = testing.AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    page.query_params["metrics"] = "ratio"
    page = page.switch_page("pages/2_Scores.py").run()
    assert not page.exception and not page.get("plotly_chart")
    assert "no caption names a value of gender" in " ".join(own.proto.body for own in page.get("html"))


def test_scores_opens_on_what_the_front_page_says(tmp_path, monkeypatch):
    """Scores by three seeds were measured; ten, the default, would open on an empty table."""
    testing = pytest.importorskip("streamlit.testing.v1")
    workspace = Workspace(tmp_path)
    fill(workspace, "scored")
    for spec in plan(workspace, Request("scored", ("first",), "labels", "gender", ("lic",), "human", seeds=3)):
        assert workspace.enqueue(spec, "scored", "t")
        execute(str(workspace.folder), spec.run_id, "t")
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path))
    page = testing.AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/2_Scores.py").run()
    assert not page.exception and page.number_input(key="seeds").value == 3 and len(page.dataframe)


def test_an_edit_is_in_the_link_and_counts_in_every_caption_with_the_word(window, address, home):
    """The captions with the word are counted here by hand. An edit goes along to another image, a rewritten caption
    waits with its own."""
    workspace = Workspace(home)
    written = workspace.frame(workspace.item("captions", "first", "scored").hash)["caption"]
    number = sum("f1" in caption.split() for caption in written)
    open_page(window, f"{address}/Captions?collection=scored&captioner=first&word=f1&edit=f1+%E2%86%92+f2+|+unheard")
    window.get_by_text(f"f1 → f2 in {number} captions of first: mean probability of Female").wait_for()
    window.get_by_text("No attacker has seen unheard: only the loss of f1 counts.").wait_for()
    window.reload()
    window.get_by_text(f"f1 → f2 in {number} captions of first").wait_for()
    assert query_of(window)["edit"] == ["f1 → f2 | unheard"]
    image = window.get_by_test_id("stSidebar").get_by_role("textbox", name="Image shown")
    edit = window.get_by_role("textbox", name="Edit the caption")
    without = next(place for place, caption in enumerate(written) if "f1" not in caption.split())
    image.fill(str(without))
    image.press("Enter")
    window.get_by_text("This caption does not have the word f1.").wait_for()
    window.get_by_text(f"f1 → f2 in {number} captions of first").wait_for()
    edit.fill("f2 f3")
    edit.press("Enter")
    window.get_by_text("against the original").wait_for()
    image.fill("7")
    image.press("Enter")
    expect(edit).to_have_value(str(written[7]), timeout=30_000)
    image.fill(str(without))
    image.press("Enter")
    expect(edit).to_have_value("f2 f3", timeout=30_000)


def test_an_unknown_image_and_a_search_without_a_match_are_no_failure(window, address):
    open_page(window, f"{address}/Captions?collection=scored&captioner=first&image=nowhere")
    check(window, "Captions", "scored")
    search = window.get_by_test_id("stSidebar").get_by_role("textbox", name="Search captions or an image id")
    for text, found in (("zzz", "No caption fits these filters."), ("f1", "Select a row"), ("zzz", "No caption fits")):
        search.fill(text)
        search.press("Enter")
        window.get_by_text(found).wait_for()
        check(window, "Captions", "scored")


def test_arrow_keys_go_through_the_captions_but_not_while_one_types(window, address):
    open_page(window, f"{address}/Captions?collection=scored&captioner=first&sort=image+id")
    heading = window.get_by_role("heading", name=re.compile(r"^Image \d"))
    expect(window.get_by_role("button", name="Next")).to_be_enabled()
    for key, image in (("ArrowRight", "1"), ("ArrowRight", "10"), ("ArrowLeft", "1")):
        window.keyboard.press(key)
        expect(heading).to_have_text(f"Image {image}", timeout=30_000)
        settled(window)
    window.get_by_role("textbox", name="Edit the caption").click()
    window.keyboard.press("ArrowRight")
    settled(window)
    expect(heading).to_have_text("Image 1")


# Of the words beside a chart's marks: their text, and how bright they and the page are (WCAG 2, relative luminance).
CHART_WORDS = """() => {
  const lum = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255)
    .map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
  const page = lum(getComputedStyle(document.querySelector('.stApp')).backgroundColor);
  return [...document.querySelectorAll(
    '.js-plotly-plot :is(.xtick, .ytick, .g-xtitle, .g-ytitle, .annotation, .legend) text')]
    .map(text => [text.textContent, lum(getComputedStyle(text).fill), page]);
}"""


def test_no_page_has_a_barrier_in_either_theme(window, address):
    """By axe-core's rules, but for those that Streamlit's own file uploader breaks; and by the contrast of the words of
    charts, which axe-core does not see."""
    from axe_playwright_python.sync_playwright import Axe

    found, words = [], set()
    by_link(window, address, "Answer", "scored")
    for title in [*PAGES[1:], "Answer"]:
        by_sidebar(window, title)
        # Another theme changes colours alone.
        for theme, rules in (
            ("light", None),
            ("dark", {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}),
        ):
            window.emulate_media(color_scheme=theme)
            settled(window)
            for rule in Axe().run(window, options=rules).response["violations"]:
                nodes = [node["html"] for node in rule["nodes"] if "stFileUploader" not in node["html"]]
                found += [f"{title}, {theme}: {rule['id']}: {html[:200]}" for html in nodes]
            for text, *bright in window.evaluate(CHART_WORDS):
                contrast = (max(bright) + 0.05) / (min(bright) + 0.05)
                found += [f"{title}, {theme}: {text!r} has a contrast of {contrast:.1f}"] if contrast < 4.5 else []
                words.add(title)
    assert words >= {"Captions", "Objects", "Scores"}
    assert not found, "\n".join(found)

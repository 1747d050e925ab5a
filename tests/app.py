"""The app in Streamlit's test runner: on a page or tab, with choices in its address, and what it shows."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

# Each run of a test page otherwise reads the metadata of all installed packages, which takes longer than the page.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)

APP = Path(__file__).resolve().parents[1] / "app.py"
TABS = {
    "Data": ("Files", "Labels and attributes", "Models and vectors"),
    "Scores": ("Table", "Where", "Before and after", "Directions", "Encoder sensitivity"),
    "Captions": ("Captions", "Words", "Objects"),
    "Images": ("Experiment", "One photograph", "Prepare"),
}
PAGES = {"Answer": "app.py"} | {
    title: f"pages/{number}_{title}.py" for number, title in enumerate([*TABS, "Published"], start=1)
}
# Each tab, and each page without tabs.
VIEWS = ("Answer", *(tab for tabs in TABS.values() for tab in tabs), "Published")


def _at(page: AppTest, view: str) -> str:
    """The path of the page with a tab, or of this title; the tab is written into the address."""
    for title, tabs in TABS.items():
        if view in tabs:
            page.query_params["tab"] = view
            return PAGES[title]
    return PAGES[view]


def to_tab(page: AppTest, view: str) -> AppTest:
    """The page that has this tab, on it; not run yet."""
    return page.switch_page(_at(page, view)) if view != "Answer" else page


def opened(view: str, **query: str | list[str]) -> AppTest:
    """A page or tab in a fresh session, by a link with these choices."""
    page = AppTest.from_file(str(APP), default_timeout=120)
    for key, value in query.items():
        page.query_params[key] = value
    return without_failure(to_tab(page, view).run())


def went(page: AppTest, view: str) -> AppTest:
    """The same session on another page, by a link that names its tab alone."""
    page.query_params.clear()
    return without_failure(page.switch_page(_at(page, view)).run())


def without_failure(page: AppTest) -> AppTest:
    assert not page.exception, page.exception[0].value
    return page


def html(page: AppTest) -> str:
    return "\n".join(element.proto.body for element in page.get("html"))


def errors(page: AppTest) -> list[str]:
    """The error boxes."""
    return [element.proto.body for element in page.get("html") if 'class="cb-error"' in element.proto.body]


def shown(page: AppTest) -> tuple[list[str], list[str]]:
    """The answers and the tables."""
    boxes = [element.proto.body for element in page.get("html") if 'class="cb-answer"' in element.proto.body]
    return boxes, [table.value.to_csv() for table in page.dataframe]


def chosen(page: AppTest, key: str) -> str:
    """What the address names by a key; the last value of several."""
    value = page.query_params[key]
    return value[-1] if isinstance(value, list) else value

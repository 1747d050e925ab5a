"""The app in Streamlit's test runner, on a page and tab."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

PAGES = {
    "pages/1_Data.py": ("Files", "Labels", "Attributes", "Models and vectors"),
    "pages/2_Scores.py": ("Table", "Directions", "Encoder sensitivity", "Alignment"),
    "pages/3_Captions.py": ("Captions", "Words", "Objects", "Guess yourself"),
    "pages/4_Images.py": ("Experiment", "One photograph", "Prepare"),
}


def to_tab(page: AppTest, tab: str) -> AppTest:
    """The page that has this tab, on it; not run yet."""
    page.query_params["tab"] = tab
    return page.switch_page(next(path for path, tabs in PAGES.items() if tab in tabs))

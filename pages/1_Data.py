"""Data: load files, define attributes, derive and combine labels, models and vectors."""

from __future__ import annotations

from pages.ui import view
from pages.ui.attributes import attributes_tab
from pages.ui.files import files_tab, models_tab
from pages.ui.labels import labels_tab
from pages.ui.page import draw, page

TABS = {"Files": files_tab, "Labels": labels_tab, "Attributes": attributes_tab, "Models and vectors": models_tab}


def main() -> None:
    bar = page("Data")
    TABS[view.tabs(TABS)](bar)


if __name__ == "__main__":  # processes that start import the page, and must not draw it
    draw(main)

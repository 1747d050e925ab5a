"""Data: load files, define attributes, derive and combine labels, models and vectors."""

from __future__ import annotations

from pages.ui import view
from pages.ui.bar import page
from pages.ui.base import draw
from pages.ui.files import files_tab, labels_tab, models_tab
from pages.ui.own_attributes import attributes_tab

TABS = {"Files": files_tab, "Labels": labels_tab, "Attributes": attributes_tab, "Models and vectors": models_tab}


def main() -> None:
    bar = page("Data")
    TABS[view.tabs(TABS)](bar)


if __name__ == "__main__":  # tests import the page, and must not draw it
    draw(main)

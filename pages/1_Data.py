"""Data: load files, labels and attributes, models and vectors."""

from __future__ import annotations

from dataclasses import replace

from capbias_core.workspace.ingest import DEFAULT_COLLECTION
from pages.ui import controls
from pages.ui.attributes import attributes_tab
from pages.ui.entry import draw, page
from pages.ui.files import files_tab, models_tab
from pages.ui.labels import labels_tab
from pages.ui.page import Page


def labels_and_attributes(of_page: Page) -> None:
    labels_tab(of_page)
    attributes_tab(of_page)


TABS = {"Files": files_tab, "Labels and attributes": labels_and_attributes, "Models and vectors": models_tab}


def main() -> None:
    of_page = page("Data", new=DEFAULT_COLLECTION)
    tab = controls.tabs(TABS)
    if tab != "Files" and of_page.collection not in of_page.workspace.collections():
        of_page = replace(of_page, collection="")  # it was named, and nothing is saved in it yet
    TABS[tab](of_page)


if __name__ == "__main__":  # processes that start import the page, and must not draw it
    draw(main)

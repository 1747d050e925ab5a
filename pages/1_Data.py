"""Data: load files, define attributes, derive and combine labels, models and vectors."""

from __future__ import annotations

from dataclasses import replace

from capbias_core.workspace.ingest import DEFAULT_COLLECTION
from pages.ui import view
from pages.ui.attributes import attributes_tab
from pages.ui.files import files_tab, models_tab
from pages.ui.labels import labels_tab
from pages.ui.page import draw, page

TABS = {"Files": files_tab, "Labels": labels_tab, "Attributes": attributes_tab, "Models and vectors": models_tab}


def main() -> None:
    bar = page("Data", new=DEFAULT_COLLECTION)
    tab = view.tabs(TABS)
    if tab != "Files" and bar.collection not in bar.workspace.collections():
        bar = replace(bar, collection="")  # it was named, and nothing is saved in it yet
    TABS[tab](bar)


if __name__ == "__main__":  # processes that start import the page, and must not draw it
    draw(main)

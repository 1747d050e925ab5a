"""Images: the masking experiment, one photograph, and what photographs still need."""

from __future__ import annotations

from pages.ui import controls
from pages.ui.entry import draw, page
from pages.ui.images import experiment_tab
from pages.ui.photograph import photograph_tab
from pages.ui.prepare import prepare_tab

TABS = {"Experiment": experiment_tab, "One photograph": photograph_tab, "Prepare": prepare_tab}


def main() -> None:
    of_page = page("Images")
    TABS[controls.tabs(TABS)](of_page)


if __name__ == "__main__":  # processes that start import the page, and must not draw it
    draw(main)

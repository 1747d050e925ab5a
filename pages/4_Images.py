"""Images: the masking experiment, one photograph, and what photographs still need."""

from __future__ import annotations

from pages.ui import view
from pages.ui.images import experiment_tab, photograph_tab, prepare_tab
from pages.ui.page import draw, page

TABS = {"Experiment": experiment_tab, "One photograph": photograph_tab, "Prepare": prepare_tab}


def main() -> None:
    bar = page("Images")
    TABS[view.tabs(TABS)](bar)


if __name__ == "__main__":  # processes that start import the page, and must not draw it
    draw(main)

"""Images: the masking experiment, one photograph, and what photographs still need."""

from __future__ import annotations

from pages.ui import view
from pages.ui.bar import page
from pages.ui.base import draw
from pages.ui.masking import experiment_tab, photograph_tab, prepare_tab

TABS = {"Experiment": experiment_tab, "One photograph": photograph_tab, "Prepare": prepare_tab}


def main() -> None:
    bar = page("Images")
    TABS[view.tabs(TABS)](bar)


if __name__ == "__main__":  # tests import the page, and must not draw it
    draw(main)

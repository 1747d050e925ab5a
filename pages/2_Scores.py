"""Scores: the table and its pairs, slices of images, directions, encoder sensitivity, alignment."""

from __future__ import annotations

from pages.ui import view
from pages.ui.alignment import alignment_tab
from pages.ui.directions import directions_tab
from pages.ui.encoders import encoders_tab
from pages.ui.page import draw, page
from pages.ui.score_table import score_table
from pages.ui.where import where_tab

TABS = {
    "Table": score_table,
    "Where": where_tab,
    "Directions": directions_tab,
    "Encoder sensitivity": encoders_tab,
    "Alignment": alignment_tab,
}


def main() -> None:
    bar = page("Scores")
    TABS[view.tabs(TABS)](bar)


if __name__ == "__main__":  # processes that start import the page, and must not draw it
    draw(main)

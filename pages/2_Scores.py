"""Scores: the table, where, before and after, directions, encoder sensitivity."""

from __future__ import annotations

from pages.ui import controls
from pages.ui.change import change_tab
from pages.ui.directions import directions_tab
from pages.ui.encoders import encoders_tab
from pages.ui.entry import draw, page
from pages.ui.table import table_tab
from pages.ui.where import where_tab

TABS = {
    "Table": table_tab,
    "Where": where_tab,
    "Before and after": change_tab,
    "Directions": directions_tab,
    "Encoder sensitivity": encoders_tab,
}


def main() -> None:
    of_page = page("Scores", ("collection", "attribute", "references", "setting"))
    TABS[controls.tabs(TABS)](of_page)


if __name__ == "__main__":  # processes that start import the page, and must not draw it
    draw(main)

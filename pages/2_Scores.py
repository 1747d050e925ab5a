"""Scores: leaderboard, the table, slices of images, before and after, directions, encoder sensitivity, alignment."""

from __future__ import annotations

from capbias_core.views.leaderboard import leads
from pages.ui import cached, view
from pages.ui.alignment import alignment_tab
from pages.ui.change import change_tab
from pages.ui.directions import directions_tab
from pages.ui.encoders import encoders_tab
from pages.ui.leaderboard import leaderboard_tab
from pages.ui.page import draw, page
from pages.ui.score_table import score_table
from pages.ui.where import where_tab

TABS = {
    "Table": score_table,
    "Leaderboard": leaderboard_tab,
    "Where": where_tab,
    "Before and after": change_tab,
    "Directions": directions_tab,
    "Encoder sensitivity": encoders_tab,
    "Alignment": alignment_tab,
}


def main() -> None:
    bar = page("Scores")
    names = list(TABS)
    if bar.collection and leads(cached.compared(bar.workspace, bar.collection)):
        names.sort(key=lambda name: name != "Leaderboard")  # it comes first
    TABS[view.tabs(names)](bar)


if __name__ == "__main__":  # processes that start import the page, and must not draw it
    draw(main)

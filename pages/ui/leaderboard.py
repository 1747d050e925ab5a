"""The tab Leaderboard of Scores: captioners by attributes."""

from __future__ import annotations

from capbias_core.views.leaderboard import ASIDE, CAPTIONER, leaderboard, leaderboard_rows, sortings
from capbias_core.views.view import scope
from pages.ui import cached, view
from pages.ui.bar import Bar, captions_and_labels
from pages.ui.base import note
from pages.ui.shown import draw_shown

TWO_LINES = 46  # pixels


def leaderboard_tab(bar: Bar) -> None:
    if captions_and_labels(bar) is None:
        return
    workspace, collection = bar.workspace, bar.collection
    if not cached.compared(workspace, collection):
        note("No results yet. Run LIC in the tab Table.")
        return
    known = cached.of_collection(
        workspace, collection, "sortings", lambda: sortings(leaderboard_rows(workspace, collection))
    )
    sort = view.selectbox(bar.place, "Sort by", known, key="order", missing="the column", follows=True)
    shown = cached.once(workspace, "leaderboard", lambda: leaderboard(scope(workspace, collection), sort))
    # Intervals go below their values, so that several attributes fit side by side.
    columns = [name for name in shown.for_reader if name not in (CAPTIONER, *ASIDE)]
    draw_shown(shown, "leaderboard", intervals=columns, row_height=TWO_LINES)

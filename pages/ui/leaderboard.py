"""The tab Leaderboard of Scores: captioners by attributes."""

from __future__ import annotations

import streamlit as st

from capbias_core.views.leaderboard import leaderboard, leaderboard_rows, sortings
from capbias_core.views.view import scope
from pages.ui import cached, view
from pages.ui.bar import Bar, captions_and_labels
from pages.ui.base import note
from pages.ui.shown import draw_shown


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
    sort = view.selectbox(st, "Sort by", known, key="order", missing="the column", width=300)
    shown = cached.once(workspace, "leaderboard", lambda: leaderboard(scope(workspace, collection), sort))
    draw_shown(shown, "leaderboard")

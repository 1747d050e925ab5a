"""Scores, tab Directions."""

from __future__ import annotations

import streamlit as st

from capbias_core.views.directions import DIRECTIONS, DirectionsOptions, measured_pairs
from pages.ui import controls
from pages.ui.empty import nothing_measured
from pages.ui.page import Page
from pages.ui.show import show


def directions_tab(page: Page) -> None:
    if page.choice is None or not (pairs := measured_pairs(page.choice)):
        nothing_measured(page, "Directions need DBAC or DBA: choose dbac or dba among the metrics of Table.")
        return
    metric = controls.selectbox(st, "Metric", pairs, key="metric", width=240) if len(pairs) > 1 else pairs[0]
    show(DIRECTIONS, page.choice, DIRECTIONS.rows(page.choice, DirectionsOptions(metric=metric)))

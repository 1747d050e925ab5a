"""Scores, tab Before and after: what changed from one captioner to another."""

from __future__ import annotations

import streamlit as st

from capbias_core.views.change import BEFORE_AND_AFTER, ChangeOptions, usual_metrics
from pages.ui import controls
from pages.ui.empty import nothing_measured
from pages.ui.page import Page
from pages.ui.show import show


def change_tab(page: Page) -> None:
    if page.choice is None or len(names := page.choice.options["captioner"]) < 2:
        nothing_measured(page, "This compares two captioners, such as a model and its debiased version. Score both.")
        return
    row = st.container(key="controls_change", horizontal=True)
    before = controls.selectbox(row, "Before", names, key="before", default=page.choice.captioner, width=240)
    others = [name for name in names if name != before]
    after = controls.selectbox(row, "After", others, key="after", width=240)
    choice = page.choice.of_captioners(before, after)
    usual = usual_metrics(choice)
    known = list(dict.fromkeys([*usual, *choice.rows.loc[choice.rows["captioner"] == before, "metric"]]))
    tested = controls.multiselect(
        row,
        "Metrics tested",
        known,
        default=usual,
        key="tested",
        help="Significance is corrected for the number of lines (Holm).",
    )
    options = ChangeOptions(metric=tuple(tested))
    work = lambda: BEFORE_AND_AFTER.rows(choice, options)  # noqa: E731
    rows = page.once(repr(("change", before, after, options)), work)
    show(BEFORE_AND_AFTER, choice, rows, clickable=False)

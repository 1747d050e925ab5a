"""Images, tab Experiment: scores against what was masked, and beside it a photograph with what was said of it."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from capbias_core.errors import CapbiasError
from capbias_core.kinds import CAPTIONS
from capbias_core.types import CONDITIONS
from capbias_core.views.choose import Choice
from capbias_core.views.masking import MASKING, SHOWN, TITLES, WHAT, MaskingOptions, masked_captioners
from capbias_core.views.sentence import say
from capbias_core.workspace.conditions import ORIGINAL, condition_of, describe
from capbias_core.workspace.store import Item
from pages.ui import controls
from pages.ui.base import note, show_error
from pages.ui.empty import nothing_measured
from pages.ui.page import Page
from pages.ui.photograph import captioned, strip
from pages.ui.plain import plain
from pages.ui.runs import start_button
from pages.ui.show import show


def experiment_tab(page: Page) -> None:
    choice = page.choice
    if choice is None:
        nothing_measured(page, "Score the captions of the original photographs first.")
    else:
        try:
            captioners = page.once("masked", lambda: masked_captioners(choice))
            _experiment(page, choice, captioners)
        except CapbiasError as error:
            show_error(error)
    if page.collection:
        _describe_sets(page)


def _experiment(page: Page, choice: Choice, captioners: dict[str, dict[str, Item]]) -> None:
    """captioners: those with sets of several conditions; the one that is read is shown, else the first."""
    if not captioners:
        note(say("masking.no_sets"))
        return
    captioner, sets = next(iter(captioners.items()))
    original = sets[ORIGINAL].name if ORIGINAL in sets else choice.captioner
    if original != choice.captioner:
        note(say("masking.another", captioner=choice.captioner, shown=captioner))
    choice = replace(choice, captioners=(original,))
    bar = st.container(horizontal=True, vertical_alignment="bottom", key="controls_masking")
    metric = controls.selectbox(bar, "Metric", [name for name, _ in SHOWN], key="metric", width=200)
    options = MaskingOptions(metric=(metric,))
    start_button(page, page.once(repr(("needs", options)), lambda: MASKING.needs(choice, options)), "Run", "masking")
    rows = page.once(repr(("masking", options)), lambda: MASKING.rows(choice, options))
    left, right = st.container(key="stacks_masking").columns([3, 2], gap="large")
    with left:
        show(MASKING, choice, rows)
    with right:
        masked = [name for name in sets if name != ORIGINAL]
        line = controls.kept("line")
        condition = line if line in sets else masked[-1]
        st.subheader(f"{plain(condition)}: {plain(WHAT[condition])} hidden", anchor=False)
        if images := captioned(page, sets):
            strip(page, sets, images, [ORIGINAL, condition] if condition != ORIGINAL else [ORIGINAL])
        else:
            note(say("masking.no_photographs"))


def _describe_sets(page: Page) -> None:
    items = page.items(CAPTIONS)
    folded = st.expander("Captioner and condition of each set", key="which_is_which", on_change="rerun")
    if not items or not folded.open:
        return
    with folded:
        note(say("masking.describe"))
        described = [condition_of(item) for item in items]
        table = pd.DataFrame(described, columns=["captioner", "condition"])
        table.insert(0, "set", [item.name for item in items])
        titles = st.column_config.SelectboxColumn(
            options=list(CONDITIONS), required=True, format_func=lambda name: TITLES[str(name)]
        )
        edited = st.data_editor(
            table, hide_index=True, disabled=["set"], key="described", column_config={"condition": titles}
        )
        if st.button("Save", key="describe", disabled=edited.equals(table)):
            for item, before, row in zip(items, described, edited.to_dict("records"), strict=True):
                if (row["captioner"], row["condition"]) != before:
                    describe(page.workspace, item, row["captioner"] or item.name, row["condition"])
            st.rerun()

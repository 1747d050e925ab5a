"""The tab Before and after of Scores: the change of each metric from one captioner to another."""

from __future__ import annotations

import streamlit as st

from capbias_core.views.change import SCALED, change, change_rows, change_words, pair_scope
from capbias_core.workspace.conditions import originals
from pages.ui import cached, view
from pages.ui.bar import Bar, attribute_names, captions_and_labels
from pages.ui.base import errors, note
from pages.ui.shown import draw_shown


def change_tab(bar: Bar) -> None:
    sets_and_tables = captions_and_labels(bar)
    if sets_and_tables is None:
        return
    sets, tables = sets_and_tables
    if len(sets) < 2:
        note("This compares two captioners, such as a model and its debiased version. Load another one on Data.")
        return
    workspace, collection = bar.workspace, bar.collection
    attribute = bar.attribute(attribute_names(tables))
    measured = [item for item in cached.compared(workspace, collection) if item.attribute.name == attribute]
    alike = [run.spec.model for run in measured[0].runs] if measured else []
    first, second = [*sorted(alike, key=sets.index), *originals(bar.items("captions")), *sets][:2]
    before = view.selectbox(
        bar.place, "Before", sets, default=first, key="before", missing="the captioner", follows=True
    )
    others = [name for name in sets if name != before]
    second = second if second in others else next((name for name in alike if name in others), others[0])
    after = view.selectbox(
        bar.place, "After", others, default=second, key="after", missing="the captioner", follows=True
    )
    with errors():
        scope = pair_scope(workspace, collection, before, after, attribute)
        rows = cached.once(workspace, "change rows", lambda: change_rows(scope))
        usual = list(dict.fromkeys(rows.loc[rows["tested"], "metric"])) if len(rows) else []
        tested = view.multiselect(
            st,
            "Metrics tested",
            dict.fromkeys([*usual, *rows["metric"]]),
            default=usual,
            key="tested",
            missing="the metric",
            follows=True,
            help="Significance is corrected for the number of metrics tested (Holm).",
        )
        draw_shown(cached.once(workspace, "change", lambda: change(scope, tested)), "change")
        note(SCALED)
        st.header("Words that changed most")
        draw_shown(cached.once(workspace, "change words", lambda: change_words(scope)), "change_words")

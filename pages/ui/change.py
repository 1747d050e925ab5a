"""The tab Before and after of Scores: the change of each metric from one captioner to another."""

from __future__ import annotations

import streamlit as st

from capbias_core.types import counted
from capbias_core.views.change import SCALED, change, change_rows, change_words, pair_scope
from capbias_core.views.results import Comparison
from capbias_core.views.view import Scope
from capbias_core.workspace.conditions import originals
from capbias_core.workspace.labels import table_of, table_with
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
    models = [run.spec.model for run in measured[0].runs] if measured else []
    first, second = [*sorted(models, key=sets.index), *originals(bar.items("captions")), *sets][:2]
    pair = st.container(horizontal=True)
    before = view.selectbox(pair, "Before", sets, default=first, key="before", missing="the captioner")
    others = [name for name in sets if name != before]
    second = second if second in others else next((name for name in models if name in others), others[0])
    after = view.selectbox(pair, "After", others, default=second, key="after", missing="the captioner")
    with errors():
        scope = _scope(
            bar,
            [item for item in measured if {before, after} <= {run.spec.model for run in item.runs}],
            before,
            after,
            attribute,
        )
        rows = cached.once(workspace, "change rows", lambda: change_rows(scope))
        usual = list(dict.fromkeys(rows.loc[rows["tested"], "metric"])) if len(rows) else []
        tested = view.multiselect(
            st,
            "Metrics tested",
            dict.fromkeys([*usual, *rows["metric"]]),
            default=usual,
            key="tested",
            missing="the metric",
            help="Significance is corrected for the number of metrics tested (Holm).",
        )
        draw_shown(cached.once(workspace, "change", lambda: change(scope, tested)), "change")
        note(SCALED)
        st.header("Words that changed most")
        draw_shown(cached.once(workspace, "change words", lambda: change_words(scope)), "change_words")


def _scope(bar: Bar, comparisons: list[Comparison], before: str, after: str, attribute: str) -> Scope:
    """The scope by one of these comparisons of both captioners, which the link names; if there are none, by none."""
    workspace, collection = bar.workspace, bar.collection
    if not comparisons:
        return pair_scope(workspace, collection, before, after, attribute)
    tables, human = bar.items("labels"), {item.hash: item.name for item in bar.items("references")}
    options, choices = {}, {}
    for item in comparisons:
        table = table_of(tables, attribute, item.runs[0].spec.labels) or table_with(tables, attribute)
        made = {"attacker": item.attacker, "table": table.name, "references": human.get(item.references, "")}
        parts = (
            item.attacker,
            item.metric,
            counted(item.seeds, "seed"),
            item.alignment,
            made["references"],
            table.name,
        )
        name = ", ".join(filter(None, parts))
        if name not in options:  # the better of two with the same title
            options[name], choices[name] = item, {key: value for key, value in made.items() if value}
    chosen = options[bar.measured_with(choices, {name: name for name in options})]
    return Scope(workspace, collection, chosen, (before, after))

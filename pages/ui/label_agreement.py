"""Two tables of labels beside each other: how far they agree, where they differ, and a table of what both say."""

from __future__ import annotations

from functools import partial

import streamlit as st

from capbias_core.runs.engine import Engine
from capbias_core.views.labels import (
    OTHERS,
    agreement_line,
    compared,
    counts_table,
    differing_table,
    keep_agreed,
    tables_of,
)
from pages.ui import cached, view
from pages.ui.base import errors, note, plain
from pages.ui.table import draw_table


def label_agreement_view(engine: Engine, collection: str) -> None:
    """Of an attribute that several tables of a collection hold; nothing where none is."""
    every = tables_of(engine.workspace, collection)
    if not every:
        return
    st.header("Compare two tables of labels")
    first, second, third = st.container(key="stacks_agreement").columns(3)
    name = view.selectbox(first, "Attribute", every, key="compared")
    tables = {table.name: table for table in every[name]}
    one = view.selectbox(second, "Table", tables, key="compared_table")
    other = view.selectbox(third, "with", [own for own in tables if own != one], key="compared_with")
    with errors():
        work = partial(compared, engine.workspace, name, tables[one], tables[other])
        found = cached.once(engine.workspace, "agreement", work)
        st.text(agreement_line(found, name, one, other))
        note(OTHERS)
        draw_table(counts_table(found, one), alt=f"Images by the label of {one} and of {other}")
        box = st.expander(f"Where they differ ({len(found.differ):,} images)", key="differ", on_change="rerun")
        if box.open:
            human = engine.workspace.items("references", collection)[-1:]
            captions = engine.workspace.frame(human[0].hash) if human else None
            draw_table(differing_table(found, one, other, captions), box, alt="Images with two labels")
        if st.button("Save the labels on which they agree", key="keep_agreed"):
            item = keep_agreed(engine.workspace, name, [tables[one], tables[other]], f"{name} agreed")
            st.session_state["said"] = f"Saved {item.name}: {plain(name)} of {item.images:,} images."
            st.rerun()

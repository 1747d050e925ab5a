"""Two tables of labels beside each other: how far they agree, where they differ, and a table of what both say."""

from __future__ import annotations

import streamlit as st

from capbias_core.aggregate.label_agreement import LabelAgreement
from capbias_core.analysis.label_tables import compared, keep_agreed, tables_of
from capbias_core.present.label_agreement import OTHERS, agreement_line, counts_table, differing_table
from capbias_core.runs.engine import Engine
from capbias_core.workspace.store import Workspace
from pages.ui.base import errors, note, plain
from pages.ui.table import draw_table


def label_agreement_view(engine: Engine, collection: str) -> None:
    """Of an attribute that several tables of a collection hold; nothing where none is."""
    every = tables_of(engine.workspace, collection)
    if not every:
        return
    st.divider()
    st.header("Two tables of labels")
    first, second, third = st.container(key="stacks_agreement").columns(3)
    name = first.selectbox("Attribute", list(every), key="agreement_attribute")
    tables = {table.name: table for table in every[name]}
    one = second.selectbox("Table", list(tables), key=f"agreement_one_{name}")
    other = third.selectbox("beside", [own for own in tables if own != one], key=f"agreement_other_{name}")
    with errors():
        found = _compared(str(engine.folder), collection, name, one, other, (tables[one].hash, tables[other].hash))
        st.text(agreement_line(found, name, one, other))
        note(OTHERS)
        draw_table(counts_table(found, one), alt=f"Images by the label of {one} and of {other}")
        if len(found.differ):
            human = engine.workspace.items("references", collection)[-1:]
            captions = engine.workspace.frame(human[0].hash) if human else None
            with st.expander(f"Where they differ ({len(found.differ):,} images)"):
                draw_table(differing_table(found, one, other, captions), alt="Images with two labels")
        if st.button("Keep the labels on which they agree", key="keep_agreed"):
            item = keep_agreed(engine.workspace, name, [tables[one], tables[other]], f"{name} agreed")
            st.session_state["said"] = f"Kept {item.name}: {plain(name)} of {item.images:,} images."
            st.rerun()


@st.cache_resource(show_spinner="Comparing labels", max_entries=16)
def _compared(
    folder: str, collection: str, name: str, one: str, other: str, digests: tuple[str, str]
) -> LabelAgreement:
    """digests: of both tables, so that nothing stale is served."""
    workspace = Workspace(folder)
    first, second = (workspace.item("attributes", own, collection) for own in (one, other))
    return compared(workspace, name, first, second)

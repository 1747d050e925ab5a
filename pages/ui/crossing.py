"""Groups that cross: two attributes of a collection as one, with the images of each cell in sight before it is kept."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from capbias_core.prepare.cross import LEAST, parts_of
from capbias_core.runs.engine import Engine
from capbias_core.workspace.crossing import Crossing, cross, keep_crossed
from capbias_core.workspace.store import Workspace
from pages.ui.base import attribute_names, errors, note, plain
from pages.ui.table import draw_table


def crossing_view(engine: Engine, collection: str) -> None:
    """Where a collection has labels of two attributes; nothing where it has not."""
    tables = engine.workspace.items("attributes", collection)
    names = [name for name in attribute_names(tables) if parts_of(name) is None]
    if len(names) < 2:
        return
    st.divider()
    st.header("Groups that cross")
    left, right = st.container(key="stacks_crossing").columns(2, gap="large")
    first = left.selectbox("Attribute", names, key="cross_first")
    second = right.selectbox("crossed with", [own for own in names if own != first], key=f"cross_second_{first}")
    with errors():
        digests = tuple(item.hash for item in tables)
        found = _crossed(str(engine.folder), collection, first, second, digests)
        counts = {"cell": list(found.counts), "images": list(found.counts.values())}
        said = {"": ["too few, left out" if cell in found.refused else "" for cell in found.counts]}
        draw_table(pd.DataFrame(counts | (said if found.refused else {})), alt="Images of each cell")
        note(f"By {found.source}. A cell needs {LEAST} labelled images: of fewer, a score would rest on less than ten.")
        if st.button(f"Keep {plain(found.attribute.name)}", key="keep_crossed"):
            item = keep_crossed(engine.workspace, collection, found)
            st.session_state["said"] = f"Kept {item.name}: it can be chosen as an attribute on the Scores page."
            st.rerun()


@st.cache_resource(show_spinner="Counting", max_entries=16)
def _crossed(folder: str, collection: str, first: str, second: str, digests: tuple[str, ...]) -> Crossing:
    """digests: of the tables of labels, so that nothing stale is served."""
    return cross(Workspace(folder), collection, first, second)

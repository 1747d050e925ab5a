"""Groups that cross: two attributes of a collection as one, with the images of each cell in sight before it is kept."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from capbias_core.prepare.labels import LEAST, parts_of
from capbias_core.runs.engine import Engine
from capbias_core.workspace.derived import cross, keep_crossed
from pages.ui import cached, view
from pages.ui.base import attribute_names, errors, note, plain
from pages.ui.table import draw_table


def crossing_view(engine: Engine, collection: str) -> None:
    """Where a collection has labels of two attributes; nothing where it has not."""
    tables = engine.workspace.items("attributes", collection)
    names = [name for name in attribute_names(tables) if parts_of(name) is None]
    if len(names) < 2:
        return
    st.header("Combine attributes")
    left, right = st.container(key="stacks_crossing").columns(2, gap="large")
    first = view.selectbox(left, "Attribute", names, key="cross")
    second = view.selectbox(right, "with", [own for own in names if own != first], key="cross_with")
    having = [own.name for own in tables if {first, second} & own.details["attributes"].keys()]
    table = view.selectbox(
        left,
        "Table of labels",
        having,
        default=cached.tables_read(engine.workspace, collection)[first].name,
        key="cross_table",
        missing="the table of labels",
        shown=len(having) > 1,
        help="For an attribute that this table lacks, the newest imported table is used.",
    )
    with errors():
        work = partial(cross, engine.workspace, collection, first, second, table)
        found = cached.once(engine.workspace, "crossing", work)
        counts = {"group": list(found.counts), "images": list(found.counts.values())}
        said = {"": ["too few images" if cell in found.refused else "" for cell in found.counts]}
        draw_table(pd.DataFrame(counts | (said if found.refused else {})), alt="Images of each group")
        note(f"Labels from {found.source}. Each group needs {LEAST} labelled images.")
        if len(found.counts) - len(found.refused) < 2:
            note("Fewer than two groups are large enough. Score the attributes separately.")
        elif st.button(f"Save {plain(found.name)}", key="keep_crossed"):
            item = keep_crossed(engine.workspace, collection, found)
            st.session_state["said"] = f"Saved {item.name}. Choose it as the attribute on Scores."
            st.rerun()

"""The choice of a vocabulary alignment, as it stands in a sidebar."""

from __future__ import annotations

import streamlit as st

from capbias_core.prepare.align import DELTA
from capbias_core.workspace.spec import AlignmentReference
from capbias_core.workspace.store import Item, Workspace
from capbias_core.workspace.vectors import VECTORS, alignment_option
from pages.ui import view

CONSTANT = "constant"
HELP = (
    "What becomes of human words that the captioner never uses. Constant: <unk>, as in LIC. Contextual, as in DBAC: "
    "its nearest word by word vectors, where that is near. Vectors are kept on the Data page."
)


def alignment_picker(workspace: Workspace, collection: str) -> dict:
    """`Request.options` for the alignment that is chosen: none for constant."""
    kept = {item.name: item for item in workspace.items(VECTORS, collection)}
    chosen = view.selectbox(
        st.sidebar,
        "Vocabulary alignment",
        [CONSTANT, *kept],
        key="alignment",
        missing="the alignment",
        help=HELP,
        format_func=lambda name: name if name == CONSTANT else f"contextual, {name}",
    )
    return {} if chosen == CONSTANT else {"alignment": chosen_alignment(kept[chosen])}


def chosen_alignment(item: Item) -> AlignmentReference:
    """The option for these vectors at the delta that is chosen."""
    distance = view.number(
        st.sidebar,
        "Delta",
        0.0,
        2.0,
        DELTA,
        step=0.05,
        key="delta",
        help=f"A word is near below this cosine distance. The paper on DBAC uses {DELTA} for GloVe.",
    )
    return alignment_option(item, round(distance, 4))

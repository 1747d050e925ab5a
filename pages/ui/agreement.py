"""How far boxes of a detector agree with outlines by people, where a collection has both."""

from __future__ import annotations

import streamlit as st

from capbias_core.aggregate.detection_agreement import Agreement
from capbias_core.present.detection import agreement_line
from capbias_core.vision.overlap import PERSON
from capbias_core.workspace.boxes import BARE, BOXES, agreement_of
from capbias_core.workspace.person_regions import SEGMENTS
from capbias_core.workspace.store import Item, Workspace
from pages.ui.table import draw_table


def agreement_view(workspace: Workspace, collection: str) -> None:
    """A sentence over all photographs, and a row a photograph."""
    boxes = [item for item in workspace.items(BOXES, collection) if BARE in item.details]
    outlines = workspace.items(SEGMENTS, collection)
    if not boxes or not outlines:
        return
    left, right = st.columns(2)
    own, theirs = _chosen(left, "Boxes", boxes), _chosen(right, "against outlines by people", outlines)
    found = _agreement(str(workspace.folder), collection, own.name, theirs.name, (own.hash, theirs.hash))
    st.text(agreement_line(found, PERSON))
    with st.expander("Photograph by photograph"):
        draw_table(
            found.rows,
            column_config={
                "image_id": "image",
                "annotated": st.column_config.NumberColumn("people", help="annotated, no crowds"),
                "recall": st.column_config.NumberColumn("recall", format="%.2f", help="found, of the people"),
                "mean_iou": st.column_config.NumberColumn("IoU", format="%.2f", help="mean over those found"),
            },
        )


def _chosen(place, title: str, items: list[Item]) -> Item:
    names = [item.name for item in items]
    name = place.selectbox(title, names, key=f"agreement {title}")
    return items[names.index(name)]


@st.cache_resource(show_spinner="Comparing boxes and outlines", max_entries=16)
def _agreement(folder: str, collection: str, boxes: str, outlines: str, digests: tuple[str, str]) -> Agreement:
    """digests: of both, so that nothing stale is served."""
    workspace = Workspace(folder)
    own, theirs = workspace.item(BOXES, boxes, collection), workspace.item(SEGMENTS, outlines, collection)
    return agreement_of(workspace, own, theirs)

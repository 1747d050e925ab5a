"""Photographs to pick from: a page of small ones, each with a button."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st

from capbias_core.errors import CapbiasError
from capbias_core.views.photographs import thumbnail
from capbias_core.workspace.limited import within_limits
from pages.ui import view
from pages.ui.base import note, plain

A_PAGE = 12
CELL = 128


def thumbnails(files: Mapping[str, Path], order: Sequence[str], chosen: str, key: str) -> None:
    """Small photographs by image id, 12 at once. key: of the control that holds the chosen one."""
    pages = -(-len(order) // A_PAGE)
    page = 1
    if pages > 1:
        first = order.index(chosen) // A_PAGE + 1 if chosen in order else 1
        page = view.number(st, f"Photographs, page of {pages:,}", 1, pages, first, key=f"{key}_page", width=200)
    with st.container(horizontal=True, gap="small", key=f"thumbnails_{key}"):
        for image in order[(page - 1) * A_PAGE : page * A_PAGE]:
            with st.container(width=CELL, gap="xsmall"):
                _one(files[image], image, image == chosen, key)


def _one(file: Path, image: str, chosen: bool, key: str) -> None:
    try:
        st.image(_small(str(file), file.stat().st_mtime_ns), width=CELL, alt=f"Photograph {image}, small")
    except (CapbiasError, OSError):
        note("This file cannot be read.")
    st.button(
        plain(image),
        key=f"pick_{key}_{image}",
        type="primary" if chosen else "secondary",
        icon=":material/check:" if chosen else None,
        width="stretch",
        on_click=view.choose,
        args=(key, image),
    )


@st.cache_data(show_spinner=False, max_entries=512)
def _small(path: str, changed: int) -> bytes:
    return within_limits(Path(path).name, thumbnail, Path(path))

"""What each page draws first, before anything heavy is imported: set-up, style, navigation, heading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from capbias_core.resources import ICON
from pages.ui import controls

ROOT = Path(__file__).resolve().parents[2]
ICONS = {
    "Answer": "balance",
    "Data": "upload_file",
    "Scores": "bar_chart",
    "Captions": "notes",
    "Images": "domino_mask",
    "Published": "menu_book",
}


@cache
def _navigation() -> tuple[tuple[str, str, str], ...]:
    """Path, title and icon of each page: a file NUMBER_Title.py in pages/, in the order of the numbers."""
    files = sorted((ROOT / "pages").glob("[0-9]*_*.py"), key=lambda file: int(file.name.partition("_")[0]))
    titles = {f"pages/{file.name}": file.stem.partition("_")[2].replace("_", " ") for file in files}
    return tuple((path, title, ICONS.get(title, "article")) for path, title in [("app.py", "Answer"), *titles.items()])


@contextmanager
def frame(title: str) -> Iterator[DeltaGenerator]:
    """Set the page up and draw the line of pages; the first call of each page. Gives a place in that line."""
    # The icon is a file: one by name would be fetched from elsewhere.
    st.set_page_config(f"{title} · capbias", str(ICON), "wide", "collapsed")
    line = st.container(key="pages", horizontal=True, gap="small")
    name = f'<span class="cb-name">capbias</span><h1 class="cb-heading">{title}</h1>'
    line.html(name, width="content")
    places = [(line.empty(), page) for page in _navigation()]
    account = line.container(horizontal=True, width="content")
    yield account
    for place, (path, label, icon) in places:  # now the workspace that links keep is known
        controls.link(place, path, label, f":material/{icon}:")

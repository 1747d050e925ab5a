"""Attributes in a tab of Data: the known attributes, and their words in saved captions."""

from __future__ import annotations

import streamlit as st

from capbias_core.attributes import attribute_files, attribute_folder
from capbias_core.views.labels import attribute_lines
from capbias_core.views.markup import html
from pages.ui import controls
from pages.ui.base import note, show_error
from pages.ui.page import Page


def attributes_tab(page: Page) -> None:
    folder = attribute_folder(page.workspace.folder)
    note(
        "An attribute lists the values to compare and the words that name each value. These words are masked before an "
        f"attacker reads a caption. To add one, copy a TOML file into {folder}."
    )
    files = {file.path.name if file.fault else file.name: file for file in attribute_files(folder)}
    default = next((name for name in page.attributes if name in files), None)
    left, right = st.container(key="controls_pick").columns([1, 2], vertical_alignment="bottom")
    file = files[controls.selectbox(left, "Attribute", [*files], key="pick", default=default)]
    with right:
        note("Comes with capbias." if file.shipped else f"File: {file.path.name}.")
    if file.attribute:
        st.html(html("lines", lines=attribute_lines(file.attribute)))
    elif file.fault:
        show_error(file.fault)
    with st.expander("TOML"):
        st.code(file.path.read_text(encoding="utf-8", errors="replace"), language="toml")

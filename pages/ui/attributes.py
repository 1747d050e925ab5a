"""Attributes in a tab of Data: the known attributes, and their words in saved captions."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from capbias_core.attributes import attribute_files, attribute_folder
from capbias_core.types import Attribute
from capbias_core.views.labels import attribute_lines, examples_table, trial, trial_row, words_text
from capbias_core.views.markup import html
from pages.ui import controls
from pages.ui.base import note, once, show_error
from pages.ui.page import Page
from pages.ui.show import frame_table


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
    if file.attribute:
        _trials(page, file.attribute)


def _trials(page: Page, attribute: Attribute) -> None:
    st.header("Words in your captions")
    items = [item for item in page.workspace.items() if item.kind in ("captions", "references")][::-1]
    if not attribute.masked_words:
        note("The attribute has no words, so nothing is masked.")
        return
    if not items:
        note("Load captions in the tab Files to try the words on them.")
        return
    trials = [
        once(repr((page.folder, item.hash, attribute)), lambda item=item: trial(page.workspace, item, attribute))
        for item in items
    ]
    rows = [
        {"captions of": item.name, "collection": item.collection} | trial_row(counted)
        for item, counted in zip(items, trials, strict=True)
    ]
    frame_table(pd.DataFrame(rows))
    left, _ = st.container(key="controls_tried").columns([1, 2])
    index = left.selectbox(
        "Words and examples of",
        range(len(items)),
        key="tried",
        format_func=lambda index: f"{items[index].name} ({items[index].collection})",
    )
    note(f"Words found, with the number of captions: {words_text(trials[index])}.")
    frame_table(examples_table(trials[index]))

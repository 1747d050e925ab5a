"""Beside a chart: the captions of what was clicked."""

from __future__ import annotations

import streamlit as st

from pages.ui.page import Page


def panel(page: Page, word: str = "", captioner: str = "") -> None:
    st.subheader(f"Captions of {captioner or page.choice.captioner}", anchor=False)

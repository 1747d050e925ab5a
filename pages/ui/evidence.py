"""Beside a chart: the captions of what was clicked."""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st

from pages.ui.page import Page


def panel(page: Page, word: str = "", images: Collection[str] | None = None, captioner: str = "") -> None:
    st.subheader(f"Captions of {captioner or page.choice.captioner}", anchor=False)

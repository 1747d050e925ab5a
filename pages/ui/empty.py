"""What a page shows where there is nothing to show yet, and what to do next."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from capbias_core.kinds import CAPTIONS
from capbias_core.runs.demo import run_demo
from capbias_core.runs.engine import Engine
from capbias_core.workspace.ingest import DEMO
from pages.ui import controls
from pages.ui.base import box, errors
from pages.ui.page import Page

LABELS_WANTED = "labels (a table with an image ID and one column per attribute)"


def lacking(page: Page, what: str) -> None:
    """What the collection lacks, and what to do next."""
    box("Nothing to show yet.", f"Add {what} to “{page.collection}” to see results here.")
    buttons = st.container(horizontal=True)
    if buttons.button("Add data", type="primary", icon=":material/upload:"):
        controls.go("pages/1_Data.py")
    demo_button(buttons, page.engine, type="secondary")


def empty_state(page: Page, text: str) -> None:
    """What to do if nothing is loaded: the demo in one click, or captions of the visitor."""
    box("Nothing to show yet.", text)
    buttons = st.container(horizontal=True)
    demo_button(buttons, page.engine)
    if buttons.button("Load my captions"):
        controls.go("pages/1_Data.py")


def demo_button(container, engine: Engine, type: Literal["primary", "secondary"] = "primary") -> None:
    """One click that loads the demo data, starts its runs and shows the front page."""

    @errors()
    def start() -> None:  # before the page is drawn, so that the collection can be chosen
        run_demo(engine)
        controls.choose(collection=DEMO)

    if container.button("Try it on the demo data", type=type, key="demo", on_click=start):
        controls.go("app.py", collection=DEMO)


def nothing_measured(page: Page, text: str) -> None:
    """What to do next if what a tab shows is not measured."""
    if not page.collection:
        empty_state(page, "Load captions of your model and labels of the same images.")
        return
    box("Not measured yet.", text)
    controls.link(st, "pages/2_Scores.py", "Score it", ":material/bar_chart:", tab="Table")


def needs(page: Page) -> str:
    """What the collection lacks before anything can be scored; '' if nothing."""
    if not page.items(CAPTIONS):
        return "captions of a model"
    return "" if page.attributes else LABELS_WANTED

"""The first call of every page, and what each page needs: the workspace, the collection, an error as a box."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

import streamlit as st

from capbias_core.errors import CapbiasError
from capbias_core.experiments.engine import Engine, engine_for
from capbias_core.experiments.ingest import DEMO, run_demo
from capbias_core.experiments.store import Workspace, default_folder
from capbias_core.present.words import STYLE

# A file of our own: an icon by name would be fetched from elsewhere.
ICON = Path(__file__).resolve().parents[2] / "assets" / "icon.svg"

PAGES = (
    ("app.py", "Answer", "balance"),
    ("pages/1_Data.py", "Data", "upload_file"),
    ("pages/2_Scores.py", "Scores", "bar_chart"),
    ("pages/3_Captions.py", "Captions", "notes"),
    ("pages/4_Runs.py", "Runs", "pending_actions"),
)

CSS = """<style>
.block-container {padding-top: 3rem; max-width: 1500px}
h1 {font-size: 2.1rem !important; padding-bottom: .4rem !important}
h3 {font-size: 1.3rem !important}
@media (max-width: 1000px) {
  .st-key-stacks [data-testid="stHorizontalBlock"] {flex-wrap: wrap}
  .st-key-stacks [data-testid="stColumn"] {min-width: 100%}
}
.cb-answer {border-left: 5px solid #3B82D0; padding: .55rem 1rem; margin: .1rem 0 .8rem}
.cb-answer b {font-size: 1.35rem; line-height: 1.35; font-weight: 650}
.cb-answer p {margin: .35rem 0 0; opacity: .9; max-width: 75ch}
.cb-error {border: 1px solid #D9701F; border-left-width: 5px; border-radius: 6px; padding: .6rem 1rem; margin: .4rem 0;
  overflow-wrap: anywhere}
.cb-error b {display: inline-block; min-width: 5.2rem}
.cb-note {font-size: .88rem; opacity: .8; max-width: 90ch; margin: .2rem 0}
[data-testid="stDataFrame"] {font-variant-numeric: tabular-nums}
</style>"""


def page(title: str) -> Engine:
    """Set the page up and hand it the engine of the workspace. The first call of every page."""
    st.set_page_config(page_title=f"{title} · capbias", page_icon=str(ICON), layout="wide")
    st.html(CSS + STYLE)
    _navigation()
    with errors():
        return engine_for(str(default_folder()))
    st.stop()


def _navigation() -> None:
    """Links to the pages; the collection stays, since it is bound to the URL."""
    for path, label, icon in PAGES:
        st.sidebar.page_link(path, label=label, icon=f":material/{icon}:")
    st.sidebar.divider()


@contextmanager
def errors() -> Iterator[None]:
    """Show a CapbiasError of the block as one box; nothing of a traceback reaches the page."""
    try:
        yield
    except CapbiasError as error:
        show_error(error)


def show_error(error: CapbiasError) -> None:
    """Got, expected, remedy, as text whatever a file's words hold."""
    lines = [("Got", error.got), ("Expected", error.expected), ("Do", error.remedy)]
    st.html(
        '<div class="cb-error" role="alert">'
        + "<br>".join(f"<b>{name}</b> {escape(text)}" for name, text in lines)
        + "</div>"
    )


def note(text: str) -> None:
    """Small print, as text."""
    st.html(f'<div class="cb-note">{escape(text)}</div>')


def plain(text: str) -> str:
    """Text for a label that Streamlit reads as Markdown: every mark is escaped, so that it is shown as written."""
    return re.sub(r"([\\`*_{}\[\]()#+\-.!|<>~$:])", r"\\\1", text)


def collection_picker(workspace: Workspace) -> str | None:
    """Which data the page is about; None where nothing is loaded."""
    names = workspace.collections()
    if not names:
        return None
    return st.sidebar.selectbox("Collection", names, key="collection", bind="query-params")


def empty_state(engine: Engine, text: str) -> None:
    """What to do next where there is nothing to show, and the demo in one click."""
    st.html(f'<div class="cb-answer"><b>Nothing to show yet.</b><p>{escape(text)}</p></div>')
    left, right, _ = st.columns([1, 1, 2])
    demo_button(left, engine)
    if right.button("Load my captions", width="stretch"):
        st.switch_page("pages/1_Data.py")


def demo_button(place, engine: Engine) -> None:
    """One click that loads the demo data, starts its runs and shows the front page."""
    if place.button(
        "Try it on the demo data", type="primary", width="stretch", key="demo", on_click=_start_demo, args=(engine,)
    ):
        st.switch_page("app.py")


def _start_demo(engine: Engine) -> None:
    """Before the page is drawn, so that the collection picker can be told."""
    run_demo(engine)
    st.session_state["collection"] = DEMO


__all__ = ["collection_picker", "demo_button", "empty_state", "errors", "note", "page", "plain", "show_error"]

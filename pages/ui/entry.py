"""What each page calls first: `page` draws the line of pages and the bar, and says what is shown; `draw` draws it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pandas as pd
import streamlit as st

from capbias_core.errors import CapbiasError
from capbias_core.load import places
from capbias_core.runs.demo import run_demo
from capbias_core.runs.engine import Engine, engine_for
from capbias_core.views.choose import Choice, choose, measured_rows
from capbias_core.workspace.store import Workspace
from pages.ui import controls, sign_in
from pages.ui.base import box, errors
from pages.ui.frame import frame
from pages.ui.page import Page
from pages.ui.runs import progress, runs_dialog

DEMO_ASKED = "CAPBIAS_DEMO"  # set by `make app`: an empty workspace opens on the demo
READING = 2.0  # seconds after the first page was asked for; by then it is being read
TITLES = {
    "collection": "Collection",
    "attribute": "Attribute",
    "captioner": "Captioner",
    "references": "Human captions",
    "setting": "Measured with",
}


def draw(main: Callable[[], None]) -> None:
    """Draw a page by its function. The last line of each page."""
    with controls.written_at_end(), errors():
        main()


def page(
    title: str, fields: tuple[str, ...] = ("collection", "attribute", "captioner", "setting"), new: str = ""
) -> Page:
    """Draw the line of pages and the bar. The first call of each page.

    fields: of the bar. new: the name of a collection that need not exist yet; others can then be named, too.
    """
    engine = _engine(title)
    workspace = engine.workspace
    bar = st.container(key="bar", horizontal=True, vertical_alignment="bottom")
    collections = list(dict.fromkeys([*workspace.scored(), *workspace.collections(), *([new] if new else [])]))
    typed = " ".join(controls.named("collection").split())
    if new and typed and typed not in collections:
        collections.append(typed)
    naming = {"accept_new_options": True, "help": "To start another collection, type its name."} if new else {}
    collection = ""
    if collections:
        leave = lambda: controls.leave(*controls.OF_COLLECTION)  # noqa: E731
        collection = controls.selectbox(
            bar, TITLES["collection"], collections, key="collection", on_change=leave, **naming
        )
    choice = chosen(workspace, collection)
    for key in fields[1:]:
        options, value = _options(choice, key)
        names = (lambda name: choice.settings[name].name) if choice and key == "setting" else str
        controls.selectbox(bar, TITLES[key], options, key=key, default=value, format_func=names, disabled=not options)
    if choice:
        shown = {"attribute": choice.attribute, "captioner": choice.captioner, "setting": choice.setting}
        controls.carry(collection=collection, **{key: shown[key] for key in shown if key in fields})
    else:
        controls.carry(collection=collection)
    runs_dialog(engine, collection, bar)
    with st.container():  # keeps its position when the progress of runs comes and goes
        progress(engine, collection or None)
    return Page(engine, collection, choice)


def _options(choice: Choice | None, key: str) -> tuple[list[str], str | None]:
    """What a field of the bar offers, and what it shows."""
    if choice is None:
        return [], None
    shown = {"references": choice.measured_with.references}
    return list(choice.options.get(key, ())), shown.get(key) or getattr(choice, key, None)


def chosen(workspace: Workspace, collection: str, **choices: str) -> Choice | None:
    """What is shown of a collection, by the address and what other pages chose; None if nothing is scored.

    choices: in place of these.
    """
    if not collection or collection not in workspace.scored():
        return None
    rows = rows_of(workspace, collection)
    given = {key: controls.named(key) for key in ("attribute", "captioner", "setting", "references")}
    try:
        return choose(workspace, rows, {"collection": collection} | given | choices)
    except CapbiasError:
        return None


def rows_of(workspace: Workspace, collection: str) -> pd.DataFrame:
    """All that is measured of a collection; callers only read it."""
    return _rows(str(workspace.folder), workspace.version(), collection)


@st.cache_resource(max_entries=8, show_spinner=False)
def _rows(folder: str, version: str, collection: str) -> pd.DataFrame:
    return measured_rows(Workspace(folder), collection)


def _engine(title: str) -> Engine:
    """The engine of the workspace. If that cannot be used, or somebody has to sign in first, the page ends here."""
    controls.enter(title)
    places.serve()
    with frame(title) as account:
        if sign_in.nobody():
            box("Sign in first.", "This server shows captions and scores to people whom it knows.")
            sign_in.ways_in()
            st.stop()
        with errors():
            folder, read_only = sign_in.workspace_folder(account)
            engine = engine_for(str(folder), read_only)
            if not read_only:
                _open_on_demo(engine.folder)
            _load_for_later()
            return engine
    st.stop()


@st.cache_resource(show_spinner="Loading the demo data")
def _open_on_demo(folder: str) -> None:
    """Once per server: if `make app` asks for it, an empty workspace gets the demo, and its runs start."""
    engine = engine_for(folder)
    if os.environ.get(DEMO_ASKED) and not engine.workspace.items():
        run_demo(engine)


@st.cache_resource(show_spinner=False)
def _load_for_later() -> None:
    """Once per server: while its first page is being read, load what the first visit of other pages would wait for."""

    def load() -> None:
        import plotly.graph_objects  # noqa: F401

    timer = threading.Timer(READING, load)
    timer.daemon = True
    timer.start()

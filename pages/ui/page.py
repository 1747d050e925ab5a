"""What each page calls: `page` first, for its frame and bar, and `draw` last, which draws it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import streamlit as st

from capbias_core.load import places
from capbias_core.prepare.tasks import function_words
from capbias_core.runs.demo import run_demo
from capbias_core.runs.engine import Engine, engine_for
from capbias_core.workspace.store import one_reading
from pages.ui import sign_in, view
from pages.ui.bar import Bar
from pages.ui.base import box, errors
from pages.ui.frame import frame
from pages.ui.runs import progress, runs_dialog

DEMO_ASKED = "CAPBIAS_DEMO"  # set by `make app`: an empty workspace opens on the demo
NEW_COLLECTION = (
    "What belongs together: a table of labels, human captions, and the captions of several models for the same images. "
    "To start another collection, type its name and press Enter."
)
UNSAVED = "unsaved_collection"  # in the session: the name on Data, which may be new
READING = 2.0  # seconds after the first page was asked for; by then it is being read


def draw(main: Callable[[], None]) -> None:
    """Draw a page by its function. The last line of each page."""
    with view.written_at_once(), one_reading(), errors():
        main()


def page(title: str, new: str = "") -> Bar:
    """Draw the frame, and the bar with the collection and the runs. The first call of each page; new: of `draw_bar`."""
    frame(title)
    return draw_bar(new)


def draw_bar(new: str = "") -> Bar:
    """The bar below the frame. Each page adds the controls that it reads.

    new: a collection that need not exist yet; with it, others can be named that do not exist either.
    """
    engine = _engine()
    workspace = engine.workspace
    with st.container(key="bar", horizontal=True, vertical_alignment="bottom", border=True):
        container = st.container(key="bar_choices", horizontal=True, vertical_alignment="bottom")
        runs_container = st.container(width="content")
    share = st.sidebar.popover("Share", icon=":material/link:", key="share_link", on_change="rerun")
    if share.open:
        share.code(view.address(), language=None, wrap_lines=True)
    collections = dict.fromkeys([*workspace.scored(), *workspace.collections()])  # scored ones first
    naming = {"accept_new_options": True, "help": NEW_COLLECTION} if new else {}
    for name in filter(None, (new, st.session_state.get(UNSAVED))):
        collections[name] = None
    collection = ""
    if collections:
        collection = view.selectbox(
            container,
            "Collection",
            collections,
            key="collection",
            missing="the collection",
            on_change=view.leave,
            **naming,
        )
    if new:  # a name that was typed stays chosen on other pages, which say what it lacks
        st.session_state[UNSAVED] = collection
    with runs_container:
        runs_dialog(engine, collection)
    with st.container():  # keeps its position when the progress of runs comes and goes
        progress(engine, collection or None)
    return Bar(engine, " ".join(collection.split()), container)


def _engine() -> Engine:
    """The engine of the workspace. If that cannot be used, or somebody has to sign in first, the page ends here."""
    places.serve()
    if sign_in.nobody():
        box("Sign in first.", "This server shows captions and scores to people whom it knows.")
        sign_in.ways_in()
        view.stop()
    with errors():
        folder, read_only = sign_in.workspace_folder()
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

        function_words(["to"])

    timer = threading.Timer(READING, load)
    timer.daemon = True
    timer.start()

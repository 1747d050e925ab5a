"""The first call of every page, and what each page needs: the workspace, the collection, an error as a box."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from typing import Literal

import streamlit as st

from capbias_core.errors import CapbiasError
from capbias_core.load import places
from capbias_core.prepare.tasks import function_words
from capbias_core.runs.demo import run_demo
from capbias_core.runs.engine import Engine, engine_for
from capbias_core.types import counted
from capbias_core.workspace import people
from capbias_core.workspace.ingest import DEMO
from capbias_core.workspace.labels import attribute_of
from capbias_core.workspace.store import Item, one_reading
from pages.ui import sign_in, view

DEMO_ASKED = "CAPBIAS_DEMO"  # set by `make app`: an empty workspace opens on the demo
READING = 2.0  # seconds after the first page was asked for; by then it is being read

# Marks of Markdown in a line: anywhere, not within a word, before a name, and only at the beginning of the line.
MARKS = r"[\\`*\[\]<~$]|&(?=#?\w)|(?<![^\W_])_|_(?![^\W_])|:(?=\S)|^[#+>=-]|(?<=^\d)[.)](?= )|(?<=^\d\d)[.)](?= )"

# Under a choice of captioners of which these are not chosen at first.
MASKED_TOO = "Masked and shortened sets are listed too."


def draw(main: Callable[[], None]) -> None:
    """Draw a page by its function. The last line of every page."""
    with view.written_at_once(), one_reading(), errors():
        main()


def workspace_engine() -> Engine:
    """The engine of the workspace. Where that cannot be used, or somebody has to sign in first, the page ends here."""
    places.serve()
    people.ask(sign_in.person)
    if sign_in.nobody():
        box("Sign in first.", "This server shows captions and scores to people whom it knows.")
        sign_in.ways_in()
        view.stop()
    with errors():
        engine = engine_for(str(sign_in.workspace_folder()))
        _open_on_demo(engine.folder)
        _load_for_later()
        return engine
    st.stop()


@st.cache_resource(show_spinner="Loading the demo data")
def _open_on_demo(folder: str) -> None:
    """Once per server: where `make app` asks for it, an empty workspace gets the demo, and its runs start."""
    engine = engine_for(folder)
    if os.environ.get(DEMO_ASKED) and not engine.workspace.items():
        run_demo(engine)


@st.cache_resource(show_spinner=False)
def _load_for_later() -> None:
    """Once per server: while its first page is being read, what the first visit of other pages would wait for."""
    timer = threading.Timer(READING, _load)
    timer.daemon = True
    timer.start()


def _load() -> None:
    import plotly.graph_objects  # noqa: F401

    function_words(["to"])


@contextmanager
def errors() -> Iterator[None]:
    """Show a CapbiasError of the block as one box; nothing of a traceback reaches the page."""
    try:
        yield
    except CapbiasError as error:
        show_error(error)


def delete_button(name: str, told: str, delete: Callable[[], object]) -> None:
    """A button that, once confirmed, deletes what it names, whatever others have kept or deleted since it was drawn.

    told: what goes with it. delete: may raise CapbiasError. `deleted` says how it went.
    """
    with st.popover(plain(f"Delete {name}"), icon=":material/delete:"):
        note(told)
        st.button("Delete for good", type="primary", key="delete", on_click=_delete, args=(name, delete))


def _delete(name: str, delete: Callable[[], object]) -> None:
    try:
        delete()
        st.session_state["deleted"] = name
    except CapbiasError as error:
        st.session_state["not_deleted"] = error


def deleted() -> None:
    """What became of the last deletion, once; in a place of its own, so that what stands below keeps its own."""
    with st.container():
        if name := view.told("deleted"):
            st.success(plain(f"Deleted {name}."))
        if refused := view.told("not_deleted"):
            show_error(refused)


def show_error(error: CapbiasError) -> None:
    """The message and the hint, as text whatever a file's words hold."""
    lines = [f"<b>{escape(error.message)}</b>", escape(error.hint)]
    st.html(f'<div class="cb-error" role="alert">{"<br>".join(filter(None, lines))}</div>')


def box(headline: str, *paragraphs: str) -> None:
    """What a page says first, as text."""
    below = "".join(f"<p>{escape(text)}</p>" for text in paragraphs if text)
    st.html(f'<div class="cb-answer"><b>{escape(headline)}</b>{below}</div>')


def note(text: str) -> None:
    """Small print, as text."""
    st.html(f'<div class="cb-note">{escape(text)}</div>')


def caveats(lines: Iterable[str]) -> None:
    """What the numbers cannot say, in one place: the first line, and behind it the others, folded."""
    if not (said := list(map(escape, dict.fromkeys(filter(None, lines))))):
        return
    first, *others = said
    rest = "".join(f"<li>{line}</li>" for line in others)
    folded = f"<details><summary>{counted(len(others), 'more note')}</summary><ul>{rest}</ul></details>"
    st.html(f'<div class="cb-note cb-caveats" role="note">{first}{folded if others else ""}</div>')


def label_caveats(labels: Mapping[str, Item], more: Iterable[str] = ()) -> None:
    """What the labels of some attributes leave out, and further lines, as `caveats`. labels: of `label_tables`."""
    caveats([*(attribute_of(table, name)[0].note for name, table in labels.items()), *more])


def masked_left_out(names: Iterable[str], choose: str = "") -> str:
    """What is said where captions of masked photographs take no part; '' where there are none."""
    named = ", ".join(names)
    return f"Left out: {named} (captions of masked photographs). {choose}See Images." if named else ""


def plain(text: str) -> str:
    """Text for a label that Streamlit reads as Markdown: marks are escaped, so that it is shown as written.

    Only where they are marks: a control's name for screen readers is the label as it stands, escapes and all.
    """
    return re.sub(MARKS, r"\\\g<0>", text)


def attribute_names(tables: Iterable[Item]) -> list[str]:
    """The protected attributes of some tables of labels, each once."""
    return list(dict.fromkeys(name for item in tables for name in item.details["attributes"]))


LABELS = "labels (a table with an image ID and one column per attribute)"


def captions_and_labels(engine: Engine, collection: str, labels: str = LABELS) -> tuple[list[str], list[Item]] | None:
    """Names of the caption sets and the tables of labels; where one is missing, None, and what to do next is shown."""
    if not collection:
        empty_state(engine, "No captions are loaded yet.")
        return None
    sets = [item.name for item in engine.workspace.items("captions", collection)]
    tables = engine.workspace.items("attributes", collection)
    if not sets or not attribute_names(tables):
        lacking(engine, collection, labels if sets else "captions of a model")
        return None
    return sets, tables


def lacking(engine: Engine, collection: str, what: str) -> None:
    """What a collection has not, and what to do next."""
    box("Nothing to show yet.", f"Add {what} to “{collection}” to see results here.")
    buttons = st.container(horizontal=True)
    if buttons.button("Add data", type="primary", icon=":material/upload:"):
        view.go("pages/1_Data.py")
    demo_button(buttons, engine, type="secondary")


def empty_state(engine: Engine, text: str) -> None:
    """What to do next where nothing is loaded: the demo in one click, or one's own captions."""
    box("Nothing to show yet.", text)
    buttons = st.container(horizontal=True)
    demo_button(buttons, engine, width="stretch")
    if buttons.button("Load my captions"):
        view.go("pages/1_Data.py")


def demo_button(place, engine: Engine, type: Literal["primary", "secondary"] = "primary", **more) -> None:
    """One click that loads the demo data, starts its runs and shows the front page."""
    if place.button("Try it on the demo data", type=type, key="demo", on_click=_start_demo, args=(engine,), **more):
        view.go("app.py", collection=DEMO)


@errors()
def _start_demo(engine: Engine) -> None:
    """Before the page is drawn, so that the collection picker can be told."""
    run_demo(engine)
    view.choose("collection", DEMO)

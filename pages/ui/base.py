"""What a page shows, and texts of pages: answers, notes, caveats, errors as boxes, and a button that deletes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from html import escape
from typing import TypeVar

import streamlit as st

from capbias_core.errors import CapbiasError
from capbias_core.measures.registry import METRICS
from capbias_core.types import counted
from pages.ui import controls
from pages.ui.plain import plain

TERMS = {
    "A→T": "Attribute to task. DBAC: captions reveal the attribute. DPA, DBA: objects are named by the attribute",
    "T→A": "Task to attribute. DBAC: captions reveal the objects. DPA, DBA: the attribute is named by the objects",
    "variants of DBAC": "Formulas of the same metric: as the paper prints it, as its code computes it, by accuracy",
    "with refits": "Counts the images, and also that an attacker trained on other images would guess differently",
    "Holm": "A correction for testing many differences at once: fewer false alarms",
    "Preview": "By a quick linear classifier. The paper's is a network, which may give another number",
    "logit": "The score behind the guess: 0 is undecided, the sign is the side, the size is how sure",
}
ABBREVIATIONS = [name for name in METRICS if name != name.lower()]  # `error` and the like are words
T = TypeVar("T")
KNOWN_TERMS = re.compile(
    rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted([*TERMS, *ABBREVIATIONS], key=len, reverse=True)))})(?!\w)"
)
SAVED = "saved_message"  # in the session: what the last action saved


@contextmanager
def errors() -> Iterator[None]:
    """Show a CapbiasError of the block as one box; nothing of a traceback reaches the page."""
    try:
        yield
    except CapbiasError as error:
        show_error(error)


def show_error(error: CapbiasError) -> None:
    """The message and the hint, as text whatever a file's words hold."""
    lines = [f"<b>{escape(error.message)}</b>", escape(error.hint)]
    st.html(f'<div class="cb-error" role="alert">{"<br>".join(filter(None, lines))}</div>')


def explained(text: str) -> str:
    """Text as HTML, with a tooltip on the first use of each of TERMS and ABBREVIATIONS."""
    seen: set[str] = set()

    def mark(match: re.Match) -> str:
        term = match[0]
        if term in seen:
            return term
        seen.add(term)
        return f'<abbr title="{escape(defined(term))}">{term}</abbr>'

    return KNOWN_TERMS.sub(mark, escape(text))


def defined(term: str) -> str:
    """What one of TERMS or a metric means; '' for another text."""
    metric = METRICS.get(term)
    return TERMS.get(term) or (f"{metric.title}. {metric.explanation}" if metric else "")


def box(headline: str, *paragraphs: str) -> None:
    """The answer of a page, as text."""
    below = "".join(f"<p>{explained(text)}</p>" for text in paragraphs if text)
    st.html(f'<div class="cb-answer"><b>{explained(headline)}</b>{below}</div>')


def note(text: str) -> None:
    """Small print, as text."""
    st.html(f'<div class="cb-note">{explained(text)}</div>')


def notes(lines: Iterable[str]) -> None:
    """Several notes, side by side in a wide window."""
    texts = "".join(f'<div class="cb-note">{explained(line)}</div>' for line in lines)
    st.html(f'<div class="cb-notes">{texts}</div>')


def caveats(lines: Iterable[str]) -> None:
    """What limits the numbers: the first line, and the others folded."""
    if not (texts := list(map(explained, dict.fromkeys(filter(None, lines))))):
        return
    first, *others = texts
    rest = "".join(f"<li>{line}</li>" for line in others)
    folded = f"<details><summary>{counted(len(others), 'more note')}</summary><ul>{rest}</ul></details>"
    st.html(f'<div class="cb-note cb-caveats" role="note">{first}{folded if others else ""}</div>')


def delete_button(name: str, consequence: str, delete: Callable[[], object], key: str = "delete") -> None:
    """A button that, once confirmed, deletes what it names. delete: may raise CapbiasError; `show_messages` reports it.

    What is deleted is what was drawn, whatever others saved or deleted since.
    """

    def work() -> None:
        try:
            delete()
            st.session_state["deleted"] = name
        except CapbiasError as error:
            st.session_state["not_deleted"] = error

    with st.popover(plain(f"Delete {name}"), icon=":material/delete:"):
        note(consequence)
        st.button("Delete for good", type="primary", key=key, on_click=work)


def show_messages() -> None:
    """What the last action saved or deleted, once; in a container, so that the elements below keep their state."""
    with st.container():
        if text := controls.pop_message(SAVED):
            st.success(plain(text))
        if name := controls.pop_message("deleted"):
            st.success(plain(f"Deleted {name}."))
        if error := controls.pop_message("not_deleted"):
            show_error(error)


@st.cache_resource(show_spinner=False, max_entries=256)
def once(key: str, _work: Callable[[], T]) -> T:
    """The result of some work that depends on its key alone, such as a folder, the workspace's version and choices.
    Shared by all sessions, so callers only read it."""
    return _work()

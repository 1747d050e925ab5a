"""Controls whose choices are in the address: read at the top of a page, written at its end.

The address holds the fields of the bar and what was chosen on the tab; what nobody chose is not in it. A link, a
reload and the back button therefore show what was there. A choice of one of SHARED holds on all pages. An option that a
link names and that is not here is named in a line, and another one is shown.

A control is drawn with its value as its default, too: a value that is only in the session is sent to the browser once,
and is lost if the page runs again before that. Streamlit's `bind="query-params"` is not used: in 1.67 `st.switch_page`
raises while a control is bound, and an unknown option disappears without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from html import escape
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from capbias_core.errors import short

# Choices that hold on all pages; those after the second, until another collection is chosen.
SHARED = ("workspace", "collection", "attribute", "captioner", "setting", "references")
OF_COLLECTION = SHARED[2:]
TAB = "tab"
MOST_LETTERS = 5_000  # of a text from the address or a browser


def enter(page: str) -> None:
    """The first call of each page: on another page than before, its own choices start anew."""
    if st.session_state.get("page") != page:
        for key in st.session_state.get("drawn", ()):
            st.session_state.pop(key, None)
        st.session_state["page"] = page
    st.session_state["drawn"] = {}  # key -> texts that the address is to hold
    st.session_state.setdefault("carried", {})


@contextmanager
def written_at_end() -> Iterator[None]:
    """Write what was drawn in the block into the address, once: a browser draws anew at each change of it."""
    yield
    write()


def write() -> None:
    """The address says what is shown."""
    carried = {key: [value] for key, value in st.session_state["carried"].items() if value}
    wanted = carried | {key: texts for key, texts in st.session_state["drawn"].items() if texts}
    if {key: st.query_params.get_all(key) for key in st.query_params} != wanted:
        st.query_params.from_dict(wanted)
    for key in st.session_state.pop("shown_messages", ()):
        st.session_state.pop(key, None)


def given(key: str) -> list[str]:
    """What the address names by a key, else what another page chose; short texts alone."""
    texts = st.query_params.get_all(key)
    if not texts and (carried := st.session_state.get("carried", {}).get(key)):
        texts = [carried]
    return [text for text in texts if len(text) <= MOST_LETTERS]


def named(key: str) -> str:
    """The last text of `given`; '' if there is none."""
    return (given(key) or [""])[-1]


def kept(key: str) -> str:
    """A choice that no control draws, such as a click in a chart; the address keeps it as that of a control."""
    st.session_state["drawn"][key] = st.query_params.get_all(key)
    return named(key)


def choose(**choices: Any) -> None:
    """Set choices before they are drawn, on this page or the next; another collection has other choices. None and ''
    take a choice back."""
    carried = st.session_state.setdefault("carried", {})
    if "collection" in choices and choices["collection"] != carried.get("collection"):
        leave(*OF_COLLECTION)
        leave_tab()
    for key, value in choices.items():
        texts = [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)]
        if value in (None, "") or not texts:
            leave(key)
            continue
        st.query_params[key] = texts
        if key in SHARED:
            carried[key] = texts[-1]


def leave(*keys: str) -> None:
    """Let controls start anew."""
    for key in keys:
        st.query_params.pop(key, None)
        st.session_state.get("carried", {}).pop(key, None)
        st.session_state.pop(key, None)


def leave_tab() -> None:
    """Let everything but the bar and the tab start anew."""
    leave(*(key for key in [*st.query_params] if key not in (*SHARED, TAB)))


def carry(**choices: str) -> None:
    """Note the fields of the bar as they are shown: the address and links to other pages hold them."""
    st.session_state["carried"] |= choices


def query(**choices: str) -> dict[str, str]:
    """The query of a link to another page: the bar, and choices by key."""
    return {key: value for key, value in st.session_state.get("carried", {}).items() if value} | choices


def link(container: Any, page: str, label: str, icon: str = "", **choices: str) -> None:
    """A link to another page that keeps the bar. choices: what the page opens on, by key."""
    container.page_link(page, label=label, icon=icon or None, query_params=query(**choices))


def go(page: str, **choices: str) -> None:
    """Open another page at once, as `link` does."""
    st.switch_page(page, query_params=query(**choices))


def address() -> str:
    """The whole address of what is shown."""
    choices = {key: st.query_params.get_all(key) for key in st.query_params}
    return f"{(st.context.url or '').partition('?')[0]}?{urlencode(choices, doseq=True)}"


def pop_message(key: str) -> Any:
    """What the last action left in the session to be shown once; None if nothing. It is removed when the page is
    written: a run that is cut short may not have reached the browser."""
    if key in st.session_state:
        st.session_state.setdefault("shown_messages", set()).add(key)
    return st.session_state.get(key)


# controls


def selectbox(
    container: Any,
    label: str,
    options: Iterable[Any],
    *,
    key: str,
    default: Any = None,
    draw: str = "selectbox",
    optional: bool = False,
    **more: Any,
) -> Any:
    """One of some options; None if there are none. default: the first unless given. optional: nothing is chosen at
    first. draw: another of Streamlit's controls that choose one."""
    options = list(options)
    free = bool(more.get("accept_new_options"))
    by_text = {str(option): option for option in options}
    if not options and not free:
        return None
    value = default if default is not None or optional else options[0]
    if wanted := named(key):
        if wanted in by_text or free:
            value = by_text.get(wanted, wanted)
        else:
            missing(label, wanted)
    place = options.index(value) if value in options else None
    position = {"default": value} if draw in ("segmented_control", "pills") else {"index": place}
    more = _changes(key, more)
    return _drawn(key, value, lambda: getattr(container, draw)(label, options, key=key, **position, **more))


def multiselect(
    container: Any, label: str, options: Iterable[Any], *, key: str, default: Sequence[Any] = (), **more: Any
) -> list[Any]:
    """Several of some options, in the order chosen."""
    by_text = {str(option): option for option in options}
    wanted = [text for text in st.query_params.get_all(key) if len(text) <= MOST_LETTERS]
    for text in wanted:
        if text and text not in by_text:
            missing(label, text)
    value = [by_text[text] for text in wanted if text in by_text] if wanted else list(default)
    draw = lambda: container.multiselect(label, list(by_text.values()), value, key=key, **_changes(key, more))  # noqa: E731
    return _drawn(key, value, draw)


def number(
    container: Any, label: str, low: float | None, high: float | None, default: float | None, *, key: str, **more: Any
) -> Any:
    """A number between two bounds, of the type of the default."""
    kind, value = type(default) if default is not None else float, default
    if wanted := named(key):
        with suppress(ValueError, OverflowError):
            if (low is None or kind(wanted) >= low) and (high is None or kind(wanted) <= high):
                value = kind(wanted)
    draw = lambda: container.number_input(label, low, high, value, key=key, **_changes(key, more))  # noqa: E731
    return _drawn(key, value, draw)


def text(container: Any, label: str, *, key: str, default: str = "", area: bool = False, **more: Any) -> str:
    """A line of text, or several lines."""
    value = named(key) or default
    draw = container.text_area if area else container.text_input
    return _drawn(key, value, lambda: draw(label, value, key=key, **_changes(key, more)))


def checkbox(
    container: Any, label: str, *, key: str, default: bool = False, draw: str = "checkbox", **more: Any
) -> bool:
    """Yes or no, as 1 or 0 in the address."""
    value = {"1": True, "0": False}.get(named(key), default)
    return _drawn(key, value, lambda: getattr(container, draw)(label, value, key=key, **_changes(key, more)))


def tabs(names: Iterable[str]) -> str:
    """Which tab of a page is shown; only that one is drawn. Its choices go when another one is chosen."""
    look = {"draw": "segmented_control", "required": True, "label_visibility": "collapsed"}
    return selectbox(st, "View", names, key=TAB, on_change=leave_tab, **look)


def missing(label: str, wanted: str) -> None:
    """A line on what a link names and is not here."""
    name = escape(f"{short(wanted, 100)!r}")
    st.html(f'<div class="cb-note">⚠ There is no {escape(label.lower())} {name} here. Another is shown.</div>')


def _changes(key: str, more: dict[str, Any]) -> dict[str, Any]:
    """What a control takes besides, with what happens when it changes: the address gets its value."""
    also: Callable[[], object] | None = more.pop("on_change", None)

    def changed() -> None:
        value = st.session_state.get(key)
        if also:
            also()
        if isinstance(value, bool):
            value = int(value)
        choose(**{key: value})
        if isinstance(value, list) and not value:
            st.query_params[key] = [""]  # none is another choice than no choice

    return more | {"on_change": changed}


def _drawn(key: str, value: Any, draw: Callable[[], Any]) -> Any:
    st.session_state[key] = value
    st.session_state["drawn"][key] = st.query_params.get_all(key)
    return draw()

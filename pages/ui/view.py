"""The state of a view is in the address: one list of controls, and the functions that draw them.

A control starts at what the address names, else at what was chosen on another page, else at its default. A link, a
reload and the browser's back button therefore show what was there. CONTROLS says for how long a choice holds, and
whether its default depends on data.

What the address leaves out: a choice that equals its default, if the default is fixed. What data decide (such as the
captioner that is shown first) is in the address even if nobody chose it, so that a link means the same after data were
added. While results arrive such a default may change, so it is left out until they are there. A default that nobody
chose gives way to a new default; a choice stays. An option that a link names and is not here stays in the address, with
a line that says so, until another option is chosen. Links to other pages go through `link`, `go` and `query`.

Streamlit's `bind="query-params"` is not used. In Streamlit 1.67 `st.switch_page` raises an exception while a control of
the page is bound, a link to a page that binds the same key loses its value, defaults that data decide are left out, and
an unknown option disappears without a word.

A control is drawn with its value as its default, too. A value that is only in the session is sent to the browser once;
if the page runs again before it is sent, it is lost: the browser would show the first option and send that back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from html import escape
from types import MappingProxyType
from typing import Any, NoReturn
from urllib.parse import urlencode

import streamlit as st

from capbias_core.types import CONDITIONS
from pages.ui.plain import plain

# How long a choice holds: on all pages; on all pages, until another collection is chosen; on its page; on its tab.
ALL, COLLECTION, PAGE, TAB = "all", "collection", "page", "tab"
FIXED, DATA = "fixed", "data"  # what a default depends on
# Key -> scope, and the default. A key that is not listed is (TAB, FIXED).
CONTROLS = {
    "workspace": (ALL, DATA),
    "collection": (ALL, DATA),
    "delta": (ALL, FIXED),
    "tab": (PAGE, DATA),  # its step of the back button is known by it
    **dict.fromkeys(("metrics", "mode", "present", "runs", "run"), (PAGE, FIXED)),
    **dict.fromkeys(("attribute", "table", "references", "captioner", "attacker"), (COLLECTION, DATA)),
    **dict.fromkeys(("sets", "alignment"), (COLLECTION, FIXED)),
    **dict.fromkeys(("measured_with", "seeds", "objects_of", "against", "before", "after"), (TAB, DATA)),
    **dict.fromkeys(("values", "measure", "tested", "compared", "vectors", "photographs", "people"), (TAB, DATA)),
    **dict.fromkeys(("photograph", "paper", "printed_table", "order", "draw"), (TAB, DATA)),
    **dict.fromkeys((f"set_{condition}" for condition in CONDITIONS), (TAB, DATA)),
}
# Letters of a text that is taken from the address or a browser. A longer caption can be read, but not edited.
MOST_LETTERS = 5_000
# Is not an option of any control.
UNFIT: Any = object()


@dataclass
class _Memory:
    """What a session remembers of its view from one run of the script to the next."""

    page: str = ""
    shared: dict[str, Any] = field(default_factory=dict)  # choices that hold on other pages too
    defaults: dict[str, Any] = field(default_factory=dict)  # of controls that nobody set
    drawn: dict[str, list[str]] = field(default_factory=dict)  # the choices of this run, as texts
    to_write: dict[str, list[str]] = field(default_factory=dict)  # of these, what the address is to hold
    written: dict[str, list[str]] = field(default_factory=dict)  # what this page has written
    missing: set[str] = field(default_factory=set)  # keys of what a link names and is not here
    messages: set[str] = field(default_factory=set)  # shown by the run under way
    whole_run: bool = False  # the choices are written at its end; else, in a fragment, at once
    arriving: bool = False  # results are


def _memory() -> _Memory:
    return st.session_state.setdefault("view", _Memory())


def _scope(key: str) -> str:
    return CONTROLS.get(key, (TAB, FIXED))[0]


def enter(title: str) -> None:
    """Start a page; the first call of each. Choices of the page that was left stay in that page's address."""
    memory = _memory()
    if memory.page != title:
        for key in {*memory.drawn, *memory.written, *memory.defaults}:
            st.session_state.pop(key, None)
        memory.page, memory.written, memory.defaults, memory.missing = title, {}, {}, set()
    memory.drawn, memory.to_write = {}, {}


@contextmanager
def written_at_once() -> Iterator[None]:
    """Write the choices of the block into the address when it ends: a browser draws anew at each change of that.

    If another run of the page, or another page, takes over, that one writes, and repeats the messages.
    """
    memory = _memory()
    memory.whole_run = True
    try:
        yield
        _write()
    finally:
        memory.whole_run = False


def stop() -> NoReturn:
    """End the page here."""
    _write()
    st.stop()


def _write() -> None:
    memory = _memory()
    before = {key: st.query_params.get_all(key) for key in st.query_params}
    unchanged = {key: texts for key, texts in before.items() if key not in memory.written}
    after = {key: texts for key, texts in (unchanged | memory.to_write).items() if texts}
    if after != before:
        st.query_params.from_dict(after)
    memory.written = {key: texts for key, texts in memory.to_write.items() if texts}
    for key in memory.messages:
        st.session_state.pop(key, None)
    memory.messages = set()


def results_arrive(arriving: bool) -> None:
    """Whether they do: until they are there, no default of a collection's control is in the address."""
    _memory().arriving = arriving


def choices() -> dict[str, list[str]]:
    """The page, and the choices of the controls drawn so far, as texts."""
    memory = _memory()
    return {"view_page": [memory.page]} | memory.drawn


def pop_message(key: str) -> Any:
    """What the last action left in the session to be shown once; None if nothing.

    It is removed after the page was drawn to its end: a run that is cut short may not have reached the browser.
    """
    if key in st.session_state:
        _memory().messages.add(key)
    return st.session_state.get(key)


def named(key: str) -> str:
    """What the address names by a key, before its control is drawn; '' if nothing."""
    return st.query_params.get(key, "")


def address() -> str:
    """The whole address of this view, as the browser has it."""
    choices = {key: st.query_params.get_all(key) for key in st.query_params}
    return f"{(st.context.url or '').partition('?')[0]}?{urlencode(choices, doseq=True)}"


def query(**choices: str) -> dict[str, str]:
    """The query of a link to another page: its workspace and collection, and choices by key."""
    here = {key: st.session_state.get(key) or st.query_params.get(key) for key in ("workspace", "collection")}
    return {key: value for key, value in here.items() if value} | choices


def link(container, page: str, label: str, icon: str = "", **choices: str) -> None:
    """A link to another page that keeps the collection; choices: what the page opens on, by key."""
    container.page_link(page, label=plain(label), icon=icon or None, query_params=query(**choices))


def go(page: str, **choices: str) -> None:
    """Open another page at once, as `link` does."""
    st.switch_page(page, query_params=query(**choices))


def forget(keys: Iterable[str]) -> None:
    """Let controls start anew."""
    memory = _memory()
    for key in [*keys]:
        for known in (st.session_state, memory.shared, memory.defaults):
            known.pop(key, None)
        memory.missing.discard(key)


def leave(*scopes: str) -> None:
    """Let controls of these scopes start anew; without any, those of a collection, since another one is chosen."""
    memory, left = _memory(), scopes or (COLLECTION, TAB)
    forget(key for key in {*memory.drawn, *memory.written, *memory.shared} if _scope(key) in left)


def chosen_elsewhere(key: str) -> Any:
    """What another page chose, while neither this page nor its address has a choice; else None."""
    here = key in st.session_state or key in st.query_params
    return None if here else _memory().shared.get(key)


def choose(key: str, value: Any) -> None:
    """Set a control before it is drawn, on this page or the next; another collection has other choices."""
    memory = _memory()
    if key == "collection" and value != st.session_state.get(key):
        leave()
    memory.defaults.pop(key, None)
    st.session_state[key] = value
    if _scope(key) in (ALL, COLLECTION):
        memory.shared[key] = value


def selectbox(
    container,
    label: str,
    options: Iterable[Any],
    *,
    key: str,
    default: Any = None,
    missing: str = "",
    draw: str = "selectbox",
    shown: bool = True,
    unfit: Mapping[str, str] = MappingProxyType({}),
    any_case: bool = False,
    **more,
) -> Any:
    """One of some options; None if there are none.

    default: the first option unless given. missing: what to call an option that the link names and is not here; the
    label unless given. unfit: options of other pages, and why this page does not offer them. draw: another of
    Streamlit's controls that choose options. shown: whether there is a control; if not, the choice is in the address
    alone. any_case: whether a link may write an option in any case, as names of metrics.
    """
    options, several = list(options), draw == "multiselect"
    title, free = more.get("format_func", str), bool(more.get("accept_new_options"))
    if more.pop("index", 0) is not None and default is None:
        default = next(iter(options), None)

    def write(option: Any) -> str:
        return option if isinstance(option, str) else str(title(option))

    by_text = {str(title(option)): option for option in options} | {write(option): option for option in options}
    if any_case:
        by_text = {text.lower(): option for text, option in by_text.items()}

    def read(texts: list[str]) -> tuple[Any, list[str]]:
        texts = [text.lower() if any_case else text for text in (texts if several else texts[-1:])]
        known = [by_text.get(text, text) for text in texts if text in by_text or (free and text)]
        unknown = [text for text in texts if text and text not in by_text and not free]
        if several:
            return known if known or not unknown else UNFIT, unknown
        return (known[0], []) if known else (UNFIT, unknown)

    def fits(value: Any) -> bool:
        if several:
            return isinstance(value, list) and (free or all(option in options for option in value))
        return value in options or (free and isinstance(value, str)) or (value is None and default is None)

    def drawn(value: Any) -> Any:
        index = options.index(value) if value in options else None
        start: dict[str, Any] = {"index": index} if draw == "selectbox" else {"default": value}
        if draw == "segmented_control":  # its options are Markdown, too
            start["format_func"] = lambda option: plain(title(option))
        return getattr(container, draw)(plain(label), options, key=key, **more | start) if shown else value

    return _control(key, default, drawn, read, fits, write, missing or label, unfit=unfit)


def multiselect(container, label: str, options: Iterable[Any], *, default: Sequence[Any] = (), **more) -> list[Any]:
    """Some of the options, as `selectbox`; none at all is written as an empty choice."""
    return selectbox(container, label, options, default=list(default), draw="multiselect", **more)


def linked_selectbox(
    container, label: str, options: Mapping[str, Mapping[str, Any]], titles: Mapping[str, str], **more
) -> str:
    """One of some options that stand for several choices each, by key.

    It opens on the option that agrees most with the choices made on other pages or named by the address, and its
    choices hold on other pages once it is chosen. If no option has what was chosen before, a line says so. titles: how
    each is shown.
    """
    memory = _memory()
    last = {**st.query_params, **memory.shared}
    agreeing = {name: sum(last.get(key) == value for key, value in made.items()) for name, made in options.items()}
    nearest = max(agreeing, key=lambda name: agreeing[name])
    chosen = selectbox(container, label, options, default=nearest, format_func=titles.get, **more)
    before = {key: memory.shared[key] for key in options[chosen] if memory.shared.get(key) is not None}
    if chosen == nearest and any(options[chosen][key] != value for key, value in before.items()):
        names = ", ".join(map(str, before.values()))
        _warn(f"Chosen before: {names}. Nothing is measured with that yet. Another choice is shown.")
    elif more["key"] not in memory.defaults:
        memory.shared |= options[chosen]
    return chosen


def tabs(names: Iterable[str]) -> str:
    """Which tab of a page is shown; only that one is drawn. Its choices go when another one is chosen."""
    look = {"draw": "segmented_control", "required": True, "label_visibility": "collapsed"}
    return selectbox(st, "View", names, key="tab", on_change=leave, args=(TAB,), **look)


def number(
    container,
    label: str,
    low: float | None,
    high: float | None,
    default: float | None,
    *,
    key: str,
    kind: Any = None,
    **more,
) -> Any:
    """A number between two bounds. kind: int or float; that of the default unless given."""
    kind = kind or type(default)

    def read(texts: list[str]) -> tuple[Any, list[str]]:
        with suppress(ValueError):
            value = kind(texts[-1]) if texts[-1] or default is not None else None
            if fits(value):
                return value, []
        return UNFIT, texts[-1:]

    def fits(value: Any) -> bool:
        if value is None:
            return default is None
        known = isinstance(value, int | float) and abs(value) < 2**53  # as a browser has it
        return known and (low is None or value >= low) and (high is None or value <= high)

    ends = " ".join(f"{word} {end:,}" for word, end in (("from", low), ("to", high)) if end is not None)
    wanted = f"{'a whole number' if kind is int else 'a number'} {ends}".strip()
    drawn = partial(container.number_input, plain(label), low, high, key=key, **more)
    return _control(key, default, drawn, read, fits, missing=label, wanted=wanted)


def text(container, label: str, *, key: str, default: str = "", **more) -> str:
    """A line of text."""
    drawn = partial(container.text_input, plain(label), key=key, **more)
    return _control(key, default, drawn, lambda texts: (texts[-1], []), missing=label)


def checkbox(container, label: str, *, key: str, default: bool = False, draw: str = "checkbox", **more) -> bool:
    """Yes or no, as 1 or 0 in the address. draw: another of Streamlit's controls that say yes or no."""
    words = {"1": True, "true": True, "0": False, "false": False}
    drawn = partial(getattr(container, draw), plain(label), key=key, **more)
    return _control(key, default, drawn, lambda texts: (words.get(texts[-1].lower(), UNFIT), []))


def state(key: str, default: Any) -> Any:
    """A whole number, or yes or no as 1 or 0, for which there is no control; `choose` sets it."""
    kind: Any = type(default)

    def read(texts: list[str]) -> tuple[Any, list[str]]:
        with suppress(ValueError):
            return kind(int(texts[-1])), []
        return UNFIT, []

    return _control(key, default, lambda value: value, read)


def _control(
    key: str,
    default: Any,
    draw: Callable[[Any], Any],
    read: Callable[[list[str]], tuple[Any, list[str]]],
    fits: Callable[[Any], bool] | None = None,
    write: Callable[[Any], str] = str,
    missing: str = "",
    wanted: str = "here",
    unfit: Mapping[str, str] = MappingProxyType({}),
) -> Any:
    """Draw a control at the value that it should have, and note what the address is to hold.

    draw: the control at a value; returns the choice. read: the value that texts of the address stand for, or UNFIT, and
    those texts that are no option. fits: whether a value can be shown; those of the default's type unless given. write:
    a choice as text. wanted: what an option is. missing, unfit: of `selectbox`.
    """
    fits = fits or (lambda value: isinstance(value, type(default)))
    memory, session, in_address = _memory(), st.session_state, st.query_params.get_all(key)
    scope, default_by = CONTROLS.get(key, (TAB, FIXED))
    shared = scope in (ALL, COLLECTION)
    linked, unknown = UNFIT, []
    if not _is_short(in_address):
        unknown = ["a long text"]
    elif in_address:
        linked, unknown = read(in_address)
        linked = linked if fits(linked) else UNFIT

    # The address if it changed, else the session; then what another page chose; then the default.
    if in_address != memory.written.get(key, []):  # a link, or the back button
        session.pop(key, None)
        memory.defaults.pop(key, None)
        memory.missing = memory.missing - {key} | ({key} if unknown and missing else set())
        if linked is not UNFIT:
            session[key] = linked
    if shared and unknown and unknown[0] in unfit:
        memory.shared[key] = unknown[0]
    elsewhere = memory.shared.get(key, UNFIT)
    if key not in session and fits(elsewhere):
        session[key] = elsewhere
    value = session.get(key, UNFIT)
    if not (fits(value) and _is_short(value)) or value == memory.defaults.get(key, UNFIT):
        memory.defaults[key] = value = default
    else:
        memory.defaults.pop(key, None)  # chosen, or named by the address
    if session.get(key, UNFIT) != value:
        session[key] = value

    # Until another option is chosen, the address keeps an option that is not here, and a line names it.
    if value != (default if linked is UNFIT else linked):
        memory.missing.discard(key)
    if not (is_missing := key in memory.missing):
        unfit_elsewhere = key in memory.defaults and isinstance(elsewhere, str) and elsewhere in unfit
        unknown = [elsewhere] if unfit_elsewhere else []
    no_collection = memory.to_write.get("collection", []) != memory.drawn.get("collection", [])
    if not (no_collection and scope in (COLLECTION, TAB)):  # without it they are missing too
        for name in unknown:
            why = unfit.get(name) or f"The link names {missing} {name[:100]!r}, which is not {wanted}."
            _warn(f"{why} Another choice is shown.")

    chosen, by_nobody = draw(value), key in memory.defaults
    if shared and not by_nobody:
        memory.shared[key] = chosen
    if isinstance(chosen, list):
        texts = [write(option) for option in chosen] or [""]
    else:
        texts = ["" if chosen is None else str(int(chosen)) if isinstance(chosen, bool) else write(chosen)]
    memory.drawn[key] = texts
    unsettled = by_nobody and memory.arriving and scope in (COLLECTION, TAB)
    left_out = chosen == default if default_by == FIXED else unsettled
    memory.to_write[key] = in_address if is_missing else [] if left_out else texts
    if not memory.whole_run:
        _write()
    return chosen


def _warn(text: str) -> None:
    st.html(f'<div class="cb-note">⚠ {escape(text)}</div>')


def _is_short(value: Any) -> bool:
    texts = value if isinstance(value, list) else [value]
    return all(len(text) <= MOST_LETTERS for text in texts if isinstance(text, str))

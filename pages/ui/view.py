"""The state of a view: each choice on a page is in its address, defaults too (but for those that follow results
while runs arrive).

A control is drawn by a function of this module instead of Streamlit's. It starts at what the address names, else at
what was last chosen on another page (collection, attribute, captioner and the like), else at its default; the choice is
written into the address at once. So a link means the same to everybody, also after data were added, and a reload or the
browser's back button shows what was there. Links to other pages go through `link`, `go` and `query`.

Streamlit's `bind` is not used: it leaves defaults out, and a page that is left by a button may not clear what a control
is bound to.

A control is drawn with its value as its default, too. A value that is only in the session is sent to the browser once;
if the page runs again before it is sent, it is lost: the browser would show the first option and send that back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html import escape
from types import MappingProxyType
from typing import Any, NoReturn
from urllib.parse import urlencode

import streamlit as st

# Chosen on one page, and meant on all others.
SHARED = (
    *("workspace", "collection", "attribute", "table", "captioner", "sets", "references", "attacker", "alignment"),
    "delta",
)
# Choices of a collection: another collection has others.
OF_COLLECTION = {
    *("after", "against", "alignment", "at", "attacker", "attribute", "before", "caption", "captioner"),
    *("column", "compared", "cross_table", "draw", "group", "image", "listed", "marked_by", "measured_with", "objects"),
    *("objects_of", "page", "people", "photograph", "photographs", "references", "seeds", "sets", "slice"),
    *("slice_columns", "slice_objects", "slice_search", "slice_words", "table", "value", "vectors", "word"),
}
# Choices among what was measured in it: without the collection none of these is an option.
OF_RESULTS = {"chart", "columns", "encoders", "measure", "order", "tested"}
# Letters of a text that is taken from the address or a browser. A longer caption can be read, but not edited.
MOST_LETTERS = 5_000
# Is not an option of any control.
UNFIT: Any = object()

# Streamlit makes each change of the address a step of the back button; with this, only another page or tab is one.
# Before that step, the choices of the page or tab that is left are dropped; they are put back.
ONE_STEP_A_PAGE = """<script>
if (!window.oneStepAPage) {
  window.oneStepAPage = true
  const tab = url => new URL(url, location).searchParams.get('tab')
  const push = history.pushState.bind(history), replace = history.replaceState.bind(history)
  let left = null
  history.replaceState = (state, title, url) => {
    const before = new URL(location)
    replace(state, title, url)
    const dropped = [...before.searchParams.keys()].some(key => !new URL(location).searchParams.has(key))
    if (dropped) left = {href: left ? left.href : before.href, search: location.search}
    else if (location.href !== before.href) left = null
  }
  history.pushState = (state, title, url) => {
    const next = new URL(url, location)
    const here = tab(location), other = here && tab(next) && tab(next) !== here
    if (next.pathname === location.pathname && !other) return history.replaceState(state, title, url)
    if (left && (other || left.search === next.search)) replace(history.state, '', left.href)
    left = null
    push(state, title, url)
  }
  // A choice may be written before this runs: the step without choices that is left is skipped.
  addEventListener('popstate', () => location.search || history.back())
}
</script>"""


@dataclass
class _Memory:
    """What a session remembers of its view from one run of the script to the next."""

    page: str = ""
    shared: dict[str, Any] = field(default_factory=dict)  # choices that hold on all pages
    written: dict[str, list[str]] = field(default_factory=dict)  # of this page, as the last whole run wrote them
    pending: dict[str, list[str]] | None = None  # of the run under way, if they are written at its end
    defaults: dict[str, list[Any]] = field(default_factory=dict)  # of controls that nobody set: each default so far
    missing: dict[str, tuple[list[str], Any]] = field(default_factory=dict)  # in the link, not here; shown instead
    messages: set[str] = field(default_factory=set)  # shown by the run under way
    next: dict[str, Any] = field(default_factory=dict)  # to be chosen before the page is drawn again
    arriving: bool = False  # results are: a default that follows them is no choice yet, and not in the address
    unsettled: set[str] = field(default_factory=set)  # the keys of such defaults


def _memory() -> _Memory:
    return st.session_state.setdefault("view", _Memory())


def enter(title: str) -> None:
    """Start a page; the first call of each. Choices of the page that was left stay in that page's address."""
    memory = _memory()
    if memory.page != title:
        for key in memory.written:
            st.session_state.pop(key, None)
        memory.page, memory.written, memory.missing, memory.defaults = title, {}, {}, {}
    upcoming, memory.next = memory.next, {}
    for key, value in upcoming.items():
        choose(key, value)


@contextmanager
def written_at_once() -> Iterator[None]:
    """Write the choices of the block into the address when it ends: a browser draws anew at each change of that.

    If another run of the page, or another page, takes over, that one writes, and repeats the messages.
    """
    memory = _memory()
    memory.pending, memory.unsettled = {}, set()
    try:
        yield
        _write_pending()
    finally:
        memory.pending = None


def stop() -> NoReturn:
    """End the page here."""
    _write_pending()
    st.stop()


def _write_pending() -> None:
    memory = _memory()
    pending, memory.pending = memory.pending or {}, None
    for key in memory.unsettled:
        st.query_params.pop(key, None)
        memory.written.pop(key, None)
        pending.pop(key, None)
    if changed := {key: texts for key, texts in pending.items() if st.query_params.get_all(key) != texts}:
        st.query_params.update(changed)
    memory.written |= pending
    for key in memory.messages:
        st.session_state.pop(key, None)
    memory.messages = set()


def results_arrive(arriving: bool) -> None:
    """Whether they do, so that a reload keeps no default of a control that follows them."""
    _memory().arriving = arriving


def choices() -> dict[str, list[str]]:
    """The page, and the choices of the controls drawn so far, as texts of the address."""
    memory = _memory()
    return {"view_page": [memory.page]} | (memory.written if memory.pending is None else memory.pending)


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


def link(place, page: str, label: str, icon: str = "", **choices: str) -> None:
    """A link to another page that keeps the collection; choices: what the page opens on, by key."""
    place.page_link(page, label=label, icon=icon or None, query_params=query(**choices))


def go(page: str, **choices: str) -> None:
    """Open another page at once, as `link` does."""
    st.switch_page(page, query_params=query(**choices))


def forget(keys: Iterable[str]) -> None:
    """Let controls start anew, such as those whose choices another collection does not have."""
    memory = _memory()
    for key in keys:
        st.session_state.pop(key, None)
        memory.shared.pop(key, None)
        memory.missing.pop(key, None)


def chosen_elsewhere(key: str) -> Any:
    """What another page chose, while neither this page nor its address has a choice; else None."""
    here = key in st.session_state or key in st.query_params
    return None if here else _memory().shared.get(key)


def choose(key: str, value: Any) -> None:
    """Set a control before it is drawn, on this page or the next; another collection has other choices."""
    if key == "collection" and value != st.session_state.get(key):
        forget(OF_COLLECTION)
    st.session_state[key] = value
    if key in SHARED:
        _memory().shared[key] = value


def choose_next(key: str, value: Any) -> None:
    """`choose` before the page is drawn again: the control is drawn already."""
    _memory().next[key] = value


def selectbox(
    place,
    label: str,
    options: Iterable[Any],
    *,
    key: str,
    default: Any = None,
    missing: str = "",
    draw: str = "selectbox",
    follows: bool = False,
    shown: bool = True,
    unfit: Mapping[str, str] = MappingProxyType({}),
    any_case: bool = False,
    **more,
) -> Any:
    """One of some options; None if there are none.

    default: the first option unless given. missing: what to call an option that the link names and is not here; the
    label unless given. unfit: options of other pages, and why this page does not offer them. draw: another of
    Streamlit's controls that choose one option. follows: an option that nobody chose gives way to a new default, as
    results arrive. shown: whether there is a control; if not, the choice is in the address alone. any_case: whether a
    link may write an option in any case, as names of metrics.
    """
    options = list(options)
    default = options[0] if default is None and options and more.get("index", 0) is not None else default
    more.pop("index", None)
    free, read, write = _options(options, any_case, more)

    def fits(value: Any) -> bool:
        return value in options or (free and isinstance(value, str)) or (value is None and default is None)

    def drawn(value: Any) -> Any:
        if not shown:
            return value
        if draw == "segmented_control":
            return place.segmented_control(label, options, default=value, key=key, **more)
        index = options.index(value) if value in options else None
        return getattr(place, draw)(label, options, index, key=key, **more)

    def read_last(texts: list[str]) -> tuple[Any, list[str]]:
        known, unknown = read(texts[-1:])
        return (known[0], []) if known else (UNFIT, unknown)

    return _control(key, default, read_last, fits, drawn, missing or label, write, follows, unfit)


def linked_selectbox(
    place, label: str, options: Mapping[str, Mapping[str, Any]], titles: Mapping[str, str], **more
) -> str:
    """One of some options that stand for several choices each, by key.

    It opens on the option that agrees most with the choices made on other pages or named by the address, and its
    choices hold on other pages. If no option has what was chosen before, a line says so, and the earlier choices stay
    for other pages until an option is chosen by hand: a default is not held against a better one that comes later.
    titles: how each is shown.
    """
    memory = _memory()
    last = {**st.query_params, **memory.shared}
    agreeing = {name: sum(last.get(key) == value for key, value in made.items()) for name, made in options.items()}
    nearest = max(agreeing, key=lambda name: agreeing[name])
    chosen = selectbox(place, label, list(options), default=nearest, format_func=titles.get, **more)
    before = {key: memory.shared[key] for key in options[chosen] if memory.shared.get(key) is not None}
    if chosen == nearest and any(options[chosen][key] != value for key, value in before.items()):
        names = ", ".join(map(str, before.values()))
        _warn(f"Chosen before: {names}. Nothing is measured with that yet. Another choice is shown.")
    elif more["key"] not in memory.defaults:
        memory.shared |= options[chosen]
    return chosen


def tabs(names: Iterable[str]) -> str:
    """Which tab of a page is shown; only that one is drawn. Its choices go when another one is chosen."""
    return selectbox(
        st,
        "View",
        names,
        key="tab",
        draw="segmented_control",
        required=True,
        label_visibility="collapsed",
        on_change=_leave_tab,
    )


def _leave_tab() -> None:
    memory = _memory()
    left = memory.written.keys() - {"tab", *SHARED}
    forget(left)
    for key in left:
        del memory.written[key]
        memory.defaults.pop(key, None)
        st.query_params.pop(key, None)


def multiselect(
    place,
    label: str,
    options: Iterable[Any],
    *,
    key: str,
    default: Sequence[Any] = (),
    missing: str = "",
    follows: bool = False,
    any_case: bool = False,
    **more,
) -> list[Any]:
    """Some of the options; none at all is written as an empty choice. follows, any_case: as of a selectbox."""
    options = list(options)
    free, read, write = _options(options, any_case, more)

    def read_some(texts: list[str]) -> tuple[Any, list[str]]:
        known, unknown = read(texts)
        return (known, unknown) if known or not unknown else (UNFIT, unknown)

    def fits(value: Any) -> bool:
        return isinstance(value, list) and (free or all(option in options for option in value))

    def drawn(value: list[Any]) -> list[Any]:
        return place.multiselect(label, options, value, key=key, **more)

    return _control(key, list(default), read_some, fits, drawn, missing or label, write, follows)


def number(
    place,
    label: str,
    low: float | None,
    high: float | None,
    default: float | None,
    *,
    key: str,
    kind: type | None = None,
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

    def drawn(value: Any) -> Any:
        return place.number_input(label, low, high, value, key=key, **more)

    text = st.query_params.get(key, "")
    ends = " ".join(f"{word} {end:,}" for word, end in (("from", low), ("to", high)) if end is not None)
    what = f"{'a whole number' if kind is int else 'a number'} {ends}".strip()
    unfit = {text: f"The link gives {label} as {text[:100]!r}, which is not {what}."}
    return _control(key, default, read, fits, drawn, label, unfit=unfit)


def text(place, label: str, *, key: str, default: str = "", quiet: bool = False, **more) -> str:
    """A line of text. quiet: the default is not in the address, and gives way to another default."""
    return _control(
        key,
        default,
        lambda texts: (texts[-1], []),
        lambda value: isinstance(value, str),
        lambda value: place.text_input(label, value, key=key, **more),
        label,
        follows=quiet,
        quiet=quiet,
    )


def checkbox(place, label: str, *, key: str, default: bool = False, draw: str = "checkbox", **more) -> bool:
    """Yes or no, as 1 or 0 in the address. draw: another of Streamlit's controls that say yes or no."""
    words = {"1": True, "true": True, "0": False, "false": False}
    return _control(
        key,
        default,
        lambda texts: (words.get(texts[-1].lower(), UNFIT), []),
        lambda value: isinstance(value, bool),
        lambda value: getattr(place, draw)(label, value, key=key, **more),
    )


def state(key: str, default: Any) -> Any:
    """A whole number, or yes or no as 1 or 0, for which there is no control; `choose` sets it."""
    kind = type(default)

    def read(texts: list[str]) -> tuple[Any, list[str]]:
        with suppress(ValueError):
            return kind(int(texts[-1])), []
        return UNFIT, []

    return _control(key, default, read, lambda value: isinstance(value, kind), lambda value: value)


def _control(
    key: str,
    default: Any,
    read: Callable[[list[str]], tuple[Any, list[str]]],
    fits: Callable[[Any], bool],
    draw: Callable[[Any], Any],
    missing: str = "",
    write: Callable[[Any], str] = str,
    follows: bool = False,
    unfit: Mapping[str, str] = MappingProxyType({}),
    quiet: bool = False,
) -> Any:
    """Draw a control at the value that it should have, and write its choice into the address.

    read: the value that texts of the address stand for, or UNFIT, and those texts that are no option. fits: whether a
    value can be shown. draw: the control at a value; returns the choice. write: a choice as text. quiet: as of `text`.
    For the others see `selectbox`.
    """
    memory, session = _memory(), st.session_state
    in_address = st.query_params.get_all(key)
    value, unknown = UNFIT, []
    if not _is_short(in_address):
        unknown = ["a long text"]
    elif in_address:
        value, unknown = read(in_address)
    if not _is_short(session.get(key)):
        del session[key]

    # What this run shows: the address if it changed, else the session; then what another page chose; then the default.
    former = memory.defaults.get(key, [])
    lags = follows and value in former  # the browser has not heard of the newest default yet
    if lags or in_address == memory.written.get(key, []):
        unknown = []
        if follows and former and session.get(key) == former[-1]:
            session[key] = default
    else:  # the address changed from outside: a link, or the back button
        session.pop(key, None)
        memory.defaults.pop(key, None)
        if fits(value):
            session[key] = value
    if key not in session:
        elsewhere = memory.shared.get(key, UNFIT)
        if fits(elsewhere):
            session[key] = elsewhere
        elif isinstance(elsewhere, str) and elsewhere in unfit:
            unknown = [elsewhere]
    if key not in session or not fits(session[key]):
        session[key], memory.defaults[key] = default, [default]
    elif key in memory.defaults and session[key] == default:
        if default != memory.defaults[key][-1]:
            memory.defaults[key].append(default)
    else:
        memory.defaults.pop(key, None)  # chosen, or named by the address

    # A line says what the link names and is not here, until another option is chosen.
    if unknown and missing:
        memory.missing[key] = unknown, session[key]
    if key in memory.missing and memory.missing[key][1] != session[key]:
        del memory.missing[key]
    names = memory.missing[key][0] if key in memory.missing else []
    if "collection" not in memory.missing or key not in OF_COLLECTION | OF_RESULTS:  # without it they are missing too
        for name in names:
            why = unfit.get(name) or f"The link names {missing} {name[:100]!r}, which is not here."
            _warn(f"{why} Another choice is shown.")

    chosen = draw(session[key])
    if key in SHARED:
        memory.shared[key] = names[0] if names and names[0] in unfit else chosen
    if quiet and chosen == default:
        for choices in (memory.written, memory.pending or {}, st.query_params):
            choices.pop(key, None)
        return chosen
    if isinstance(chosen, list):
        texts = [write(option) for option in chosen] or [""]
    else:
        texts = ["" if chosen is None else str(int(chosen)) if isinstance(chosen, bool) else write(chosen)]
    if memory.pending is not None:
        memory.pending[key] = texts
        if follows and memory.arriving and key in memory.defaults:
            memory.unsettled.add(key)
    else:
        if in_address != texts:
            st.query_params[key] = texts
        memory.written[key] = texts
    return chosen


def _warn(text: str) -> None:
    st.html(f'<div class="cb-note">⚠ {escape(text)}</div>')


def _options(options: list[Any], any_case: bool, more: Mapping[str, Any]) -> tuple[bool, Callable, Callable]:
    """Whether other texts are options too; the options that texts of an address name, and texts that name none; how an
    option is written: itself if it is text, else as it is shown. more: the settings of the control."""
    show, free = more.get("format_func", str), bool(more.get("accept_new_options"))

    def write(option: Any) -> str:
        return option if isinstance(option, str) else str(show(option))

    named = {str(show(option)): option for option in options} | {write(option): option for option in options}
    if any_case:
        named = {text.lower(): option for text, option in named.items()}

    def read(texts: list[str]) -> tuple[list[Any], list[str]]:
        texts = [text.lower() if any_case else text for text in texts]
        known = [named.get(text, text) for text in texts if text in named or (free and text)]
        return known, [text for text in texts if text and text not in named and not free]

    return free, read, write


def _is_short(value: Any) -> bool:
    texts = value if isinstance(value, list) else [value]
    return all(len(text) <= MOST_LETTERS for text in texts if isinstance(text, str))

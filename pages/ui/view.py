"""The state of a view: every choice on a page stands in its address, the defaults too, and nothing else holds it.

A control is drawn by one of the functions here in place of Streamlit's own. It starts at what the address names, else
at what was last chosen on another page (collection, attribute, captioner and the like), else at its default; what is
chosen is written into the address at once. So a link means the same to everybody, also after data were added, and a
reload or the browser's back button shows what stood there. Links to other pages go through `link`, `go` and `query`.

Streamlit's own `bind` is not used: it leaves defaults out, and a page that is left by a button may not clear what a
control is bound to.

A control is drawn with its value as its default, too. A value that stands in the session alone is sent to the browser
once; where the page is run anew before it has gone out, it is lost: the browser would show the first option and send
that back as what was chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from html import escape
from types import MappingProxyType
from typing import Any, NoReturn
from urllib.parse import urlencode

import streamlit as st

# Chosen on one page, and meant on every other.
SHARED = (
    *("workspace", "collection", "attribute", "table", "captioner", "sets", "references", "attacker", "alignment"),
    "delta",
)
# Choices of a collection: another collection has its own.
OF_COLLECTION = {
    *("against", "alignment", "at", "attribute", "caption", "captioner", "column", "cross_table", "draw", "group"),
    *("image", "judge", "listed", "marked_by", "measured_with", "objects", "page", "photograph", "references", "sets"),
    *("table", "value", "vectors", "way", "word"),
}
# Choices among what was measured in it: with the collection all of these are gone.
OF_RESULTS = {"chart", "columns", "encoders", "measure"}
# Letters of a text that is taken from the address or a browser. A longer caption can be read, but not edited.
MOST_LETTERS = 5_000
# What no option is.
UNFIT: Any = object()
_PAGE, _WRITTEN, _KEPT, _GONE, _DEFAULTS = "view_page", "view_written", "view_shared", "view_gone", "view_defaults"
_PENDING, _TOLD, _NEXT = "view_pending", "view_told", "view_next"


# Streamlit makes each change of the address a step of the back button; with this, only another page is one. Before it
# follows a button to another page, it drops the choices of the page that is left; they are put back.
ONE_STEP_A_PAGE = """<script>
if (!window.oneStepAPage) {
  window.oneStepAPage = true
  const push = history.pushState.bind(history), replace = history.replaceState.bind(history)
  let left = null
  history.replaceState = (state, title, url) => {
    const before = new URL(location)
    replace(state, title, url)
    const dropped = [...before.searchParams.keys()].some(key => !new URL(location).searchParams.has(key))
    if (dropped) left = {href: before.href, search: location.search}
    else if (location.href !== before.href) left = null
  }
  history.pushState = (state, title, url) => {
    const next = new URL(url, location)
    if (next.pathname === location.pathname) return history.replaceState(state, title, url)
    if (left?.search === next.search) replace(history.state, '', left.href)
    left = null
    push(state, title, url)
  }
}
</script>"""


def enter(title: str) -> None:
    """A page is drawn; the first call of every page. Choices of the page that was left stay in its own address."""
    if st.session_state.get(_PAGE) != title:
        for key in st.session_state.get(_WRITTEN, {}):
            st.session_state.pop(key, None)
        st.session_state.update({_PAGE: title, _WRITTEN: {}, _GONE: {}, _DEFAULTS: {}})
    for key, value in st.session_state.pop(_NEXT, {}).items():
        choose(key, value)


@contextmanager
def written_at_once() -> Iterator[None]:
    """What is chosen in the block comes into the address when it ends: a browser draws anew at every change of that.

    Where another run of the page, or another page, takes over, that one writes, and says again what was `told` here.
    """
    st.session_state[_PENDING] = {}
    try:
        yield
        _write_pending()
    finally:
        st.session_state.pop(_PENDING, None)


def stop() -> NoReturn:
    """End the page here."""
    _write_pending()
    st.stop()


def _write_pending() -> None:
    pending = st.session_state.pop(_PENDING, {})
    if changed := {key: texts for key, texts in pending.items() if st.query_params.get_all(key) != texts}:
        st.query_params.update(changed)
    st.session_state.setdefault(_WRITTEN, {}).update(pending)
    for key in st.session_state.pop(_TOLD, ()):
        st.session_state.pop(key, None)


def choices() -> dict[str, list[str]]:
    """The page, and what its controls that are drawn so far are set to, as the address says it."""
    return {_PAGE: [st.session_state[_PAGE]]} | st.session_state.get(_PENDING, st.session_state[_WRITTEN])


def told(key: str) -> Any:
    """What the last action left under a key of the session to be said once; None if nothing.

    It goes when the page was drawn to its end: a run that is cut short may not have reached the browser.
    """
    if key in st.session_state:
        st.session_state.setdefault(_TOLD, set()).add(key)
    return st.session_state.get(key)


def address() -> str:
    """The whole address of this view, as the browser has it."""
    choices = {key: st.query_params.get_all(key) for key in st.query_params}
    return f"{(st.context.url or '').partition('?')[0]}?{urlencode(choices, doseq=True)}"


def query(**choices: str) -> dict[str, str]:
    """The query of a link to another page: its workspace and collection, and choices by key."""
    kept = {key: st.session_state.get(key) or st.query_params.get(key) for key in ("workspace", "collection")}
    return {key: value for key, value in kept.items() if value} | choices


def link(place, page: str, label: str, icon: str = "", **choices: str) -> None:
    """A link to another page that keeps the collection; choices: what the page opens on, by key."""
    place.page_link(page, label=label, icon=icon or None, query_params=query(**choices))


def go(page: str, **choices: str) -> None:
    """Open another page at once, as `link` does."""
    st.switch_page(page, query_params=query(**choices))


def forget(keys: Iterable[str]) -> None:
    """Let controls start anew, such as those whose choices another collection does not have."""
    for key in keys:
        st.session_state.pop(key, None)
        _shared().pop(key, None)
        st.session_state.get(_GONE, {}).pop(key, None)


def choose(key: str, value: Any) -> None:
    """Set a control before it is drawn, on this page or the next; another collection has other choices."""
    if key == "collection" and value != st.session_state.get(key):
        forget(OF_COLLECTION)
    st.session_state[key] = value
    if key in SHARED:
        _shared()[key] = value


def choose_next(key: str, value: Any) -> None:
    """`choose`, when a page is drawn the next time: the control is drawn already."""
    st.session_state.setdefault(_NEXT, {})[key] = value


def alike(options: Mapping[str, Mapping[str, Any]]) -> str:
    """Of options that make several choices each, by key, the first that agrees most with what was last chosen, or with
    what the address names of it."""
    last = {**st.query_params, **_shared()}
    agreed = {name: sum(last.get(key) == own for key, own in made.items()) for name, made in options.items()}
    return max(agreed, key=lambda name: agreed[name])


def carry(options: Mapping[str, Mapping[str, Any]], chosen: str, by_hand: bool = True) -> None:
    """Let other pages open on the choices of an option. If what was chosen there before is no option here, that is
    said, and stays for them until another than the nearest option is taken.

    by_hand: whether somebody chose it; a default is not held against a better one that comes later.
    """
    made, nearest = options[chosen], alike(options)
    before = {key: _shared()[key] for key in made if _shared().get(key) is not None}
    if chosen == nearest and any(made[key] != own for key, own in before.items()):
        named = ", ".join(map(str, before.values()))
        said = f"Chosen before: {named}. Nothing is measured by that yet. What is shown is chosen in its place."
        st.html(f'<div class="cb-note">⚠ {escape(said)}</div>')
    elif by_hand:
        _shared().update(made)


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
    """One of some options; None where there are none. missing: what to call an option of the link that is not here, by
    the label unless given; unfit: what there is, and why it is no option of this page.

    default: the first option unless given. draw: another of Streamlit's controls that choose one option. follows: an
    option that nobody chose gives way to a default that is another one now, as results arrive. shown: whether there is
    a control; without one the choice stands in the address alone. any_case: whether a link may write an option in any
    case, as names of metrics.
    """
    options = list(options)
    default = options[0] if default is None and options and more.get("index", 0) is not None else default
    named = _by_text(options, more.get("format_func"), any_case)
    free = bool(more.get("accept_new_options"))

    def read(texts: list[str]) -> tuple[Any, list[str]]:
        texts = [text.lower() if any_case else text for text in texts]
        if texts[-1] in named or (free and texts[-1]):
            return named.get(texts[-1], texts[-1]), []
        return UNFIT, [name for name in texts if name]

    def fits(value: Any) -> bool:
        return value in options or (free and isinstance(value, str)) or (value is None and default is None)

    def drawn(value: Any) -> Any:
        if not shown:
            return value
        if draw == "segmented_control":
            return place.segmented_control(label, options, default=value, key=key, **more)
        first = options.index(value) if value in options else None
        return getattr(place, draw)(label, options, first, key=key, **more)

    more.pop("index", None)
    return _drawn(key, default, read, fits, drawn, missing or label, _text_of(more), follows, unfit)


def way(place, label: str, options: Mapping[str, Mapping[str, Any]], titles: Mapping[str, str], **more) -> str:
    """One of some options that make several choices each, by key; it opens on those made on other pages, and goes along
    to them. titles: how each is shown."""
    chosen = selectbox(place, label, list(options), default=alike(options), format_func=titles.get, **more)
    carry(options, chosen, more["key"] not in st.session_state[_DEFAULTS])
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
    written = st.session_state.get(_WRITTEN, {})
    left = written.keys() - {"tab", *SHARED}
    forget(left)
    for key in left:
        del written[key]
        st.session_state[_DEFAULTS].pop(key, None)
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
    named = _by_text(options, more.get("format_func"), any_case)
    free = bool(more.get("accept_new_options"))

    def read(texts: list[str]) -> tuple[list[Any], list[str]]:
        texts = [text.lower() if any_case else text for text in texts]
        lost = [name for name in texts if name and name not in named and not free]
        kept = [named.get(name, name) for name in texts if name and name not in lost]
        return (kept, lost) if kept or not lost else (UNFIT, lost)

    def fits(value: Any) -> bool:
        return isinstance(value, list) and (free or all(own in options for own in value))

    return _drawn(
        key,
        list(default),
        read,
        fits,
        lambda value: place.multiselect(label, options, value, key=key, **more),
        missing or label,
        _text_of(more),
        follows,
    )


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

    given = st.query_params.get(key, "")
    ends = " ".join(f"{word} {end:,}" for word, end in (("from", low), ("to", high)) if end is not None)
    what = f"{'a whole number' if kind is int else 'a number'} {ends}".strip()
    unfit = {given: f"The link gives {label} as {given[:100]!r}, which is not {what}."}
    return _drawn(
        key,
        default,
        read,
        fits,
        lambda value: place.number_input(label, low, high, value, key=key, **more),
        label,
        unfit=unfit,
    )


def text(place, label: str, *, key: str, default: str = "", **more) -> str:
    """A line of text."""
    return _drawn(
        key,
        default,
        lambda texts: (texts[-1], []),
        _is_text,
        lambda value: place.text_input(label, value, key=key, **more),
        label,
    )


def checkbox(place, label: str, *, key: str, default: bool = False, draw: str = "checkbox", **more) -> bool:
    """Yes or no, as 1 or 0 in the address. draw: another of Streamlit's controls that say yes or no."""

    def read(texts: list[str]) -> tuple[Any, list[str]]:
        return {"1": True, "true": True, "0": False, "false": False}.get(texts[-1].lower(), UNFIT), []

    def fits(value: Any) -> bool:
        return isinstance(value, bool)

    return _drawn(key, default, read, fits, lambda value: getattr(place, draw)(label, value, key=key, **more))


def state(key: str, default: Any) -> Any:
    """A whole number, or yes or no as 1 or 0, for which there is no control; `choose` sets it."""
    kind = type(default)

    def read(texts: list[str]) -> tuple[Any, list[str]]:
        with suppress(ValueError):
            return kind(int(texts[-1])), []
        return UNFIT, []

    return _drawn(key, default, read, lambda value: isinstance(value, kind), lambda value: value)


def _drawn(
    key: str,
    default: Any,
    read: Callable[[list[str]], tuple[Any, list[str]]],
    fits: Callable[[Any], bool],
    draw: Callable[[Any], Any],
    missing: str = "",
    write: Callable[[Any], str] = str,
    follows: bool = False,
    unfit: Mapping[str, str] = MappingProxyType({}),
) -> Any:
    """A control at the value that it should have, and its choice written into the address."""
    given, written = st.query_params.get_all(key), st.session_state.setdefault(_WRITTEN, {})
    gone = st.session_state.setdefault(_GONE, {})
    defaults = st.session_state.setdefault(_DEFAULTS, {})  # of the keys that nobody chose, all so far
    former = defaults.get(key, [])
    value, lost = (UNFIT, []) if not given else read(given) if _is_short(given) else (UNFIT, ["a long text"])
    if not _is_short(st.session_state.get(key)):
        del st.session_state[key]
    late = follows and value in former[:-1]  # the browser has not heard of the newest default yet
    if given == written.get(key, []) or late:
        lost = []
        if follows and former and st.session_state.get(key) == former[-1]:
            st.session_state[key] = default
    else:  # the address changed from outside: a link, or the back button
        st.session_state.pop(key, None)
        defaults.pop(key, None)
        if fits(value):
            st.session_state[key] = value
    if key not in st.session_state and fits(_shared().get(key, UNFIT)):
        st.session_state[key] = _shared()[key]
    elif key not in st.session_state and _shared().get(key) in unfit:
        lost = [_shared()[key]]
    if key not in st.session_state or not fits(st.session_state[key]):
        st.session_state[key], defaults[key] = default, [default]
    elif st.session_state[key] == default and key in defaults:
        if default != defaults[key][-1]:
            defaults[key].append(default)
    else:
        defaults.pop(key, None)  # chosen, or named by the address
    if lost and missing:
        gone[key] = lost, st.session_state[key]
    if key in gone and gone[key][1] != st.session_state[key]:  # another was chosen since
        del gone[key]
    if "collection" not in gone or key not in OF_COLLECTION | OF_RESULTS:  # what was chosen in it is gone with it
        for name in gone.get(key, ((),))[0]:
            _say_gone(missing, name, unfit.get(name))
    chosen = draw(st.session_state[key])
    if key in SHARED:
        _shared()[key] = gone[key][0][0] if key in gone and gone[key][0][0] in unfit else chosen
    texts = _texts(chosen, write)
    _write(key, given, texts)
    return chosen


def _write(key: str, given: list[str], texts: list[str]) -> None:
    """given: what the address says."""
    if _PENDING in st.session_state:
        st.session_state[_PENDING][key] = texts
        return
    if given != texts:
        st.query_params[key] = texts
    st.session_state[_WRITTEN][key] = texts


def _say_gone(what: str, name: str, why: str | None) -> None:
    said = why or f"The link names {what} {name[:100]!r}, which is not here."
    st.html(f'<div class="cb-note">⚠ {escape(said)} What is shown is chosen in its place.</div>')


def _shared() -> dict[str, Any]:
    return st.session_state.setdefault(_KEPT, {})


def _texts(value: Any, write: Callable[[Any], str]) -> list[str]:
    """A choice as it stands in the address; [''] for none."""
    if isinstance(value, list):
        return [write(own) for own in value] or [""]
    return ["" if value is None else str(int(value)) if isinstance(value, bool) else write(value)]


def _text_of(more: dict[str, Any]) -> Callable[[Any], str]:
    """How an option is written: itself if it is text, else as it is shown."""
    shown = more.get("format_func", str)
    return lambda option: option if isinstance(option, str) else str(shown(option))


def _by_text(options: list[Any], shown: Callable[[Any], str] | None, any_case: bool = False) -> dict[str, Any]:
    write = _text_of({"format_func": shown} if shown else {})
    named = {str(shown(option)): option for option in options if shown} | {write(option): option for option in options}
    return {text.lower(): option for text, option in named.items()} if any_case else named


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_short(value: Any) -> bool:
    texts = value if isinstance(value, list) else [value]
    return all(len(text) <= MOST_LETTERS for text in texts if isinstance(text, str))

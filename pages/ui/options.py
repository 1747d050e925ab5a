"""Controls of a sidebar for what the chosen measures can be told, drawn from their Options."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import streamlit as st

from capbias_core.measures.base import Measure
from capbias_core.measures.options import Option
from capbias_core.prepare.align import DELTA
from capbias_core.workspace.photographs import ORIGINALS, people_sources, photograph_sets
from capbias_core.workspace.spec import AlignmentReference
from capbias_core.workspace.store import Item, Workspace
from capbias_core.workspace.vectors import CONSTANT, VECTORS, alignment_option
from pages.ui import view

ALIGNMENT = (
    "What becomes of human words that the captioner never uses. Constant: <unk>, as in LIC. Contextual, as in DBAC: "
    "its nearest word by word vectors, where that is near. Load vectors on Data, in the tab Models and vectors."
)
# Drawn by the page itself, whatever is measured.
OF_PAGE = ("attacker", "seeds", "merge_masks")
AS_USUAL = "as usual"


def option_controls(
    workspace: Workspace, collection: str, measures: Iterable[Measure], references: bool, settings: dict[str, Any]
) -> dict:
    """`Request.options` from the controls of these measures; what is left as usual is not in it.

    references: whether human captions are chosen, which an alignment needs. settings: what controls start from in place
    of the defaults of measures.
    """
    found: dict[str, Any] = {}
    about: dict[str, tuple[Option, Any]] = {}
    for measure in measures:
        defaults = {field.name: field.default for field in fields(measure.options)}
        for name, option in measure.options.about().items():
            if name not in OF_PAGE:
                same = name not in about or about[name][1] == defaults[name]
                about[name] = (option, settings.get(name, defaults[name] if same else None))
    if "alignment" in about and references:
        found |= _alignment(workspace, collection)
    for name, kept in KEPT.items():
        if name in about:
            found |= _kept(name, about[name][0], kept(workspace, collection))
    shown = {name: pair for name, pair in about.items() if pair[0].flag and name not in (*KEPT, "alignment")}
    if shown:
        with st.sidebar.expander("More choices"):
            for name, (own, default) in shown.items():
                value = control(name, own, default)
                if value not in (default, None, (), ""):
                    found[name] = value
    return found


def _photographs(workspace: Workspace, collection: str) -> list[str]:
    names = [item.name for item in photograph_sets(workspace, collection)]
    return sorted(names, key=lambda name: name == ORIGINALS)


def _people(workspace: Workspace, collection: str) -> list[str]:
    return [item.name for item in people_sources(workspace, collection)]


# Choices among what a collection holds.
KEPT: dict[str, Callable[[Workspace, str], list[str]]] = {"photographs": _photographs, "people": _people}


def _kept(name: str, about: Option, names: list[str]) -> dict:
    if not names:
        return {}
    label = name.capitalize()
    return {name: view.selectbox(st.sidebar, label, names, key=name, help=sentence(about.help))}


def control(name: str, about: Option, default: Any) -> Any:
    """One control of a form or sidebar. Returns the default if it was left alone."""
    label, words = name.replace("_", " ").capitalize(), sentence(about.help)
    if isinstance(default, bool):
        return view.checkbox(st, label, default=default, key=name, help=words)
    if about.known:
        known = [*about.known] if default in about.known else [AS_USUAL, *about.known]
        start = default if default in known else known[0]
        chosen = view.selectbox(st, label, known, default=start, key=name, help=words)
        return default if chosen == AS_USUAL else chosen
    if about.suggested:
        known = [*dict.fromkeys([default or AS_USUAL, *about.suggested])]
        chosen = view.selectbox(st, label, known, key=name, help=words, accept_new_options=True)
        return default if chosen == AS_USUAL else chosen
    if about.several:
        text = view.text(st, label, key=name, help=f"{words} Commas between.")
        return tuple(word.strip() for word in text.split(",") if word.strip())
    if isinstance(default, int | float) or about.at_least is not None or about.above is not None:
        return _number(name, label, words, about, default)
    return view.text(st, label, key=name, help=words, placeholder=str(default or "")) or default


def _number(name: str, label: str, words: str, about: Option, default: Any) -> Any:
    low = about.at_least if about.at_least is not None else about.above
    high = about.at_most if about.at_most is not None else about.below
    kind = float if isinstance(default, float) or about.above is not None else int
    low, high = (None if bound is None else kind(bound) for bound in (low, high))
    start = None if default is None else kind(default)
    return view.number(st, label, low, high, start, key=name, kind=kind, help=words, placeholder=AS_USUAL)


def sentence(text: str) -> str:
    """A help text of one line as a sentence."""
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def _alignment(workspace: Workspace, collection: str) -> dict:
    """`Request.options` for the alignment that is chosen: none for constant."""
    kept = {item.name: item for item in workspace.items(VECTORS, collection)}
    chosen = view.selectbox(
        st.sidebar,
        "Vocabulary alignment",
        [CONSTANT, *kept],
        key="alignment",
        missing="the alignment",
        help=ALIGNMENT,
        format_func=lambda name: name if name == CONSTANT else f"contextual, {name}",
    )
    return {} if chosen == CONSTANT else {"alignment": chosen_alignment(kept[chosen])}


def chosen_alignment(item: Item) -> AlignmentReference:
    """The option for these vectors at the delta that is chosen."""
    distance = view.number(
        st.sidebar,
        "Delta",
        0.0,
        2.0,
        DELTA,
        step=0.05,
        key="delta",
        help=f"A word is near below this cosine distance. The paper on DBAC uses {DELTA} for GloVe.",
    )
    return alignment_option(item, round(distance, 4))

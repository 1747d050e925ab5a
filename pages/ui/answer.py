"""The front page: the verdict, three cards, captioners and words, and beside them what was clicked."""

from __future__ import annotations

from html import escape

import streamlit as st

from capbias_core.attackers import attacker_entry
from capbias_core.errors import CapbiasError
from capbias_core.measures.protocols import PROTOCOLS
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.views import answer as views
from capbias_core.views.registry import VIEWS
from capbias_core.workspace.ingest import DEMO
from pages.ui import controls
from pages.ui.base import box, caveats, explained, note, once, show_messages
from pages.ui.empty import empty_state
from pages.ui.entry import page
from pages.ui.evidence import panel
from pages.ui.page import Page
from pages.ui.plain import plain
from pages.ui.runs import active_runs, cost, nothing_scored, to_do
from pages.ui.show import chart

ELSEWHERE = {"where": "Where", "encoders": "Encoder sensitivity", "directions": "Directions"}
WELCOME = (
    "Load captions of your model and a table of labelled images. You will see whether the captions reveal gender or "
    "race with every such word hidden, how certain that is, and which words reveal it."
)


def answer_page() -> None:
    """Draw the page."""
    of_page = page("Answer")
    show_messages()
    if not of_page.collection:
        empty_state(of_page, WELCOME)
    elif of_page.choice:
        _answer(of_page)
    elif active_runs(of_page.workspace, of_page.collection):
        box("Running.", "The answer appears here when the first of the runs above is done.")
    else:
        nothing_scored(of_page, "Captions and labels are loaded, but nothing is scored.")


def _answer(page: Page) -> None:
    choice = page.choice
    assert choice
    answer = views.answer(choice)
    demo = " (demo: generated pictures and captions, no real people)" if page.collection == DEMO else ""
    st.html(
        f'<div class="cb-answer-page"><h2>{escape(answer.sentence)}</h2>'
        f'<p class="because">{explained(answer.because)}{escape(demo)}</p></div>'
    )
    cards = st.container(key="stacks_cards").columns(3)
    for column, html in zip(cards, (views.lic_card, views.error_card, views.attacker_card), strict=True):
        with column.container(border=True, height="stretch"):
            st.html(html(choice, answer))
            if html is views.attacker_card:
                _confirm(page)
    if answer.warning:
        note(answer.warning)
    with st.expander("How sure is this?"):
        st.html(views.cross(answer) or "<p>Human captions of the same images are needed to show amplification.</p>")
    left, right = st.container(key="stacks").columns([11, 9], gap="large")
    word = controls.named("line")
    with left:
        table = VIEWS["table"]
        st.subheader("Captioners", anchor=False)
        chart(table, choice, _rows(page, "table"))
        if (words := VIEWS.get("words")) and len(rows := _rows(page, "words")):
            st.subheader(plain(words.question), anchor=False)
            chart(words, choice, rows, lambda name: controls.choose(line="" if name == word else name))
    with right:
        panel(page, word=word)
    _elsewhere(page)
    caveats([choice.defined.note, *table.notes(choice, _rows(page, "table"))[:1]])


def _rows(page: Page, name: str):
    """The rows of a view, kept for all visitors."""
    choice = page.choice
    assert choice
    key = (page.folder, page.workspace.version(), choice.collection, choice.attribute, choice.setting, choice.captioner)
    return once(repr((*key, name)), lambda: VIEWS[name].rows(choice))


def _elsewhere(page: Page) -> None:
    """One sentence each: where, by other encoders, in which direction; with a link to the tab that shows more."""
    choice = page.choice
    assert choice
    st.subheader("Does it hold elsewhere?", anchor=False)
    for name, tab in ELSEWHERE.items():
        if name not in VIEWS:
            continue
        try:
            text = VIEWS[name].sentence(choice, _rows(page, name))
        except CapbiasError as error:
            text = error.message
        line = st.container(horizontal=True, vertical_alignment="center")
        controls.link(line, "pages/2_Scores.py", VIEWS[name].question, tab=tab)
        line.text(text)


def _confirm(page: Page) -> None:
    """The same by the first encoder of the LIC paper, with its seeds, and what it costs."""
    choice = page.choice
    assert choice
    setting, settings = choice.measured_with, PROTOCOLS["lic"].settings
    name = settings["attacker"][0]
    done = any(attacker_entry(choice.settings[key].attacker).lic_paper for key in choice.options["setting"])
    if done or not setting.references or not attacker_entry(setting.attacker).preview:
        return
    question = Question(
        *(page.collection, choice.captioners, setting.labels, choice.attribute, ("lic",), setting.references, (name,)),
        seeds=settings["seeds"],
    )
    try:
        specs = [spec for spec in plan(page.workspace, question) if spec.references]
    except CapbiasError as error:
        note(f"{error.message} {error.hint}")
        return
    todo = to_do(page.workspace, specs)[1]
    if todo and st.button(f"Confirm with the paper's attacker: {plain(cost(page.workspace, todo))}", key="confirm"):
        page.engine.submit(todo, page.collection)
        st.rerun()
    elif specs and not todo:
        note(f"{name} is being measured.")

"""Captions, tab Words: what each word adds beside people's captions, or what changed; and the captions with one."""

from __future__ import annotations

import streamlit as st

from capbias_core.views.words import USUAL, WORDS, WordsOptions
from pages.ui import controls
from pages.ui.base import note, notes
from pages.ui.captions import missing_scores
from pages.ui.empty import nothing_measured
from pages.ui.evidence import panel, scored_sets
from pages.ui.page import Page
from pages.ui.plain import plain
from pages.ui.show import chart, downloads, sentence, table

PEOPLE = "people"
MOST = 200


def words_tab(page: Page) -> None:
    choice = page.choice
    if choice is None:
        nothing_measured(page, "Score the captions first; then the words that reveal the attribute are shown here.")
        return
    options = _options(page)
    rows = page.once(repr(("words", options)), lambda: WORDS.rows(choice, options))
    if not options.before:
        missing_scores(page, scored_sets(page), [choice.captioner], compared=True)
    if rows.empty:
        note(WORDS.sentence(choice, rows))
        return
    lines = rows.loc[rows["captioner"] == choice.captioner]
    strongest = str(lines.loc[lines["value"].abs().idxmax(), "line"])
    line = controls.kept("line")
    line = line if line in set(lines["line"]) else strongest
    st.header(plain(WORDS.question), anchor=False)
    sentence(WORDS, choice, rows)
    left, right = st.container(key="stacks_words").columns([11, 9], gap="large")
    with left:
        chart(WORDS, choice, rows)
    with right:
        panel(page, word=line)
    shown = list(dict.fromkeys(rows["line"]))
    table(WORDS.table(rows), "words_table", lambda row: controls.choose(line=shown[row]))
    downloads(WORDS, choice, rows)
    notes(WORDS.notes(choice, rows))


def _options(page: Page) -> WordsOptions:
    choice = page.choice
    assert choice
    bar = st.container(key="controls_words", horizontal=True, vertical_alignment="bottom")
    others = [name for name in choice.options["captioner"] if name != choice.captioner]
    before = controls.selectbox(bar, "Compared with", [PEOPLE, *others], key="before", width=220)
    top = controls.number(bar, "Words", 2, MOST, USUAL.top, key="top", width=120)
    if before != PEOPLE:
        return WordsOptions(top=top, before=before)
    least = controls.number(bar, "Minimum captions", 1, None, USUAL.least, key="least", width=160)
    return WordsOptions(top=top, least=least)

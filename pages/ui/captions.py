"""Captions, tab Captions: of captioners and people side by side, an image at a time; what-if, other encoders."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from capbias_core.prepare.text import tokenize
from capbias_core.spreadsheets import csv_text
from capbias_core.views.captions import CAPTIONS, MOST, CaptionsOptions, caption_table, listed_images, words_alone
from capbias_core.views.coloured import columns, legend, section, sum_text
from capbias_core.views.scored import Line, Scored, runs_to_score
from capbias_core.views.sentence import say
from capbias_core.workspace.photographs import picture_path
from pages.ui import controls
from pages.ui.base import errors, note, notes
from pages.ui.caption_drawers import other_encoders, what_if
from pages.ui.empty import nothing_measured
from pages.ui.evidence import lines_of_image, photograph, scored_sets, scores_of, step
from pages.ui.page import Page
from pages.ui.plain import plain
from pages.ui.runs import start_button, to_do
from pages.ui.show import downloads, table

ANY = "any"
BESIDE = 2  # sets beside the captioner that is read, at first
LISTED = 50  # images in the table


def captions_tab(page: Page) -> None:
    choice = page.choice
    if choice is None:
        nothing_measured(page, "Score the captions first; then each can be read here with what its words reveal.")
        return
    sets = scored_sets(page)
    options = _options(page, sets)
    names, _, images = page.once(repr(("images", options)), lambda: listed_images(choice, options))
    missing_scores(page, sets, names)
    rows = page.once(repr(("captions", options)), lambda: CAPTIONS.rows(choice, options))
    st.text(CAPTIONS.sentence(choice, rows))
    if rows.empty:
        return
    ids = images["image_id"].tolist()
    image = step(ids, controls.kept("image"))
    lines = lines_of_image(page, sets, names, image)
    label = str(images.loc[images["image_id"] == image, "labelled"].iloc[0])
    _image(page, sets, image, label, lines)
    read = lines[choice.captioner][0]
    if scores := scores_of(page, sets, choice.captioner):
        what_if(page, sets, scores, read)
        other_encoders(page, scores, read, ids[:LISTED])
    st.subheader("Images", anchor=False)
    shown = list(dict.fromkeys(rows["image_id"]))
    table(CAPTIONS.table(rows), "captions_table", lambda row: controls.choose(image=shown[row]))
    files = st.container(horizontal=True)
    with files:
        downloads(CAPTIONS, choice, rows)
    if scores:
        written = page.workspace.frame(sets.sets[choice.captioner].hash)
        all_rows = lambda: csv_text(caption_table(scores, written))  # noqa: E731
        name = f"{choice.captioner}_captions.csv"
        files.download_button(
            f"All captions of {plain(choice.captioner)} (CSV)", all_rows, name, on_click="ignore", key="all_captions"
        )
    notes(CAPTIONS.notes(choice, rows))


def _options(page: Page, sets: Scored) -> CaptionsOptions:
    choice = page.choice
    assert choice
    bar = st.container(key="controls_captions", horizontal=True, vertical_alignment="bottom")
    others = [name for name in sets.sets if name != choice.captioner]
    beside = controls.multiselect(
        bar, "Beside", others, key="beside", default=others[:BESIDE], max_selections=MOST - 1, width=360
    )
    values = [ANY, *choice.defined.values]
    search = controls.text(bar, "Search", key="q", placeholder="text or an image ID", width=220)
    labelled = controls.selectbox(bar, "Labelled", values, key="labelled", width=130)
    guess = controls.selectbox(bar, "Guess", values, key="guess", width=130)
    differ = controls.checkbox(bar, "Guesses differ", key="differ")
    return CaptionsOptions(
        beside=tuple(beside) or (choice.captioner,),
        top=LISTED,
        search=search,
        labelled="" if labelled == ANY else labelled,
        guess="" if guess == ANY else guess,
        differ=differ,
        pictured=True,
    )


def missing_scores(page: Page, sets: Scored, names: Sequence[str], compared: bool = False) -> None:
    """The button that scores sets of captions by the attacker of the setting, if some are not. compared: with the
    comparison of their words with people's."""
    choice = page.choice
    assert choice
    unscored = [name for name in names if name not in sets.runs]
    if not sets.other and not unscored and not compared:
        return
    with errors():
        runs = page.once(repr(("to score", names, compared)), lambda: runs_to_score(choice, names, compared))
        if to_do(page.workspace, runs)[1]:
            start_button(page, runs, f"Score by {runs[0].attacker}", "score_captions")


def _image(page: Page, sets: Scored, image: str, label: str, lines: dict[str, list[Line]]) -> None:
    """The photograph, if there is one, and a column for each set, words coloured on one scale."""
    choice = page.choice
    assert choice
    first = {name: of_set[0] for name, of_set in lines.items()}
    largest = max(line.largest for line in first.values())
    alone = words_alone([tokenize(line.written) for line in first.values()])
    sections = []
    for (name, line), words in zip(first.items(), alone, strict=True):
        rest = [other.written for other in lines[name][1:]]
        sections.append(section(name, line, largest, words, name == choice.captioner, rest))
    st.header(f"Image {plain(image)}", anchor=False)
    note(f"{say('captions.labelled', value=label)}.")
    container = st.container()
    if picture_path(page.workspace, page.collection, image):
        left, container = st.container(key="stacks_captions").columns([1, 3], gap="medium")
        with left:
            photograph(page, image)
    with container:
        st.html(columns(sections))
        st.html(legend(choice.defined, beside=len(first) > 1))
        if scores := scores_of(page, sets, choice.captioner):
            note(sum_text(first[choice.captioner], scores))

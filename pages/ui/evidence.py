"""Beside a chart or table: the captions behind what was clicked, an image at a time, with its photograph."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from html import escape

import streamlit as st

from capbias_core.types import counted
from capbias_core.views.captions import photographed, to_read
from capbias_core.views.coloured import guess_text, legend, line_words
from capbias_core.views.scored import CaptionScores, Line, Scored, caption_scores, lines_of, runs_to_score, scored
from capbias_core.views.sentence import say
from capbias_core.workspace.photographs import picture_path
from pages.ui import controls
from pages.ui.base import errors, note, once
from pages.ui.page import Page
from pages.ui.plain import plain
from pages.ui.runs import start_button

SHOWN = 5  # captions that people wrote
PICTURE = 240  # pixels: the height that is kept for a photograph, so that nothing moves when it arrives


def panel(page: Page, word: str = "", images: Collection[str] | None = None, captioner: str = "") -> None:
    """The captions behind what was clicked.

    word: those with it, first those to which it adds most; a line of the view `words`. images: only these. captioner:
    whose (default: the one that is read).
    """
    choice = page.choice
    assert choice
    word = word.partition(" (")[0]
    if captioner and captioner != choice.captioner:
        names = (name for name in choice.captioners if name != captioner)
        page = replace(page, choice=replace(choice, captioners=(captioner, *names)))
    sets = scored_sets(page)
    name = captioner or choice.captioner
    st.subheader(plain(say("captions.with_word" if word else "captions.of", captioner=name, word=word)), anchor=False)
    scores = scores_of(page, sets, name)
    if scores is None:
        note(say("captions.none", captioner=name))
        with errors():
            start_button(page, runs_to_score(page.choice or choice, [name]), "Score these captions", "score_read")
        return
    first = page.once("photographed", lambda: photographed(page.workspace, page.collection))
    piece = repr(("to read", name, word, images and sorted(images)))
    rows = page.once(piece, lambda: to_read(scores, word, images, first))
    if not rows:
        note(say("captions.no_image"))
        return
    ids = scores.table["image_id"].loc[rows].tolist()
    image = step(ids, controls.kept("image"))
    line = next(each for each in _lines(page, sets, name, image) if each.row == rows[ids.index(image)])
    with st.container(border=True):
        photograph(page, image)
        st.html(line_words(line, alone=[word]))
        label = scores.attribute.values[int(scores.table.at[line.row, "label"])]
        note(f"{say('captions.labelled', value=label)}; {guess_text(line)}.")
        if people := [each.written for each in _lines(page, sets, sets.human, image)] if sets.human else []:
            note(say("captions.people"))
            st.html("".join(f'<div class="cb-people">{escape(text)}</div>' for text in people[:SHOWN]))
    st.html(legend(scores.attribute))
    if sets.other:
        note(say("captions.other", other=sets.other, setting=choice.setting_name))


def scored_sets(page: Page) -> Scored:
    """The sets of captions that can be read."""
    choice = page.choice
    assert choice
    return page.once("scored sets", lambda: scored(choice))


def scores_of(page: Page, sets: Scored, name: str) -> CaptionScores | None:
    """The scores of a set, None if it is not scored."""
    if not (run := sets.runs.get(name)):
        return None
    return once(repr((page.folder, run.run_id, "scores")), lambda: caption_scores(run))


def _lines(page: Page, sets: Scored, name: str, image: str) -> list[Line]:
    digest = sets.sets[name].hash
    written = once(repr((page.folder, digest, "written")), lambda: page.workspace.frame(digest))
    return lines_of(name, scores_of(page, sets, name), written, image)


def lines_of_image(page: Page, sets: Scored, names: Sequence[str], image: str) -> dict[str, list[Line]]:
    """The captions of an image in each of these sets that has any."""
    lines = {name: _lines(page, sets, name, image) for name in names}
    return {name: of_set for name, of_set in lines.items() if of_set}


def photograph(page: Page, image: str) -> bool:
    """The photograph of an image, if there is one."""
    if path := picture_path(page.workspace, page.collection, image):
        with st.container(height=PICTURE + 6, border=False):
            st.image(str(path), width=round(PICTURE * 4 / 3), alt=f"Photograph {image}")
    return path is not None


def step(ids: Sequence[str], asked: str) -> str:
    """The image that is read, with buttons to the one before and after it; arrow keys too. asked: of the address."""
    place = ids.index(asked if asked in ids else ids[0])
    line = st.container(horizontal=True, vertical_alignment="center", gap="small")
    for label, key, to in (("Previous", "Left", place - 1), ("Next", "Right", place + 1)):
        possible = 0 <= to < len(ids)
        target = {"image": ids[to]} if possible else {}
        line.button(
            label, key=f"step_{key}", shortcut=key, disabled=not possible, on_click=controls.choose, kwargs=target
        )
    with line:
        note(f"{place + 1:,} of {counted(len(ids), 'image')}")
    return ids[place]

"""Images, tab One photograph: what each condition hides of it, and what the captioner then says, word by word."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from capbias_core.errors import CapbiasError
from capbias_core.kinds import CAPTIONS, LABELS, REFERENCES
from capbias_core.load.photographs import read_photograph
from capbias_core.measures.photographs import departures_in
from capbias_core.views import photographs as views
from capbias_core.views.coloured import guess_text, legend, line_words
from capbias_core.views.masking import WHAT
from capbias_core.views.scored import Line, caption_scores, runs_to_score, stored_attackers
from capbias_core.views.sentence import say
from capbias_core.vision.masking import PERSON, marked_pixels
from capbias_core.workspace.conditions import ORIGINAL, condition_of, condition_sets
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.photographs import people_sources
from capbias_core.workspace.store import Item
from pages.ui import controls
from pages.ui.base import errors, note, once
from pages.ui.empty import empty_state
from pages.ui.evidence import scored_sets, step
from pages.ui.page import Page
from pages.ui.runs import start_button

CELL, MOST_MAPS, LISTED = 222, 2, 500


def photograph_tab(page: Page) -> None:
    if not page.collection:
        empty_state(page, "No photographs and no captions are loaded yet.")
        return
    files = views.photographs_of(page.workspace, page.collection)
    if not files:
        note(say("masking.no_photographs"))
        return
    sets = sets_read(page)
    images = captioned(page, sets)
    images += sorted(files.keys() - set(images))
    strip(page, sets, images, [*WHAT])


def sets_read(page: Page) -> dict[str, Item]:
    """The sets of the captioner that is read, by condition; if nothing is scored, of one with most conditions."""
    known = condition_sets(page.workspace, page.collection)
    names = {item.name: condition_of(item)[0] for item in page.items(CAPTIONS)}
    read = names.get(page.choice.captioner, "") if page.choice else ""
    return known.get(read) or next(iter(known.values()), {})


def captioned(page: Page, sets: Mapping[str, Item]) -> list[str]:
    """The images with a photograph and a caption of each of these sets, in order."""
    files = views.photographs_of(page.workspace, page.collection)
    shared = set(files).intersection(*(frame_of(page, item.hash)["image_id"] for item in sets.values()))
    return sorted(shared)


def frame_of(page: Page, digest: str) -> pd.DataFrame:
    return once(repr((page.folder, digest, "written")), lambda: page.workspace.frame(digest))


@st.cache_data(show_spinner=False, max_entries=32)
def _pixels(path: str, changed: int) -> np.ndarray:
    return within_limits(Path(path).name, read_photograph, Path(path))


def pixels_of(file: Path) -> np.ndarray:
    return _pixels(str(file), file.stat().st_mtime_ns if file.is_file() else 0)


def strip(page: Page, sets: Mapping[str, Item], images: Sequence[str], conditions: Sequence[str]) -> None:
    """A photograph under some conditions: a cell for each with picture, caption, guess, words and maps. images: those
    to step through."""
    line = st.container(horizontal=True, vertical_alignment="bottom", key="controls_image")
    listed = list(images[:LISTED])
    if len(conditions) > 2:
        more: dict[str, Any] = {"accept_new_options": True} if len(images) > LISTED else {}
        controls.selectbox(line, f"Image ({len(images):,} photographs)", listed, key="image", width=220, **more)
    else:
        controls.kept("image")
    with line:
        image = step(images, controls.named("image"))
    with errors():
        departures = page.once("departures", lambda: _departures(page))
        shown = page.once(
            repr(("variants", image, [(key, item.hash) for key, item in sets.items()])),
            lambda: views.variants(
                page.workspace, page.collection, image, sets, departures, pixels_of, partial(frame_of, page)
            ),
        )
        said = _said(page, sets, image)
        order = sorted((name for name in conditions if name in shown), key=lambda name: name not in said)
        _cells(page, image, {name: shown[name] for name in order}, said, sets)


def _departures(page: Page) -> dict[str, float]:
    """How much objects go with a value in human captions; empty if that is not known."""
    if page.choice is None:
        return {}
    setting = page.choice.measured_with
    table = page.workspace.item(LABELS, setting.labels, page.collection)
    try:
        return departures_in(page.workspace, page.collection, page.choice.attribute, setting.references, table)
    except CapbiasError:
        return {}


def _said(page: Page, sets: Mapping[str, Item], image: str) -> dict[str, str]:
    """The first caption of the image under each condition."""
    said = {}
    for condition, item in sets.items():
        frame = frame_of(page, item.hash)
        if written := frame.loc[frame["image_id"] == image, "caption"].tolist():
            said[condition] = written[0]
    return said


def _cells(
    page: Page, image: str, shown: dict[str, views.Variant], said: dict[str, str], sets: Mapping[str, Item]
) -> None:
    words, by = _words(page, image, {name: text for name, text in said.items() if name in shown})
    maps, cells = _maps(page, image, sets), []
    for condition, variant in shown.items():
        what = WHAT[condition] if condition != ORIGINAL else "the photograph"
        parts = [f'<b>{condition}</b> <span class="cb-note">{what}</span>']
        if variant.pixels is not None:
            parts.append(_picture(variant.pixels, f"{image}, {condition}. {variant.text}"))
        parts.append(words.get(condition) or escape(said.get(condition, "No caption.")))
        parts.append(_small(variant.text))
        if variant.pixels is not None and condition in maps:
            parts += _map_pictures(page, maps[condition], image, variant.pixels)
        cells.append(f"<section>{''.join(parts)}</section>")
    st.html(f'<div class="cb-cells">{"".join(cells)}</div>')
    if words and page.choice:
        st.html(legend(page.choice.defined))
    made_here = [name for name, variant in shown.items() if name in said and variant.made_here]
    drawn = say("masking.drawn_here", conditions=", ".join(made_here)) if made_here else ""
    for line in filter(None, (by, _people(page, image), drawn)):
        note(line)
    if maps:
        st.html(views.heat_legend())


def _small(text: str) -> str:
    return f'<div class="cb-note">{escape(text)}</div>' if text else ""


def _picture(pixels: np.ndarray, alt: str) -> str:
    """A picture in the page itself: nothing is loaded later, so nothing moves."""
    small = views.reduced(pixels, 2 * CELL)
    height, width = small.shape[:2]
    source = f"data:image/jpeg;base64,{b64encode(views.jpeg(small)).decode()}"
    return f'<img src="{source}" width="{width}" height="{height}" style="height:auto" alt="{escape(alt)}">'


def _people(page: Page, image: str) -> str:
    """What people said of the image."""
    if page.choice is None or not (human := page.choice.measured_with.references):
        return ""
    frame = frame_of(page, page.workspace.item(REFERENCES, human, page.collection).hash)
    texts = frame.loc[frame["image_id"] == image, "caption"].tolist()
    return say("masking.people", captions=" ".join(f"“{text}”" for text in texts)) if texts else ""


def _words(page: Page, image: str, said: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """The captions as HTML with guess and coloured words, all by the attackers that scored the captioner that is read,
    and a line on these. If they did not yet, the button that lets them."""
    choice = page.choice
    if choice is None or not said:
        return {}, ""
    sets = scored_sets(page)
    if not (run := sets.rescoring):
        with errors():
            start_button(page, runs_to_score(choice, [choice.captioner]), "Score captions", "score_captions")
        return {}, say("masking.not_scored")
    key = (page.folder, run.run_id)
    scores = once(repr((*key, "scores")), lambda: caption_scores(run))
    attackers = once(repr((*key, "attackers")), lambda: stored_attackers(run))
    texts = views.rescored(scores, attackers, image, list(said.values()))
    shown = [Line(name, said[name], scores.attribute, read) for name, read in zip(said, texts, strict=True)]
    largest = max(line.largest for line in shown)
    lines = {line.name: f'<div class="cb-note">{guess_text(line)}</div>{line_words(line, largest)}' for line in shown}
    label = scores.table.loc[scores.table["image_id"] == image, "label"]
    by = {"attacker": run.spec.attacker, "captioner": run.spec.model}
    if label.empty:
        return lines, say("masking.scored", **by)
    return lines, say("masking.scored_label", label=scores.attribute.values[int(label.iloc[0])], **by)


def _maps(page: Page, image: str, sets: Mapping[str, Item]) -> dict[str, views.KeptMaps]:
    """The maps of this photograph by condition."""
    if page.choice is None:
        return {}
    runs = views.attribution_runs(page.workspace, page.collection, page.choice.attribute)
    maps = {
        condition: once(repr((page.folder, runs[item.name].run_id, "maps")), partial(views.kept_maps, runs[item.name]))
        for condition, item in sets.items()
        if item.name in runs
    }
    return {condition: of_set for condition, of_set in maps.items() if of_set.of_image(image)}


def _map_pictures(page: Page, maps: views.KeptMaps, image: str, picture: np.ndarray) -> list[str]:
    source, person, parts = next(iter(people_sources(page.workspace, page.collection)), None), None, []
    if source:
        marks = frame_of(page, source.hash)
        person = marked_pixels(marks[(marks["image_id"] == image) & (marks["object"] == PERSON)], *picture.shape[:2])
    for index in maps.of_image(image)[:MOST_MAPS]:
        row, heat = maps.table.iloc[index], maps.heat(index)
        text = views.heat_text(row["word"], row["attribution_score"], row["pointing_game"])
        parts += [_picture(views.heat_over(picture, heat, maps.window(index), person), text), _small(text)]
    return parts

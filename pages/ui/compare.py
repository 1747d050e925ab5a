"""The mode Compare of the tab Captions: captions of 2 to 6 sets side by side, for one image at a time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from capbias_core.prepare.tasks import function_words
from capbias_core.types import Attribute, counted
from capbias_core.views import side_by_side as views
from capbias_core.views import words as word_views
from capbias_core.views.captions import IMAGE, toward
from capbias_core.views.view import Shown
from capbias_core.workspace.photographs import picture_path
from capbias_core.workspace.store import RunRow
from pages.ui import cached, view
from pages.ui.bar import Bar
from pages.ui.base import note
from pages.ui.drawing import draw_table, select_row, selected_row
from pages.ui.one_image import PICTURE_CSS, Line, largest_word, lines_of_image, show_caption, steps, who_wrote
from pages.ui.plain import plain
from pages.ui.shown import downloads

PAGE = 50  # images
FIRST = 3  # sets side by side at first
EVERYONE = "all"
DISAGREEMENT = "disagreement"


def compare(bar: Bar, runs: dict[str, RunRow], human: set[str]) -> None:
    """Sets side by side, the image on which they disagree most first. runs: scored sets by name. human: names of human
    sets."""
    models = [name for name in runs if name not in human]
    default = [*models, *(name for name in runs if name in human)][:FIRST]
    names = view.multiselect(
        st,
        "Captioners",
        list(runs),
        key="compared",
        default=default,
        missing="the captions of",
        max_selections=views.MOST,
    )
    if len(names) < views.FEWEST:
        note(f"Choose {views.FEWEST} to {views.MOST} sets of captions. {counted(len(runs), 'set')} scored.")
        return
    chosen = {name: runs[name] for name in names}
    attribute = cached.scores(bar.folder, chosen[names[0]].run_id).attribute
    listed = _listed(bar, chosen, attribute)
    if listed.empty:
        note("No image fits these filters, or none has captions of all of these.")
        return
    images = view.text(st.sidebar, "Image shown", key="image").strip()
    pages = -(-len(listed) // PAGE)
    here = np.flatnonzero((listed["image_id"] == images).to_numpy())
    number = view.number(
        st.sidebar, f"Page (1 to {pages:,})", 1, pages, int(here[0]) // PAGE + 1 if len(here) else 1, key="page"
    )
    page = listed[(number - 1) * PAGE : number * PAGE]
    image = images or page["image_id"].iloc[0]
    disagreements = _disagreements(bar.folder, tuple(run.run_id for run in chosen.values()))
    of_image = disagreements[disagreements["image_id"] == image]
    st.header(f"Image {plain(image)}")
    if of_image.empty:
        note(f"Image {image} has no scored caption of {', '.join(names)}.")
    else:
        steps(listed, of_image.index[0], PAGE)
        _columns(bar, chosen, human, of_image.iloc[0], attribute)
    _table(bar, chosen, page, image)
    downloads(_shown(bar, chosen, page, attribute), "side_by_side")
    note(f"{counted(len(listed), 'image')} with captions of all {len(names)}. {views.HOW}")


@st.cache_resource(show_spinner=False, max_entries=16)
def _disagreements(folder: str, run_ids: tuple[str, ...]) -> pd.DataFrame:
    return views.disagreements([cached.scores(folder, run_id) for run_id in run_ids])


def _listed(bar: Bar, chosen: dict[str, RunRow], attribute: Attribute) -> pd.DataFrame:
    """The images that pass the filters of the sidebar, in the order chosen there."""
    side = st.sidebar
    order = view.selectbox(side, "Sort by", [DISAGREEMENT, IMAGE], key="order")
    group = view.selectbox(side, "Labelled", [EVERYONE, *attribute.values], key="group")
    query = view.text(side, "Search captions or an image ID", key="q").strip()
    listed = _disagreements(bar.folder, tuple(run.run_id for run in chosen.values()))
    if group != EVERYONE:
        listed = listed[listed["labelled"] == group]
    if query:
        images = {query}
        for run in chosen.values():
            written = cached.captions(bar.folder, run.spec.captions)
            matches = written["caption"].str.contains(query, case=False, regex=False).to_numpy(dtype=bool)
            images |= set(written["image_id"][matches])
        listed = listed[listed["image_id"].isin(images)]
    return listed.sort_values(DISAGREEMENT, ascending=False, kind="stable") if order == DISAGREEMENT else listed


def _columns(bar: Bar, chosen: dict[str, RunRow], human: set[str], of_image: pd.Series, attribute: Attribute) -> None:
    """The photograph, if there is one, and a column per set. of_image: a row of `disagreements`."""
    image = of_image["image_id"]
    first: list[tuple[Line, int]] = []
    for name, run in chosen.items():
        lines = lines_of_image(bar, name, run, image)
        first.append((min(lines, key=lambda line: line.scores.table.at[line.row, "caption_index"]), len(lines)))
    largest, sections = largest_word([line for line, _ in first]), []
    alone = views.words_alone([line.shown for line, _ in first])
    for index, ((line, number), only) in enumerate(zip(first, alone, strict=True)):
        shares = line.scores.probabilities_of(line.row)
        ends, values = toward(attribute, line.words, int(shares.argmax()))
        plain = function_words(line.tokens)
        words = word_views.coloured_words(line.tokens, values, ends, line.shown, largest, only, plain=plain)
        below = ""
        if number > 1:
            below = f"First of {number} captions; mean P({of_image['labelled']}) {of_image[f'p{index}']:.2f}."
        guess = int(shares.argmax())
        text = f"Guess: {attribute.values[guess]}, {shares[guess]:.0%}"
        sections.append(views.column(who_wrote(line, human), text, words, below))
    picture = picture_path(bar.workspace, bar.collection, image)
    container = st.container()
    if picture:
        left, container = st.container(key="stacks_compare").columns([1, 3], gap="medium")
        left.html(PICTURE_CSS)
        left.container(key="photograph").image(str(picture), alt=f"Photograph {image}")
    with container:
        note(f"Labelled {of_image['labelled']}; disagreement {of_image[DISAGREEMENT]:.2f}.")
        st.html(views.columns(sections))
        st.html(word_views.legend(attribute, beside=True))


def _table(bar: Bar, chosen: dict[str, RunRow], page: pd.DataFrame, image: str) -> None:
    """The images of a page, to select one."""
    shown = page[["image_id", "labelled", DISAGREEMENT]].rename(columns={"image_id": "image"})
    of_label = {f"P(label), {name}": page[f"p{index}"] for index, name in enumerate(chosen)}
    shown = shown.assign(**of_label).reset_index(drop=True)
    key = f"compared_{'_'.join(chosen)}_{page.index[0]}_{len(page)}"
    select_row(key, np.flatnonzero((shown["image"] == image).to_numpy())[:1].tolist())

    def pick() -> None:
        if (row := selected_row(key)) is not None:
            show_caption(shown["image"].iloc[row], 0)

    draw_table(
        shown,
        height=300,
        selection_mode="single-row",
        key=key,
        on_select=pick,
        alt=f"Images on which {', '.join(chosen)} disagree",
        column_config={name: st.column_config.NumberColumn(format="%.2f") for name in (DISAGREEMENT, *of_label)},
    )


def _shown(bar: Bar, chosen: dict[str, RunRow], page: pd.DataFrame, attribute: Attribute) -> Shown:
    """The page's images as the command `view side-by-side` has them."""
    scores = {name: cached.scores(bar.folder, run.run_id) for name, run in chosen.items()}
    written = {name: cached.captions(bar.folder, run.spec.captions) for name, run in chosen.items()}
    rows = views.side_by_side_rows(scores, written, page)
    return Shown(f"Where {', '.join(chosen)} disagree on {attribute.name}", rows, table=views.cells(rows))

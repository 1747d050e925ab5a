"""One photograph under each condition: layers, captions, scores, words and maps; and what makes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from capbias_core.attackers import ATTACKERS
from capbias_core.attackers.what_if import StoredAttackers
from capbias_core.errors import CapbiasError
from capbias_core.load.photographs import read_photograph
from capbias_core.measures.photographs import departures_in
from capbias_core.prepare import tokenize
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.types import BOX_COLUMNS, CONDITIONS
from capbias_core.views import photographs as photo_views
from capbias_core.views.captions import CaptionScores, caption_runs
from capbias_core.views.conditions import WHAT
from capbias_core.views.words import STYLE, legend
from capbias_core.vision.masking import CORNERS, HALF, PERSON, MaskRule, foreground, marked_pixels
from capbias_core.workspace.conditions import ORIGINAL
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.photographs import PEOPLE, people_sources
from capbias_core.workspace.store import RUN, Item, Workspace
from pages.ui import cached, present, view
from pages.ui.bar import Bar
from pages.ui.base import errors, note
from pages.ui.one_image import caption_line
from pages.ui.plain import plain
from pages.ui.runs import start_button

Judge = tuple[CaptionScores, StoredAttackers]
ATTACKER = next(name for name, entry in ATTACKERS.items() if entry.rescores)  # it scores a caption at once
ENOUGH = 1000  # images
MOST_MAPS = 2  # of one caption
LISTED = 500
BOXES, OUTLINES, FOREGROUND = "boxes", "outlines", "person in the foreground"
NOTHING = "nothing"
CELL, THUMBNAIL = 222, 128
THUMBNAILS = 12  # per page
# Cells of both strips have one width; in a window of 1280 pixels those with captions fit into one row.
ONE_ROW = """<style>
[class*="st-key-strip"] {display: grid !important; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr))}
[class*="st-key-strip"] > div {width: auto !important}
[class*="st-key-strip"] [class*="st-key-cell_"] {width: 100% !important; height: 100%}
</style>"""
KEPT, LIVE = "as captioned", "as chosen below"


def photo_inspector(bar: Bar, sets: dict[str, Item], attribute: str, table: Item | None) -> None:
    """sets: those of one captioner by condition. attribute: whose words and scores are shown, '' for none; table: its
    labels."""
    files = photo_views.photographs_of(bar.workspace, bar.collection)
    if not files:
        note(
            f"“{bar.collection}” has no photographs. Upload some in the tab Prepare, or name their folder on Data "
            "(file names: image IDs)."
        )
        return
    image = _picker(bar, files, sets)
    right = st.container(width=360)
    if image not in files:
        note(f"There is no photograph {image!r} in this collection.")
        return
    pixels = _pixels(str(files[image]), _changed(files[image]))
    with right:
        # The outlines or boxes on the photograph, of those that are chosen if there are several; outlines first.
        sources = {f"{item.name} ({PEOPLE[item.kind]})": item for item in people_sources(bar.workspace, bar.collection)}
        marks = pd.DataFrame(columns=list(BOX_COLUMNS))
        if sources:
            names = list(sources)
            name = st.selectbox("Marked by", names, key="marked_by") if len(names) > 1 else names[0]
            marks = cached.captions(bar.folder, sources[name].hash)
            marks = marks[marks["image_id"] == image]
    strip = st.container()  # the answer first; its settings are below it
    left, right = st.container(key="stacks_photo").columns([3, 2], gap="large")
    with right:
        hidden, reasons, thing = _settings(bar, attribute, table, marks, pixels)
        behind = st.selectbox("Preview mask", [NOTHING, *hidden], key="hidden") if hidden else NOTHING
    with left:
        _layers(image, pixels, marks, behind, hidden.get(behind))
    with present.whole(f"Photograph {image}", strip):
        pictures = photo_views.variants(pixels, hidden)
        things = [thing] if thing else []
        texts = {
            name: photo_views.masked_text(name, float(mask.mean()), thing, things) for name, mask in hidden.items()
        }
        stored_texts = {}
        captioned = {}  # the photograph as it is in the stored folders of masked ones
        for condition, item in photo_views.masked_folders(bar.workspace, bar.collection, sets).items():
            file = photo_views.photographs_of(bar.workspace, bar.collection, item.name).get(image)
            if file and file.is_file():
                captioned[condition] = _pixels(str(file), _changed(file))
                stored_texts[condition] = photo_views.stored_mask_text(bar.workspace, item, image)
        if (
            captioned
            and st.segmented_control("Masked photographs", [KEPT, LIVE], default=KEPT, key="which", required=True)
            == KEPT
        ):
            pictures |= captioned
            texts |= stored_texts
        _strip(bar, image, pictures, texts, reasons, marks, sets, attribute, table)


def preview_masks(
    bar: Bar, people: str, conditions: list[str], departures: Mapping[str, float], fraction: float
) -> None:
    """What some conditions hide of the first photograph on which a person is marked. departures: as in `MaskRule`."""
    files = photo_views.photographs_of(bar.workspace, bar.collection)
    source = next(item for item in people_sources(bar.workspace, bar.collection) if item.name == people)
    marks = cached.captions(bar.folder, source.hash)
    marked = [image for image in marks.loc[marks["object"] == PERSON, "image_id"].unique() if image in files]
    if not marked or not conditions:
        return
    image, rows = marked[0], marks[marks["image_id"] == marked[0]]
    pixels = _pixels(str(files[image]), _changed(files[image]))
    thing = MaskRule("object", departures=departures).object_on(rows)
    hidden, reasons = photo_views.hidden_of(rows, pixels.shape[:2], thing, fraction)
    note(f"Preview on photograph {image}:")
    with st.container(horizontal=True, key="preview_masks"):
        for condition in conditions:
            with st.container(width=CELL):
                if condition not in hidden:
                    note(f"{condition}: {reasons.get(condition, 'no mask')}.")
                    continue
                picture = photo_views.reduced(photo_views.variants(pixels, hidden)[condition], 2 * CELL)
                share = float(hidden[condition].mean())
                text = photo_views.masked_text(condition, share, thing, departures)
                st.image(picture, width="stretch", alt=f"{image}, {condition}. {text}")
                note(f"{condition}. {text}")


# The photograph


def _picker(bar: Bar, files: dict[str, Path], sets: dict[str, Item]) -> str:
    """An image ID; photographs with captions first, of very many the first ones (any other can be typed)."""
    captioned = set()
    for item in sets.values():
        captioned |= set(cached.captions(bar.folder, item.hash)["image_id"]) & files.keys()
    order = sorted(files, key=lambda image: (image not in captioned, image))
    above = st.container()
    chosen = view.selectbox(
        st,
        f"Image ID ({len(files):,} photographs, {len(captioned):,} with captions)",
        order[:LISTED],
        key="photograph",
        missing="the photograph",
        accept_new_options=len(order) > LISTED,
        width=360,
    )
    with above:
        pages, page = -(-len(order) // THUMBNAILS), 1
        if pages > 1:
            first = order.index(chosen) // THUMBNAILS + 1 if chosen in order else 1
            page = view.number(st, f"Photographs, page of {pages:,}", 1, pages, first, key="photograph_page", width=200)
        with st.container(horizontal=True, gap="small", key="thumbnails_photograph"):
            for image in order[(page - 1) * THUMBNAILS : page * THUMBNAILS]:
                with st.container(width=THUMBNAIL, gap="xsmall"):
                    try:
                        small = _small(str(files[image]), files[image].stat().st_mtime_ns)
                        st.image(small, width=THUMBNAIL, alt=f"Photograph {image}, small")
                    except (CapbiasError, OSError):
                        note("This file cannot be read.")
                    st.button(
                        plain(image),
                        key=f"pick_photograph_{image}",
                        type="primary" if image == chosen else "secondary",
                        icon=":material/check:" if image == chosen else None,
                        width="stretch",
                        on_click=view.choose,
                        args=("photograph", image),
                    )
    return chosen


@st.cache_data(show_spinner=False, max_entries=512)
def _small(path: str, changed: int) -> bytes:
    return within_limits(Path(path).name, photo_views.thumbnail, Path(path))


@st.cache_data(show_spinner=False, max_entries=16)
def _pixels(path: str, changed: int) -> np.ndarray:
    return within_limits(Path(path).name, read_photograph, Path(path))


def _changed(file: Path) -> int:
    """When a file was changed; 0 if it is gone, which reading it will report."""
    return file.stat().st_mtime_ns if file.is_file() else 0


@st.cache_data(show_spinner="Counting which objects go with a value", max_entries=16)
def _departures(folder: str, collection: str, attribute: str, table: str, read: str) -> dict[str, float]:
    """Of the objects that human captions name; empty if there are none. table: of labels. read: the items that they
    follow from."""
    workspace = Workspace(folder)
    try:
        return departures_in(workspace, collection, attribute, table=workspace.item("labels", table, collection))
    except CapbiasError:
        return {}


def _settings(bar: Bar, attribute: str, table: Item | None, marks: pd.DataFrame, pixels: np.ndarray):
    """What each condition hides, why others hide nothing, and the object that is hidden."""
    st.markdown("**What is masked**")
    if marks.empty:
        note("Available if people or objects are marked on the photograph.")
        return *photo_views.hidden_of(marks, pixels.shape[:2]), ""
    departures = {}
    if table:
        read = [(item.hash, item.details) for kind in ("references", "labels") for item in bar.items(kind)]
        departures = _departures(bar.folder, bar.collection, attribute, table.name, str(read))
    things = photo_views.objects_on(marks, departures)
    titles = {name: name for name in things}
    if things and things[0] in departures:
        titles[things[0]] += f" (most associated with {attribute})"
    chosen = st.selectbox(
        "Object",
        things,
        key="object",
        format_func=titles.__getitem__,
        help="Hidden under the conditions object and both. First: the object most associated with a value of the "
        "attribute in human captions, as in the LIC paper.",
    )
    fraction = st.slider(
        "Part of the person (condition part)",
        0.1,
        1.0,
        HALF,
        0.1,
        key="fraction",
        help="Of the pixels within the outline, this share from the top.",
    )
    with errors():
        return *photo_views.hidden_of(marks, pixels.shape[:2], chosen or "", fraction), chosen or ""
    return {}, {}, ""


def _layers(image: str, pixels: np.ndarray, marks: pd.DataFrame, behind: str, hidden: np.ndarray | None) -> None:
    if marks.empty:
        note("Nothing is marked on this photograph. Load COCO instances on Data, or find people in the tab Prepare.")
    person = foreground(marks)
    available = {BOXES: len(marks), OUTLINES: "outline" in marks, FOREGROUND: person is not None}
    layers = [name for name, is_available in available.items() if is_available]
    chosen = st.pills("Layers", layers, selection_mode="multi", default=layers[-1:], key="layers") if layers else []
    outlines, boxes = [], None
    if OUTLINES in chosen:
        outlines = [
            (name, marked_pixels(marks[marks["object"] == name], *pixels.shape[:2]))
            for name in dict.fromkeys(marks["object"])
        ]
    if BOXES in chosen:  # small boxes are drawn over large ones
        sizes = (marks["x2"] - marks["x1"]) * (marks["y2"] - marks["y1"])
        boxes = marks.iloc[np.argsort(-sizes.to_numpy(dtype=float))]
    corners = [person[side] for side in CORNERS] if person is not None and FOREGROUND in chosen else None
    drawn = [*chosen, *([f"what {behind} hides"] if behind != NOTHING else [])]
    picture = photo_views.layered(pixels, outlines, boxes, corners, hidden)
    st.image(picture, width="stretch", alt=photo_views.photograph_text(image, list(marks["object"]), drawn))


# The strip


@st.cache_resource(show_spinner=False, max_entries=8)
def _maps(folder: str, run_id: str) -> photo_views.KeptMaps:
    workspace = Workspace(folder)
    return photo_views.kept_maps(workspace, workspace.get_run(run_id))


def _strip(bar: Bar, image: str, pictures, texts, reasons, marks, sets, attribute, table) -> None:
    """A column per condition with its photograph, caption, score and map; those without a caption in a second row.

    pictures: the photograph under each condition. texts: what was masked of it. reasons: why others have none.
    """
    st.html(STYLE + ONE_ROW)
    judge = _judge(bar, sets, attribute, table)
    runs = photo_views.attribution_runs(bar.workspace, bar.collection, attribute, table) if table else {}
    maps = {  # of conditions with a map of this photograph
        condition: word_maps
        for condition, item in sets.items()
        if item.name in runs and (word_maps := _maps(bar.folder, runs[item.name].run_id)).of_image(image)
    }
    captions = {}  # the first caption under each condition, and how it is scored
    for condition, item in sets.items():
        frame = cached.captions(bar.folder, item.hash)
        if written := frame.loc[frame["image_id"] == image, "caption"].tolist()[:1]:
            captions[condition] = written[0], photo_views.rescored(*judge, image, written)[0] if judge else None
    largest = max((float(abs(scored.words).max(initial=0.0)) for _, scored in captions.values() if scored), default=0.0)
    if judge:
        st.html(legend(judge[0].attribute))
    conditions = [name for name in CONDITIONS if name in photo_views.STRIP or name in sets]
    for key, shown in (("strip", captions), ("strip_bare", set(conditions) - set(captions))):
        with st.container(horizontal=True, key=key, gap="small"):
            for condition in [name for name in conditions if name in shown]:
                with st.container(width=CELL, border=True, key=f"cell_{condition}"):
                    st.html(f'<b>{condition}</b> <span class="cb-note">{WHAT[condition]}</span>')
                    picture = pictures.get(condition)
                    if picture is not None:
                        alt = f"{image}, {condition}. {texts.get(condition, '')}".strip()
                        st.image(photo_views.reduced(picture, 2 * CELL), width="stretch", alt=alt)
                        if text := texts.get(condition):
                            note(text)
                    else:
                        note(f"No image: {reasons.get(condition, 'imported captions, without the masked image')}.")
                    caption, scored = captions.get(condition, ("", None))
                    if condition not in captions:
                        note("No caption yet.")
                    elif judge and scored is not None:
                        tokens, shares, words = scored.tokens, scored.probabilities, tokenize(caption)
                        values = judge[0].attribute
                        st.html(caption_line("guess", tokens, scored.words, values, shares, words, largest))
                    else:
                        st.text(caption)
                    if picture is not None and condition in maps:
                        _word_maps(maps[condition], image, picture, marks)
    if judge:
        scores, model = judge[0], judge[0].run.spec.model
        rows = scores.table[scores.table["image_id"] == image]
        by = f"Percentages: probability of each value, by {ATTACKER} classifiers"
        if rows.empty:
            note(f"{by} trained on the captions of {model} (their mean, since this image has no label).")
        else:
            label = scores.attribute.values[int(rows.iloc[0]["label"])]
            note(f"Labelled {label}. {by} trained on other captions of {model}; the same for every condition.")
    imported = [
        name for name, item in sets.items() if name in pictures and name != ORIGINAL and RUN not in item.details
    ]
    if imported:
        note(
            f"The captions for {', '.join(imported)} were imported. The masked images above were made here and may "
            "differ from what the captioner saw."
        )
    if maps:
        st.html(photo_views.heat_legend())


def _word_maps(maps: photo_views.KeptMaps, image: str, picture: np.ndarray, marks: pd.DataFrame) -> None:
    person = marked_pixels(marks[marks["object"] == PERSON], *picture.shape[:2])
    for index in maps.of_image(image)[:MOST_MAPS]:
        row, heat = maps.table.iloc[index], maps.heat(index)
        text = photo_views.heat_text(row["word"], heat, row["attribution_score"], row["pointing_game"])
        drawn = photo_views.reduced(photo_views.heat_over(picture, heat, maps.window(index), person), 2 * CELL)
        st.image(drawn, width="stretch", alt=text)
        note(text)


def _judge(bar: Bar, sets: dict[str, Item], attribute: str, table: Item | None) -> Judge | None:
    """Scores and attackers of the captions by which all conditions are scored; None and a button if there are none."""
    if table is None:
        return None
    runs = caption_runs(bar.workspace, bar.collection, attribute, ATTACKER, table)
    if runs:
        run = runs[next((item.name for item in sets.values() if item.name in runs), next(iter(runs)))]
        return cached.scores(bar.folder, run.run_id), cached.attackers(bar.folder, run.run_id, 0)
    if sets:
        first = sets.get(ORIGINAL) or next(iter(sets.values()))
        if first.images < ENOUGH:  # attackers learn from a larger set, and then read these captions
            first = max([first, *bar.items("captions")], key=lambda item: item.images)
        note(f"No scores yet. They need a classifier trained on a whole set, here {first.name}.")
        request = Question(bar.collection, (first.name,), table.name, attribute, (), words=True)
        with errors():
            start_button(bar, plan(bar.workspace, request), "Score captions", "score_captions")
    return None

"""One photograph under each condition: layers, captions, scores, words and maps; and what makes them."""

from __future__ import annotations

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
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import Request, plan
from capbias_core.types import BOX_COLUMNS, CONDITIONS
from capbias_core.views.captions import CaptionScores, caption_runs
from capbias_core.views.conditions import WHAT
from capbias_core.views.photographs import (
    BOX,
    STRIP,
    KeptMaps,
    attribution_runs,
    heat_legend,
    heat_over,
    heat_text,
    hidden_of,
    image_captions,
    kept_maps,
    layered,
    mask_of,
    masked_folders,
    objects_on,
    photograph_text,
    photographs_of,
    reduced,
    rescored,
    variants,
)
from capbias_core.views.words import STYLE, legend
from capbias_core.vision.masking import FILLS, HALF, PERSON, foreground
from capbias_core.workspace.conditions import ORIGINAL
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.photographs import PEOPLE, people_sources
from capbias_core.workspace.store import RUN, Item, RunRow, Workspace
from pages.ui import cached, view
from pages.ui.base import errors, note
from pages.ui.coloured import coloured_caption
from pages.ui.running import start_button
from pages.ui.thumbnails import thumbnails

Judge = tuple[CaptionScores, StoredAttackers]
ATTACKER = next(name for name, entry in ATTACKERS.items() if entry.rescores)  # it scores a caption at once
ENOUGH = 1000  # images
MOST_MAPS = 2  # of one caption
LISTED = 500
BOXES, OUTLINES, FOREGROUND = "boxes", "outlines", "person in the foreground"
NOTHING = "nothing"
CELL = 222
# Cells of both strips have one width; in a window of 1280 pixels those with captions fit into one row.
ONE_ROW = """<style>
[class*="st-key-strip"] {display: grid !important; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr))}
[class*="st-key-strip"] > div {width: auto !important}
[class*="st-key-strip"] [class*="st-key-cell_"] {width: 100% !important; height: 100%}
</style>"""
KEPT, LIVE = "as captioned", "as chosen below"


def photo_inspector(
    engine: Engine, collection: str, sets: dict[str, Item], attribute: str, table: Item | None, seeds: int
) -> None:
    """sets: those of one captioner by condition. attribute: whose words and scores are shown, '' for none; table: its
    labels. seeds: of LIC_M, where a set is scored here."""
    files = photographs_of(engine.workspace, collection)
    if not files:
        note(
            f"“{collection}” has no photographs. Upload some in the tab Prepare, or name their folder on Data (file "
            "names: image IDs)."
        )
        return
    image = _picker(engine, files, sets)
    right = st.container(width=360)
    if image not in files:
        note(f"There is no photograph {image!r} in this collection.")
        return
    pixels = _pixels(str(files[image]), _changed(files[image]))
    with right:
        marks = _marks(engine, collection, image)
    strip = st.container()  # the answer first; what it depends on is chosen below it
    left, right = st.container(key="stacks_photo").columns([3, 2], gap="large")
    with right:
        hidden, reasons, how = _settings(engine, collection, attribute, table, marks, pixels)
        behind = st.selectbox("Preview mask", [NOTHING, *hidden], key="hidden") if hidden else NOTHING
    with left:
        _layers(image, pixels, marks, behind, hidden.get(behind))
    with strip:
        pictures = _pictures(engine, collection, image, sets, variants(pixels, hidden, how))
        _strip(engine, collection, image, pictures, reasons, marks, sets, attribute, table, seeds)


def _picker(engine: Engine, files: dict[str, Path], sets: dict[str, Item]) -> str:
    """An image id; photographs with captions first, of very many the first ones (any other can be typed)."""
    captioned = set()
    for item in sets.values():
        captioned |= set(cached.captions(engine.folder, item.hash)["image_id"]) & files.keys()
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
        thumbnails(files, order, chosen, key="photograph")
    return chosen


@st.cache_data(show_spinner=False, max_entries=16)
def _pixels(path: str, changed: int) -> np.ndarray:
    return within_limits(Path(path).name, read_photograph, Path(path))


def _changed(file: Path) -> int:
    """When a file was changed; 0 where it is gone, which reading it will say."""
    return file.stat().st_mtime_ns if file.is_file() else 0


@st.cache_resource(show_spinner=False, max_entries=8)
def _maps(folder: str, run_id: str) -> KeptMaps:
    workspace = Workspace(folder)
    return kept_maps(workspace, workspace.there(run_id))


def _marks(engine: Engine, collection: str, image: str) -> pd.DataFrame:
    """The outlines or boxes on a photograph, of those that are chosen where there are several; outlines first."""
    sources = {f"{item.name} ({PEOPLE[item.kind]})": item for item in people_sources(engine.workspace, collection)}
    if not sources:
        return pd.DataFrame(columns=list(BOX_COLUMNS))
    name = st.selectbox("Marked by", list(sources), key="marked_by") if len(sources) > 1 else next(iter(sources))
    frame = cached.captions(engine.folder, sources[name].hash)
    return frame[frame["image_id"] == image]


@st.cache_data(show_spinner="Counting which objects go with a value", max_entries=16)
def _departures(folder: str, collection: str, attribute: str, table: str, read: str) -> dict[str, float]:
    """Of the objects that human captions name; empty where there are none. table: of labels. read: what they follow
    from."""
    workspace = Workspace(folder)
    try:
        return departures_in(workspace, collection, attribute, table=workspace.item("attributes", table, collection))
    except CapbiasError:
        return {}


def _settings(
    engine: Engine, collection: str, attribute: str, table: Item | None, marks: pd.DataFrame, pixels: np.ndarray
):
    """What each condition hides, why others hide nothing, and how pixels are filled."""
    st.markdown("**What is masked, and how**")
    if marks.empty:
        note("Available if people or objects are marked on the photograph.")
        return *hidden_of(marks, pixels.shape[:2]), "grey"
    departures = {}
    if table:
        read = [
            (item.hash, item.details)
            for kind in ("references", "attributes")
            for item in engine.workspace.items(kind, collection)
        ]
        departures = _departures(engine.folder, collection, attribute, table.name, str(read))
    things = objects_on(marks, departures)
    chosen = st.selectbox(
        "Object",
        things,
        key="object",
        format_func=lambda name: _object_title(name, things, departures, attribute),
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
    how = st.segmented_control("Filled with", list(FILLS), default="grey", key="fill", required=True)
    with errors():
        return *hidden_of(marks, pixels.shape[:2], chosen or "", fraction), how
    return {}, {}, how


def _object_title(name: str, things: list[str], departures: dict[str, float], attribute: str) -> str:
    return f"{name} (most associated with {attribute})" if name == things[0] and name in departures else name


def _layers(image: str, pixels: np.ndarray, marks: pd.DataFrame, behind: str, hidden: np.ndarray | None) -> None:
    """The photograph, large, with its layers."""
    if marks.empty:
        note("Nothing is marked on this photograph. Load COCO instances on Data, or find people in the tab Prepare.")
    person = foreground(marks)
    there = {BOXES: len(marks), OUTLINES: "outline" in marks, FOREGROUND: person is not None}
    every = [name for name, is_there in there.items() if is_there]
    chosen = st.pills("Layers", every, selection_mode="multi", default=every[-1:], key="layers") if every else []
    outlines = (
        []
        if OUTLINES not in chosen
        else [
            (name, mask_of(marks[marks["object"] == name], *pixels.shape[:2]))
            for name in dict.fromkeys(marks["object"])
        ]
    )
    picture = layered(
        pixels,
        outlines,
        _largest_last(marks) if BOXES in chosen else None,
        [person[side] for side in BOX] if person is not None and FOREGROUND in chosen else None,
        hidden,
    )
    drawn = [*chosen, *([f"what {behind} hides"] if behind != NOTHING else [])]
    st.image(picture, width="stretch", alt=photograph_text(image, list(marks["object"]), drawn))


def _largest_last(rows: pd.DataFrame) -> pd.DataFrame:
    """Small boxes are drawn over large ones."""
    sizes = (rows["x2"] - rows["x1"]) * (rows["y2"] - rows["y1"])
    return rows.iloc[np.argsort(-sizes.to_numpy(dtype=float))]


def _pictures(
    engine: Engine, collection: str, image: str, sets: dict[str, Item], made: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The photograph under each condition: as it was captioned where that is kept, unless one wants to see others."""
    kept = _kept_pictures(engine, collection, image, sets)
    if not kept:
        return made
    which = st.segmented_control("Masked photographs", [KEPT, LIVE], default=KEPT, key="which", required=True)
    return made | kept if which == KEPT else made


def _strip(
    engine: Engine, collection: str, image: str, pictures, reasons, marks, sets, attribute, table, seeds: int
) -> None:
    """A column per condition with its photograph, caption, score and map; those without a caption in a second row."""
    st.html(STYLE + ONE_ROW)
    judge = _judge(engine, collection, sets, attribute, table, seeds)
    maps = attribution_runs(engine.workspace, collection, attribute, table) if table else {}
    found = _captions(engine, image, sets, judge)
    largest = max((float(abs(own.words).max(initial=0.0)) for _, own in found.values() if own), default=0.0)
    if judge:
        st.html(legend(judge[0].attribute))
    every = [name for name in CONDITIONS if name in STRIP or name in sets]
    for key, shown in (("strip", found), ("strip_bare", set(every) - set(found))):
        with st.container(horizontal=True, key=key, gap="small"):
            for condition in [name for name in every if name in shown]:
                with st.container(width=CELL, border=True, key=f"cell_{condition}"):
                    st.html(f'<b>{condition}</b> <span class="cb-note">{WHAT[condition]}</span>')
                    _cell_picture(condition, image, pictures, reasons)
                    _cell_caption(condition, found, judge, largest)
                    _cell_map(engine, condition, image, pictures, marks, sets, maps)
    _what_scores(judge, image)
    masked = {name: own for name, own in sets.items() if name in pictures and name != ORIGINAL}
    brought = [name for name, own in masked.items() if RUN not in own.details]
    if brought:
        note(
            f"The captions for {', '.join(brought)} were imported. The masked images above were made here and may "
            "differ from what the captioner saw."
        )
    if any(_has_map(engine, maps, item, image) for item in sets.values()):
        st.html(heat_legend())


def _kept_pictures(engine: Engine, collection: str, image: str, sets: dict[str, Item]) -> dict[str, np.ndarray]:
    """The photograph as it lies in the kept folders of masked ones."""
    found = {}
    for condition, item in masked_folders(engine.workspace, collection, sets).items():
        file = photographs_of(engine.workspace, collection, item.name).get(image)
        if file and file.is_file():
            found[condition] = _pixels(str(file), _changed(file))
    return found


def _cell_picture(condition: str, image: str, pictures: dict[str, np.ndarray], reasons: dict[str, str]) -> None:
    if condition in pictures:
        st.image(reduced(pictures[condition], 2 * CELL), width="stretch", alt=f"{image}, {condition}")
    else:
        note(f"No image: {reasons.get(condition, 'imported captions; no masked image')}.")


def _cell_caption(condition: str, found: dict, judge, largest: float) -> None:
    if condition not in found:
        note("No caption yet.")
        return
    caption, own = found[condition]
    if own is None:
        st.text(caption)
        return
    coloured_caption("guess", own.tokens, own.words, judge[0].attribute, own.probabilities, tokenize(caption), largest)


def _has_map(engine: Engine, maps: dict[str, RunRow], item: Item, image: str) -> bool:
    return item.name in maps and bool(_maps(engine.folder, maps[item.name].run_id).of_image(image))


def _cell_map(engine: Engine, condition: str, image: str, pictures, marks: pd.DataFrame, sets, maps) -> None:
    """The map at each word of the caption that names a value."""
    item = sets.get(condition)
    if item is None or item.name not in maps or condition not in pictures:
        return
    kept = _maps(engine.folder, maps[item.name].run_id)
    pixels = pictures[condition]
    person = mask_of(marks[marks["object"] == PERSON], *pixels.shape[:2])
    for row in kept.of_image(image)[:MOST_MAPS]:
        own, heat = kept.table.iloc[row], kept.heat(row)
        said = heat_text(own["word"], heat, own["attribution_score"], own["pointing_game"])
        st.image(reduced(heat_over(pixels, heat, kept.window(row), person), 2 * CELL), width="stretch", alt=said)
        note(said)


def _judge(
    engine: Engine, collection: str, sets: dict[str, Item], attribute: str, table: Item | None, seeds: int
) -> Judge | None:
    """Scores and attackers of the captions by which every condition is scored; None where there are none."""
    if table is None:
        return None
    runs = caption_runs(engine.workspace, collection, attribute, ATTACKER, table)
    own = [item.name for item in sets.values() if item.name in runs]
    if not runs:
        _score_button(engine, collection, sets, attribute, table, seeds)
        return None
    run = runs[own[0] if own else next(iter(runs))]
    return cached.scores(engine.folder, run.run_id), cached.attackers(engine.folder, run.run_id, 0)


def _score_button(
    engine: Engine, collection: str, sets: dict[str, Item], attribute: str, table: Item, seeds: int
) -> None:
    if not sets:
        return
    first = sets.get(ORIGINAL) or next(iter(sets.values()))
    if first.images < ENOUGH:  # attackers learn from a larger set, and then read these captions
        first = max([first, *engine.workspace.items("captions", collection)], key=lambda item: item.images)
    note(f"No scores yet. They need a classifier trained on a whole set, here {first.name}.")
    request = Request(collection, (first.name,), table.name, attribute, ("LIC_M",), seeds=seeds, words=True)
    with errors():
        start_button(engine, collection, plan(engine.workspace, request), "Score captions", "score_captions")


def _captions(engine: Engine, image: str, sets: dict[str, Item], judge: Judge | None) -> dict[str, tuple]:
    """The first caption of the image under each condition, and how it is scored (None where it is not)."""
    found = {}
    for condition, item in sets.items():
        written = image_captions(cached.captions(engine.folder, item.hash), image)[:1]
        if written:
            found[condition] = written[0], rescored(judge[0], judge[1], image, written)[0] if judge else None
    return found


def _what_scores(judge, image: str) -> None:
    if not judge:
        return
    scores: CaptionScores = judge[0]
    own = scores.table[scores.table["image_id"] == image]
    by = f"Percentages: probability of each value, by {ATTACKER} classifiers"
    if own.empty:
        note(f"{by} trained on the captions of {scores.run.spec.model} (their mean, since this image has no label).")
        return
    label = scores.attribute.values[int(own.iloc[0]["label"])]
    note(f"Labelled {label}. {by} trained on other captions of {scores.run.spec.model}; the same for every condition.")

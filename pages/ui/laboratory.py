"""One photograph under each condition: layers, captions, scores, words and maps; and what makes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from capbias_core.experiments.attribution import KeptMaps, attribution_runs, kept_maps
from capbias_core.experiments.conditions import ORIGINAL
from capbias_core.experiments.engine import Engine
from capbias_core.experiments.laboratory import (
    LACKING,
    STRIP,
    Shown,
    hidden_of,
    image_captions,
    masked_folders,
    object_mask,
    person_mask,
    photographs_of,
    rescored,
    variants,
)
from capbias_core.experiments.people import KINDS
from capbias_core.experiments.plan import Request, plan
from capbias_core.experiments.read import CaptionScores, caption_runs
from capbias_core.experiments.store import Item, RunRow, Workspace
from capbias_core.load.photographs import read_photograph
from capbias_core.prepare import tokenize
from capbias_core.present.conditions import TITLES
from capbias_core.present.heatmap import heat_legend, heat_over, heat_text
from capbias_core.present.overlay import layered, photograph_text, reduced
from capbias_core.present.words import STYLE, legend
from capbias_core.types import BOX_COLUMNS, CONDITIONS, SEGMENT_COLUMNS
from capbias_core.vision.masking import FILLS, HALF
from pages.ui import cached
from pages.ui.base import errors, note
from pages.ui.coloured import coloured_caption
from pages.ui.running import start_button

ATTACKER = "ngram"  # the one that scores a caption at once
SEEDS = 10
LISTED = 500
BOXES, OUTLINES, FOREGROUND = "boxes", "outlines", "person in the foreground"
NOTHING = "nothing"
CELL = 258
KEPT, LIVE = "as they were captioned", "as chosen here"


def laboratory(engine: Engine, collection: str, sets: dict[str, Item], attribute: str) -> None:
    """sets: those of one captioner by condition. attribute: whose words and scores are shown, '' for none."""
    files = photographs_of(engine.workspace, collection)
    if not files:
        note(
            f"The photographs of “{collection}” are not known. Upload some below, or name their folder on the Data "
            "page (files named by image id)."
        )
        return
    image = _picker(engine, files, sets)
    if image not in files:
        note(f"There is no photograph {image!r} in this collection.")
        return
    pixels = _pixels(str(files[image]), files[image].stat().st_mtime_ns)
    shown = _shown(engine, collection, image)
    left, right = st.container(key="stacks_laboratory").columns([3, 2], gap="large")
    with right:
        hidden, how = _settings(shown, pixels)
        behind = st.selectbox("Show the pixels that it hides", [NOTHING, *hidden], key="hidden") if hidden else NOTHING
    with left:
        _layers(image, pixels, shown, behind, hidden.get(behind))
    _strip(engine, collection, image, pixels, shown, hidden, how, sets, attribute)


def _picker(engine: Engine, files: dict[str, Path], sets: dict[str, Item]) -> str:
    """An image id; photographs with captions first, of very many the first ones (any other can be typed)."""
    captioned = set()
    for item in sets.values():
        captioned |= set(cached.captions(engine.folder, item.hash)["image_id"]) & files.keys()
    order = sorted(files, key=lambda image: (image not in captioned, image))
    return st.selectbox(
        f"Photograph ({len(files):,}, {len(captioned):,} of them captioned)", order[:LISTED], key="photograph",
        bind="query-params", accept_new_options=len(order) > LISTED, help="By image id.",
    )  # fmt: skip


@st.cache_data(show_spinner=False, max_entries=16)
def _pixels(path: str, changed: int) -> np.ndarray:
    return read_photograph(Path(path))


@st.cache_resource(show_spinner=False, max_entries=8)
def _maps(folder: str, run_id: str) -> KeptMaps:
    workspace = Workspace(folder)
    return kept_maps(workspace, workspace.run(run_id))


def _shown(engine: Engine, collection: str, image: str) -> Shown:
    """The marks of the newest outlines and of the newest boxes of the collection."""
    rows = []
    for kind, columns in zip(KINDS, (SEGMENT_COLUMNS, BOX_COLUMNS), strict=True):
        items = engine.workspace.items(kind, collection)
        frame = cached.captions(engine.folder, items[-1].hash) if items else pd.DataFrame(columns=list(columns))
        rows.append(frame[frame["image_id"] == image])
    return Shown(*rows)


def _settings(shown: Shown, pixels: np.ndarray) -> tuple[dict[str, np.ndarray], str]:
    """What is hidden, and how."""
    st.markdown("**What is masked, and how**")
    things = shown.objects
    chosen = st.selectbox("Object", things, key="object", help="The conditions object and both hide it.") or ""
    fraction = st.slider(
        "Part of the person (condition part)", 0.1, 1.0, HALF, 0.1, key="fraction",
        help="Of the pixels within the outline, this share from the top.",
    )  # fmt: skip
    how = st.segmented_control("Filled with", list(FILLS), default="grey", key="fill", required=True)
    with errors():
        return hidden_of(shown, pixels.shape[:2], chosen, fraction), how
    return {}, how


def _layers(image: str, pixels: np.ndarray, shown: Shown, behind: str, hidden: np.ndarray | None) -> None:
    """The photograph, large, with its layers."""
    marked = shown.segments if len(shown.segments) else shown.boxes
    if marked.empty:
        note("Nothing is marked on this photograph. Load COCO instances on the Data page, or find people below.")
    every = [name for name, there in ((BOXES, len(marked)), (OUTLINES, len(shown.segments)),
                                      (FOREGROUND, shown.person is not None)) if there]  # fmt: skip
    chosen = st.pills("Layers", every, selection_mode="multi", default=every[-1:], key="layers") if every else []
    size, outlines = pixels.shape[:2], []
    if OUTLINES in chosen:
        outlines = [(name, mask) for name in ("person", *shown.objects)
                    if (mask := object_mask(shown, name, *size)) is not None]  # fmt: skip
    person = shown.person if FOREGROUND in chosen else None
    picture = layered(
        pixels, outlines, _largest_last(marked) if BOXES in chosen else None,
        None if person is None else [person[side] for side in ("x1", "y1", "x2", "y2")], hidden,
    )  # fmt: skip
    drawn = [*chosen, *([f"what {behind} hides"] if behind != NOTHING else [])]
    st.image(picture, width="stretch", alt=photograph_text(image, list(marked["object"]), drawn))


def _largest_last(rows: pd.DataFrame) -> pd.DataFrame:
    """Small boxes are drawn over large ones."""
    sizes = (rows["x2"] - rows["x1"]) * (rows["y2"] - rows["y1"])
    return rows.iloc[np.argsort(-sizes.to_numpy(dtype=float))]


def _strip(engine, collection: str, image: str, pixels, shown: Shown, hidden, how: str, sets, attribute: str) -> None:
    """The conditions side by side."""
    st.markdown("**The conditions side by side**")
    st.html(STYLE)
    pictures = variants(pixels, hidden, how)
    kept = _kept_pictures(engine, collection, image)
    if kept:
        which = st.segmented_control("Masked photographs", [KEPT, LIVE], default=KEPT, key="which", required=True)
        pictures |= kept if which == KEPT else {}
    judge = _judge(engine, collection, sets, attribute)
    maps = attribution_runs(engine.workspace, collection, attribute) if attribute else {}
    found = _captions(engine, image, sets, judge)
    largest = max((float(abs(own.words).max(initial=0.0)) for _, own in found.values() if own), default=0.0)
    if judge:
        st.html(legend(judge[0].attribute))
    with st.container(horizontal=True, key="strip", gap="small"):
        for condition in [name for name in CONDITIONS if name in STRIP or name in sets]:
            with st.container(width=CELL, border=True, key=f"cell_{condition}"):
                st.html(f"<b>{TITLES[condition]}</b>")
                _cell_picture(condition, image, pictures)
                _cell_caption(condition, found, judge, largest)
                _cell_map(engine, condition, image, pictures, shown, sets, maps)
    _what_scores(judge, image)
    if any(_has_map(engine, maps, item, image) for item in sets.values()):
        st.html(heat_legend())


def _kept_pictures(engine: Engine, collection: str, image: str) -> dict[str, np.ndarray]:
    """The photograph as it lies in the kept folders of masked ones."""
    found = {}
    for condition, item in masked_folders(engine.workspace, collection).items():
        file = photographs_of(engine.workspace, collection, item.name).get(image)
        if file and file.is_file():
            found[condition] = _pixels(str(file), file.stat().st_mtime_ns)
    return found


def _cell_picture(condition: str, image: str, pictures: dict[str, np.ndarray]) -> None:
    if condition in pictures:
        st.image(reduced(pictures[condition], 2 * CELL), width="stretch", alt=f"{image}, {TITLES[condition]}")
    else:
        note(f"No picture: {LACKING.get(condition, 'somebody else masked it, and only the captions are here')}.")


def _cell_caption(condition: str, found: dict, judge, largest: float) -> None:
    if condition not in found:
        note("No caption under this condition yet.")
        return
    caption, own = found[condition]
    if own is None:
        st.text(caption)
        return
    predicted = int(own.probabilities.argmax())
    coloured_caption(
        "bias score", own.tokens, own.words, judge[0].attribute, predicted, own.probabilities[predicted],
        tokenize(caption), largest,
    )  # fmt: skip


def _has_map(engine: Engine, maps: dict[str, RunRow], item: Item, image: str) -> bool:
    return item.name in maps and bool(_maps(engine.folder, maps[item.name].run_id).of_image(image))


def _cell_map(engine, condition: str, image: str, pictures, shown: Shown, sets, maps) -> None:
    """The map at each word of the caption that names a value."""
    item = sets.get(condition)
    if item is None or item.name not in maps or condition not in pictures:
        return
    kept = _maps(engine.folder, maps[item.name].run_id)
    pixels = pictures[condition]
    person = person_mask(shown, *pixels.shape[:2])
    for row in kept.of_image(image):
        own, heat = kept.table.iloc[row], kept.heat(row)
        said = heat_text(own["word"], heat, own["attribution_score"], own["pointing_game"])
        st.image(reduced(heat_over(pixels, heat, kept.window(row), person), 2 * CELL), width="stretch", alt=said)
        note(said)


def _judge(engine: Engine, collection: str, sets: dict[str, Item], attribute: str):
    """Scores and attackers of the captions by which every condition is scored; None where there are none."""
    if not attribute:
        return None
    runs = caption_runs(engine.workspace, collection, attribute, ATTACKER)
    own = [item.name for item in sets.values() if item.name in runs]
    if not runs:
        _score_button(engine, collection, sets, attribute)
        return None
    run = runs[own[0] if own else next(iter(runs))]
    return cached.scores(engine.folder, run.run_id), cached.attackers(engine.folder, run.run_id, 0)


def _score_button(engine: Engine, collection: str, sets: dict[str, Item], attribute: str) -> None:
    tables = [own for own in engine.workspace.items("attributes", collection) if attribute in own.details["attributes"]]
    if not sets or not tables:
        return
    note("Captions have no bias score yet: attackers must read the set first.")
    first = sets.get(ORIGINAL) or next(iter(sets.values()))
    request = Request(collection, (first.name,), tables[-1].name, attribute, ("LIC_M",), seeds=SEEDS, words=True)
    with errors():
        start_button(engine, collection, plan(engine.workspace, request), "Score captions", "score_captions")


def _captions(engine: Engine, image: str, sets: dict[str, Item], judge) -> dict[str, tuple]:
    """The first caption of the image under each condition, and how it is scored (None where it is not)."""
    found = {}
    for condition, item in sets.items():
        written = image_captions(cached.captions(engine.folder, item.hash), image)[:1]
        if written:
            found[condition] = written[0], rescored(*judge, image, written)[0] if judge else None
    return found


def _what_scores(judge, image: str) -> None:
    if not judge:
        return
    scores: CaptionScores = judge[0]
    own = scores.table[scores.table["image_id"] == image]
    by = f"Bias score: the probability that {ATTACKER} attackers give their guess of the labelled value"
    if own.empty:
        note(f"{by}; trained on the captions of {scores.run.spec['model']}, which do not hold this image.")
        return
    label = scores.attribute.values[int(own.iloc[0]["label"])]
    note(
        f"Labelled {label}. {by}; trained on the captions of {scores.run.spec['model']} without this image, and the "
        "same for every condition."
    )

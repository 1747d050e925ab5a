"""Images, tab Prepare: boxes of people by a detector, masks, captions and maps; each with its cost and a button."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from capbias_core.errors import CapbiasError
from capbias_core.kinds import LABELS, PHOTOGRAPHS, SEGMENTS, checked_name, suggested_name
from capbias_core.load.photographs import PICTURES
from capbias_core.measures.photographs import DETECT, MASKED, CaptionOptions, DetectOptions, MaskOptions, departures_in
from capbias_core.question import Question
from capbias_core.runs.artifact_runs import plan_artifact, plan_captioning, plan_masking
from capbias_core.runs.plan import plan
from capbias_core.types import counted
from capbias_core.views import photographs as views
from capbias_core.vision.detect import saved_weights
from capbias_core.vision.masking import HALF, OF_OBJECTS, OF_OUTLINES, PERSON, MaskRule, filled
from capbias_core.vision.presets import PRESETS
from capbias_core.workspace.labels import table_with
from capbias_core.workspace.objects import CONFIDENCE, WEIGHTS, weights_option
from capbias_core.workspace.photographs import people_sources
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import RUN, Item
from pages.ui import controls
from pages.ui.base import errors, note, show_error
from pages.ui.empty import empty_state
from pages.ui.page import Page
from pages.ui.photograph import CELL, frame_of, pixels_of, sets_read
from pages.ui.plain import plain
from pages.ui.runs import start_button
from pages.ui.uploads import uploaded_paths

UPLOADED = "my photographs"
MEGABYTES, MOST = 20, 200


def prepare_tab(page: Page) -> None:
    """A tab for each step, and an upload of photographs."""
    if not page.collection:
        empty_state(page, "No photographs and no captions are loaded yet.")
        _upload(page)
        return
    steps = {"1 Find people": _find_people, "2 Mask": _mask, "3 Caption": _caption, "4 Map": _maps}
    for tab, draw in zip(st.tabs(list(steps), key="step", on_change="rerun"), steps.values(), strict=True):
        if tab.open:
            with tab, errors():
                draw(page)
    _upload(page)


def _labels(page: Page) -> tuple[str, Item | None]:
    """The attribute and its table of labels: of the setting, else the first there is."""
    tables = page.items(LABELS)
    if page.choice:
        labels = page.choice.measured_with.labels
        return page.choice.attribute, next((item for item in tables if item.name == labels), None)
    attribute = next(iter(page.attributes), "")
    return attribute, table_with(tables, attribute) if attribute else None


def _find_people(page: Page) -> None:
    """Boxes by a detector."""
    left, right = st.columns([3, 1])
    weights = left.selectbox(
        "Weights of a detector",
        saved_weights(page.workspace.folder / WEIGHTS),
        index=None,
        accept_new_options=True,
        key="weights",
        placeholder="Choose uploaded weights, or type the path of a file that ends in .pt, .onnx or .tflite",
        help="A YOLO of ultralytics: uploaded weights (Data, Models and vectors), or a path on the server.",
    )
    weights = (weights or "").strip()
    confidence = right.number_input("Confidence at least", 0.05, 0.95, CONFIDENCE, 0.05, key="sure")
    if weights:
        with errors():
            option = weights_option(page.workspace, weights)
            name = suggested_name(Path(option["name"]).stem)
            options = DetectOptions(name=name, weights=option, confidence=float(confidence))
            start_button(page, [plan_artifact(page.workspace, page.collection, DETECT.name, options)], "Find", "find")
    sources = people_sources(page.workspace, page.collection)
    marked = ", ".join(f"{item.name} ({item.images:,} photographs)" for item in sources)
    text = f"People are marked by: {marked}." if marked else "No people are marked on these photographs yet."
    exact = any(item.kind == SEGMENTS for item in sources)
    note(text if exact else f"{text} If you have COCO instances, load them on Data; they are more exact.")


def _mask(page: Page) -> None:
    attribute, table = _labels(page)
    sources = {item.name: item.kind for item in people_sources(page.workspace, page.collection)}
    if not sources or not page.workspace.items(PHOTOGRAPHS, page.collection):
        note("Masks need photographs, and outlines (COCO instances, loaded on Data) or boxes (step 1).")
        return
    left, right = st.columns([1, 2])
    people = left.selectbox("Marked by", list(sources), key="mask_people")
    possible = [name for name in MASKED if sources[people] == SEGMENTS or name not in OF_OUTLINES]
    chosen = right.multiselect("Conditions", possible, default=possible, key=f"conditions_{people}")
    if lacking := [name for name in MASKED if name not in possible]:
        note(f"{' and '.join(lacking)} need outlines, and {people} has boxes only. Load COCO instances on Data.")
    left, right = st.columns([1, 2])
    fraction = left.number_input("Part of the person", 0.1, 1.0, HALF, 0.1, key="mask_fraction")
    names = right.text_input(
        "Objects to mask",
        key="mask_objects",
        placeholder=f"most associated with {attribute or 'the attribute'}",
        help="Names, separated by commas. Default: the object on each photograph most associated with a value of the "
        "attribute in human captions, as in the LIC paper.",
    )
    objects = {name.strip(): 1.0 for name in names.split(",") if name.strip()}
    specs, asked = [], objects
    for condition in chosen:
        with errors():
            departures = None
            if condition in OF_OBJECTS:
                departures = objects or departures_in(page.workspace, page.collection, attribute, table=table)
                asked = departures
            options = MaskOptions(condition=condition, people=people, fraction=float(fraction), departures=departures)
            specs.append(plan_masking(page.workspace, page.collection, options))
    start_button(page, specs, "Mask", "mask")
    _preview(page, people, chosen, asked, float(fraction))


def _preview(page: Page, people: str, conditions: list[str], departures: Mapping[str, float], fraction: float) -> None:
    """What some conditions hide of the first photograph on which a person is marked. departures: as in `MaskRule`."""
    files = views.photographs_of(page.workspace, page.collection)
    source = next(item for item in people_sources(page.workspace, page.collection) if item.name == people)
    marks = frame_of(page, source.hash)
    marked = [image for image in marks.loc[marks["object"] == PERSON, "image_id"].unique() if image in files]
    if not marked or not conditions:
        return
    image, rows = marked[0], marks[marks["image_id"] == marked[0]]
    pixels = pixels_of(files[image])
    thing = MaskRule("object", departures=departures).object_on(rows)
    hidden, reasons = views.hidden_of(rows, pixels.shape[:2], thing, fraction)
    note(f"Photograph {image}, masked:")
    with st.container(horizontal=True, key="preview_masks"):
        for condition in conditions:
            with st.container(width=CELL):
                if condition not in hidden:
                    note(f"{condition}: {reasons.get(condition, 'no mask')}.")
                    continue
                picture = views.reduced(filled(pixels, hidden[condition]), 2 * CELL)
                text = views.masked_text(float(hidden[condition].mean()), thing if condition in OF_OBJECTS else "")
                st.image(picture, width="stretch", alt=f"{image}, {condition}. {text}")
                note(f"{condition}. {text}")


def _caption(page: Page) -> None:
    folders = [item.name for item in page.workspace.items(PHOTOGRAPHS, page.collection)]
    if not folders:
        note("No photographs to caption. Upload some below, or name their folder on Data.")
        return
    captioner = st.selectbox(
        "Captioner",
        list(PRESETS),
        index=None,
        key="maker",
        accept_new_options=True,
        placeholder="blip, a folder, or a name in the local cache of Hugging Face",
        help="Any image-to-text model of transformers. Weights are never fetched: a missing one is named together "
        "with the command that gets it.",
    )
    left, middle, right = st.columns(3)
    chosen = left.multiselect("Photographs", folders, default=folders, key="captioned")
    beams = middle.number_input("Beams", 1, 20, 5, key="beams", help="Searched at once; 1 is greedy.")
    length = right.number_input("Length at most", 1, 100, 20, key="length", help="In the captioner's own tokens.")
    name = (captioner or "").strip()
    if not name or not chosen:
        note("Choose a captioner and photographs.")
        return
    options = [
        CaptionOptions(captioner=name, photographs=folder, beams=int(beams), length=int(length)) for folder in chosen
    ]
    specs = [plan_captioning(page.workspace, page.collection, of_folder) for of_folder in options]
    start_button(page, specs, "Caption", "caption")


def _maps(page: Page) -> None:
    """The image regions behind the words that name a value, for all sets of the captioner that is read."""
    sets, (attribute, table) = sets_read(page), _labels(page)
    if not sets or table is None:
        note("Maps need captions of photographs with labels. Caption the photographs, and load a table of labels.")
        return
    left, right = st.columns([3, 1])
    known = all(RUN in item.details for item in sets.values())  # made here, so that their captioner is on record
    hint = "the one that wrote them" if known else "who wrote them: a name or a folder"
    name = left.text_input("Captioner that reads them", key="reader", placeholder=hint).strip()
    most = right.number_input("Images at most", 10, 100_000, 200, key="most", help="In a random order.")
    people = [item.name for item in people_sources(page.workspace, page.collection)]
    if not people:
        note("Mark people first: load COCO instances on Data, or run step 1.")
        return
    marked = st.selectbox("People marked by", people, key="people") if people[1:] else people[0]
    if not name and not known:
        note(f"Maps of {counted(len(sets), 'set')}: the image regions behind each {attribute} word.")
        return
    options = {"people": marked, "max_images": int(most)} | ({"captioner": name} if name else {})
    specs: list[RunSpec] = []
    for item in sets.values():
        metrics = ("attribution_score",)
        request = Question(page.collection, (item.name,), table.name, attribute, metrics, options=options)
        with errors():
            specs += plan(page.workspace, request)
    start_button(page, specs, "Map", "map")


def _upload(page: Page) -> None:
    """Photographs, or a folder of them, from the visitor's computer; on disk as soon as they are here."""
    if text := controls.pop_message("uploaded"):
        st.success(plain(text))
    if error := controls.pop_message("upload_error"):
        show_error(error)
    with st.expander("Upload photographs, or a folder of them", key="upload", on_change="rerun"):
        left, right = st.columns([2, 1], vertical_alignment="bottom")
        names = list(dict.fromkeys([*page.workspace.collections(), UPLOADED]))
        has_photographs = bool(page.collection and page.workspace.items(PHOTOGRAPHS, page.collection))
        first = UPLOADED if has_photographs or not page.collection else page.collection
        left.selectbox(
            "Into the collection",
            names,
            index=names.index(first),
            key=f"into_{page.collection}",
            accept_new_options=True,
            help="One without photographs, or with uploaded ones. Type a new name to start one.",
        )
        whole = right.toggle("A whole folder", key="whole_folder")
        key = f"pictures_{st.session_state.setdefault('upload_round', 0)}_{whole}"

        def save() -> None:  # before the page is drawn, so that the collection can be chosen
            files, into = st.session_state[key], st.session_state[f"into_{page.collection}"]
            if not files:
                return
            st.session_state["upload_round"] += 1
            try:
                paths = uploaded_paths(page.folder, files[:MOST])
                item, refused = views.keep_uploaded(page.workspace, checked_name(into), paths)
            except CapbiasError as error:
                st.session_state["upload_error"] = error
                return
            controls.choose(collection=item.collection)
            text = f"{item.rows:,} photographs in the collection {item.collection}."
            if refused:
                text += f" Left out: {'; '.join(refused.values())}."
            if len(files) > MOST:
                text += f" Only the first {MOST} were taken: name a folder on the Data page for more."
            st.session_state["uploaded"] = text

        st.file_uploader(
            f"JPEG, PNG or WebP, named by image ID; at most {MEGABYTES} MB each",
            key=key,
            type=[ending.removeprefix(".") for ending in sorted(PICTURES)],
            max_upload_size=MEGABYTES,
            accept_multiple_files="directory" if whole else True,
            on_change=save,
        )

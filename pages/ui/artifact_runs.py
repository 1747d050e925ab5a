"""What photographs still need, as runs of workers: people found, masks, captions, maps; and photographs uploaded."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from capbias_core.analysis.photo_inspector import keep_uploaded
from capbias_core.errors import CapbiasError
from capbias_core.load.photographs import PICTURES
from capbias_core.measures.caption import CaptionOptions
from capbias_core.measures.detect import MEASURE as DETECT
from capbias_core.measures.detect import DetectOptions
from capbias_core.measures.mask import MASKED, MaskOptions
from capbias_core.measures.object_associations import departures_in
from capbias_core.runs.artifact_runs import apart, plan_artifact, plan_captioning, plan_masking
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import Request, plan
from capbias_core.types import counted
from capbias_core.vision.detect import to_download
from capbias_core.vision.masking import FILLS, HALF, OF_OBJECTS, OF_OUTLINES
from capbias_core.vision.presets import PRESETS
from capbias_core.workspace.boxes import CONFIDENCE, WEIGHTS, weights_option
from capbias_core.workspace.person_regions import SEGMENTS, people_sources
from capbias_core.workspace.photographs import photograph_sets
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import RUN, Item, checked_name, suggested_name
from pages.ui import view
from pages.ui.base import errors, note, plain, show_error
from pages.ui.running import start_button
from pages.ui.uploads import uploaded_paths

UPLOADED = "my photographs"
MEGABYTES, MOST = 20, 200
ATTRIBUTION = "attribution_score"


def artifact_tabs(engine: Engine, collection: str, sets: dict[str, Item], attribute: str, table: Item | None) -> None:
    """A tab for each step. Each says what it costs and starts with a button."""
    find, mask, caption, maps = st.tabs(
        ["1 Find people", "2 Mask", "3 Caption", "4 Map"], key="step", on_change="rerun"
    )
    if find.open:
        with find, errors():
            _find(engine, collection)
    if mask.open:
        with mask, errors():
            _mask(engine, collection, attribute, table)
    if caption.open:
        with caption, errors():
            _caption(engine, collection)
    if maps.open:
        with maps, errors():
            _maps(engine, collection, sets, attribute, table)


def _find(engine: Engine, collection: str) -> None:
    """Boxes by a detector."""
    left, right = st.columns([3, 1])
    weights = left.text_input(
        "Weights of a detector (type a name or a file, then press Find)",
        key="weights",
        placeholder="yolov8n, or a file that ends in .pt, .onnx or .tflite",
        help="A YOLO of ultralytics: a path on the server, or a name, which is downloaded where there is a network.",
    ).strip()
    sure = right.number_input("Confidence at least", 0.05, 0.95, CONFIDENCE, 0.05, key="sure")
    if weights:
        with errors():
            _look(engine, collection, weights, float(sure))
    note(_marked(engine, collection))


def _look(engine: Engine, collection: str, weights: str, sure: float) -> None:
    """The run of a detector; weights that are not here are fetched first, when one asks for it."""
    fetched = to_download(weights, engine.workspace.folder / WEIGHTS)
    if fetched and not st.button(f"Fetch {plain(weights)}", key="fetch"):
        note("These weights are not on this machine yet. They are downloaded once, into the workspace.")
        return
    with st.spinner("Looking for the weights"):
        option = weights_option(engine.workspace, weights)
    name = suggested_name(Path(option["name"]).stem)
    options = DetectOptions(name=name, weights=option, confidence=sure)
    spec = plan_artifact(engine.workspace, collection, DETECT.name, options)
    start_button(engine, collection, [spec], "Find", "find")


def _marked(engine: Engine, collection: str) -> str:
    sources = people_sources(engine.workspace, collection)
    found = ", ".join(f"{item.name} ({item.images:,} photographs)" for item in sources)
    told = f"People are marked by: {found}." if found else "No people are marked on these photographs yet."
    if any(item.kind == SEGMENTS for item in sources):
        return told
    return f"{told} If you have COCO instances, load them on Data; they are more exact."


def _mask(engine: Engine, collection: str, attribute: str, table: Item | None) -> None:
    """A folder of masked photographs for each condition."""
    sources = {item.name: item.kind for item in people_sources(engine.workspace, collection)}
    if not sources or not photograph_sets(engine.workspace, collection):
        note("Masks need photographs, and outlines (COCO instances, loaded on Data) or boxes (step 1).")
        return
    left, right = st.columns([1, 2])
    people = left.selectbox("Marked by", list(sources), key="mask_people")
    able = [name for name in MASKED if sources[people] == SEGMENTS or name not in OF_OUTLINES]
    chosen = right.multiselect("Conditions", able, default=able, key=f"conditions_{people}")
    first, second, third = st.columns(3)
    fill = first.selectbox("Filled with", list(FILLS), key="mask_fill")
    fraction = second.number_input("Part of the person", 0.1, 1.0, HALF, 0.1, key="mask_fraction")
    names = third.text_input(
        "Objects to mask",
        key="mask_objects",
        placeholder=f"most associated with {attribute or 'the attribute'}",
        help="Names, separated by commas. Default: the object on each photograph most associated with a value of the "
        "attribute in human captions, as in the LIC paper.",
    )
    objects = {name.strip(): 1.0 for name in names.split(",") if name.strip()}
    only = bool(set(chosen) & set(OF_OBJECTS)) and st.checkbox(
        "Leave out photographs without such an object",
        key="only_masked",
        help="Off, as in the LIC paper: they stay unmasked under object and hide only the person under both, so every "
        "condition uses the same photographs.",
    )
    specs = []
    for condition in chosen:
        with errors():
            departures = None
            if condition in OF_OBJECTS:
                departures = objects or departures_in(engine.workspace, collection, attribute, table=table)
            specs.append(
                plan_masking(
                    engine.workspace,
                    collection,
                    MaskOptions(
                        condition=condition,
                        people=people,
                        fill=fill,
                        fraction=float(fraction),
                        departures=departures,
                        only_masked=only,
                    ),
                )
            )
    start_button(engine, collection, specs, "Mask", "mask")


def _captioner() -> str:
    return (
        st.selectbox(
            "Captioner",
            list(PRESETS),
            index=None,
            key="maker",
            accept_new_options=True,
            placeholder="blip, a folder, or a name in the local cache of Hugging Face",
            help="Any image-to-text model of transformers. Weights are never fetched: a missing one is named together "
            "with the command that gets it.",
        )
        or ""
    ).strip()


def _caption(engine: Engine, collection: str) -> None:
    """Captions of the originals and of every folder of masked photographs."""
    folders = [item.name for item in photograph_sets(engine.workspace, collection)]
    if not folders:
        note("No photographs to caption. Upload some below, or name their folder on Data.")
        return
    name = _captioner()
    left, middle, right = st.columns(3)
    chosen = left.multiselect("Photographs", folders, default=folders, key="captioned")
    beams = middle.number_input("Beams", 1, 20, 5, key="beams", help="Searched at once; 1 is greedy.")
    length = right.number_input("Length at most", 1, 100, 20, key="length", help="In the captioner's own tokens.")
    if not name or not chosen:
        note("Choose a captioner and photographs.")
        return
    specs = [
        plan_captioning(
            engine.workspace,
            collection,
            CaptionOptions(captioner=name, photographs=folder, beams=int(beams), length=int(length)),
        )
        for folder in chosen
    ]
    start_button(engine, collection, apart(specs), "Caption", "caption")


def _maps(engine: Engine, collection: str, sets: dict[str, Item], attribute: str, table: Item | None) -> None:
    """What the words that name a value rest on, for every set of the chosen captioner."""
    if not sets or table is None:
        note("Maps need captions of photographs with labels. Caption the photographs, and load a table of labels.")
        return
    left, right = st.columns([3, 1])
    known = all(RUN in own.details for own in sets.values())  # made here, so that their captioner is on record
    hint = "the one that wrote them" if known else "who wrote them: a name or a folder"
    name = left.text_input("Captioner that reads them", key="reader", placeholder=hint).strip()
    most = right.number_input("Images at most", 10, 100_000, 200, key="most", help="In a random order.")
    people = [item.name for item in people_sources(engine.workspace, collection)]
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
        request = Request(collection, (item.name,), table.name, attribute, (ATTRIBUTION,), options=options)
        with errors():
            specs += plan(engine.workspace, request)
    start_button(engine, collection, specs, "Map", "map")


def upload(engine: Engine, collection: str) -> None:
    """Photographs, or a folder of them, from the reader's own computer; on disk as soon as they are here."""
    if said := view.told("uploaded"):
        st.success(plain(said))
    if error := view.told("upload_error"):
        show_error(error)
    with st.expander("Upload photographs, or a folder of them", key="upload", on_change="rerun"):
        left, right = st.columns([2, 1], vertical_alignment="bottom")
        names = list(dict.fromkeys([*engine.workspace.collections(), UPLOADED]))
        held = photograph_sets(engine.workspace, collection) if collection else []
        first = UPLOADED if held or not collection else collection
        left.selectbox(
            "Into the collection",
            names,
            index=names.index(first),
            key=f"into_{collection}",
            accept_new_options=True,
            help="One without photographs, or with uploaded ones. Type a new name to start one.",
        )
        whole = right.toggle("A whole folder", key="whole_folder")
        key = f"pictures_{st.session_state.setdefault('upload_round', 0)}_{whole}"
        st.file_uploader(
            f"JPEG, PNG or WebP, named by image ID; at most {MEGABYTES} MB each",
            key=key,
            type=[ending.removeprefix(".") for ending in sorted(PICTURES)],
            max_upload_size=MEGABYTES,
            accept_multiple_files="directory" if whole else True,
            on_change=_keep,
            args=(engine, key, collection),
        )


def _keep(engine: Engine, key: str, collection: str) -> None:
    """Before the page is drawn, so that the collection picker can be told."""
    files, into = st.session_state[key], st.session_state[f"into_{collection}"]
    if not files:
        return
    st.session_state["upload_round"] += 1
    try:
        item, refused = keep_uploaded(engine.workspace, checked_name(into), uploaded_paths(engine.folder, files[:MOST]))
    except CapbiasError as error:
        st.session_state["upload_error"] = error
        return
    view.choose("collection", item.collection)
    st.session_state["uploaded"] = _said(item, refused, len(files))


def _said(item: Item, refused: dict[str, str], count: int) -> str:
    text = f"{item.rows:,} photographs in the collection {item.collection}."
    if refused:
        text += f" Left out: {'; '.join(refused.values())}."
    return text + (f" Only the first {MOST} were taken: name a folder on the Data page for more." * (count > MOST))

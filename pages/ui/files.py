"""The tabs of Data: load files and see what is saved; labels from captions and of groups; models and vectors."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path

import pandas as pd
import streamlit as st

from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.load.parsed import SEGMENTS
from capbias_core.load.photographs import PICTURES
from capbias_core.load.places import ROOTS, named, roots, shown
from capbias_core.prepare import with_rule
from capbias_core.runs.engine import Engine
from capbias_core.types import PRECEDENCE, Attribute, Derivation, counted
from capbias_core.vision.detect import keep_weights, saved_weights
from capbias_core.workspace import custom_attributes as own_attributes
from capbias_core.workspace.boxes import WEIGHTS
from capbias_core.workspace.derived import as_derived, derive_missing, keep_derived, outdated
from capbias_core.workspace.ingest import DEFAULT_COLLECTION, DEMO
from capbias_core.workspace.limited import make_ready, within_limits
from capbias_core.workspace.people import may_change
from capbias_core.workspace.photographs import keep_images, twins_text
from capbias_core.workspace.store import Item, Workspace
from capbias_core.workspace.vectors import VECTORS, keep_vectors, offer_vectors
from pages.ui import cached, view
from pages.ui.bar import Bar
from pages.ui.base import box, delete_button, deleted, demo_button, errors, note, plain, show_error
from pages.ui.crossing import crossing_view
from pages.ui.drop import KINDS, drop_zone, forget
from pages.ui.label_agreement import label_agreement_view
from pages.ui.running import score_now, start_cheap
from pages.ui.sign_in import person, share
from pages.ui.table import draw_table
from pages.ui.uploads import held_from, held_paths, server_path, uploaded_path

KEPT = {
    "captions": "captions",
    "references": "human captions",
    "attributes": "labels",
    "objects": "objects",
    SEGMENTS: "outlines",
    "boxes": "boxes from a detector",
    "images": "photographs",
    VECTORS: "word vectors",
}
WAYS = {"drop": "leave unlabelled", "majority": "use the majority", PRECEDENCE: "use the first value"}
CLOSED = f"No folder of this computer is open. Start the app with {ROOTS}=/folder to open one."
WIDTH_FROM = 160  # pixels; what is cut is shown of the row that is selected


def files_tab(bar: Bar) -> None:
    engine = bar.engine
    _messages()
    collection = _load(bar)
    if collection in engine.workspace.collections():
        with errors():
            score_now(engine, collection)
    _photographs(engine, collection)
    st.divider()
    _kept(engine)
    _share()


def labels_tab(bar: Bar) -> None:
    """Labels derived from captions, two tables of labels compared, two attributes combined."""
    _messages()
    items = bar.workspace.items(collection=bar.collection) if bar.collection else []
    if not {"references", "attributes"} & {item.kind for item in items}:
        box("Nothing to show yet.", "Load human captions or a table of labels first, in the tab Files.")
        return
    _derive(bar.engine, bar.collection)
    label_agreement_view(bar.engine, bar.collection)
    crossing_view(bar.engine, bar.collection)


def models_tab(bar: Bar) -> None:
    """Word vectors of the collection, and weights of detectors."""
    _messages()
    if bar.collection:
        _vectors(bar.engine, bar.collection)
    else:
        note("Word vectors are saved with a collection: load captions first, in the tab Files.")
    _weights(bar.engine)


def _messages() -> None:
    """What the last action did, in a container so that the elements below keep their state."""
    message = st.empty()
    if text := view.told("said"):
        message.success(plain(text))
    deleted()


def _load(bar: Bar) -> str:
    """What is to be read, and the collection that it goes into."""
    engine = bar.engine
    st.header("1 · Choose files")
    left, right = st.container(key="stacks_load").columns([1, 2], gap="large")
    with left:
        names = list(dict.fromkeys([*engine.workspace.collections(), DEFAULT_COLLECTION]))
        last = bar.collection
        collection = view.selectbox(
            st,
            "Save into the collection",
            names,
            default=last if last in names and last != DEMO else DEFAULT_COLLECTION,
            key="into",
            accept_new_options=True,
            help="What belongs together: a table of labels, human captions, and the captions of several models for "
            "the same images. To start one, type its name and press Enter.",
        )
        collection = " ".join(collection.split()) or DEFAULT_COLLECTION
    with right:
        round_ = st.session_state.setdefault("round", 0)
        uploads = st.file_uploader(
            "Drop any number of files: captions of models, human captions, labels, objects, photographs",
            key=f"file_{round_}",
            accept_multiple_files=True,
            help="COCO's JSON of results, captions and instances, CSV, TSV, JSON Lines, Parquet, Excel, what "
            "lmms-eval, VLMEvalKit and other harnesses write, saved Hugging Face data sets (zipped), pickles of the "
            "LIC release, a .gz or .zip of them; JPEG and PNG. File types are detected automatically.",
        )
        typed = st.text_input("or a path on the server", key=f"path_{round_}") if roots() else ""
    if not uploads and not typed.strip():
        forget()
        make_ready()
        note(
            "Captions: one row per caption, with an image ID, or the output of lmms-eval, VLMEvalKit or COCO's tools. "
            "Labels: an image ID and one column per attribute. Without labels, gender is derived from human captions. "
            "Objects: COCO's instances JSON, or an image ID and a column objects (cat|dog)."
        )
        return collection
    try:
        paths = held_paths(engine.folder, uploads) if uploads else held_from(engine.folder, _typed(typed))
        if said := drop_zone(engine, collection, paths):
            view.choose_next("collection", collection)
            st.session_state["round"] += 1  # an empty drop zone
            made = derive_missing(engine.workspace, collection, get_attribute("gender"))
            labels = f" No labels are there: {made.line('the human captions')}." if made else ""
            st.session_state["said"] = f"{said}{labels}{_next_step(engine, collection)}"
            start_cheap(engine, collection)
            st.rerun()
    except CapbiasError as error:
        forget()
        show_error(error)
        note("Nothing was saved.")
    return collection


def _typed(text: str) -> Path:
    """The file at a path on the server. Raises CapbiasError for a photograph, which is not to be moved from there."""
    path = server_path(text)
    if path.suffix.lower() in PICTURES:
        raise CapbiasError(f"{path.name} is a photograph.", "Name its folder below, under Photographs.")
    return path


def _photographs(engine: Engine, collection: str) -> None:
    """Where the photographs are: only their place is kept."""
    with st.expander("Photographs in a folder on the server (optional, for Captions and Images)"):
        if not roots():
            note(f"Drop photographs above, or a zip of them. {CLOSED}")
            return
        folder = st.text_input("Folder on the server", key="folder")
        note(
            "A folder of JPEG or PNG files named by image ID, such as 000000109313.jpg, on the computer that runs the "
            "dashboard. Captions shows the photographs, Images needs them, scores do not."
        )
        if st.button("Use these photographs", type="primary", key="photographs", disabled=not folder.strip()):
            with errors():
                item = keep_images(engine.workspace, named(folder.strip()), collection)
                found = f"{item.rows:,} photographs found for the collection {collection}. {twins_text(item)}"
                st.session_state["said"] = found.strip()
                st.rerun()


def _vectors(engine: Engine, collection: str) -> None:
    st.header("Word vectors")
    note("Optional, for contextual vocabulary alignment.")
    if not roots():
        note(f"Word vectors are read from a file on the server. {CLOSED}")
        return
    left, right = st.columns([2, 1])
    typed = left.text_input(
        "File on the server",
        key="vectors_file",
        help="GloVe's text, or the text or binary of word2vec and fastText, plain or .gz. The file stays where it "
        "is; the vectors of the captions' words are kept.",
    )
    name = right.text_input(
        "Name",
        key="vectors_name",
        placeholder="the file's, without the ending",
        help="Results are named by it. A name with glove, fasttext or word2vec in it is shortened to that, as in "
        "the papers' tables.",
    )
    if typed.strip() and st.button("Match vocabulary", key="vectors"):
        with errors(), st.spinner("Reading the file; a few gigabytes take half a minute"):
            path = server_path(typed)
            offered = within_limits(path.name, offer_vectors, engine.workspace, path, collection)
            item = keep_vectors(engine.workspace, offered, name or offered.path.stem, collection)
            st.session_state["said"] = (
                f"Saved {item.name}: {offered.found:,} of {item.rows:,} words of the captions have a vector. Choose it "
                "on Scores as vocabulary alignment."
            )
            st.rerun()


def _weights(engine: Engine) -> None:
    """Weights of a detector from the visitor's computer, for Images. A .pt file can run code, so it is not accepted."""
    st.header("Detector weights")
    folder = engine.workspace.folder / WEIGHTS
    names = saved_weights(folder)
    label, key = "Weights of a YOLO model (.onnx or .tflite)", f"weights_{len(names)}"
    upload = st.file_uploader(label, type=["onnx", "tflite"], key=key)
    if upload is not None and st.button("Save", type="primary", key="save_weights"):
        with errors():
            path = keep_weights(folder, uploaded_path(engine.folder, upload))
            st.session_state["said"] = f"Saved {path.name}. Use it on Images, in the tab Prepare."
            st.rerun()
    if names:
        note(f"Saved: {', '.join(names)}.")


def _next_step(engine: Engine, collection: str) -> str:
    """What a collection still needs before it can be scored."""
    kinds = {item.kind for item in engine.workspace.items(collection=collection)}
    missing = [KINDS[kind] for kind in ("captions", "attributes", "references") if kind not in kinds]
    if not missing:
        return " Scoring now."
    return f" Still missing: {'; '.join(missing).lower()}."


def _derive(engine: Engine, collection: str) -> None:
    """Labels from the words of human captions here: their counts, and only then a button that keeps them."""
    human = engine.workspace.items("references", collection)[::-1]
    if not human:
        return
    st.header("Labels from human captions")
    rules = {name: own for name, own in own_attributes.known(engine.workspace).items() if own.derived}
    left, right = st.columns(2, gap="large")
    place = left.selectbox(
        "Human captions",
        range(len(human)),
        key="derive_from",
        format_func=lambda place: f"{human[place].name} ({human[place].images:,} images)",
    )
    name = right.selectbox("Attribute", sorted(rules, key="gender".__ne__), key="derive_attribute")
    left, right = st.columns(2, gap="large")
    own = rules[name].derived or Derivation()
    at_least = left.number_input(
        "Minimum captions naming the value",
        1,
        max(10, own.at_least),
        own.at_least,
        key=f"least_{name}",
        help="Of the human captions of an image.",
    )
    ways = [way for way in WAYS if way != PRECEDENCE or own.precedence]
    first = ways.index(own.both)
    both = right.selectbox("Conflicting captions", ways, first, format_func=WAYS.__getitem__, key=f"both_{name}")
    rule = with_rule(rules[name], at_least, None if both == PRECEDENCE else both)
    if st.button(f"Derive {name} labels from these captions", key="derive"):
        st.session_state["deriving"] = (human[place].hash, name)
    if st.session_state.get("deriving") == (human[place].hash, name):
        with errors():
            _derived(engine, human[place], rule)


def _derived(engine: Engine, references: Item, attribute: Attribute) -> None:
    found, name = cached.derived(str(engine.folder), references, attribute), attribute.name
    left, right = st.columns(2, gap="large")
    counts = {**found.counts, found.without: found.neither}
    table = pd.DataFrame({"label": list(counts), "images": list(counts.values())})
    table["share"] = [f"{count / max(len(found.frame), 1):.0%}" for count in counts.values()]
    with left:
        draw_table(table, alt=f"Images by {name}, as derived from the captions")
        note("Images without a label are left out.")
    with right:
        note(as_derived(found.attribute).note)
        if st.button(f"Save these {name} labels", type="primary", key="keep_derived"):
            item = keep_derived(engine.workspace, found)
            del st.session_state["deriving"]
            st.session_state["said"] = (
                f"Saved {item.name} in {item.collection}. Choose {name} as the attribute on Scores."
            )
            st.rerun()


def _kept(engine: Engine) -> None:
    st.header("Your data")
    items = engine.workspace.items()[::-1]  # what was just kept comes first
    if not items:
        note("Nothing yet.")
        demo_button(st.columns(2)[0], engine)
        return
    uses = [len(engine.workspace.using(item)) for item in items]
    table = pd.DataFrame(
        {
            "name": [item.name for item in items],
            "kind": [KEPT[item.kind] for item in items],
            "collection": [item.collection for item in items],
            "rows": [item.rows for item in items],
            "images": [item.images for item in items],
            "results": uses,
            "saved at": [datetime.fromtimestamp(item.created).strftime("%Y-%m-%d %H:%M") for item in items],
            "kB": [round(item.bytes / 1000) for item in items],
            "from": [shown(item.source) for item in items],
        }
    )
    event = draw_table(
        table,
        on_select="rerun",
        selection_mode="single-row",
        key=f"kept {len(items)} {items[0].created}",  # another table once somebody else kept or deleted something
        alt="Your data",
        row_height=None,
        column_config={"from": st.column_config.Column(width=WIDTH_FROM)},
    )
    note("Results: how many runs use the file. Select a row for its content hash, or to delete it.")
    for item in items:
        if outdated(engine.workspace, item):
            note(f"⚠ {item.name} in {item.collection} was derived from deleted captions. Derive it again.")
    if event.selection.rows:
        place = event.selection.rows[0]
        note(f"{items[place].name}: content hash {items[place].hash}, from {shown(items[place].source)}.")
        if may_change(items[place].owner, engine.workspace.folder):
            _delete(engine.workspace, items[place], uses[place])
        else:
            note("Only the owner can change this.")


def _share() -> None:
    """Where people sign in: a workspace that they all use."""
    if not person():
        return
    st.header("Work with others")
    note(
        "Everyone who signs in can read a shared workspace and add to it, but can delete or cancel only their own "
        "items. Choose it in the sidebar."
    )
    left, right = st.columns([2, 1], vertical_alignment="bottom")
    left.text_input("Name of a new shared workspace", key="share_name")
    right.button("Make it", key="share", on_click=_make_shared)
    if refused := view.told("share_refused"):
        show_error(refused)


def _make_shared() -> None:
    """Before the page is drawn, so that the sidebar can be told."""
    try:
        share(st.session_state["share_name"])
    except CapbiasError as error:
        st.session_state["share_refused"] = error


def _delete(workspace: Workspace, item: Item, uses: int) -> None:
    """uses: how many runs read its content."""
    gone = len(workspace.gone_with(item))
    runs = f", and with it {counted(gone, 'run')} with results" if gone else ""
    kept = " Results of the same content under another name stay." if uses > gone else ""
    told = f"Removes {item.name} from {item.collection}{runs}. Your file is not deleted.{kept}"
    delete_button(item.name, told, partial(workspace.delete, item))

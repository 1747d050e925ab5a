"""The tabs Files and Models of Data: load files, see what is saved, delete it; word vectors and detector weights."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

import pandas as pd
import streamlit as st

from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.kinds import KINDS, kind_title
from capbias_core.load.photographs import PICTURES
from capbias_core.load.places import ROOTS, named, roots, shown
from capbias_core.types import counted
from capbias_core.vision.detect import keep_weights, saved_weights
from capbias_core.workspace.derived import derive_missing, outdated
from capbias_core.workspace.ingest import ACCOUNT, DEFAULT_COLLECTION, DEMO
from capbias_core.workspace.limited import make_ready, within_limits
from capbias_core.workspace.objects import WEIGHTS
from capbias_core.workspace.photographs import keep_images, twins_text
from capbias_core.workspace.vectors import keep_vectors, offer_vectors
from pages.ui import controls
from pages.ui.base import SAVED, delete_button, errors, note, show_error, show_messages
from pages.ui.drop import drop_zone, forget
from pages.ui.empty import demo_button
from pages.ui.page import Page
from pages.ui.plain import plain
from pages.ui.runs import score_now, start_cheap
from pages.ui.show import frame_table
from pages.ui.uploads import discard, held_paths, kept_paths_of, server_path, uploaded_path

CLOSED = f"No folder of this computer is open. Start the app with {ROOTS}=/folder to open one."
READ_ONLY = "This workspace is shared: you can read it, but not change it."
WIDTH_FROM = 160  # pixels; what is cut is shown for the row that is selected


def files_tab(page: Page) -> None:
    show_messages()
    if page.workspace.read_only:
        note(READ_ONLY)
        _stored(page)
        _manage(page)
        return
    target = _load(page)
    if target.collection in page.workspace.collections():
        with errors():
            score_now(target)
    _photographs(target)
    st.divider()
    _stored(page)
    _manage(page)


def models_tab(page: Page) -> None:
    """Word vectors of the collection, and weights of detectors."""
    show_messages()
    if page.workspace.read_only:
        note(READ_ONLY)
        return
    if page.collection:
        _vectors(page)
    else:
        note("Word vectors are saved with a collection: load captions first, in the tab Files.")
    _weights(page)


def _load(page: Page) -> Page:
    """What is to be read. Returns the page with the collection that it goes into: the demo is not changed."""
    st.header("1 · Choose files")
    target = replace(page, collection=DEFAULT_COLLECTION) if page.collection == DEMO else page
    if page.collection == DEMO:
        note(f"The demo stays as it is. Your files are saved in “{DEFAULT_COLLECTION}”, or type another name above.")
    round_ = st.session_state.setdefault("round", 0)
    uploads = st.file_uploader(
        "Drop any number of files: captions of models, human captions, labels, objects, photographs",
        key=f"file_{round_}",
        accept_multiple_files=True,
        help="COCO's JSON of results, captions and instances, CSV, TSV, JSON Lines, Parquet, Excel, what "
        "lmms-eval, VLMEvalKit and other harnesses write, pickles of the "
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
        return target
    try:
        if uploads:
            paths = held_paths(page.folder, uploads)
        else:
            path = server_path(typed)
            if path.suffix.lower() in PICTURES:  # it is not to be moved from there
                raise CapbiasError(f"{path.name} is a photograph.", "Name its folder below, under Photographs.")
            paths = kept_paths_of(page.folder, path)
        if text := drop_zone(target, paths):
            _after_save(target, text)
    except CapbiasError as error:
        forget()
        show_error(error)
        note("Nothing was saved.")
    return target


def _after_save(page: Page, text: str) -> None:
    """Derive labels if there are none, start what is cheap, and open Answer if something is measured or can be; else
    draw the page again with an empty drop zone."""
    st.session_state["round"] += 1
    derived = derive_missing(page.workspace, page.collection, get_attribute("gender"))
    labels = f" There were no labels: {derived.line('the human captions')}." if derived else ""
    kinds = {item.kind for item in page.workspace.items(collection=page.collection)}
    missing = [KINDS[kind].title for kind in ("captions", "labels", "references") if kind not in kinds]
    started = start_cheap(page)
    next_step = f" Scoring now: {started}." if started else ""
    if missing:
        next_step = f" Still missing: {'; '.join(missing).lower()}."
    st.session_state[SAVED] = f"{text}{labels}{next_step}"
    if not missing and (started or page.collection not in page.workspace.scored()):
        controls.go("app.py", collection=page.collection)
    controls.go("pages/1_Data.py", collection=page.collection)


def _photographs(page: Page) -> None:
    """Where the photographs are: only their path is stored."""
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
                item = keep_images(page.workspace, named(folder.strip()), page.collection)
                text = f"{item.rows:,} photographs found for the collection {page.collection}. {twins_text(item)}"
                st.session_state[SAVED] = text.strip()
                st.rerun()


def _vectors(page: Page) -> None:
    st.header("Word vectors")
    note("Optional, for contextual vocabulary alignment.")
    left, right = st.columns([2, 1])
    upload = left.file_uploader(
        "Vectors of GloVe, word2vec or fastText",
        key=f"vectors_upload_{st.session_state.setdefault('vectors_round', 0)}",
        help="The text of GloVe, word2vec or fastText, plain, .gz or .zip. The vectors of the "
        "captions' words are kept, not the file: upload it again after new captions.",
    )
    typed = ""
    if roots():
        typed = left.text_input(
            "or a path on the server",
            key="vectors_file",
            help="For files of more than 200 MB. The file stays where it is, and words of new captions are looked up "
            "in it.",
        )
    else:
        note(f"A file of more than 200 MB is read from the server. {CLOSED}")
    name = right.text_input(
        "Name",
        key="vectors_name",
        placeholder="the file's, without the ending",
        help="Results are named by it. A name with glove, fasttext or word2vec in it is shortened to that, as in "
        "the papers' tables.",
    )
    if (upload or typed.strip()) and st.button("Match vocabulary", key="vectors"):
        with errors(), st.spinner("Reading the file; a few gigabytes take half a minute"):
            path = _one_file(held_paths(page.folder, [upload])) if upload else server_path(typed)
            offered = within_limits(path.name, offer_vectors, page.workspace, path, page.collection)
            source = upload.name if upload else ""
            item = keep_vectors(page.workspace, offered, name or offered.path.stem, page.collection, source)
            if upload:
                discard()
            st.session_state["vectors_round"] += 1
            st.session_state[SAVED] = (
                f"Saved {item.name}: {offered.found:,} of {item.rows:,} words of the captions have a vector. Choose it "
                "on Scores as vocabulary alignment."
            )
            st.rerun()


def _one_file(paths: list[Path]) -> Path:
    """The only file of an upload. Raises CapbiasError for an archive of several."""
    if len(paths) != 1:
        raise CapbiasError(f"The archive has {counted(len(paths), 'file')}.", "Upload one file of vectors.")
    return paths[0]


def _weights(page: Page) -> None:
    """Weights of a detector from the visitor's computer, for Images. A .pt file can run code, so it is not accepted."""
    st.header("Detector weights")
    folder = page.workspace.folder / WEIGHTS
    names = saved_weights(folder)
    label, key = "Weights of a YOLO model (.onnx or .tflite)", f"weights_{len(names)}"
    upload = st.file_uploader(label, type=["onnx", "tflite"], key=key)
    if upload is not None and st.button("Save", type="primary", key="save_weights"):
        with errors():
            path = keep_weights(folder, uploaded_path(page.folder, upload))
            st.session_state[SAVED] = f"Saved {path.name}. Use it on Images, in the tab Prepare."
            st.rerun()
    if names:
        note(f"Saved: {', '.join(names)}.")


def _stored(page: Page) -> None:
    items = page.workspace.items(collection=page.collection)[::-1]  # what was just saved comes first
    st.header(f"In {plain(page.collection)}")
    if not items:
        note("Nothing yet.")
        demo_button(st.columns(2)[0], page.engine)
        return
    uses = [len(page.workspace.using(item)) for item in items]
    table = pd.DataFrame(
        {
            "name": [item.name for item in items],
            "kind": [kind_title(item.kind, item.kind) for item in items],
            "rows": [item.rows for item in items],
            "images": [item.images for item in items],
            "results": uses,
            "saved at": [datetime.fromtimestamp(item.created).strftime("%Y-%m-%d %H:%M") for item in items],
            "from": [shown(item.source) for item in items],
        }
    )
    event = frame_table(
        table,
        on_select="rerun",
        selection_mode="single-row",
        key=f"kept {len(items)} {items[0].created}",  # another table once somebody else saved or deleted something
        alt="Your data",
        column_config={"from": st.column_config.Column(width=WIDTH_FROM)},
    )
    note("Results: how many runs use the file. Select a row for its content hash, or to delete it.")
    for item in items:
        if outdated(page.workspace, item):
            note(f"⚠ {item.name} in {item.collection} was derived from deleted captions. Derive it again.")
    if event.selection.rows:
        item, used = items[event.selection.rows[0]], uses[event.selection.rows[0]]
        note(f"{item.name}: content hash {item.hash}, from {shown(item.source)}.")
        if account := item.details.get(ACCOUNT):
            frame_table(pd.DataFrame(account, columns=["", "what was read"]))
        if page.workspace.read_only:
            return
        dependent = len(page.workspace.gone_with(item))
        runs = f", and with it {counted(dependent, 'run')} with results" if dependent else ""
        stay = " Results of the same content under another name stay." if used > dependent else ""
        text = f"Removes {item.name} from {item.collection}{runs}. Your file is not deleted.{stay}"
        delete_button(item.name, text, partial(page.workspace.delete, item))


def _manage(page: Page) -> None:
    """The end of a whole collection."""
    workspace, name = page.workspace, page.collection
    items = workspace.items(collection=name)
    if not items:
        return
    if name == DEMO or workspace.read_only:
        return
    with st.container(horizontal=True):
        runs = len(workspace.runs(name))
        text = (
            f"Removes {counted(len(items), 'item')} and the results of {counted(runs, 'run')} that nothing else uses. "
        )
        text += "Your files are not deleted."

        def delete() -> None:
            workspace.delete_collection(name)
            controls.leave("collection", *controls.OF_COLLECTION)

        delete_button(f"the collection {name}", text, delete, "delete_collection")

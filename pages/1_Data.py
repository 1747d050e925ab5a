"""Load: choose a file, see what it is taken for, read the report, keep it. Below: what is kept."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pandas as pd
import streamlit as st

from capbias_core.attributes import holds_labels, plain_attribute, suggest_mapping
from capbias_core.errors import CapbiasError
from capbias_core.load import FORMATS, detect
from capbias_core.load.report import MOST_LABELS
from capbias_core.load.sniff import sniff
from capbias_core.present.conditions import TITLES
from capbias_core.runs.engine import Engine
from capbias_core.types import CONDITIONS, Attribute
from capbias_core.workspace import custom_attributes as own_attributes
from capbias_core.workspace.conditions import suggested_condition
from capbias_core.workspace.ingest import (
    DEFAULT_COLLECTION,
    DEMO,
    SEGMENTS,
    ImportPreview,
    dropped_labels,
    keep_attributes,
    keep_captions,
    keep_derived,
    keep_images,
    keep_objects,
    keep_segments,
    outdated,
    preview_import,
    twins_text,
)
from capbias_core.workspace.labels import mapping_details
from capbias_core.workspace.store import Item, suggested_name
from capbias_core.workspace.vectors import VECTORS, keep_vectors, offer_vectors
from pages.ui import cached, view
from pages.ui.base import demo_button, errors, note, page, plain, show_error
from pages.ui.table import draw_table
from pages.ui.uploads import discard, server_path, uploaded_path

KINDS = {
    "captions": "Captions of a model",
    "references": "Human captions (references)",
    "attributes": "Attribute table (labels of images)",
    "images": "Photographs (a folder)",
    "objects": "Objects in the images (COCO instances, or a table)",
    SEGMENTS: "Outlines in the photographs (COCO instances)",
}
KEPT = {
    "captions": "captions",
    "references": "human captions",
    "attributes": "labels",
    "objects": "objects",
    SEGMENTS: "outlines",
    "boxes": "boxes, by a detector",
    "images": "photographs",
    VECTORS: "word vectors",
}
TRAINED = {"yes": True, "no": False, "not known": None}
DROP = "drop these images"
NOT_MAPPED = "not a protected attribute"
# Boxes side by side; more are cut where the window is narrow.
A_ROW = 3


def main() -> None:
    engine = page("Data")
    # A place of its own, so that what stands below keeps its own when the message goes.
    message = st.empty()
    if said := st.session_state.pop("said", None):
        message.success(plain(said))
    collection = _load(engine)
    if collection in engine.workspace.collections():
        _vectors(engine, collection)
    _derive(engine)
    st.divider()
    _kept(engine)


def _load(engine: Engine) -> str:
    """What is to be read, and the collection that it goes into."""
    st.subheader("1 · Choose a file")
    left, right = _stacking("load").columns([1, 2], gap="large")
    with left:
        kind = view.selectbox(st, "What is it?", list(KINDS), format_func=KINDS.get, key="kind", draw="radio")
        names = list(dict.fromkeys([*engine.workspace.collections(), DEFAULT_COLLECTION]))
        last = view.query().get("collection")
        collection = view.selectbox(
            st,
            "Collection",
            names,
            default=last if last in names and last != DEMO else DEFAULT_COLLECTION,
            key="into",
            accept_new_options=True,
            help="What belongs together: a table of labels, human captions, and the captions of several models for "
            "the same images. Type a new name to start one.",
        )
    with right:
        if kind == "images":
            _photographs(engine, collection)
            return collection
        round_ = st.session_state.setdefault("round", 0)
        upload = st.file_uploader(
            "Drop a file",
            key=f"file_{round_}",
            help="COCO results JSON, COCO captions JSON, CSV, TSV, JSON Lines, Parquet, or the LIC release's pickles. "
            "Its format is found by its content.",
        )
        typed = st.text_input("or a path on the server", key=f"path_{round_}")
    if upload is None and not typed.strip():
        discard()
        note(
            "Captions need an image id and a caption a row. Labels need an image id and a column a protected "
            "attribute. Objects are COCO's instances JSON, or an image id and a column objects (cat|dog). Outlines, "
            "which say where people and objects are on the photographs, are COCO's instances JSON too."
        )
        return collection
    try:
        path = uploaded_path(engine.folder, upload) if upload is not None else server_path(typed)
        _offer(engine, path, kind, collection)
    except CapbiasError as error:
        discard()
        show_error(error)
        note("Nothing was kept.")
    return collection


def _stacking(key: str):
    """A place whose columns stand one below the other in a narrow window."""
    return st.container(key=f"stacks_{key}")


def _photographs(engine: Engine, collection: str) -> None:
    """Where the photographs are: only their place is kept."""
    folder = st.text_input("Folder on the server", key="folder")
    note(
        "A folder of JPEG or PNG files named by image id, such as 000000109313.jpg, on the computer that runs the "
        "dashboard. The photographs stay there. Captions shows them; Masking needs them; scores do without."
    )
    if st.button("Use these photographs", type="primary", key="photographs", disabled=not folder.strip()):
        with errors():
            item = keep_images(engine.workspace, Path(folder.strip()), collection)
            found = f"{item.rows:,} photographs found for the collection {collection}. {twins_text(item)}"
            st.session_state["said"] = found.strip()
            st.rerun()


def _vectors(engine: Engine, collection: str) -> None:
    with st.expander("Word vectors of this collection (optional, for contextual vocabulary alignment)"):
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
        if typed.strip() and st.button("Look the captions' words up", key="vectors"):
            with errors(), st.spinner("Reading the file; a few gigabytes take half a minute"):
                offered = offer_vectors(engine.workspace, server_path(typed), collection)
                item = keep_vectors(engine.workspace, offered, name or offered.path.stem, collection)
                st.session_state["said"] = (
                    f"Kept the place of {item.name}: {offered.found:,} of {item.rows:,} words of the captions have a "
                    f"vector. Choose it as vocabulary alignment on the Scores or the Alignment page."
                )
                st.rerun()


def _offer(engine: Engine, path: Path, kind: str, collection: str) -> None:
    st.subheader("2 · Detected as")
    if kind == SEGMENTS or (
        kind == "objects" and sniff(path) == "coco_captions"
    ):  # no columns to choose, and too large to read twice
        columns, title = {}, "COCO instances (JSON)"
    else:
        found = detect(path)
        columns, title = _columns(found, kind), FORMATS[found.format].title
    offered = preview_import(engine.workspace, path, kind, collection, columns)
    note(f"{path.name}: {title}.")
    st.subheader("3 · Report")
    left, right = _stacking("report").columns([3, 2], gap="large")
    lines = pd.DataFrame(offered.report.lines(), columns=["", "what the file holds"])
    draw_table(lines, left, alt="Report on the file")
    draw_table(offered.frame.head(8), right, alt="First rows as they will be kept")
    for warning in offered.report.warnings:
        note(f"⚠ {warning}")
    mapped = _mapping(offered, own_attributes.known(engine.workspace)) if kind == "attributes" else {}
    _keep(engine, offered, path, collection, mapped)


def _columns(found, kind: str) -> dict[str, str | None]:
    """The columns to read, chosen by name where there is a choice."""
    wanted = ["image_id", "caption"] if kind in ("captions", "references") else ["image_id"]
    titles = {"image_id": "Column of image ids", "caption": "Column of captions"}
    if found.format in ("coco_results", "coco_captions"):
        return dict(found.guess)
    options = list(found.columns)
    boxes = _stacking("columns").columns(len(wanted))
    chosen: dict[str, str | None] = {}
    for box, name in zip(boxes, wanted, strict=True):
        guess = found.guess.get(name)
        index = options.index(guess) if guess in options else None
        chosen[name] = box.selectbox(titles[name], options, index=index, placeholder="Choose a column")
    return chosen


def _mapping(offered: ImportPreview, known: dict[str, Attribute]) -> dict:
    """Which column is which protected attribute, and what each label in it becomes."""
    st.markdown("**Protected attributes**")
    note("Say what each label becomes. Images whose label is dropped take no part; nothing is dropped unseen.")
    mapped: dict = {}
    for column in [name for name in offered.frame.columns if name != "image_id"]:
        counts = offered.frame[column].value_counts()
        if len(counts) > MOST_LABELS or len(counts) < 2:
            labels = "every image has the same label" if len(counts) < 2 else f"{len(counts):,} different labels"
            note(f"{column}: {labels}, so it is not offered as a protected attribute.")
            continue
        guess = next((item.name for item in known.values() if _looks_like(item, column, counts)), NOT_MAPPED)
        options = [*known, f"its own: {column}", NOT_MAPPED]
        box, _ = _stacking(f"column_{column}").columns([2, 1])
        name = box.selectbox(plain(f"Column {column} is"), options, options.index(guess), key=f"column_{column}")
        if name == NOT_MAPPED:
            continue
        with errors():
            attribute = known.get(name) or plain_attribute(column, _own_values(column, counts))
            mapped[attribute.name] = mapping_details(attribute, column, _labels(column, counts, attribute))
            dropped = dropped_labels(offered.frame, mapped[attribute.name])
            lost = ", ".join(f"{raw or 'empty'} {count:,}" for raw, count in dropped.items()) or "none"
            note(f"{attribute.title}: {len(offered.frame) - sum(dropped.values()):,} images kept; dropped: {lost}.")
    return mapped


def _looks_like(attribute: Attribute, column: str, counts: pd.Series) -> bool:
    """By its name; of an attribute whose labels can be derived, also by a label."""
    named = column.lower() in attribute.columns
    return named and (not attribute.derived or holds_labels(attribute, column, counts.index))


def _own_values(column: str, counts: pd.Series) -> tuple[str, ...]:
    labels = sorted(label for label in counts.index if label)
    return tuple(st.multiselect(plain(f"Values of {column}"), labels, labels, key=f"values_{column}"))


def _labels(column: str, counts: pd.Series, attribute) -> dict[str, str | None]:
    """One box a raw label, with a suggestion."""
    suggested = suggest_mapping(attribute, counts.index)
    options = [*attribute.values, DROP]
    places = _stacking(f"labels_{column}")
    rows = [places.columns(A_ROW) for _ in range(0, len(counts), A_ROW)]
    mapping: dict[str, str | None] = {}
    for place, (raw, count) in enumerate(counts.items()):
        chosen = rows[place // A_ROW][place % A_ROW].selectbox(
            plain(f"{raw or 'empty'} ({count:,} images)"),
            options,
            options.index(suggested[raw] or DROP),
            key=f"label_{column}_{attribute.name}_{raw}",
        )
        mapping[raw] = None if chosen == DROP else chosen
    return mapping


def _keep(engine: Engine, offered: ImportPreview, path: Path, collection: str, mapped: dict) -> None:
    st.subheader("4 · Keep")
    left, middle, right = _stacking("keep").columns([3, 4, 2], vertical_alignment="bottom")
    name = left.text_input("Name", suggested_name(path.stem), key=f"name_{path}")
    trained, written = None, {}
    if offered.kind == "captions":
        said = middle.segmented_control(
            "Was the model trained on these human captions?",
            list(TRAINED),
            default="not known",
            required=True,
            help="Only a model that learned from the references can be said to amplify their bias; for others the "
            "page says that it differs from the human captions.",
        )
        trained = TRAINED[said]
        written = _written(name, path)
    if right.button("Keep", type="primary", width="stretch", key="keep"):
        if offered.kind == "attributes":
            item = keep_attributes(engine.workspace, offered.frame, name, collection, path.name, mapped)
        elif offered.kind == "objects":
            item = keep_objects(engine.workspace, offered, name, collection, path.name)
        elif offered.kind == SEGMENTS:
            item = keep_segments(engine.workspace, offered, name, collection, path.name)
        else:
            item = keep_captions(engine.workspace, offered, name, collection, path.name, trained, **written)
        discard()
        view.choose("collection", item.collection)
        st.session_state["round"] += 1
        st.session_state["said"] = (
            f"Kept {item.name} in the collection {item.collection}: {item.rows:,} rows, {item.images:,} images."
            + _next_step(engine, item.collection)
        )
        st.rerun()


def _written(name: str, path: Path) -> dict[str, str]:
    """Who wrote a caption set and what was masked on the photographs; the name suggests both."""
    suggested = suggested_condition(name)
    left, right = _stacking("written").columns(2)
    captioner = left.text_input(
        "Captioner", suggested[0], key=f"captioner_{path}_{name}", help="Whose captions they are, whatever was masked."
    )
    condition = right.selectbox(
        "What was masked on the photographs",
        CONDITIONS,
        CONDITIONS.index(suggested[1]),
        format_func=TITLES.get,
        key=f"condition_{path}_{name}",
        help="The Masking page puts each metric against it.",
    )
    return {"captioner": captioner.strip(), "condition": condition}


def _next_step(engine: Engine, collection: str) -> str:
    """What a collection still needs before it can be scored."""
    kinds = {item.kind for item in engine.workspace.items(collection=collection)}
    missing = [KINDS[kind] for kind in ("captions", "attributes", "references") if kind not in kinds]
    if not missing:
        return " Captions, labels and human captions are there: go to Scores and press Run."
    return f" Still missing there: {'; '.join(missing)}."


def _derive(engine: Engine) -> None:
    """Labels from the words of kept human captions: their counts, and only then a button that keeps them."""
    human = engine.workspace.items("references")[::-1]
    if not human:
        return
    st.divider()
    st.subheader("Labels from human captions")
    rules = {name: own for name, own in own_attributes.known(engine.workspace).items() if own.derived}
    left, right = st.columns(2, gap="large")
    place = left.selectbox(
        "Human captions",
        range(len(human)),
        key="derive_from",
        format_func=lambda place: f"{human[place].name} ({human[place].collection}, {human[place].images:,} images)",
    )
    name = right.selectbox("Attribute", rules, key="derive_attribute") if len(rules) > 1 else next(iter(rules))
    if st.button(f"Derive {name} labels from these captions", key="derive"):
        st.session_state["deriving"] = (human[place].hash, name)
    if st.session_state.get("deriving") == (human[place].hash, name):
        with errors():
            _derived(engine, human[place], rules[name])


def _derived(engine: Engine, references: Item, attribute: Attribute) -> None:
    found, name = cached.derived(str(engine.folder), references, attribute), attribute.name
    left, right = st.columns(2, gap="large")
    counts = {**found.counts, "neither" if len(found.counts) == 2 else "none": found.neither}
    table = pd.DataFrame({"label": list(counts), "images": list(counts.values())})
    table["share"] = [f"{count / max(len(found.frame), 1):.0%}" for count in counts.values()]
    with left:
        draw_table(table, alt=f"Images by {name}, as derived from the captions")
        note("Images without a label are left out.")
    with right:
        note(found.attribute.note)
        if st.button(f"Keep these {name} labels", type="primary", key="keep_derived"):
            item = keep_derived(engine.workspace, found)
            del st.session_state["deriving"]
            st.session_state["said"] = (
                f"Kept {item.name} in the collection {item.collection}: {name} can be chosen on the Scores page."
            )
            st.rerun()


def _kept(engine: Engine) -> None:
    st.subheader("Your data")
    items = engine.workspace.items()[::-1]  # what was just kept comes first
    if not items:
        note("Nothing yet.")
        demo_button(st.columns(3)[0], engine)
        return
    uses = [len(engine.workspace.using(item)) for item in items]
    table = pd.DataFrame(
        {
            "name": [item.name for item in items],
            "kind": [KEPT[item.kind] for item in items],
            "collection": [item.collection for item in items],
            "rows": [item.rows for item in items],
            "images": [item.images for item in items],
            "runs": uses,
            "from": [item.source for item in items],
            "kept at": [datetime.fromtimestamp(item.created).strftime("%Y-%m-%d %H:%M") for item in items],
            "kB": [round(item.bytes / 1000) for item in items],
            "content hash": [item.hash for item in items],
        }
    )
    event = draw_table(
        table, on_select="rerun", selection_mode="single-row", key="kept", alt="Your data", row_height=None
    )
    note("Used by: how many runs read it. Select a row to delete it.")
    for item in items:
        if outdated(engine.workspace, item):
            note(f"⚠ {item.name} in {item.collection} was derived from captions that are gone. Derive it again.")
    if event.selection.rows:
        place = event.selection.rows[0]
        _delete(engine, items[place], uses[place])


def _delete(engine: Engine, item: Item, uses: int) -> None:
    with st.popover(plain(f"Delete {item.name}"), icon=":material/delete:"):
        note(
            f"{item.name} goes from the workspace, and with it {uses} runs and their results. What it came from stays "
            "where it is."
        )
        if st.button("Delete for good", type="primary", key="delete"):
            with errors():
                engine.workspace.delete(item)
                st.session_state["said"] = f"Deleted {item.name}."
                st.rerun()


if __name__ == "__main__":  # a worker that starts imports the page, and must not draw it
    with errors():
        main()

"""The drop zone: a table of files with what each is, one Save button above it, and what a file needs below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from capbias_core.attributes import plain_attribute
from capbias_core.attributes.labels import MOST_LABELS, guess_attributes, suggest_mapping, values_among
from capbias_core.errors import CapbiasError
from capbias_core.load.labels import EXPLAINED, RULES
from capbias_core.load.parsed import CAPTIONS, LABELS, OBJECTS, REFERENCES, SEGMENTS
from capbias_core.load.photographs import PICTURES
from capbias_core.load.read import Reading, read_file
from capbias_core.load.report import PHOTOGRAPHS as IMAGES
from capbias_core.prepare.split import SMALLEST_GROUP
from capbias_core.runs.engine import Engine
from capbias_core.types import CONDITIONS, Attribute, counted
from capbias_core.views.conditions import TITLES
from capbias_core.views.photographs import keep_uploaded, photograph_fault
from capbias_core.workspace import custom_attributes
from capbias_core.workspace.conditions import suggested_condition
from capbias_core.workspace.ingest import (
    BY_PROMPT,
    EACH,
    SAMPLES,
    SETS,
    File,
    Held,
    Part,
    held_by,
    name_conflicts,
    preview,
    replaced_items,
    store,
)
from capbias_core.workspace.labels import dropped_line, mapping_details
from capbias_core.workspace.limited import all_taken, within_limits
from capbias_core.workspace.store import checked_name
from pages.ui.base import errors, note, plain, show_error
from pages.ui.table import draw_table
from pages.ui.uploads import discard, place_of

KINDS = {
    CAPTIONS: "Captions of a model",
    REFERENCES: "Human captions",
    LABELS: "Labels of images",
    OBJECTS: "Objects in the images",
    SEGMENTS: "Outlines in the photographs",
}
SECOND = {REFERENCES: "Human captions beside a model's", SEGMENTS: "Outlines beside objects"}
TRAINED = {"yes": True, "no": False, "not known": None}
SET_TITLES = {SAMPLES: "samples of one set", EACH: "a set each", BY_PROMPT: "a set per prompt"}
DROP = "drop these images"
NOT_MAPPED = "not a protected attribute"
PER_ROW = 3  # boxes side by side; more are cut in a narrow window
FILES, READ = "files_described", "files_read"  # session state: what the user said of each file, and what was read


def drop_zone(engine: Engine, collection: str, paths: list[Path]) -> str:
    """The files as a table with a Save button above it. What was saved, as a sentence; '' until something is."""
    st.header("2 · Check what they are, and save")
    pictures = _photographs([path for path in paths if path.suffix.lower() in PICTURES])
    described: dict[str, dict[str, Any]] = st.session_state.setdefault(FILES, {})
    tables = [path for path in paths if path.suffix.lower() not in PICTURES]
    files = [_file(path, described.get(place_of(path), {})) for path in tables]
    held = _held(engine, collection)
    parts = preview(files, held, _read) if files else []
    # A name and several captions per image together suggest human captions; the table shows it, and Save confirms it.
    suggested = {place_of(part.file.source): part.reading.suggests for part in parts if part.reading.suggests}
    if new := suggested.keys() - {place for place, said in described.items() if "kind" in said}:
        for place in new:
            described.setdefault(place, {})["kind"] = suggested[place]
        parts = preview([_file(path, described.get(place_of(path), {})) for path in tables], held, _read)
    if engine.workspace.items(IMAGES, collection) or pictures:
        shown = parts
    else:
        shown = [
            part for part in parts if part.kind != SEGMENTS or not part.reading.second
        ]  # outlines need photographs
    if not shown and not pictures:
        discard()
        note("No file can be read.")
        return ""
    # The button stays above the table, however many files there are; what it needs is known below.
    save = st.container(key="save_bar")
    chosen = _table(shown, custom_attributes.known(engine.workspace))
    parts = [_details(engine, part, described) for part in chosen]
    if not pictures and not any(part.frame is not None or part.reading.columns for part in parts):
        discard()  # nothing can be chosen to read these
    parts = [part for part in parts if part.frame is not None]
    ready, trained = _ready(engine, collection, parts, save)
    left, right = save.columns([5, 2], vertical_alignment="bottom")
    left.markdown(_summary(parts, pictures, collection))
    disabled = not (ready and (parts or pictures))
    if not right.button("Save", type="primary", width="stretch", key="save", disabled=disabled):
        return ""
    with errors():
        parts = [
            replace(part, file=replace(part.file, trained=trained)) if part.kind == CAPTIONS else part for part in parts
        ]
        names = [item.name for item in store(engine.workspace, collection, parts)] if parts else []
        if pictures:
            item, refused = keep_uploaded(engine.workspace, checked_name(collection), pictures, tried=pictures)
            names.append(
                counted(item.rows, "photograph") + (f" (left out: {'; '.join(refused.values())})" if refused else "")
            )
        left_out = [part.file.title for part in shown if not any(other.key == part.key for other in parts)]
        forget()
        ignored = f" Not saved: {', '.join(left_out)}." if left_out else ""
        return f"Saved in {collection}: {', '.join(names)}.{ignored}"
    return ""


# reading


def _file(path: Path, said: dict[str, Any]) -> File:
    columns = {role: name for role in ("image_id", "caption") if (name := said.get(role))}
    return File(path, said.get("kind", ""), columns=columns, several=said.get("several", ""))


def _read(path: Path, *given: Any) -> list[Reading]:
    """A file read under limits, once for each choice."""
    key = (path, repr(given[:3]), None if len(given) < 4 or given[3] is None else len(given[3]))
    known = st.session_state.setdefault(READ, {})
    if key not in known:
        with st.spinner(f"Reading {path.name}{' after another file' * all_taken()}"):
            known[key] = within_limits(path.name, read_file, path, *given)
    return known[key]


def _held(engine: Engine, collection: str) -> Held:
    """What the collection holds, read again only if that changed."""
    key = "held", collection, tuple((item.kind, item.hash) for item in engine.workspace.items(collection=collection))
    known = st.session_state.setdefault(READ, {})
    if key not in known:
        known[key] = held_by(engine.workspace, collection)
    return known[key]


def _photographs(paths: list[Path]) -> list[Path]:
    """The photographs that can be read, each tried once; what is wrong with the others is shown."""
    known = st.session_state.setdefault(READ, {})
    if any(path not in known for path in paths):
        with st.spinner(f"Reading {counted(len(paths), 'photograph')}"):
            known |= {path: photograph_fault(path) for path in paths if path not in known}
    for path in paths:
        if fault := known[path]:
            show_error(fault)
    return [path for path in paths if known[path] is None]


# the table of files


def _table(parts: Sequence[Part], known: dict[str, Attribute]) -> list[Part]:
    """One row per part: keep, type and name can be edited. The parts to save, as the user described them."""
    described = st.session_state[FILES]
    rows = [
        {
            "Save": part.wanted and part.frame is not None,
            "File": part.file.title + (" (second part)" if part.reading.second else ""),
            "Type": SECOND[part.kind] if part.reading.second else KINDS.get(part.kind),
            "Name": part.file.item_name,
            "Rows": len(part.frame) if part.frame is not None else None,
            "Images matched": "" if part.known is None else f"{part.known:,} of {len(part.images):,}",
            "Check": _check_text(part, known),
        }
        for part in parts
    ]
    signature = hash(tuple((part.key, part.kind, part.frame is None) for part in parts))
    edited = st.data_editor(
        pd.DataFrame(rows),
        key=f"files_{signature}",
        hide_index=True,
        width="stretch",
        disabled=["File", "Rows", "Images matched", "Check"],
        column_config={
            "Save": st.column_config.CheckboxColumn(width="small"),
            "Type": st.column_config.SelectboxColumn(options=[*KINDS.values(), *SECOND.values()], width="medium"),
            "Check": st.column_config.TextColumn(width="large"),
        },
    )
    note("File types are detected automatically. Correct a type or a name in the table; Save confirms them.")
    titles = {title: kind for kind, title in KINDS.items()}
    chosen, changed = [], False
    for part, row in zip(parts, edited.to_dict("records"), strict=True):
        kind = titles.get(row["Type"], part.kind)
        if not part.reading.second and kind != part.kind:
            described.setdefault(place_of(part.file.source), {})["kind"] = kind
            changed = True
        if row["Save"] and part.frame is not None:
            with errors():
                name = checked_name(row["Name"] or part.file.item_name)
                chosen.append(replace(part, file=replace(part.file, name=name)))
        elif part.reading.error:
            chosen.append(part)
    if changed:
        st.rerun()
    return chosen


def _check_text(part: Part, known: dict[str, Attribute]) -> str:
    """What to look at in a file, in a few words; '' if nothing."""
    if part.reading.error:
        return part.reading.error.message
    if part.known == 0:
        return "No image ID matches the other files."
    if part.kind == LABELS and part.frame is not None:
        columns = _guesses(part.frame, known)
        return (
            f"Attributes: {', '.join(dict.fromkeys(own.name for own in columns.values())) or 'choose a column below'}."
        )
    hint = f"Human captions? {part.reading.hint[0].upper()}{part.reading.hint[1:]}." if part.reading.hint else ""
    return " ".join([*filter(None, [hint]), *(part.report.warnings[:1] if part.report else ())])


def _guesses(frame: pd.DataFrame, known: dict[str, Attribute]) -> dict[str, Attribute]:
    """Column -> the attribute whose labels it holds."""
    labels = {column: frame[column].unique() for column in frame.columns if column != "image_id"}
    return guess_attributes(known.values(), labels)


# what a file needs


def _key(part: Part, what: str) -> str:
    """The key of a control of a part; the same if the upload is written to disk again."""
    return f"{what}_{place_of(part.file.source)}{'_second' if part.reading.second else ''}"


def _details(engine: Engine, part: Part, described: dict[str, dict[str, Any]]) -> Part:
    """The part with the choices of its expander: report, columns, sets, labels."""
    known = custom_attributes.known(engine.workspace)
    guesses = _guesses(part.frame, known) if part.frame is not None else {}
    title = f"{part.file.title}: {KINDS.get(part.kind, 'unknown type').lower()}"
    unclear = part.kind == LABELS and part.frame is not None and not _understood(part.frame, guesses)
    with st.expander(plain(title), expanded=bool(part.reading.error) or unclear):
        if part.reading.error:
            show_error(part.reading.error)
        _columns(part, described)
        if part.frame is None or part.report is None:
            return part
        file = part.file
        if part.kind == CAPTIONS:
            file = _written(part)
        if part.kind == LABELS:
            file = replace(file, mapping=tuple(_mapping(part, known, described)))
        for warning in part.report.warnings:
            note(f"⚠ {warning}")
        left, right = st.container(key=f"stacks_{_key(part, 'report')}").columns([3, 2], gap="large")
        lines = pd.DataFrame(part.report.lines(), columns=["", "what the file holds"])
        draw_table(lines, left, alt=f"Report on {file.title}", key=_key(part, "lines"), height="content")
        draw_table(part.frame.head(8), right, alt="First rows as they will be stored", key=_key(part, "first"))
    return replace(part, file=file)


def _understood(frame: pd.DataFrame, guesses: dict[str, Attribute]) -> bool:
    """Whether labels of some column name two values of its attribute."""
    mappings = (suggest_mapping(attribute, frame[column].unique()) for column, attribute in guesses.items())
    return any(len(set(filter(None, mapping.values()))) > 1 for mapping in mappings)


def _columns(part: Part, described: dict[str, dict[str, Any]]) -> None:
    """Boxes for the columns of image IDs and captions, if the file has columns and cannot be read, or they were set."""
    said = described.setdefault(place_of(part.file.source), {})
    if (
        part.reading.second
        or not part.reading.columns
        or not (part.reading.error or said.get("image_id") or part.reading.guess == LABELS)
    ):
        return
    boxes = st.container(key=f"stacks_{_key(part, 'columns')}").columns(2)
    for box, role, title in zip(
        boxes, ("image_id", "caption"), ("Column of image IDs", "Column of captions"), strict=True
    ):
        current = said.get(role)
        chosen = box.selectbox(
            title,
            part.reading.columns,
            index=part.reading.columns.index(current) if current in part.reading.columns else None,
            placeholder="Detected",
            key=_key(part, f"column_{role}"),
        )
        if chosen and chosen != current:
            said[role] = chosen
            if role == "caption" and part.kind not in (CAPTIONS, REFERENCES):
                said["kind"] = CAPTIONS  # a file with a column of captions holds captions
            st.rerun()


def _written(part: Part) -> File:
    """The file with what several captions of an image are, who wrote them and what was masked on the photographs."""
    sets, (captioner, condition) = SAMPLES, suggested_condition(part.file.item_name)
    if part.report and part.report.several:
        options = [
            option for option in SETS if option != BY_PROMPT or (part.reading.table and part.reading.table.prompts)
        ]
        sets = st.radio(
            "Several captions of an image are", options, format_func=SET_TITLES.__getitem__, key=_key(part, "sets")
        )
    left, right = st.container(key=f"stacks_{_key(part, 'written')}").columns(2)
    key = _key(part, part.file.item_name)
    captioner = left.text_input(
        "Captioner", captioner, key=f"captioner_{key}", help="Whose captions they are, whatever was masked."
    )
    condition = right.selectbox(
        "What was masked on the photographs",
        CONDITIONS,
        CONDITIONS.index(condition),
        format_func=TITLES.__getitem__,
        key=f"condition_{key}",
    )
    return replace(part.file, sets=sets, captioner=captioner.strip(), condition=condition)


def _mapping(part: Part, known: dict[str, Attribute], described: dict[str, dict[str, Any]]) -> list[dict]:
    """Which column is which protected attribute, and what each label in it becomes."""
    assert part.frame is not None
    frame, mapped = part.frame, []
    note("Choose what each label becomes. Images whose label is dropped are not used.")
    said = described.setdefault(place_of(part.file.source), {})
    rule = st.selectbox(
        "If an image has several rows",
        ["", *RULES],
        ["", *RULES].index(said.get("several", "")),
        format_func=lambda rule: EXPLAINED[rule] if rule else "detected from the columns",
        key=_key(part, "several"),
    )
    if rule != said.get("several", ""):
        said["several"] = rule
        st.rerun()
    guesses = _guesses(frame, known)
    for column in [name for name in frame.columns if name != "image_id"]:
        counts, key = frame[column].value_counts(), _key(part, column)
        if len(counts) > MOST_LABELS or len(counts) < 2:
            reason = "every image has the same label" if len(counts) < 2 else f"{len(counts):,} different labels"
            note(f"{column}: {reason}, so it cannot be a protected attribute.")
            continue
        guess = guesses.get(column)
        options = [*known, f"its own: {column}", NOT_MAPPED]
        first = options.index(guess.name) if guess else len(options) - 1 if guesses else len(known)
        name = st.selectbox(plain(f"Column {column} is"), options, first, key=f"column_{key}")
        if name == NOT_MAPPED:
            continue
        try:
            attribute = known.get(name) or plain_attribute(column, _values(column, counts, key))
            details = mapping_details(attribute, column, _labels(counts, attribute, key))
        except CapbiasError as error:
            show_error(error)
            continue
        mapped.append(details)
        note(f"{attribute.title}, column {column}: {dropped_line(frame, details)}.")
    names = [details["attribute"]["name"] for details in mapped]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        note(f"Several columns are {' and '.join(twice)}: each is saved as a table, so that they can be compared.")
    return mapped


def _values(column: str, counts: pd.Series, key: str) -> tuple[str, ...]:
    labels = sorted(label for label in counts.index if label)
    return tuple(st.multiselect(plain(f"Values of {column}"), labels, list(values_among(labels)), key=f"values_{key}"))


def _labels(counts: pd.Series, attribute: Attribute, key: str) -> dict[str, str | None]:
    """One box per raw label, with a suggestion."""
    suggested = suggest_mapping(attribute, counts.index)
    options = [*attribute.values, DROP]
    area = st.container(key=f"stacks_labels_{key}")
    rows = [area.columns(PER_ROW) for _ in range(0, len(counts), PER_ROW)]
    mapping: dict[str, str | None] = {}
    for index, (raw, count) in enumerate(counts.items()):
        chosen = rows[index // PER_ROW][index % PER_ROW].selectbox(
            plain(f"{raw or 'empty'} ({count:,} images)"),
            options,
            options.index(suggested[raw] or DROP),
            key=f"label_{key}_{attribute.name}_{raw}",
        )
        mapping[raw] = None if chosen == DROP else chosen
    return mapping


# saving


def _ready(engine: Engine, collection: str, parts: list[Part], save) -> tuple[bool, bool | None]:
    """Whether the files can be saved as they are, with what stands in the way; whether models saw the references."""
    ready = True
    if without := [part.file.title for part in parts if part.kind == LABELS and not part.file.mapping]:
        save.warning(f"Choose a protected attribute and what its labels mean, below: {plain(', '.join(without))}.")
        ready = False
    if unknown := [part.file.title for part in parts if part.known == 0]:
        save.warning(f"No image ID of {plain(', '.join(unknown))} matches the other files or the collection.")
        ready &= save.checkbox("Save them although no image ID matches", key=f"sure_{'_'.join(unknown)}")
    if few := [part for part in parts if part.known and 2 * part.known < len(part.images)]:
        shares = ", ".join(f"{part.file.title} {part.known:,} of {len(part.images):,}" for part in few)
        save.info(f"Fewer than half of the images match: {plain(shares)}.")
    if rare := [part for part in parts if part.kind == LABELS and part.known and part.known < 2 * SMALLEST_GROUP]:
        counts = ", ".join(f"{part.file.title} {part.known}" for part in rare)
        save.warning(
            f"Few labelled images match: {plain(counts)}. Scoring needs {SMALLEST_GROUP} images of each value."
        )
    with errors():
        if twice := name_conflicts(parts):
            save.warning(f"Several files are called {plain(', '.join(twice))}. Give each another name.")
            ready = False
        if gone := [item.name for item in replaced_items(engine.workspace, collection, parts)]:
            ready &= save.checkbox(
                f"Replace {', '.join(gone)} and delete its results (a new name keeps both)",
                key=f"replace_{'_'.join(gone)}",
            )
    human = any(part.kind == REFERENCES for part in parts) or engine.workspace.items(REFERENCES, collection)
    if not human or not any(part.kind == CAPTIONS for part in parts):
        return ready, None
    answer = save.segmented_control(
        "Were the models trained on these human captions?",
        list(TRAINED),
        default="not known",
        required=True,
        help="Only a model trained on the references can be said to amplify their bias.",
    )
    return ready, TRAINED[answer]


def _summary(parts: Sequence[Part], pictures: list[Path], collection: str) -> str:
    """What Save stores, in a sentence."""
    kinds = [KINDS.get(part.kind, "").lower() for part in parts]
    texts = [f"{kinds.count(kind)} × {kind}" for kind in dict.fromkeys(kinds)]
    texts += [counted(len(pictures), "photograph")] if pictures else []
    return plain(f"Save in {collection}: {', '.join(texts) or 'nothing yet'}.")


def forget() -> None:
    """The files are saved or gone."""
    discard()
    for key in (FILES, READ):
        st.session_state.pop(key, None)

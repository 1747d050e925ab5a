"""The drop zone: a table of files with their types, one Save button above it, and what a file needs below."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from capbias_core.attributes import attribute_folder, known_attributes, plain_attribute
from capbias_core.attributes.labels import (
    MOST_LABELS,
    columns_by_attribute,
    is_about_labeller,
    is_unknown,
    suggest_mapping,
    values_among,
)
from capbias_core.errors import CapbiasError
from capbias_core.kinds import CAPTIONS, KINDS, LABELS, OBJECTS, REFERENCES, SEGMENTS, SOURCES, checked_name, kind_title
from capbias_core.kinds import PHOTOGRAPHS as IMAGES
from capbias_core.load import read as reader
from capbias_core.load.checks import REFUSE, Finding, findings
from capbias_core.load.columns import Wanted
from capbias_core.load.labels import mapping_details
from capbias_core.load.photographs import PICTURES
from capbias_core.load.questions import Answer, Option, merged
from capbias_core.load.read import Ask, File, Given, Held, Part, Read
from capbias_core.prepare.split import SMALLEST_GROUP
from capbias_core.types import CONDITIONS, Attribute, counted
from capbias_core.views.masking import TITLES
from capbias_core.views.photographs import keep_uploaded, photograph_fault
from capbias_core.views.sentence import listed
from capbias_core.workspace import ingest
from capbias_core.workspace.conditions import suggested_condition
from capbias_core.workspace.labels import dropped_line, images_used, labels_for
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.spec import attribute_from
from capbias_core.workspace.store import content_hash
from pages.ui.base import errors, note, plain, show_error
from pages.ui.page import Page
from pages.ui.show import frame_table
from pages.ui.uploads import discard, path_in_uploads

TYPES = {kind: KINDS[kind].title.capitalize() for kind in (CAPTIONS, REFERENCES, LABELS, OBJECTS, SEGMENTS)}
SECOND = {REFERENCES: "Human captions too", SEGMENTS: "Outlines too"}
TRAINED = {"yes": True, "no": False, "not known": None}
ANSWERS = "\0answers"  # beside the choices for each file: what was answered about all of them
DROP = "drop these images"
NOT_MAPPED = "not a protected attribute"
LONG_CHECK = 25  # letters that fit into a line of the column Check
CHECK_WIDTH = 210  # pixels
PER_ROW = 3  # boxes side by side; more are cut in a narrow window
FILES, READ = "files_described", "files_read"  # in the session: what the user chose for each file, and what was read


def drop_zone(page: Page, paths: list[Path]) -> str:
    """The files as a table with a Save button above it. What was saved, as a sentence; '' until something is."""
    st.header("2 · Check what they are, and save")
    pictures = _photographs([path for path in paths if path.suffix.lower() in PICTURES])
    described: dict[str, dict[str, Any]] = st.session_state.setdefault(FILES, {})
    tables = [path for path in paths if path.suffix.lower() not in PICTURES]
    known = known_attributes(attribute_folder(page.workspace.folder))
    read = _read(page, tables, known, described) if tables else Read(())
    if read is None or not (read.parts or pictures):
        return ""
    parts = read.parts
    if not page.items(IMAGES) and not pictures:  # outlines need photographs
        parts = tuple(part for part in parts if part.kind != SEGMENTS or not part.beside)
    shown = list(parts)
    # The button stays above the table, however many files there are; what it needs is known below.
    save = st.container(key="save_bar")
    pressed = save.container()
    chosen = [_details(part, described) for part in _table(page, shown, described)]
    parts = _with_mappings(chosen, known, described)
    ready, trained = _ready(page, parts, save)
    kinds = [kind_title(part.kind) for part in parts]
    texts = [f"{counted(kinds.count(kind), 'file')} of {kind}" for kind in dict.fromkeys(kinds)]
    texts += [counted(len(pictures), "photograph")] if pictures else []
    left, right = pressed.columns([5, 2], vertical_alignment="center")
    left.markdown(plain(f"Save in {page.collection}: {', '.join(texts) or 'nothing yet'}."))
    disabled = not (ready and (parts or pictures))
    if not right.button("Save", type="primary", width="stretch", key="save", disabled=disabled):
        return ""
    with errors():
        parts = [
            replace(part, file=replace(part.file, trained=trained)) if part.kind == CAPTIONS else part for part in parts
        ]
        with save, st.spinner("Saving"):
            names = [item.name for item in ingest.store(page.workspace, page.collection, parts)] if parts else []
        if pictures:
            item, refused = keep_uploaded(page.workspace, checked_name(page.collection), pictures, tried=pictures)
            names.append(
                counted(item.rows, "photograph") + (f" (left out: {'; '.join(refused.values())})" if refused else "")
            )
        kept = {(part.kind, part.title) for part in parts}
        left_out = [part.title for part in shown if (part.kind, part.title) not in kept]
        forget()
        ignored = f" Not saved: {', '.join(left_out)}." if left_out else ""
        return f"Saved in {page.collection}: {', '.join(names)}.{ignored}"
    return ""


def forget() -> None:
    """Drop what is known of the files: they are saved or gone."""
    discard()
    for key in (FILES, READ):
        st.session_state.pop(key, None)


# Reading


def _read(
    page: Page, paths: Sequence[Path], known: dict[str, Attribute], described: dict[str, dict[str, Any]]
) -> Read | None:
    """What the files hold; None while something is open, which is shown with boxes to answer it."""
    answers: list[Answer] = described.setdefault(ANSWERS, {}).setdefault("given", [])
    answer: dict[str, tuple[str, ...]] = {}
    for each in answers:
        answer = merged(answer, each)
    files = []
    for path in paths:
        kind = described.get(path_in_uploads(path), {}).get("kind", "")
        kinds = [name for name in SOURCES if str(path) in answer.get(name, ())]
        files.append(File(path, tuple(dict.fromkeys([kind] if kind else kinds))))
    fields = {name: values for name, values in answer.items() if name not in SOURCES}
    said: dict[str, Any] = {
        name: values[0] if name in ("sets", "several") else values for name, values in fields.items()
    }
    given = Given(**said)
    wanted = [Wanted(name, attribute, False) for name, attribute in known.items()]
    key = "read", repr(files), repr(given), tuple(known), _held_key(page)
    cache = st.session_state.setdefault(READ, {})
    if key not in cache:
        names = listed([path.name for path in paths])
        with st.spinner(f"Reading {plain(names)}"):
            try:
                cache[key] = within_limits("The files", reader.read, files, given, wanted, _held(page))
            except CapbiasError as error:
                cache[key] = error
    result = cache[key]
    if isinstance(result, Ask):
        _questions(result, answers)
        return None
    if isinstance(result, CapbiasError):
        show_error(result)
        _types(paths, described)
        if answers and st.button("Start the answers again", key="answers_again"):
            answers.clear()
            st.rerun()
        return None
    return result


def _questions(ask: Ask, answers: list[Answer]) -> None:
    """What is open, with the options; one that alone reads on is preselected."""
    chosen: list[Option | None] = []
    for number, question in enumerate(ask.questions):
        st.markdown(plain(question.text))
        for line in question.examples:
            st.text(line)
        titles = {option.effect: option for option in question.options}
        key = f"asked_{len(answers)}_{number}_{hash(question.text)}"
        first = 0 if len(titles) == 1 else None
        title = st.selectbox("Answer", list(titles), first, placeholder="Choose", key=key, label_visibility="collapsed")
        chosen.append(titles[title] if title else None)
    note(plain(f"With the first answer of each: {ask.effect}."))
    if st.button("Read with these answers", type="primary", key=f"answer_{len(answers)}", disabled=None in chosen):
        answers.extend(option.answer for option in chosen if option)
        st.rerun()


def _types(paths: Sequence[Path], described: dict[str, dict[str, Any]]) -> None:
    """A box for the type of each file, which may be detected wrongly."""
    for path in paths:
        choices = described.setdefault(path_in_uploads(path), {})
        titles = ["", *TYPES]
        kind = st.selectbox(
            plain(f"Type of {path.name}"),
            titles,
            titles.index(choices.get("kind", "")),
            format_func=lambda kind: TYPES.get(kind, "detected"),
            key=f"type_{path_in_uploads(path)}",
        )
        if kind != choices.get("kind", ""):
            choices["kind"] = kind
            st.rerun()


def _held_key(page: Page) -> tuple:
    items = page.workspace.items(collection=page.collection)
    return "held", page.collection, tuple((item.kind, item.hash) for item in items)


def _held(page: Page) -> Held:
    """What the collection holds, read again only if that changed."""
    key = _held_key(page)
    known = st.session_state.setdefault(READ, {})
    if key not in known:
        known[key] = ingest.held_by(page.workspace, page.collection)
    return known[key]


def _photographs(paths: list[Path]) -> list[Path]:
    """The photographs that can be read, each tried once; errors of the others are shown."""
    known = st.session_state.setdefault(READ, {})
    if any(path not in known for path in paths):
        with st.spinner(f"Reading {counted(len(paths), 'photograph')}"):
            known |= {path: photograph_fault(path) for path in paths if path not in known}
    for path in paths:
        if fault := known[path]:
            show_error(fault)
    return [path for path in paths if known[path] is None]


# The table of files


def _table(page: Page, parts: Sequence[Part], described: dict[str, dict[str, Any]]) -> list[Part]:
    """One row per part: Save, type and name can be edited. The parts to save, as the user described them."""
    known: dict[str, set[str]] = {kind: set(images) for kind, images in _held(page).images.items()}
    for part in parts:
        known.setdefault(part.kind, set()).update(part.images)
    rows = []
    for part in parts:
        sides = [known[kind] for kind in KINDS[part.kind].joins if kind != part.kind and known.get(kind)]
        matched = len(part.images.intersection(set().union(*sides)))
        rows.append(
            {
                "Save": True,
                "File": part.title,
                "Type": SECOND[part.kind] if part.beside and part.kind in SECOND else TYPES.get(part.kind),
                "Check": (part.told or [""])[0],
                "Name": ingest.item_name(part),
                "Rows": len(part.frame),
                "Images matched": f"{matched:,} of {len(part.images):,}" if sides else "",
            }
        )
    signature = hash(tuple((part.title, part.kind, part.name) for part in parts))
    edited = st.data_editor(
        pd.DataFrame(rows),
        key=f"files_{signature}",
        hide_index=True,
        width="stretch",
        row_height=66 if any(len(row["Check"]) > LONG_CHECK for row in rows) else None,
        disabled=["File", "Rows", "Images matched", "Check"],
        column_config={
            "Save": st.column_config.CheckboxColumn(width=70),
            "Type": st.column_config.SelectboxColumn(options=[*TYPES.values(), *SECOND.values()], width=175),
            "Check": st.column_config.TextColumn(width=CHECK_WIDTH),
            "Rows": st.column_config.NumberColumn(format="localized"),
        },
    )
    note("File types are detected automatically. Correct a type or a name in the table; Save confirms them.")
    titles = {title: kind for kind, title in TYPES.items()}
    chosen, changed = [], False
    for part, row in zip(parts, edited.to_dict("records"), strict=True):
        kind = titles.get(row["Type"], part.kind)
        if not part.beside and kind != part.kind:
            described.setdefault(path_in_uploads(part.file.source), {})["kind"] = kind
            changed = True
        if row["Save"]:
            with errors():
                name = checked_name(row["Name"] or ingest.item_name(part))
                chosen.append(ingest.renamed(part, name) if name != ingest.item_name(part) else part)
    if changed:
        st.rerun()
    return chosen


def _key(part: Part, what: str) -> str:
    """The key of a control of a part; the same if the upload is written to disk again."""
    return f"{what}_{path_in_uploads(part.file.source)}_{part.kind}_{part.name}"


def _details(part: Part, described: dict[str, dict[str, Any]]) -> Part:
    """The part with the choices of its expander, below its report and first rows."""
    with st.expander(plain(f"{part.title}: {kind_title(part.kind)} ({ingest.item_name(part)})")):
        if part.kind == CAPTIONS:
            part = _written(part)
        for warning in part.told:
            note(f"⚠ {warning}")
        left, right = st.container(key=f"stacks_{_key(part, 'report')}").columns([3, 2], gap="large")
        lines = pd.DataFrame(part.lines(), columns=["", "what the file holds"])
        frame_table(lines, left, key=_key(part, "lines"))
        frame_table(part.frame.head(8), right, key=_key(part, "first"))
    return part


def _written(part: Part) -> Part:
    """The part with who wrote its captions and what was masked on the photographs."""
    name = ingest.item_name(part)
    captioner, condition = suggested_condition(name)
    left, right = st.container(key=f"stacks_{_key(part, 'written')}").columns(2)
    captioner = left.text_input(
        "Captioner", captioner, key=_key(part, "captioner"), help="Whose captions they are, whatever was masked."
    )
    condition = right.selectbox(
        "What was masked on the photographs",
        CONDITIONS,
        CONDITIONS.index(condition),
        format_func=TITLES.__getitem__,
        key=_key(part, "condition"),
    )
    return replace(part, file=replace(part.file, captioner=captioner.strip(), condition=condition))


def _with_mappings(
    parts: Sequence[Part], known: dict[str, Attribute], described: dict[str, dict[str, Any]]
) -> list[Part]:
    """Tables of labels with what their columns and labels mean, as the user says."""
    result = []
    for part in parts:
        if part.kind == LABELS:
            with st.expander(plain(f"Labels of {part.title}"), expanded=not part.mapping):
                part = replace(part, mapping=tuple(_mapping(part, part.frame, known, described)))
        result.append(part)
    return result


def _mapping(
    part: Part, frame: pd.DataFrame, known: dict[str, Attribute], described: dict[str, dict[str, Any]]
) -> list[dict]:
    """Which column is which protected attribute, and what each label in it becomes."""
    note("Choose what each label becomes. Images whose label is dropped are not used.")
    labels = {column: frame[column].unique().tolist() for column in frame.columns if column != "image_id"}
    of_attributes = columns_by_attribute(known.values(), labels)
    guesses = {column: name for name, columns in of_attributes.items() for column in columns}
    guesses |= {details["column"]: details["attribute"]["name"] for details in part.mapping}
    asked = {column for columns in of_attributes.values() for column in columns if len(columns) > 1}
    asked |= set(filter(is_about_labeller, guesses))
    asked -= {details["column"] for details in part.mapping}
    mapped: list[dict] = []
    waiting: list[str] = []  # what only the user knows
    for column in [name for name in frame.columns if name != "image_id"]:
        counts, key = frame[column].value_counts(), _key(part, column)
        if len(counts) > MOST_LABELS or len(counts) < 2:
            reason = "every image has the same label" if len(counts) < 2 else f"{len(counts):,} different labels"
            note(f"{column}: {reason}, so it cannot be a protected attribute.")
            continue
        options = [*known, f"its own: {column}", NOT_MAPPED]
        first = options.index(guesses[column]) if column in guesses else -1 if guesses else len(known)
        name = st.selectbox(
            plain(f"Column {column} is"),
            options,
            None if column in asked else first % len(options),
            placeholder=f"Choose: {guesses.get(column)}, another attribute or none",
            key=f"column_{key}",
        )
        waiting += [f"what the column {column} is"] if name is None else []
        if name in (None, NOT_MAPPED):
            continue
        try:
            attribute = known.get(name)
            if not attribute:
                labels = sorted(label for label in counts.index if label)
                values = st.multiselect(
                    plain(f"Values of {column}"), labels, list(values_among(labels)), key=f"values_{key}"
                )
                attribute = plain_attribute(column, tuple(values))
            mapping = _labels(counts, attribute, key)
            if None in mapping.values():
                waiting.append(f"what the labels of {column} mean")
                continue
            chosen = {raw: None if value == DROP else value for raw, value in mapping.items()}
            details = mapping_details(attribute, column, chosen)
        except CapbiasError as error:
            show_error(error)
            continue
        mapped.append(details)
        note(f"{attribute.title}, column {column}: {dropped_line(frame, details)}.")
    if waiting:
        note(plain(f"Choose {', and '.join(waiting)}."))
        return []
    names = [details["attribute"]["name"] for details in mapped]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        note(f"Several columns are {' and '.join(twice)}: each is saved as a table, so that they can be compared.")
    return mapped


def _labels(counts: pd.Series, attribute: Attribute, key: str) -> dict[str, str | None]:
    """Label -> the value chosen for it, DROP, or None if nothing is chosen. Nothing is preselected for a label that is
    not read, if a value has no label that is."""
    suggested = suggest_mapping(attribute, counts.index)
    whole = set(attribute.values) <= set(suggested.values())
    options = [*attribute.values, DROP]
    area = st.container(key=f"stacks_labels_{key}")
    rows = [area.columns(PER_ROW) for _ in range(0, len(counts), PER_ROW)]
    mapping: dict[str, str | None] = {}
    for index, (raw, count) in enumerate(counts.items()):
        known = suggested[raw] or (DROP if whole or is_unknown(raw) else None)
        mapping[raw] = rows[index // PER_ROW][index % PER_ROW].selectbox(
            plain(f"{raw or 'empty'} ({count:,} images)"),
            options,
            options.index(known) if known else None,
            placeholder="Choose",
            key=f"label_{key}_{attribute.name}_{raw}",
        )
    return mapping


# Saving


def _images_used(page: Page, parts: list[Part]) -> pd.DataFrame:
    """A row per attribute and caption set with how many of its images count: of the sets of the files, and of stored
    ones if labels or human captions are new. The last column, smallest, has the images of the rarest value."""
    kinds = {part.kind for part in parts}
    sets = {
        name: set(frame["image_id"])
        for part in parts
        if part.kind == CAPTIONS
        for name, frame in [(ingest.item_name(part), part.frame)]
    }
    if kinds & {LABELS, REFERENCES}:
        stored = [item for item in page.items(CAPTIONS) if item.name not in sets]
        sets |= {item.name: set(page.workspace.frame(item.hash)["image_id"]) for item in stored}
    mapped = [(part.frame, details) for part in parts if part.kind == LABELS for details in part.mapping]
    human = frozenset().union(*(part.images for part in parts if part.kind == REFERENCES))
    human = human or _held(page).images.get(REFERENCES)
    rows, seen = [], set()
    for frame, details in (mapped or _stored_labels(page)) if sets else ():
        name = details["attribute"]["name"]
        title = f"{name} (column {details['column']})" if name in seen else name
        seen.add(name)
        labels = labels_for(frame, attribute_from(details["attribute"]), details["column"], details["mapping"])
        for captioner, images in sets.items():
            used = images_used(labels, images, human)
            row = {"captioner": captioner, "attribute": title, "images": len(images), "labelled": used.labelled}
            if used.with_human is not None:
                row["with human captions"] = used.with_human
            row["of these"] = ", ".join(f"{value} {count:,}" for value, count in used.by_value.items())
            rows.append(row | {"after balancing": used.balanced, "smallest": min(used.by_value.values())})
    return pd.DataFrame(rows)


@st.cache_data(show_spinner="Checking the captions", max_entries=256)
def _findings(
    hashes: Sequence[str], details: dict, _captions: pd.DataFrame, _labels: pd.DataFrame, _human: pd.DataFrame | None
) -> list[Finding]:
    attribute = attribute_from(details["attribute"])
    values = labels_for(_labels, attribute, details["column"], details["mapping"]).values
    return findings(_captions, attribute, values, _human)


def _contents(page: Page, parts: list[Part]) -> list[tuple[str, bool, str]]:
    """Title, whether Save waits, and sentence of each finding on new captions, and on stored ones if labels or human
    captions are new. Findings for two attributes that differ only in their numbers are one."""
    human = next((part.frame for part in parts if part.kind == REFERENCES), _held(page).references)
    new_tables = [(part.frame, details) for part in parts if part.kind == LABELS for details in part.mapping]
    tables = new_tables or _stored_labels(page)
    sets = [(part.title, part.frame, True) for part in parts if part.kind == CAPTIONS]
    if new_tables or any(part.kind == REFERENCES for part in parts):
        new = {ingest.item_name(part) for part in parts if part.kind == CAPTIONS}
        stored = [item for item in page.items(CAPTIONS) if item.name not in new]
        sets += [(item.name, page.workspace.frame(item.hash), False) for item in stored]
    messages, hashes = {}, {}  # of contents, each computed once: Streamlit itself would hash a sample of the rows

    def hashed(frame: pd.DataFrame | None) -> str:
        if frame is not None and id(frame) not in hashes:
            hashes[id(frame)] = content_hash(frame)
        return hashes.get(id(frame), "")

    for title, frame, is_new in sets:
        for table, details in tables:
            if frame is None or table is None:
                continue
            read = hashed(frame), hashed(table), hashed(human)
            for each in _findings(read, details, frame, table, human):
                wording = re.sub(r"\d", "", each.text)
                messages.setdefault((title, wording), (title, is_new and each.effect == REFUSE, each.text))
    return list(messages.values())


def _stored_labels(page: Page) -> list[tuple[pd.DataFrame, dict]]:
    return [
        (page.workspace.frame(item.hash), details)
        for item in page.items(LABELS)
        for details in item.details["attributes"].values()
    ]


def _ready(page: Page, parts: list[Part], save) -> tuple[bool, bool | None]:
    """Whether the files can be saved as they are, with the reasons against; whether models saw the references."""
    ready = True
    if without := [part.title for part in parts if part.kind == LABELS and not part.mapping]:
        save.warning(f"Choose a protected attribute and what its labels mean, below: {plain(', '.join(without))}.")
        ready = False
    with save:
        if len(used := _images_used(page, parts)):
            few = used[used["smallest"] < SMALLEST_GROUP]
            if len(few):
                names = ", ".join(few["captioner"] + " (" + few["attribute"] + ")")
                needed = "a label and a human caption" if "with human captions" in used else "a label"
                text = f"Too few images of {names} have {needed}. Scoring needs {SMALLEST_GROUP} of each value."
                st.warning(plain(text))
            frame_table(used.drop(columns="smallest"))
            note("After balancing: every value has as many images as the rarest one. LIC is measured on these.")
    for title, refused, text in _contents(page, parts):
        (save.error if refused else save.warning)(plain(f"{title}: {text}"))
        ready &= not refused
    with errors():
        if twice := ingest.name_conflicts(parts):
            save.warning(f"Several files are called {plain(', '.join(twice))}. Give each another name.")
            ready = False
        if replaced := [item.name for item in ingest.replaced_items(page.workspace, page.collection, parts)]:
            ready &= save.checkbox(
                f"Replace {plain(', '.join(replaced))} and delete its results (a new name keeps both)",
                key=f"replace_{'_'.join(replaced)}",
            )
    human = any(part.kind == REFERENCES for part in parts) or page.items(REFERENCES)
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

"""The drop zone: a table of files with their types, one Save button above it, and what a file needs below."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from os.path import commonprefix
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
from capbias_core.kinds import CAPTIONS, KINDS, LABELS, OBJECTS, REFERENCES, SEGMENTS, kind_title
from capbias_core.kinds import PHOTOGRAPHS as IMAGES
from capbias_core.load.account import BY_PROMPT, EACH, SAMPLES, OpenQuestion
from capbias_core.load.checks import REFUSE, Finding, findings
from capbias_core.load.labels import EXPLAINED, RULES
from capbias_core.load.photographs import PICTURES
from capbias_core.load.read import Reading, read_file
from capbias_core.prepare.split import SMALLEST_GROUP
from capbias_core.types import CONDITIONS, Attribute, counted
from capbias_core.views.masking import TITLES
from capbias_core.views.photographs import keep_uploaded, photograph_fault
from capbias_core.views.sentence import listed
from capbias_core.workspace import ingest
from capbias_core.workspace.conditions import suggested_condition
from capbias_core.workspace.labels import column_labels, dropped_line, images_used, labels_for, mapping_details
from capbias_core.workspace.limited import all_taken, within_limits
from capbias_core.workspace.spec import attribute_from
from capbias_core.workspace.store import checked_name, content_hash
from pages.ui import cached
from pages.ui.bar import Bar
from pages.ui.base import errors, note, show_error
from pages.ui.drawing import THREE_LINES, draw_table
from pages.ui.plain import plain
from pages.ui.uploads import discard, path_in_uploads

TYPES = {kind: KINDS[kind].title.capitalize() for kind in (CAPTIONS, REFERENCES, LABELS, OBJECTS, SEGMENTS)}
SECOND = {REFERENCES: "Human captions too", SEGMENTS: "Outlines too"}
TRAINED = {"yes": True, "no": False, "not known": None}
SET_TITLES = {SAMPLES: "samples of one set", EACH: "a set each", BY_PROMPT: "a set per prompt"}
PARTS, SEVERAL = "parts of one captioner's captions", "captions of different captioners"
PART_OF = re.compile(r"[\s_.-]*(part|half|chunk|shard|split)?[\s_.-]*\d*$", re.IGNORECASE)  # `nic` of nic_part1
DROP = "drop these images"
NOT_MAPPED = "not a protected attribute"
LONG_CHECK = 25  # letters that fit into a line of the column Check
CHECK_WIDTH = 210  # pixels
PER_ROW = 3  # boxes side by side; more are cut in a narrow window
FILES, READ = "files_described", "files_read"  # in the session: what the user chose for each file, and what was read


def drop_zone(bar: Bar, paths: list[Path]) -> str:
    """The files as a table with a Save button above it. What was saved, as a sentence; '' until something is."""
    st.header("2 · Check what they are, and save")
    pictures = _photographs([path for path in paths if path.suffix.lower() in PICTURES])
    described: dict[str, dict[str, Any]] = st.session_state.setdefault(FILES, {})
    tables = [path for path in paths if path.suffix.lower() not in PICTURES]

    files = []
    for path in tables:
        choices = described.get(path_in_uploads(path), {})
        kind, columns, sets = _answers(choices)
        columns |= {role: name for role in ("image_id", "caption") if (name := choices.get(role))}
        kind = choices.get("kind", kind)
        files.append(ingest.File(path, kind, columns=columns, sets=sets, several=choices.get("several", "")))
    parts = ingest.preview(files, _held(bar), _read) if files else []
    shown = parts
    if not bar.items(IMAGES) and not pictures:  # outlines need photographs
        shown = [part for part in parts if part.kind != SEGMENTS or not part.reading.second]
    if not shown and not pictures:
        discard()
        note("No file can be read.")
        return ""
    # The button stays above the table, however many files there are; what it needs is known below.
    save = st.container(key="save_bar")
    pressed = save.container()
    known = known_attributes(attribute_folder(bar.workspace.folder))
    parts = [_details(part, known, described) for part in _table(shown, known, described)]
    if not pictures and not any(part.frame is not None or part.reading.columns for part in parts):
        discard()  # nothing can be chosen to read these
    asked = [part.file.title for part in parts if part.reading.question and part.wanted]
    parts = [part for part in parts if part.frame is not None and part.wanted]
    keys = {part.key for part in parts}
    parts, joined = _joined(parts, save)
    ready, trained = _ready(bar, parts, save)
    ready &= joined
    if asked:
        save.warning(f"Answer the questions below: {plain(', '.join(asked))}.")
        ready = False
    kinds = [kind_title(part.kind) for part in parts]
    texts = [f"{counted(kinds.count(kind), 'file')} of {kind}" for kind in dict.fromkeys(kinds)]
    texts += [counted(len(pictures), "photograph")] if pictures else []
    left, right = pressed.columns([5, 2], vertical_alignment="center")
    left.markdown(plain(f"Save in {bar.collection}: {', '.join(texts) or 'nothing yet'}."))
    disabled = not (ready and (parts or pictures))
    if not right.button("Save", type="primary", width="stretch", key="save", disabled=disabled):
        return ""
    with errors():
        parts = [
            replace(part, file=replace(part.file, trained=trained)) if part.kind == CAPTIONS else part for part in parts
        ]
        with save, st.spinner("Saving"):
            names = [item.name for item in ingest.store(bar.workspace, bar.collection, parts)] if parts else []
        if pictures:
            item, refused = keep_uploaded(bar.workspace, checked_name(bar.collection), pictures, tried=pictures)
            names.append(
                counted(item.rows, "photograph") + (f" (left out: {'; '.join(refused.values())})" if refused else "")
            )
        left_out = [part.file.title for part in shown if part.key not in keys]
        forget()
        ignored = f" Not saved: {', '.join(left_out)}." if left_out else ""
        return f"Saved in {bar.collection}: {', '.join(names)}.{ignored}"
    return ""


def forget() -> None:
    """Drop what is known of the files: they are saved or gone."""
    discard()
    for key in (FILES, READ):
        st.session_state.pop(key, None)


# Reading


def _read(path: Path, *choices: Any) -> list[Reading]:
    key = (path, repr(choices[:3]), None if len(choices) < 4 or choices[3] is None else len(choices[3]))
    known = st.session_state.setdefault(READ, {})
    if key not in known:
        with st.spinner(plain(f"Reading {path.name}{' after another file' * all_taken()}")):
            known[key] = within_limits(path.name, read_file, path, *choices)
    return known[key]


def _held(bar: Bar) -> ingest.Held:
    """What the collection holds, read again only if that changed."""
    items = bar.workspace.items(collection=bar.collection)
    key = "held", bar.collection, tuple((item.kind, item.hash) for item in items)
    known = st.session_state.setdefault(READ, {})
    if key not in known:
        known[key] = ingest.held_by(bar.workspace, bar.collection)
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


def _table(
    parts: Sequence[ingest.Part], known: dict[str, Attribute], described: dict[str, dict[str, Any]]
) -> list[ingest.Part]:
    """One row per part: Save, type and name can be edited. The parts to save, as the user described them."""
    rows = [
        {
            "Save": part.wanted and (part.frame is not None or part.reading.question is not None),
            "File": part.file.title + (" (second part)" if part.reading.second else ""),
            "Type": SECOND[part.kind] if part.reading.second else TYPES.get(part.kind),
            "Check": _check_text(part, known),
            "Name": part.file.item_name,
            "Rows": len(part.frame) if part.frame is not None else None,
            "Images matched": "" if part.known is None else f"{part.known:,} of {len(part.images):,}",
        }
        for part in parts
    ]
    signature = hash(tuple((part.key, part.kind, part.frame is None) for part in parts))
    edited = st.data_editor(
        pd.DataFrame(rows),
        key=f"files_{signature}",
        hide_index=True,
        width="stretch",
        row_height=THREE_LINES if any(len(row["Check"]) > LONG_CHECK for row in rows) else None,
        disabled=["File", "Rows", "Images matched", "Check"],
        column_config={
            "Save": st.column_config.CheckboxColumn(width=70),
            "Type": st.column_config.SelectboxColumn(options=[*TYPES.values(), *SECOND.values()], width=175),
            "Check": st.column_config.TextColumn(width=CHECK_WIDTH),
        },
    )
    note("File types are detected automatically. Correct a type or a name in the table; Save confirms them.")
    titles = {title: kind for kind, title in TYPES.items()}
    chosen, changed = [], False
    for part, row in zip(parts, edited.to_dict("records"), strict=True):
        kind = titles.get(row["Type"], part.kind)
        if not part.reading.second and kind != part.kind:
            described.setdefault(path_in_uploads(part.file.source), {})["kind"] = kind
            changed = True
        if row["Save"] and part.frame is not None:
            with errors():
                name = checked_name(row["Name"] or part.file.item_name)
                chosen.append(replace(part, file=replace(part.file, name=name), wanted=True))
        elif part.reading.error:
            chosen.append(replace(part, wanted=bool(row["Save"])))
    if changed:
        st.rerun()
    return chosen


def _check_text(part: ingest.Part, known: dict[str, Attribute]) -> str:
    """What to look at in a file, in a few words; '' if nothing."""
    if part.reading.question:
        return "Answer the question below."
    if part.reading.error:
        return part.reading.error.message
    if part.known == 0:
        return "No image ID matches the other files."
    if not part.wanted:
        return "Not ticked: another file has human captions of these images."
    if part.kind == LABELS and part.frame is not None:
        names = columns_by_attribute(known.values(), column_labels(part.frame))
        asked = [name for name, columns in names.items() if len(columns) > 1]
        if asked or not any(any(columns.values()) for columns in names.values()):
            return f"Choose the column and labels of {' and '.join(asked or names) or 'an attribute'} below."
        read = [
            name if [name] == [*columns] else f"{name} (column {', '.join(columns)})" for name, columns in names.items()
        ]
        return f"Attributes: {', '.join(read)}."
    if part.report and part.report.warnings:
        return part.report.warnings[0]
    captioners = ingest.captioners(part)
    return f"Captioners: {', '.join(captioners)}." if len(captioners) > 1 else ""


# What a file needs


def _key(part: ingest.Part, what: str) -> str:
    """The key of a control of a part; the same if the upload is written to disk again."""
    return f"{what}_{path_in_uploads(part.file.source)}{'_second' if part.reading.second else ''}"


def _details(part: ingest.Part, known: dict[str, Attribute], described: dict[str, dict[str, Any]]) -> ingest.Part:
    """The part with the choices of its expander: report, columns, sets, labels."""
    unclear = False
    if part.kind == LABELS and part.frame is not None:  # an attribute has several columns, or none that is read
        of_attributes = columns_by_attribute(known.values(), column_labels(part.frame)).values()
        unclear = any(len(columns) > 1 for columns in of_attributes) or not any(any(c.values()) for c in of_attributes)
    title = f"{part.file.title}: {kind_title(part.kind, 'unknown type')}"
    with st.expander(plain(title), expanded=bool(part.reading.error) or unclear):
        if part.reading.question:
            note(part.reading.question.message)
        elif part.reading.error:
            show_error(part.reading.error)
        _questions(part, described)
        _columns(part, described)
        if part.frame is None or part.report is None:
            return part
        file = part.file
        if part.kind == CAPTIONS:
            file = _written(part)
        if part.kind == LABELS:
            file = replace(file, mapping=tuple(_mapping(part, part.frame, known, described)))
        for warning in part.report.warnings:
            note(f"⚠ {warning}")
        left, right = st.container(key=f"stacks_{_key(part, 'report')}").columns([3, 2], gap="large")
        lines = pd.DataFrame(part.report.lines(), columns=["", "what the file holds"])
        draw_table(lines, left, alt=f"Report on {file.title}", key=_key(part, "lines"), height="content")
        draw_table(part.frame.head(8), right, alt="First rows as they will be stored", key=_key(part, "first"))
    return replace(part, file=file)


def _questions(part: ingest.Part, described: dict[str, dict[str, Any]]) -> None:
    """What was asked about a file, with the answers, and what is asked now; nothing is preselected."""
    if part.reading.second:
        return
    choices = described.setdefault(path_in_uploads(part.file.source), {})
    asked: list[tuple[OpenQuestion, dict[str, str]]] = choices.setdefault("asked", [])
    now: list[tuple[OpenQuestion, dict[str, str]]] = [(part.reading.question, {})] if part.reading.question else []
    for position, (question, known) in enumerate([*asked, *now]):
        area, answers = st.container(key=f"stacks_{_key(part, f'asked_{position}')}").columns(2), {}
        for index, (label, options) in enumerate(question.boxes):
            names = [name for name, _ in options]
            answer = area[index % 2].selectbox(
                plain(label),
                names,
                names.index(known[label]) if label in known else None,
                placeholder="Choose",
                key=_key(part, f"asked_{position}_{label}"),
            )
            answers |= {label: answer} if answer else {}
        if len(answers) == len(question.boxes) and answers != known:
            choices["asked"] = [*asked[:position], (question, answers)]  # a new answer may raise other questions
            st.rerun()


def _answers(choices: dict[str, Any]) -> tuple[str, dict[str, Any], str]:
    """Kind, columns and sets of a file, as the user answered what was asked about it."""
    kind, columns, sets = "", {}, ""
    for question, answers in choices.get("asked", ()):
        for label, options in question.boxes:
            for name, value in dict(options)[answers[label]]:
                role = name.removesuffix("_column")
                if name in TYPES:
                    kind = name
                elif name == "sets":
                    sets = value
                elif name == "rows":
                    columns.setdefault("rows", {}).update([value.split("=", 1)])
                else:
                    columns[role] = (*columns.get(role, ()), value) if role in ("caption", "reference") else value
    return kind, columns, sets


def _columns(part: ingest.Part, described: dict[str, dict[str, Any]]) -> None:
    """Boxes for the columns of image IDs and captions, if the file has columns and cannot be read, or they were set."""
    choices, reading = described.setdefault(path_in_uploads(part.file.source), {}), part.reading
    needed = reading.error or choices.get("image_id") or reading.guess == LABELS
    if reading.second or reading.question or not reading.columns or not needed:
        return
    boxes = st.container(key=f"stacks_{_key(part, 'columns')}").columns(2)
    roles = {"image_id": "Column of image IDs", "caption": "Column of captions"}
    for box, (role, title) in zip(boxes, roles.items(), strict=True):
        current = choices.get(role)
        chosen = box.selectbox(
            title,
            reading.columns,
            index=reading.columns.index(current) if current in reading.columns else None,
            placeholder="Detected",
            key=_key(part, f"column_{role}"),
        )
        if chosen and chosen != current:
            choices[role] = chosen
            if role == "caption" and part.kind not in (CAPTIONS, REFERENCES):
                choices["kind"] = CAPTIONS  # a file with a column of captions holds captions
            st.rerun()


def _written(part: ingest.Part) -> ingest.File:
    """The file with what several captions of an image are, who wrote them and what was masked on the photographs."""
    sets, (captioner, condition) = part.file.sets, suggested_condition(part.file.item_name)
    if part.report and part.report.several:
        has_prompts = part.reading.table and part.reading.table.prompts
        options = [option for option in SET_TITLES if option != BY_PROMPT or has_prompts]
        first = options.index(sets) if sets in options else 0
        sets = st.radio(
            "Several captions of an image are",
            options,
            first,
            format_func=SET_TITLES.__getitem__,
            key=_key(part, "sets"),
        )
    if len(captioners := ingest.captioners(part)) > 1:
        note(f"Captioners, by the file: {', '.join(captioners)}.")
        return replace(part.file, sets=sets)
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


def _mapping(
    part: ingest.Part, frame: pd.DataFrame, known: dict[str, Attribute], described: dict[str, dict[str, Any]]
) -> list[dict]:
    """Which column is which protected attribute, and what each label in it becomes."""
    note("Choose what each label becomes. Images whose label is dropped are not used.")
    choices = described.setdefault(path_in_uploads(part.file.source), {})
    rule = st.selectbox(
        "If an image has several rows",
        ["", *RULES],
        ["", *RULES].index(choices.get("several", "")),
        format_func=lambda rule: EXPLAINED[rule] if rule else "detected from the columns",
        key=_key(part, "several"),
    )
    if rule != choices.get("several", ""):
        choices["several"] = rule
        st.rerun()
    of_attributes = columns_by_attribute(known.values(), column_labels(frame))
    guesses = {column: name for name, columns in of_attributes.items() for column in columns}
    asked = {column for columns in of_attributes.values() for column in columns if len(columns) > 1}
    asked |= set(filter(is_about_labeller, guesses))
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
        note(f"Choose {', and '.join(waiting)}.")
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


def _joined(parts: list[ingest.Part], save) -> tuple[list[ingest.Part], bool]:
    """Caption files without an image in common are one captioner in parts, or several: the user says which. The parts,
    those of one captioner as one, and whether all was answered."""
    groups: list[list[ingest.Part]] = []
    for part in parts:
        if part.kind == CAPTIONS and part.images and not (part.reading.table and part.reading.table.sets):
            fitting = (group for group in groups if all(part.images.isdisjoint(other.images) for other in group))
            if (group := next(fitting, None)) is not None:
                group.append(part)
            else:
                groups.append([part])
    answered = True
    for group in (group for group in groups if len(group) > 1):
        titles, key = listed([part.file.title for part in group]), "_".join(part.file.title for part in group)
        left, right = save.columns(2)
        question = plain(f"{titles} have no image in common. They are")
        answer = left.selectbox(question, [PARTS, SEVERAL], None, placeholder="Choose", key=f"joined_{key}")
        answered &= answer is not None
        if answer != PARTS:
            continue
        names = [part.file.item_name for part in group]
        suggested = PART_OF.sub("", commonprefix(names)) or names[0]
        name = right.text_input("Name of the captioner", suggested, key=f"joined_name_{key}")
        first, tables = group[0], [part.reading.table for part in group if part.reading.table]
        account = tuple(line for table in tables for line in table.account)
        frame = pd.concat([table.frame for table in tables], ignore_index=True)
        table = replace(tables[0], frame=frame, account=account, warnings=tuple(w for t in tables for w in t.warnings))
        with errors():
            file = replace(first.file, name=checked_name(name), captioner=checked_name(name))
            whole = replace(first, file=file, reading=replace(first.reading, table=table))
            parts = [whole if part is first else part for part in parts if part is first or part not in group]
    return parts, answered


def _images_used(bar: Bar, parts: list[ingest.Part]) -> pd.DataFrame:
    """A row per attribute and caption set with how many of its images count: of the sets of the files, and of stored
    ones if labels or human captions are new. The last column, smallest, has the images of the rarest value."""
    kinds = {part.kind for part in parts}
    sets = {name: set(frame["image_id"]) for part in parts if part.kind == CAPTIONS for name, frame in _sets(part)}
    if kinds & {LABELS, REFERENCES}:
        stored = [item for item in bar.items(CAPTIONS) if item.name not in sets]
        sets |= {item.name: set(cached.captions(bar.folder, item.hash)["image_id"]) for item in stored}
    mapped = [(part.frame, details) for part in parts if part.kind == LABELS for details in part.file.mapping]
    human = frozenset().union(*(part.images for part in parts if part.kind == REFERENCES))
    human = human or _held(bar).images.get(REFERENCES)
    rows, seen = [], set()
    for frame, details in (mapped or _stored_labels(bar)) if sets else ():
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


def _sets(part: ingest.Part) -> list[tuple[str, pd.DataFrame]]:
    """The caption sets of a file by name; none if they cannot be told apart yet."""
    with errors():
        return list(ingest.caption_sets(part).items())
    return []


@st.cache_data(show_spinner="Checking the captions", max_entries=256)
def _findings(
    hashes: Sequence[str], details: dict, _captions: pd.DataFrame, _labels: pd.DataFrame, _human: pd.DataFrame | None
) -> list[Finding]:
    attribute = attribute_from(details["attribute"])
    values = labels_for(_labels, attribute, details["column"], details["mapping"]).values
    return findings(_captions, attribute, values, _human)


def _contents(bar: Bar, parts: list[ingest.Part]) -> list[tuple[str, bool, str]]:
    """Title, whether Save waits, and sentence of each finding on new captions, and on stored ones if labels or human
    captions are new. Findings for two attributes that differ only in their numbers are one."""
    human = next((part.frame for part in parts if part.kind == REFERENCES), _held(bar).references)
    new_tables = [(part.frame, details) for part in parts if part.kind == LABELS for details in part.file.mapping]
    tables = new_tables or _stored_labels(bar)
    sets = [(part.file.title, part.frame, True) for part in parts if part.kind == CAPTIONS]
    if new_tables or any(part.kind == REFERENCES for part in parts):
        new = {part.file.item_name for part in parts if part.kind == CAPTIONS}
        stored = [item for item in bar.items(CAPTIONS) if item.name not in new]
        sets += [(item.name, cached.captions(bar.folder, item.hash), False) for item in stored]
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


def _stored_labels(bar: Bar) -> list[tuple[pd.DataFrame, dict]]:
    return [
        (cached.captions(bar.folder, item.hash), details)
        for item in bar.items(LABELS)
        for details in item.details["attributes"].values()
    ]


def _ready(bar: Bar, parts: list[ingest.Part], save) -> tuple[bool, bool | None]:
    """Whether the files can be saved as they are, with the reasons against; whether models saw the references."""
    ready = True
    if without := [part.file.title for part in parts if part.kind == LABELS and not part.file.mapping]:
        save.warning(f"Choose a protected attribute and what its labels mean, below: {plain(', '.join(without))}.")
        ready = False
    if unknown := [part.file.title for part in parts if part.known == 0]:
        save.warning(f"No image ID of {plain(', '.join(unknown))} matches the other files or the collection.")
        ready &= save.checkbox("Save them although no image ID matches", key=f"sure_{'_'.join(unknown)}")
    with save:
        if not unknown and len(used := _images_used(bar, parts)):
            few = used[used["smallest"] < SMALLEST_GROUP]
            if len(few):
                names = ", ".join(few["captioner"] + " (" + few["attribute"] + ")")
                needed = "a label and a human caption" if "with human captions" in used else "a label"
                text = f"Too few images of {names} have {needed}. Scoring needs {SMALLEST_GROUP} of each value."
                st.warning(plain(text))
            draw_table(used.drop(columns="smallest"), alt="Images that count, by captioner")
            note("After balancing: every value has as many images as the rarest one. LIC is measured on these.")
    if partly := [part for part in parts if part.kind == CAPTIONS and part.known and 2 * part.known < len(part.images)]:
        shares = ", ".join(f"{part.file.title} {part.known:,} of {len(part.images):,}" for part in partly)
        save.info(f"Fewer than half of these captions are of images in the other files: {plain(shares)}.")
    for title, refused, text in _contents(bar, parts):
        (save.error if refused else save.warning)(plain(f"{title}: {text}"))
        ready &= not refused
    with errors():
        if twice := ingest.name_conflicts(parts):
            save.warning(f"Several files are called {plain(', '.join(twice))}. Give each another name.")
            ready = False
        if replaced := [item.name for item in ingest.replaced_items(bar.workspace, bar.collection, parts)]:
            ready &= save.checkbox(
                f"Replace {plain(', '.join(replaced))} and delete its results (a new name keeps both)",
                key=f"replace_{'_'.join(replaced)}",
            )
    human = any(part.kind == REFERENCES for part in parts) or bar.items(REFERENCES)
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

"""Any number of files at once: what each is, what it has in common with the others, one button that keeps them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pandas as pd
import streamlit as st

from capbias_core.analysis.photo_inspector import keep_uploaded, photograph_fault
from capbias_core.attributes import plain_attribute
from capbias_core.attributes.labels import suggest_mapping, values_among
from capbias_core.errors import CapbiasError
from capbias_core.load import detect
from capbias_core.load.kinds import GENERATED, HUMAN, INSTANCES, LABELS, OBJECTS, Likely
from capbias_core.load.photographs import PICTURES
from capbias_core.load.report import MOST_LABELS
from capbias_core.present.conditions import TITLES
from capbias_core.runs.engine import Engine
from capbias_core.types import CONDITIONS, Attribute, counted
from capbias_core.workspace import custom_attributes as own_attributes
from capbias_core.workspace.conditions import suggested_condition
from capbias_core.workspace.ingest import BY_PROMPT, EACH, SAMPLES, SEGMENTS, SETS
from capbias_core.workspace.labels import dropped_labels, mapping_details
from capbias_core.workspace.limited import all_taken, within_limits
from capbias_core.workspace.offers import (
    Choices,
    Offer,
    choose_references,
    guessed_columns,
    in_common,
    keep_offers,
    kept_images,
    offers_of,
    outlines_of,
    references_among,
    replaced,
    same_names,
)
from capbias_core.workspace.photographs import KIND as IMAGES
from capbias_core.workspace.store import Item, checked_name, suggested_name
from pages.ui.base import errors, note, plain, show_error
from pages.ui.table import draw_table
from pages.ui.uploads import discard, place_of

KINDS = {
    GENERATED: "Captions of a model",
    HUMAN: "Human captions",
    LABELS: "Labels of images",
    OBJECTS: "Objects in the images",
    SEGMENTS: "Outlines in the photographs",
}
TRAINED = {"yes": True, "no": False, "not known": None}
SET_TITLES = {SAMPLES: "samples of one set", EACH: "a set each", BY_PROMPT: "a set per prompt"}
DROP = "drop these images"
NOT_MAPPED = "not a protected attribute"
A_ROW = 3  # boxes side by side; more are cut where the window is narrow
COLUMNS = "columns_said"  # by place of a file, the columns that were chosen where they cannot be guessed
PREVIEWS = "previews"  # what was read of the files that lie on disk, so that a click does not read them again


def drop_zone(engine: Engine, collection: str, paths: list[Path]) -> str:
    """A row a file: what it is, its name, its report; and the button that keeps them all. What was kept, as a sentence;
    '' as long as nothing was."""
    st.header("2 · What they are")
    every = [path for path in paths if path.suffix.lower() in PICTURES]
    pictures = _photographs(every)
    found = _all_offered(engine, [path for path in paths if path not in every], collection, bool(pictures))
    common = in_common([own for own in found if _said(own, "wanted", own.wanted)], _kept_images(engine, collection))
    offers, choices = [], {}
    for number, own in enumerate(found, start=1):
        with st.container(border=True):
            if named := _row(own, number):
                offers.append(named)
                choices[own.key] = _details(engine, named, common.get(own.key))
    if not offers and not pictures:
        discard()
        note("Nothing was kept.")
        return ""
    unknown = [own.path.name for own in offers if common.get(own.key) == 0]
    st.header(plain(f"3 · Keep in {collection}"))
    left, right = _place("keep").columns([5, 2], vertical_alignment="bottom")
    trained = _trained(engine, collection, offers, left)
    choices = {key: replace(own, trained=trained) for key, own in choices.items()}
    ready = _ready(offers, choices, unknown, replaced(engine.workspace, collection, offers))
    if not right.button("Keep", type="primary", width="stretch", key="keep", disabled=not ready):
        return ""
    taken = {own.path for own in offers}
    lost = {own.path.name: _why_left_out(own) for own in found if own.path not in taken}
    with errors():
        kept = _names(keep_offers(engine.workspace, collection, offers, choices))
        if pictures:
            item, refused = keep_uploaded(engine.workspace, checked_name(collection), pictures, tried=pictures)
            kept.append(f"{counted(item.rows, 'photograph')}{_refused(refused)}")
        forget()
        left_out = "; ".join(f"{name} ({why})" for name, why in lost.items())
        said = f" Left out: {left_out}." if lost else ""
        return f"Kept {', '.join(kept)} in the collection {collection}.{said}"
    return ""


def _photographs(paths: list[Path]) -> list[Path]:
    """Those photographs that can be read; each is tried once. What is wrong with the others is said."""
    known = st.session_state.setdefault(PREVIEWS, {})
    if any(path not in known for path in paths):
        with st.spinner(f"Reading {counted(len(paths), 'photograph')}"):
            known |= {path: photograph_fault(path) for path in paths if path not in known}
    good = [path for path in paths if known[path] is None]
    if good:
        note(f"{counted(len(good), 'photograph')}, named by image id.")
    for path in paths:
        if fault := known[path]:
            show_error(fault)
    return good


def _why_left_out(own: Offer) -> str:
    if not _said(own, "wanted", own.wanted):
        return "not ticked"
    return own.error.message if own.error else "its name cannot be used"


def _names(kept: list[Item]) -> list[str]:
    """What was kept, by name; what shares its name with another by its kind, too."""
    names = [item.name for item in kept]
    kinds = [f" ({KINDS[item.kind].lower()})" if names.count(item.name) > 1 else "" for item in kept]
    return [f"{name}{kind}" for name, kind in zip(names, kinds, strict=True)]


def _refused(reasons: Mapping[str, str]) -> str:
    return f" (left out: {'; '.join(reasons.values())})" if reasons else ""


def _place(key: str):
    """A place whose columns stand one below the other in a narrow window."""
    return st.container(key=f"stacks_{key}")


def _key(own: Offer, what: str) -> str:
    """A name of its own for a control of an offer; the same if the upload is written to disk anew."""
    return f"{what}_{place_of(own.path)}{'_beside' if own.beside else ''}"


def _said(own: Offer, what: str, otherwise):
    """What was chosen for an offer before this drawing."""
    return st.session_state.get(_key(own, what), otherwise)


def _row(own: Offer, number: int) -> Offer | None:
    """One offer, counted from 1: its kind, which can be changed, and its name; None where it is left out or broken."""
    left, middle, right, last = _place(_key(own, "row")).columns([3, 3, 3, 1.4], vertical_alignment="bottom")
    with left:
        st.markdown(f"**{plain(own.path.name)}**")
        note(_about(own))
    kinds = [own.kind] if own.beside else list(KINDS)
    place = kinds.index(own.kind) if own.kind else None
    title = f"What is file {number}?"
    middle.selectbox(title, kinds, place, format_func=KINDS.__getitem__, key=_key(own, "kind"))
    name = right.text_input("Name", own.name, key=_key(own, "name"))
    if not last.checkbox("Keep it", value=own.wanted, key=_key(own, "wanted")):
        return None
    if own.own.kind not in ("", own.kind) and not own.beside and not _read_well(own):
        _hint(own)
    if own.error:
        show_error(own.error)
        _columns(own)
        return None
    if place_of(own.path) in st.session_state.get(COLUMNS, {}):
        _columns(own)  # another may be chosen
    with errors():
        return replace(own, name=checked_name(name or own.name))
    return None


def _all_offered(engine: Engine, paths: list[Path], collection: str, photographs: bool) -> list[Offer]:
    """What the files are. Those whose images have no ids are read beside the human captions of the others.

    photographs: whether there are some among the files.
    """
    photographs |= bool(engine.workspace.items(IMAGES, collection))
    found = [own for path in paths for own in _offered(engine, path, collection, photographs)]
    references = references_among(found)
    if references is not None:
        by_rows = {own.path for own in found if own.own.by_rows}
        found = [own for own in found if own.path not in by_rows]
        found += [own for path in by_rows for own in _offered(engine, path, collection, photographs, references)]
    order = {path: place for place, path in enumerate(paths)}
    return choose_references(sorted(found, key=lambda own: order[own.path]), _kept_images(engine, collection))


def _offered(
    engine: Engine, path: Path, collection: str, photographs: bool, references: pd.DataFrame | None = None
) -> list[Offer]:
    """What the file is, read as what was chosen; read once for each choice. references: of the other files."""
    kind = st.session_state.get(f"kind_{place_of(path)}", "")
    columns = st.session_state.get(COLUMNS, {}).get(place_of(path), {})
    beside = None if references is None else hash(tuple(references["caption"]))
    asked = (path, collection, tuple(sorted(columns.items())), _held(engine, collection), beside)
    previews = st.session_state.setdefault(PREVIEWS, {})
    if (kind, *asked) not in previews:
        try:
            found = _read(path, offers_of, engine.workspace, path, collection, kind, columns, references)
        except CapbiasError as error:  # a limit, or what no reader says of a file
            found = [Offer(path, kind, Likely(kind, ""), suggested_name(path.stem), None, error)]
        previews[kind, *asked] = previews[found[0].kind, *asked] = found
    found = previews[kind, *asked]
    if not photographs or found[0].kind != OBJECTS or found[0].own.title != INSTANCES or not found[0].preview:
        return found
    if (SEGMENTS, "beside", *asked) not in previews:
        with suppress(CapbiasError):  # a limit; the objects were read
            previews[SEGMENTS, "beside", *asked] = _read(path, outlines_of, engine.workspace, path, collection)
    return [*found, *previews.setdefault((SEGMENTS, "beside", *asked), [])]


def _read(path: Path, read: Callable[..., list[Offer]], *given) -> list[Offer]:
    with st.spinner(f"Reading {path.name}{' once another file is read' * all_taken()}"):
        return within_limits(path.name, read, *given)


def _held(engine: Engine, collection: str) -> tuple:
    """What a collection holds, as far as a report on a file depends on it."""
    return tuple((item.kind, item.hash) for item in engine.workspace.items(collection=collection))


def _kept_images(engine: Engine, collection: str) -> dict[str, set[str]]:
    asked, previews = ("images", collection, _held(engine, collection)), st.session_state.setdefault(PREVIEWS, {})
    if asked not in previews:
        previews[asked] = kept_images(engine.workspace, collection)
    return previews[asked]


def _about(found: Offer) -> str:
    if found.preview is None:
        return "This file cannot be read as this kind." if found.kind else "This file cannot be read."
    report = found.preview.report
    counts = {"row": report["rows"], "image": len(found.images)}
    if report.problem_count:
        counts["problem"] = report.problem_count
    repeats = f", {counted(report['repeats'], 'repeat')} left out" if report["repeats"] else ""
    by = found.own.human_by if found.kind == HUMAN else ""
    named = f" Taken for human captions {by}." if by else ""
    return f"{found.own.title}: {', '.join(counted(count, what) for what, count in counts.items())}{repeats}.{named}"


def _read_well(own: Offer) -> bool:
    """Whether what looked like labels is captions in columns of other names: it was read as such, every row of it."""
    captions = own.own.kind == LABELS and own.kind in (GENERATED, HUMAN)
    return captions and own.preview is not None and not own.preview.report.problem_count


def _hint(own: Offer) -> None:
    left, right = st.columns([3, 2], vertical_alignment="center")
    with left:
        note(f"⚠ This looks like {KINDS[own.own.kind][0].lower()}{KINDS[own.own.kind][1:]}.")
    right.button(
        "Take it for that",
        key=_key(own, "switch"),
        on_click=st.session_state.update,
        args=({_key(own, "kind"): own.own.kind},),
    )


def _columns(own: Offer) -> None:
    """The columns to read, by name, of a file where they cannot be guessed; nothing for a file without columns."""
    if own.kind not in (GENERATED, HUMAN, LABELS):
        return
    try:
        found = within_limits(own.path.name, detect, own.path)
    except CapbiasError:
        return  # said already
    wanted = {"image_id": "Column of image ids", "caption": "Column of captions"}
    needed = ["image_id"] if own.kind == LABELS else list(wanted)
    if found.format in ("coco_results", "coco_captions") or all(found.guess.get(role) for role in needed):
        return
    options, chosen = list(found.columns), {}
    boxes = _place(_key(own, "columns_of")).columns(len(wanted))
    for box, (role, title) in zip(boxes, wanted.items(), strict=True):
        guess = found.guess.get(role)
        index = options.index(guess) if guess in options else None
        # A file with a column of captions holds captions, as with --caption-column.
        captions = {_key(own, "kind"): GENERATED} if role not in needed else {}
        chosen[role] = box.selectbox(
            title,
            options,
            index=index if role in needed else None,
            placeholder="Choose a column",
            key=_key(own, f"column_{role}"),
            on_change=st.session_state.update,
            args=(captions,),
        )
    said = st.session_state.setdefault(COLUMNS, {})
    chosen = {role: chosen[role] for role in needed}
    if all(chosen.values()) and chosen != said.get(place_of(own.path)):
        said[place_of(own.path)] = chosen
        st.rerun()


def _details(engine: Engine, own: Offer, known: int | None) -> Choices:
    """The report on a file, folded; what is to be said of it."""
    assert own.preview is not None
    if known is not None:
        note(f"{known:,} of {len(own.images):,} images are known to the other files or the collection.")
    for taken in own.preview.report.notes:
        note(f"{taken[0].upper()}{taken[1:]}.")
    for warning in own.preview.report.warnings:
        note(f"⚠ {warning}")
    with st.expander(f"Report on {plain(own.path.name)}"):
        left, right = _place(_key(own, "report")).columns([3, 2], gap="large")
        lines = pd.DataFrame(own.preview.report.lines(), columns=["", "what the file holds"])
        draw_table(lines, left, alt=f"Report on {own.path.name}", key=_key(own, "lines"), height="content")
        draw_table(own.preview.frame.head(8), right, alt="First rows as they will be kept", key=_key(own, "first"))
        written = _written(own) if own.kind == GENERATED else {}
    if own.kind == GENERATED:
        return Choices(written=written, sets=_sets(own))
    if own.kind != LABELS:
        return Choices()
    with st.expander(f"Which column of {plain(own.path.name)} is which attribute, and what each label becomes"):
        mapped, said, faults = _mapping(own, own_attributes.known(engine.workspace))
    for fault in faults:
        show_error(fault)
    for line in said:
        note(line)
    return Choices(attributes=mapped)


def _sets(own: Offer) -> str:
    """What several captions of an image are, asked where an image has several."""
    assert own.preview is not None
    if max(own.preview.report["captions_an_image"]) == 1:
        return SAMPLES
    options = [option for option in SETS if option != BY_PROMPT or own.preview.prompts]
    return st.radio(
        "Several captions of an image are", options, format_func=SET_TITLES.__getitem__, key=_key(own, "sets")
    )


def _written(own: Offer) -> dict[str, str]:
    """Who wrote a caption set and what was masked on the photographs; the name suggests both."""
    suggested, key = suggested_condition(own.name), _key(own, own.name)
    left, right = _place(_key(own, "written")).columns(2)
    captioner = left.text_input(
        "Captioner", suggested[0], key=f"captioner_{key}", help="Whose captions they are, whatever was masked."
    )
    condition = right.selectbox(
        "What was masked on the photographs",
        CONDITIONS,
        CONDITIONS.index(suggested[1]),
        format_func=TITLES.__getitem__,
        key=f"condition_{key}",
        help="The Masking page puts each metric against it.",
    )
    return {"captioner": captioner.strip(), "condition": condition}


def _mapping(own: Offer, known: dict[str, Attribute]) -> tuple[list[dict], list[str], list[CapbiasError]]:
    """Which column is which protected attribute, and what each label in it becomes; sentences on what is dropped, and
    what is wrong with what was chosen."""
    assert own.preview is not None
    note("Say what each label becomes. Images whose label is dropped take no part; nothing is dropped unseen.")
    mapped, said, faults, not_offered, frame = [], [], [], [], own.preview.frame
    guesses = guessed_columns(known.values(), frame)
    for column in [name for name in frame.columns if name != "image_id"]:
        counts, key = frame[column].value_counts(), _key(own, column)
        if len(counts) > MOST_LABELS or len(counts) < 2:
            labels = "every image has the same label" if len(counts) < 2 else f"{len(counts):,} different labels"
            not_offered.append(f"{column}: {labels}, so it is not offered as a protected attribute.")
            note(not_offered[-1])
            continue
        guess = guesses.get(column)
        options = [*known, f"its own: {column}", NOT_MAPPED]
        first = options.index(guess.name) if guess else len(options) - 1 if guesses else len(known)
        box, _ = _place(f"column_{key}").columns([2, 1])
        name = box.selectbox(plain(f"Column {column} is"), options, first, key=f"column_{key}")
        if name == NOT_MAPPED:
            continue
        try:
            attribute = known.get(name) or plain_attribute(column, _own_values(column, counts, key))
            mapped.append(mapping_details(attribute, column, _labels(column, counts, attribute, key)))
        except CapbiasError as error:
            faults.append(error)
            continue
        dropped = dropped_labels(frame, mapped[-1])
        lost = ", ".join(f"{raw or 'empty'} {count:,}" for raw, count in dropped.items()) or "none"
        left = len(frame) - sum(dropped.values())
        said.append(f"{attribute.title}, column {column}: {left:,} images kept; dropped: {lost}.")
    names = [own["attribute"]["name"] for own in mapped]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        said.append(f"Several columns are {' and '.join(twice)}: each is kept as a table, and they are compared below.")
    if not mapped:
        said += not_offered
    return mapped, said, faults


def _own_values(column: str, counts: pd.Series, key: str) -> tuple[str, ...]:
    labels = sorted(label for label in counts.index if label)
    return tuple(st.multiselect(plain(f"Values of {column}"), labels, list(values_among(labels)), key=f"values_{key}"))


def _labels(column: str, counts: pd.Series, attribute: Attribute, key: str) -> dict[str, str | None]:
    """One box a raw label, with a suggestion."""
    suggested = suggest_mapping(attribute, counts.index)
    options = [*attribute.values, DROP]
    places = _place(f"labels_{key}")
    rows = [places.columns(A_ROW) for _ in range(0, len(counts), A_ROW)]
    mapping: dict[str, str | None] = {}
    for place, (raw, count) in enumerate(counts.items()):
        chosen = rows[place // A_ROW][place % A_ROW].selectbox(
            plain(f"{raw or 'empty'} ({count:,} images)"),
            options,
            options.index(suggested[raw] or DROP),
            key=f"label_{key}_{attribute.name}_{raw}",
        )
        mapping[raw] = None if chosen == DROP else chosen
    return mapping


def _trained(engine: Engine, collection: str, offers: list[Offer], place) -> bool | None:
    """Whether the models learned from the human captions, asked where both are there; None for not known."""
    human = any(own.kind == HUMAN for own in offers) or engine.workspace.items("references", collection)
    if not human or not any(own.kind == GENERATED for own in offers):
        return None
    said = place.segmented_control(
        "Were the models trained on these human captions?",
        list(TRAINED),
        default="not known",
        required=True,
        help="Only a model that learned from the references can be said to amplify their bias; for others the page "
        "says that it differs from the human captions.",
    )
    return TRAINED[said]


def _ready(offers: list[Offer], choices: Mapping[tuple, Choices], unknown: list[str], gone: list[str]) -> bool:
    """Whether the files can be kept as they stand; what is in the way is said. gone: names of what they replace."""
    without = [own.path.name for own in offers if own.kind == LABELS and not choices[own.key].attributes]
    if without:
        note(f"⚠ No column of {', '.join(without)} is a protected attribute yet, so it cannot be kept.")
    ready = not without
    if unknown:
        note(f"⚠ No image id of {', '.join(unknown)} is known to the other files or the collection.")
        ready &= st.checkbox("Keep them although their image ids match nothing", key=f"sure_{'_'.join(unknown)}")
    if gone:
        note(f"⚠ Other files called {', '.join(gone)} are kept already. Their results go, too; a new name keeps both.")
        ready &= st.checkbox(f"Replace {', '.join(gone)}", key=f"replace_{'_'.join(gone)}")
    if twice := same_names(offers):
        note(f"⚠ Several files would be called {', '.join(twice)}. Give each a name of its own.")
        ready = False
    return ready


def forget() -> None:
    """The files are kept or gone."""
    discard()
    for own in (PREVIEWS, COLUMNS):
        st.session_state.pop(own, None)

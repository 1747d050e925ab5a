"""The tab Attributes of Data: read an attribute, copy it, edit it, try its words on saved captions, save it."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pandas as pd
import streamlit as st

from capbias_core.attributes import AttributeFile, attribute_files, parse_attribute
from capbias_core.attributes.form import Fields, fields_of, renamed, with_fields
from capbias_core.errors import CapbiasError
from capbias_core.runs.engine import Engine
from capbias_core.types import Attribute
from capbias_core.views.labels import attribute_lines, examples_table, lines_block, trial_row, words_text
from capbias_core.workspace.custom_attributes import SOURCE, attribute_folder, delete, keep, owner_of
from capbias_core.workspace.labels import tables_with
from capbias_core.workspace.people import may_change
from capbias_core.workspace.store import Workspace
from pages.ui import cached, view
from pages.ui.bar import Bar
from pages.ui.base import attribute_names, delete_button, deleted, errors, note, plain, show_error
from pages.ui.table import draw_table

NEW = "new attribute"
EMPTY = """\
name = "my attribute"
title = "my attribute (who labelled it, which values)"
values = ["first value", "second value"]
mask_token = "<mask>"
columns = ["my_column"]
note = "Say what the labels cannot say."

# The words by which captions name each value; they are masked. Leave [words] empty where captions do not name it.
[words]
"first value" = []
"second value" = []
"""


def attributes_tab(bar: Bar) -> None:
    engine = bar.engine
    deleted()
    if said := view.told("attribute_said"):
        st.success(plain(said))
        view.link(st, "pages/1_Data.py", "Load a table of labels", ":material/upload:", tab="Files")
    note(
        "An attribute lists the values to compare and the words that name each value. These words are masked before an "
        "attacker reads a caption. To change one, edit it and save it under a new name."
    )
    chosen, text = _editor(engine)
    left, right, _ = st.columns([1, 1, 4])
    if left.button("Check", type="primary", width="stretch", key="check"):
        st.session_state["checked"] = text
    if st.session_state.get("checked") != text:
        right.empty()
        note("Check shows mistakes, and which of the words occur in your captions.")
    else:
        _checked(engine, text, right)
    _kept(engine, chosen)


def _editor(engine: Engine) -> tuple[AttributeFile | None, str]:
    """The attribute that was chosen, None for a new one, and the text as edited."""
    every = attribute_files(attribute_folder(engine.workspace))
    files = {one.path.name if one.fault else one.name: one for one in every}
    if kept := st.session_state.get("attribute_kept"):
        view.choose("pick", kept)
        del st.session_state["attribute_kept"]

    left, right = st.columns([1, 2], vertical_alignment="bottom")
    held = attribute_names(engine.workspace.items("attributes", view.query().get("collection")))
    own = next((name for name in held if name in files), None)
    name = view.selectbox(left, "Start from", [*files, NEW], key="pick", default=own, missing="the attribute")
    chosen = files.get(name)
    with right:
        if chosen and chosen.fault:
            show_error(chosen.fault)
        elif chosen and chosen.shipped:
            note(f"{name} comes with capbias and cannot be changed. Save an edited copy under another name.")
    start = _text(chosen.path) if chosen else EMPTY
    # The text in the key: what is kept under the name meanwhile is shown, and an edit is not lost before.
    key = f"toml_{name}_{hash(start)}"
    text = st.session_state.setdefault(key, start)
    _form(key, text)
    with st.expander("Edit as TOML"):
        edited = st.text_area("The attribute, as TOML", text, key=key, height=420, on_change=_begin_anew, args=(key,))
    return chosen, edited or ""


def _form(key: str, text: str) -> None:
    """The fields of the text. A change of one is written into the text, and a change of the text into them."""
    try:
        own = fields_of(text, SOURCE)
    except CapbiasError:
        note("⚠ The TOML below cannot be read, so there is no form. Check says what is wrong.")
        return
    round_ = f"{key}_{st.session_state.setdefault(f'round_{key}', 0)}"
    shown: dict[str, str] = {}

    def field(place, draw: str, title: str, what: str, value: str, **more) -> None:
        own_key = shown[what] = f"{what}_{round_}"
        value = st.session_state.setdefault(own_key, value)
        getattr(place, draw)(title, value, key=own_key, on_change=_write, args=(key, shown, own), **more)

    left, right = st.container(key="stacks_form").columns(2, gap="large")
    field(left, "text_input", "Name", "name", own.name)
    field(right, "text_input", "Title", "title", own.title, help="As pages show it: who labelled it, which values.")
    field(left, "text_area", "Values, one per line", "values", "\n".join(own.values), height=100)
    field(right, "text_area", "Note", "note", own.note, height=100, help="What the labels cannot say.")
    field(left, "text_input", "Mask token", "mask_token", own.mask_token, help="Stands for each word below.")
    columns = "Commas between. A table's column of this name is taken for the attribute."
    field(right, "text_input", "Columns of labels", "columns", ", ".join(own.columns), help=columns)
    for number, (value, words) in enumerate(zip(own.values, own.words, strict=True)):
        title = f"Words that name {plain(value)}"
        place = (left, right)[number % 2]
        help_ = "Single words, commas between. They are masked. None, where captions do not name the value."
        field(place, "text_area", title, f"words_{number}_{value}", ", ".join(words), height=110, help=help_)


def _write(key: str, shown: dict[str, str], before: Fields) -> None:
    """Write the fields, as they were drawn and one of them changed, into the text."""
    given = {what: st.session_state[own] for what, own in shown.items()}
    values = tuple(value.strip() for value in given["values"].splitlines() if value.strip())
    words = [_listed(text) for what, text in given.items() if what.startswith("words_")]
    now = renamed(before.values, values)
    kept = {now.get(value, value): own for value, own in zip(before.values, words, strict=True)}
    fields = Fields(
        given["name"].strip(),
        given["title"].strip(),
        values,
        tuple(kept.get(value, ()) for value in values),
        given["mask_token"].strip(),
        _listed(given["columns"]),
        given["note"].strip(),
    )
    st.session_state[key] = with_fields(st.session_state[key], fields)
    if fields_of(st.session_state[key], SOURCE) != fields:  # such as the title, which follows the name
        _begin_anew(key)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (word.strip() for word in re.split(r"[,\n]", text))))


def _begin_anew(key: str) -> None:
    """The fields are those of the text, as it was changed."""
    st.session_state[f"round_{key}"] += 1


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _checked(engine: Engine, text: str, place) -> None:
    """What the text holds and finds, and the button that keeps it; or the one error."""
    try:
        attribute = parse_attribute(text, SOURCE)
    except CapbiasError as error:
        show_error(error)
        note("Nothing was saved.")
        return
    if place.button("Save", width="stretch", key="keep_attribute"):
        with errors():
            keep(engine.workspace, text)
            st.session_state["attribute_kept"] = attribute.name
            st.session_state["attribute_said"] = f"Saved {attribute.name}. Map a column to it in the tab Files" + (
                ", or derive its labels in the tab Labels." if attribute.derived else "."
            )
            st.rerun()
    st.html(lines_block(attribute_lines(attribute)))
    _tried(engine, attribute)


def _tried(engine: Engine, attribute: Attribute) -> None:
    """The words of the attribute in every kept caption set."""
    st.header("Words in your captions")
    items = [item for item in engine.workspace.items() if item.kind in ("captions", "references")][::-1]
    if not attribute.masked_words:
        note("The attribute has no words, so nothing is masked.")
        return
    if not items:
        note("Load captions in the tab Files to try the words on them.")
        return
    found = [(item, cached.trial(str(engine.folder), item, attribute)) for item in items]
    rows = [{"captions of": item.name, "collection": item.collection} | trial_row(trial) for item, trial in found]
    draw_table(pd.DataFrame(rows), alt="Captions that name each value")
    left, _ = st.columns([1, 2])
    place = left.selectbox(
        "Words and examples of",
        range(len(found)),
        key="tried",
        format_func=lambda place: f"{found[place][0].name} ({found[place][0].collection})",
    )
    trial = found[place][1]
    note(f"Words found, with the number of captions: {words_text(trial)}.")
    draw_table(examples_table(trial), alt="Captions as written and as an attacker reads them")


def _kept(engine: Engine, chosen: AttributeFile | None) -> None:
    """For an attribute of the user's own: who uses it, and a button that deletes it."""
    if chosen is None or chosen.shipped:
        return
    st.divider()
    tables = tables_with(engine.workspace.items("attributes"), chosen.name) if chosen.attribute else []
    if tables:
        names = ", ".join(f"{item.name} in {item.collection}" for item in tables)
        note(f"Used by {names}. These tables keep the words they were saved with; after an edit, load them again.")
    if not may_change(owner_of(chosen.path), engine.workspace.folder):
        note("Only the owner can change this.")
        return
    told = f"Deletes {chosen.path.name} from the workspace. Finished results do not change."
    delete_button(chosen.name, told, partial(_delete, engine.workspace, chosen, _text(chosen.path)))


def _delete(workspace: Workspace, chosen: AttributeFile, text: str) -> None:
    """text: as it was shown."""
    if chosen.path.is_file() and _text(chosen.path) != text:
        raise CapbiasError(f"{chosen.name} has changed since it was shown.", "Reload the page.")
    delete(workspace, chosen.path)
    st.session_state["attribute_kept"] = "gender"

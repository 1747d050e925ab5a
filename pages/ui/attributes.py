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
from capbias_core.types import Attribute
from capbias_core.views.labels import attribute_lines, examples_table, lines_block, trial_row, words_text
from capbias_core.workspace.custom_attributes import SOURCE, attribute_folder, delete, keep, owner_of
from capbias_core.workspace.labels import tables_with
from capbias_core.workspace.people import may_change
from capbias_core.workspace.store import Workspace
from pages.ui import cached, view
from pages.ui.bar import Bar, attribute_names
from pages.ui.base import delete_button, errors, note, plain, show_deletion, show_error
from pages.ui.drawing import draw_table

NEW = "new attribute"
NEXT = "attribute_to_pick"  # in the session: what the last action saved, or shows instead of what it deleted
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
    show_deletion()
    if text := view.pop_message("attribute_saved"):
        st.success(plain(text))
        view.link(st, "pages/1_Data.py", "Load a table of labels", ":material/upload:", tab="Files")
    note(
        "An attribute lists the values to compare and the words that name each value. These words are masked before an "
        "attacker reads a caption. To change one, edit it and save it under a new name."
    )
    file, toml = _editor(bar)
    left, right, _ = st.columns([1, 1, 4])
    if left.button("Check", type="primary", width="stretch", key="check"):
        st.session_state["checked"] = toml
    if st.session_state.get("checked") != toml:
        right.empty()
        note("Check shows mistakes, and which of the words occur in your captions.")
    else:
        _checked(bar, toml, right)
    if file and not file.shipped:
        _stored(bar, file)


def _editor(bar: Bar) -> tuple[AttributeFile | None, str]:
    """The attribute that was chosen, None for a new one, and its TOML as edited."""
    files = {
        file.path.name if file.fault else file.name: file for file in attribute_files(attribute_folder(bar.workspace))
    }
    if name := st.session_state.pop(NEXT, ""):
        view.choose("pick", name)
    left, right = st.columns([1, 2], vertical_alignment="bottom")
    default = next((name for name in attribute_names(bar.items("attributes")) if name in files), None)
    name = view.selectbox(left, "Start from", [*files, NEW], key="pick", default=default, missing="the attribute")
    file = files.get(name)
    with right:
        if file and file.fault:
            show_error(file.fault)
        elif file and file.shipped:
            note(f"{name} comes with capbias and cannot be changed. Save an edited copy under another name.")
    start = _text(file.path) if file else EMPTY
    # The key has the text: what was saved under the name meanwhile is shown, and an edit is not lost before.
    key = f"toml_{name}_{hash(start)}"
    toml = st.session_state.setdefault(key, start)
    _form(key, toml)
    with st.expander("Edit as TOML"):
        edited = st.text_area("The attribute, as TOML", toml, key=key, height=420, on_change=_new_fields, args=(key,))
    return file, edited or ""


def _form(key: str, toml: str) -> None:
    """The fields of the TOML. A change of one is written into the TOML, and a change of the TOML into them."""
    try:
        fields = fields_of(toml, SOURCE)
    except CapbiasError:
        note("⚠ The TOML below cannot be read, so there is no form. Check says what is wrong.")
        return
    round_ = st.session_state.setdefault(f"round_{key}", 0)
    keys: dict[str, str] = {}  # of the fields, by name

    def field(place, draw: str, title: str, name: str, value: str, **more) -> None:
        keys[name] = f"{name}_{key}_{round_}"
        value = st.session_state.setdefault(keys[name], value)
        getattr(place, draw)(title, value, key=keys[name], on_change=_write, args=(key, keys, fields), **more)

    left, right = st.container(key="stacks_form").columns(2, gap="large")
    field(left, "text_input", "Name", "name", fields.name)
    field(right, "text_input", "Title", "title", fields.title, help="As pages show it: who labelled it, which values.")
    field(left, "text_area", "Values, one per line", "values", "\n".join(fields.values), height=100)
    field(right, "text_area", "Note", "note", fields.note, height=100, help="What the labels cannot say.")
    field(left, "text_input", "Mask token", "mask_token", fields.mask_token, help="Stands for each word below.")
    columns = "Commas between. A table's column of this name is taken for the attribute."
    field(right, "text_input", "Columns of labels", "columns", ", ".join(fields.columns), help=columns)
    for number, (value, words) in enumerate(zip(fields.values, fields.words, strict=True)):
        title = f"Words that name {plain(value)}"
        place = (left, right)[number % 2]
        help_ = "Single words, commas between. They are masked. None, where captions do not name the value."
        field(place, "text_area", title, f"words_{number}_{value}", ", ".join(words), height=110, help=help_)


def _write(key: str, keys: dict[str, str], before: Fields) -> None:

    def listed(text: str) -> tuple[str, ...]:
        return tuple(filter(None, (word.strip() for word in re.split(r"[,\n]", text))))

    texts = {name: st.session_state[field] for name, field in keys.items()}
    values = tuple(value.strip() for value in texts["values"].splitlines() if value.strip())
    words = [listed(text) for name, text in texts.items() if name.startswith("words_")]
    new_names = renamed(before.values, values)
    words_of = {new_names.get(value, value): of_value for value, of_value in zip(before.values, words, strict=True)}
    fields = Fields(
        texts["name"].strip(),
        texts["title"].strip(),
        values,
        tuple(words_of.get(value, ()) for value in values),
        texts["mask_token"].strip(),
        listed(texts["columns"]),
        texts["note"].strip(),
    )
    st.session_state[key] = with_fields(st.session_state[key], fields)
    if fields_of(st.session_state[key], SOURCE) != fields:  # such as the title, which follows the name
        _new_fields(key)


def _new_fields(key: str) -> None:
    """Draw the fields anew, from the TOML as it was changed."""
    st.session_state[f"round_{key}"] += 1


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _checked(bar: Bar, toml: str, place) -> None:
    """The attribute, how often its words occur, and the button that saves it; or the one error."""
    try:
        attribute = parse_attribute(toml, SOURCE)
    except CapbiasError as error:
        show_error(error)
        note("Nothing was saved.")
        return
    if place.button("Save", width="stretch", key="keep_attribute"):
        with errors():
            keep(bar.workspace, toml)
            st.session_state[NEXT] = attribute.name
            st.session_state["attribute_saved"] = f"Saved {attribute.name}. Map a column to it in the tab Files" + (
                ", or derive its labels in the tab Labels." if attribute.derived else "."
            )
            st.rerun()
    st.html(lines_block(attribute_lines(attribute)))
    _trials(bar, attribute)


def _trials(bar: Bar, attribute: Attribute) -> None:
    st.header("Words in your captions")
    items = [item for item in bar.workspace.items() if item.kind in ("captions", "references")][::-1]
    if not attribute.masked_words:
        note("The attribute has no words, so nothing is masked.")
        return
    if not items:
        note("Load captions in the tab Files to try the words on them.")
        return
    trials = [cached.trial(bar.folder, item, attribute) for item in items]
    rows = [
        {"captions of": item.name, "collection": item.collection} | trial_row(trial)
        for item, trial in zip(items, trials, strict=True)
    ]
    draw_table(pd.DataFrame(rows), alt="Captions that name each value")
    left, _ = st.columns([1, 2])
    index = left.selectbox(
        "Words and examples of",
        range(len(items)),
        key="tried",
        format_func=lambda index: f"{items[index].name} ({items[index].collection})",
    )
    note(f"Words found, with the number of captions: {words_text(trials[index])}.")
    draw_table(examples_table(trials[index]), alt="Captions as written and as an attacker reads them")


def _stored(bar: Bar, file: AttributeFile) -> None:
    """For an attribute of the workspace: who uses it, and a button that deletes it."""
    st.divider()
    if tables := tables_with(bar.workspace.items("attributes"), file.name) if file.attribute else []:
        names = ", ".join(f"{item.name} in {item.collection}" for item in tables)
        note(f"Used by {names}. These tables keep the words they were saved with; after an edit, load them again.")
    if not may_change(owner_of(file.path), bar.workspace.folder):
        note("Only the owner can change this.")
        return
    text = f"Deletes {file.path.name} from the workspace. Finished results do not change."
    delete_button(file.name, text, partial(_delete, bar.workspace, file, _text(file.path)))


def _delete(workspace: Workspace, file: AttributeFile, toml: str) -> None:
    """toml: as it was shown."""
    if file.path.is_file() and _text(file.path) != toml:
        raise CapbiasError(f"{file.name} has changed since it was shown.", "Reload the page.")
    delete(workspace, file.path)
    st.session_state[NEXT] = "gender"

"""The tab Labels of Data: labels derived from captions, two tables of labels compared, two attributes combined."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from capbias_core.attributes import attribute_folder, known_attributes
from capbias_core.prepare.labels import LEAST, parts_of, with_rule
from capbias_core.types import PRECEDENCE, Attribute, Derivation
from capbias_core.views import labels as label_views
from capbias_core.workspace.derived import Derived, as_derived, cross, derive, keep_crossed, keep_derived
from capbias_core.workspace.labels import table_with
from capbias_core.workspace.store import Item
from pages.ui import controls
from pages.ui.base import SAVED, box, errors, note, once, show_messages
from pages.ui.page import Page
from pages.ui.plain import plain
from pages.ui.show import frame_table

CONFLICTS = {"drop": "leave unlabelled", "majority": "use the majority", PRECEDENCE: "use the first value"}


def labels_tab(page: Page) -> None:
    show_messages()
    items = page.workspace.items(collection=page.collection) if page.collection else []
    if not {"references", "labels"} & {item.kind for item in items}:
        box("Nothing to show yet.", "Load human captions or a table of labels first, in the tab Files.")
        return
    _derive(page)
    _compare(page)
    _combine(page)


def _derive(page: Page) -> None:
    """Labels from the words of human captions: their counts, and only then a button that saves them."""
    human = page.items("references")[::-1]
    if not human:
        return
    st.header("Labels from human captions")
    attributes = known_attributes(attribute_folder(page.workspace.folder))
    rules = {name: attribute for name, attribute in attributes.items() if attribute.derived}
    left, right = st.container(key="controls_derive").columns(2, gap="large")
    index = left.selectbox(
        "Human captions",
        range(len(human)),
        key="derive_from",
        format_func=lambda index: f"{human[index].name} ({human[index].images:,} images)",
    )
    references = human[index]
    name = right.selectbox("Attribute", sorted(rules, key="gender".__ne__), key="derive_attribute")
    left, right = st.container(key="controls_rule").columns(2, gap="large")
    default = rules[name].derived or Derivation()
    at_least = left.number_input(
        "Minimum captions naming the value",
        1,
        max(10, default.at_least),
        default.at_least,
        key=f"least_{name}",
        help="Of the human captions of an image.",
    )
    options = [option for option in CONFLICTS if option != PRECEDENCE or default.precedence]
    first = options.index(default.both)
    both = right.selectbox(
        "Conflicting captions", options, first, format_func=CONFLICTS.__getitem__, key=f"both_{name}"
    )
    rule = with_rule(rules[name], at_least, None if both == PRECEDENCE else both)
    if st.button(f"Derive {plain(name)} labels from these captions", key="derive"):
        st.session_state["deriving"] = (references.hash, name)
    if st.session_state.get("deriving") == (references.hash, name):
        with errors():
            _derived(page, references, rule)


def derived_labels(page: Page, references: Item, attribute: Attribute) -> Derived:
    """Labels of an attribute by the words of stored human captions."""
    key = repr((page.folder, references.hash, attribute, attribute.derived))
    return once(key, lambda: derive(page.workspace, references, attribute))


def _derived(page: Page, references: Item, attribute: Attribute) -> None:
    labels, name = derived_labels(page, references, attribute), attribute.name
    left, right = st.columns(2, gap="large")
    counts = {**labels.counts, labels.without: labels.neither}
    table = pd.DataFrame({"label": list(counts), "images": list(counts.values())})
    table["share"] = [f"{count / max(len(labels.frame), 1):.0%}" for count in counts.values()]
    with left:
        frame_table(table)
        note("Images without a label are left out.")
    with right:
        note(as_derived(labels.attribute).note)
        if st.button(f"Save these {plain(name)} labels", type="primary", key="keep_derived"):
            item = keep_derived(page.workspace, labels)
            del st.session_state["deriving"]
            st.session_state[SAVED] = (
                f"Saved {item.name} in {item.collection}. Choose {name} as the attribute on Scores."
            )
            st.rerun()


def _compare(page: Page) -> None:
    """How far two tables of labels agree, and where they differ; nothing if there is one."""
    by_attribute = label_views.tables_of(page.workspace, page.collection)
    if not by_attribute:
        return
    st.header("Compare two tables of labels")
    left, middle, right = st.container(key="stacks_agreement").columns(3)
    name = controls.selectbox(left, "Attribute", by_attribute, key="compared")
    tables = {table.name: table for table in by_attribute[name]}
    first = controls.selectbox(middle, "Table", tables, key="compared_table")
    second = controls.selectbox(right, "with", [table for table in tables if table != first], key="compared_with")
    with errors():
        work = partial(label_views.compared, page.workspace, name, tables[first], tables[second])
        agreement = once(repr((page.folder, page.workspace.version(), name, first, second)), work)
        st.text(label_views.agreement_line(agreement, name, first, second))
        note(label_views.OTHERS)
        frame_table(label_views.counts_table(agreement, first))
        box = st.expander(f"Where they differ ({len(agreement.differ):,} images)", key="differ", on_change="rerun")
        if box.open:
            frame_table(agreement.differ.rename(columns={"one": first, "other": second}), box)


def _combine(page: Page) -> None:
    """Two attributes as one, with the images of each group in sight before it is saved; nothing if there is one."""
    tables = page.items("labels")
    names = [name for name in page.attributes if parts_of(name) is None]
    if len(names) < 2:
        return
    st.header("Combine attributes")
    left, right = st.container(key="stacks_crossing").columns(2, gap="large")
    first = controls.selectbox(left, "Attribute", names, key="cross")
    second = controls.selectbox(right, "with", [name for name in names if name != first], key="cross_with")
    with_either = [table.name for table in tables if {first, second} & table.details["attributes"].keys()]
    table = controls.selectbox(
        left,
        "Table of labels",
        with_either,
        default=table_with(tables, first).name,
        key="cross_table",
        help="For an attribute that this table lacks, the newest imported table is used.",
    )
    with errors():
        work = partial(cross, page.workspace, page.collection, first, second, table)
        crossed = once(repr((page.folder, page.workspace.version(), first, second, table)), work)
        counts = pd.DataFrame({"group": list(crossed.counts), "images": list(crossed.counts.values())})
        if crossed.refused:
            counts[""] = ["too few images" if group in crossed.refused else "" for group in crossed.counts]
        frame_table(counts)
        note(f"Labels from {crossed.source}. Each group needs {LEAST} labelled images.")
        if len(crossed.counts) - len(crossed.refused) < 2:
            note("Fewer than two groups are large enough. Score the attributes separately.")
        elif st.button(f"Save {plain(crossed.name)}", key="keep_crossed"):
            item = keep_crossed(page.workspace, page.collection, crossed)
            st.session_state[SAVED] = f"Saved {item.name}. Choose it as the attribute on Scores."
            st.rerun()

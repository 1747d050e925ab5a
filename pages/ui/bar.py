"""The bar at the top of all pages: collection, attribute, labels, human captions, captioner, and Measured with.

It has no other controls: what a tab needs besides is in the tab. A choice made here holds on all pages (`view`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from capbias_core.kinds import PHOTOGRAPHS
from capbias_core.runs.demo import run_demo
from capbias_core.runs.engine import Engine
from capbias_core.views.results import first_attribute
from capbias_core.workspace.ingest import DEMO
from capbias_core.workspace.labels import tables_with
from capbias_core.workspace.objects import object_sources, usual_objects
from capbias_core.workspace.store import Item, Workspace, human_sets
from pages.ui import cached, view
from pages.ui.base import box, errors
from pages.ui.plain import plain

NOBODY = "none"
MEASURED_WITH = "Measured with"
LABELS = "labels (a table with an image ID and one column per attribute)"


@dataclass(frozen=True)
class Bar:
    """Draws the controls of the bar. collection: '' if nothing is loaded. container: that of the bar."""

    engine: Engine
    collection: str
    container: DeltaGenerator

    @property
    def workspace(self) -> Workspace:
        return self.engine.workspace

    @property
    def folder(self) -> str:
        return str(self.engine.folder)

    def items(self, kind: str) -> list[Item]:
        """The items of a kind in the collection, the oldest first."""
        return self.workspace.items(kind, self.collection)

    def photographs(self) -> Item | None:
        """The collection's photographs as they are; None if it has none."""
        return next((item for item in self.items(PHOTOGRAPHS) if "condition" not in item.details), None)

    def attribute(self, names: Iterable[str], unfit: Mapping[str, str] = MappingProxyType({})) -> str:
        """One of these protected attributes; '' if there are none. unfit: why another one cannot be chosen here."""
        names = list(names)
        if not names:
            return ""
        work = partial(first_attribute, self.workspace, self.collection)
        first = cached.of_collection(self.workspace, self.collection, "first attribute", work)
        return view.selectbox(
            self.container,
            "Attribute",
            names,
            default=first if first in names else None,
            key="attribute",
            missing="the attribute",
            unfit=unfit,
        )

    def labels(self, attribute: str) -> Item:
        """The table of labels for an attribute; a control only if there are several."""
        by_name = {table.name: table for table in tables_with(self.items("labels"), attribute)}
        chosen = view.selectbox(
            self.container,
            "Labels",
            list(by_name),
            default=cached.tables_read(self.workspace, self.collection)[attribute].name,
            key="table",
            missing="the table of labels",
            shown=len(by_name) > 1,
            help=f"Several tables of this collection have labels for {plain(attribute)}.",
        )
        return by_name[chosen]

    def references(self, attribute: str, optional: bool = False, **more) -> Item | None:
        """The human captions to compare with; a control only if there is a choice.

        optional: whether the page works without. If it does not, and `none` was chosen on another page, a line says so
        and the choice is kept.
        """
        by_name = {item.name: item for item in human_sets(self.workspace, self.collection)}
        default = cached.references_read(self.workspace, self.collection).get(attribute)
        chosen = view.selectbox(
            self.container,
            "Human captions",
            [*by_name, *([NOBODY] if optional else [])],
            default=default.name if default else None,
            key="references",
            missing="the human captions",
            shown=optional or len(by_name) > 1,
            unfit={} if optional else {NOBODY: "You chose no human captions. They are needed here."},
            **more,
        )
        return by_name.get(chosen)

    def objects(self, table: Item, container: Any = st) -> str:
        """The source of the objects of images, '' without any; a control, within the tab, only if there are several."""
        sources = list(object_sources(self.workspace, self.collection, table))
        if not sources:
            return ""
        return view.selectbox(
            container,
            "Objects of images",
            sources,
            default=usual_objects(self.workspace, self.collection, table)[0],
            key="objects_of",
            missing="the objects",
            shown=len(sources) > 1,
            help="Several files of this collection list the objects on its images.",
        )

    def captioner(
        self, names: Sequence[str], default: str | None = None, unfit: Mapping[str, str] = MappingProxyType({})
    ) -> str:
        """One of these caption sets; opens on the one that the answer is about unless a default is given. unfit: why
        another one cannot be chosen here."""
        first = default or cached.answering(self.workspace, self.collection, names)
        return view.selectbox(
            self.container, "Captioner", names, default=first, key="captioner", missing="the captioner", unfit=unfit
        )

    def measured_with(self, options: Mapping[str, Mapping[str, Any]], titles: Mapping[str, str], **more) -> str:
        """One of several settings of measured results. options: name -> the choices it stands for, by key."""
        return view.linked_selectbox(
            self.container, MEASURED_WITH, options, titles, key="measured_with", missing="the settings", **more
        )


def attribute_names(tables: Iterable[Item]) -> list[str]:
    """The protected attributes of tables of labels, each once."""
    return list(dict.fromkeys(name for item in tables for name in item.details["attributes"]))


# What to do where there is nothing to show


def captions_and_labels(bar: Bar, labels: str = LABELS) -> tuple[list[str], list[Item]] | None:
    """Names of the caption sets, and the tables of labels; None if one is missing, and what to do next is shown."""
    if not bar.collection:
        empty_state(bar, "No captions are loaded yet.")
        return None
    sets, tables = [item.name for item in bar.items("captions")], bar.items("labels")
    if not sets or not attribute_names(tables):
        lacking(bar, labels if sets else "captions of a model")
        return None
    return sets, tables


def lacking(bar: Bar, what: str) -> None:
    """What the collection lacks, and what to do next."""
    box("Nothing to show yet.", f"Add {what} to “{bar.collection}” to see results here.")
    buttons = st.container(horizontal=True)
    if buttons.button("Add data", type="primary", icon=":material/upload:"):
        view.go("pages/1_Data.py")
    demo_button(buttons, bar.engine, type="secondary")


def empty_state(bar: Bar, text: str) -> None:
    """What to do if nothing is loaded: the demo in one click, or captions of the visitor."""
    box("Nothing to show yet.", text)
    buttons = st.container(horizontal=True)
    demo_button(buttons, bar.engine, width="stretch")
    if buttons.button("Load my captions"):
        view.go("pages/1_Data.py")


def demo_button(container, engine: Engine, type: Literal["primary", "secondary"] = "primary", **more) -> None:
    """One click that loads the demo data, starts its runs and shows the front page."""

    @errors()
    def start() -> None:  # before the page is drawn, so that the collection can be chosen
        run_demo(engine)
        view.choose("collection", DEMO)

    if container.button("Try it on the demo data", type=type, key="demo", on_click=start, **more):
        view.go("app.py", collection=DEMO)

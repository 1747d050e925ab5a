"""The bar at the top of every page: collection, attribute, labels, human captions, captioner, settings, and the runs.

A choice made here holds on every page: `view` shares the keys of these controls between pages and keeps them in the
address.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from capbias_core.runs.engine import Engine
from capbias_core.views.results import first_attribute
from capbias_core.workspace.labels import tables_with
from capbias_core.workspace.store import Item, Workspace, human_sets
from pages.ui import cached, view
from pages.ui.base import workspace_engine
from pages.ui.frame import frame
from pages.ui.running import progress
from pages.ui.runs import runs_dialog

NOBODY = "none"
# Control for a choice among what was measured with the attribute and the labels of the bar.
MEASURED_WITH = "measured_with"


@dataclass(frozen=True)
class Bar:
    """Draws the controls of the bar. collection: '' if nothing is loaded. place: the container of the bar."""

    engine: Engine
    collection: str
    place: DeltaGenerator

    @property
    def workspace(self) -> Workspace:
        return self.engine.workspace

    def attribute(self, names: Iterable[str], unfit: Mapping[str, str] = MappingProxyType({})) -> str:
        """One of these protected attributes; '' if there are none. unfit: why another one cannot be chosen here."""
        names = list(names)
        if not names:
            return ""
        work = partial(first_attribute, self.workspace, self.collection)
        first = cached.of_collection(self.workspace, self.collection, "first attribute", work)
        return view.selectbox(
            self.place,
            "Attribute",
            names,
            default=first if first in names else None,
            key="attribute",
            missing="the attribute",
            unfit=unfit,
            follows=True,
        )

    def labels(self, attribute: str) -> Item:
        """The table of labels for an attribute; a control only if there are several."""
        tables = tables_with(self.workspace.items("attributes", self.collection), attribute)
        by_name = {table.name: table for table in tables}
        chosen = view.selectbox(
            self.place,
            "Labels",
            list(by_name),
            default=cached.tables_read(self.workspace, self.collection)[attribute].name,
            key="table",
            missing="the table of labels",
            shown=len(by_name) > 1,
            help=f"Several tables of this collection have labels for {attribute}.",
        )
        return by_name[chosen]

    def labels_of_each(self, attributes: Sequence[str]) -> dict[str, Item]:
        """`labels` of the first attribute; the same table for each other attribute that it has, else the usual one."""
        if not attributes:
            return {}
        first = self.labels(attributes[0])
        usual = cached.tables_read(self.workspace, self.collection)
        return {name: first if name in first.details["attributes"] else usual[name] for name in attributes}

    def references(self, attribute: str, optional: bool = False, **more) -> Item | None:
        """The human captions to compare with; a control only if there is a choice.

        optional: whether the page works without. If it does not, and `none` was chosen on another page, a line says so
        and the choice is kept.
        """
        by_name = {item.name: item for item in human_sets(self.workspace, self.collection)}
        usual = cached.references_read(self.workspace, self.collection).get(attribute)
        chosen = view.selectbox(
            self.place,
            "Human captions",
            [*by_name, *([NOBODY] if optional else [])],
            default=usual.name if usual else None,
            key="references",
            missing="the human captions",
            shown=optional or len(by_name) > 1,
            unfit={} if optional else {NOBODY: "You chose no human captions. They are needed here."},
            **more,
        )
        return by_name.get(chosen)

    def references_of_each(self, attributes: Sequence[str]) -> dict[str, Item]:
        """`references` of the first attribute; the usual ones of each other attribute unless another set is chosen."""
        usual = cached.references_read(self.workspace, self.collection)
        if not attributes or not usual:
            return {}
        chosen = self.references(attributes[0])
        return usual if chosen in (None, usual[attributes[0]]) else dict.fromkeys(attributes, chosen)

    def captioner(self, names: Sequence[str], default: str | None = None) -> str:
        """One of these caption sets; opens on the one that the answer is about unless a default is given."""
        first = default or cached.answering(self.workspace, self.collection, names)
        return view.selectbox(
            self.place, "Captioner", names, default=first, key="captioner", missing="the captioner", follows=True
        )

    def measured_with(
        self, options: Mapping[str, Mapping[str, Any]], titles: Mapping[str, str], key: str = MEASURED_WITH, **more
    ) -> str:
        """One of several settings of measured results. options: name -> the choices it stands for, by key."""
        return view.way(
            self.place, "Measured with", options, titles, key=key, missing="the settings", follows=True, **more
        )


def page(title: str) -> Bar:
    """Draw the frame and the bar with the collection and the runs. The first call of every page."""
    frame(title)
    return draw_bar()


def draw_bar() -> Bar:
    """The bar below the frame. Each page adds the controls that it reads."""
    engine = workspace_engine()
    workspace = engine.workspace
    with st.container(key="bar", horizontal=True, vertical_alignment="bottom", border=True):
        place = st.container(key="bar_choices", horizontal=True, vertical_alignment="bottom")
        runs_dialog(engine)
    _share()
    collections = dict.fromkeys([*workspace.scored(), *workspace.collections()])  # scored ones first
    collection = ""
    if collections:
        collection = view.selectbox(
            place,
            "Collection",
            collections,
            key="collection",
            missing="the collection",
            on_change=view.forget,  # the choices of another collection, such as no captioner, do not fit this one
            args=(view.OF_COLLECTION,),
        )
    with st.container():  # keeps its position when the progress of runs comes and goes
        progress(engine, collection or None)
    return Bar(engine, collection, place)


def _share() -> None:
    """The address of this view, to copy."""
    box = st.sidebar.popover("Share", icon=":material/link:", key="share_link", on_change="rerun")
    if box.open:
        box.code(view.address(), language=None, wrap_lines=True)

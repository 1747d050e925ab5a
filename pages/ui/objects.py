"""Captions, tab Objects: the values that captions name beside objects, with people's."""

from __future__ import annotations

from dataclasses import replace

from capbias_core.views.objects import METRIC
from capbias_core.views.where import WHERE, WhereOptions
from pages.ui.empty import nothing_measured
from pages.ui.page import Page
from pages.ui.where import show_where

OBJECTS = replace(WHERE, question="Which value goes with which object?")


def objects_tab(page: Page) -> None:
    if page.choice is None or not page.choice.defined.names_values:
        nothing_measured(page, "Objects are counted beside the values that captions name, such as gender.")
        return
    show_where(page, OBJECTS, page.choice.of_captioners(page.choice.captioner), WhereOptions(metric=METRIC))

"""Scores, tab Table."""

from __future__ import annotations

from capbias_core.views.table import TABLE
from pages.ui.page import Page
from pages.ui.show import show


def table_tab(page: Page) -> None:
    if page.choice:
        show(TABLE, page.choice, TABLE.rows(page.choice))

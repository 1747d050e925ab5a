"""Captions: read them, the words that reveal the attribute, objects."""

from __future__ import annotations

from pages.ui import controls
from pages.ui.objects import objects_tab
from pages.ui.page import draw, page

TABS = {"Objects": objects_tab}


def main() -> None:
    of_page = page("Captions")
    TABS[controls.tabs(TABS)](of_page)


if __name__ == "__main__":  # processes that start import the page, and must not draw it
    draw(main)

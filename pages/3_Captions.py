"""Captions: of captioners and people side by side, the words that reveal the attribute, and objects."""

from __future__ import annotations

from pages.ui import controls
from pages.ui.captions import captions_tab
from pages.ui.entry import draw, page
from pages.ui.objects import objects_tab
from pages.ui.words import words_tab

TABS = {"Captions": captions_tab, "Words": words_tab, "Objects": objects_tab}


def main() -> None:
    of_page = page("Captions")
    TABS[controls.tabs(TABS)](of_page)


if __name__ == "__main__":  # processes that start import the page, and must not draw it
    draw(main)

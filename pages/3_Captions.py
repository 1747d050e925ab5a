"""Captions: read them, the words that reveal the attribute, objects and Gender Score, guess yourself."""

from __future__ import annotations

from pages.ui import view
from pages.ui.captions import captions_tab
from pages.ui.guess import guess_tab
from pages.ui.objects import objects_tab
from pages.ui.page import draw, page
from pages.ui.words import words_tab

TABS = {"Captions": captions_tab, "Words": words_tab, "Objects": objects_tab, "Guess yourself": guess_tab}


def main() -> None:
    bar = page("Captions")
    TABS[view.tabs(TABS)](bar)


if __name__ == "__main__":  # processes that start import the page, and must not draw it
    draw(main)

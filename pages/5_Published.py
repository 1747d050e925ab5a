"""Published: a table of a paper, printed numbers beside measured ones."""

from __future__ import annotations

import streamlit as st

from capbias_core.load.published import published_results
from capbias_core.views.published import PAPERS, PUBLISHED, PublishedOptions
from pages.ui import controls
from pages.ui.base import notes
from pages.ui.entry import draw, page
from pages.ui.plain import plain
from pages.ui.show import downloads, sentence, table


def main() -> None:
    of_page = page("Published", ("collection", "attribute", "references", "setting"))
    printed = published_results()
    row = st.container(horizontal=True, key="paper_and_table")
    leave = lambda: controls.leave("printed_table")  # noqa: E731
    paper = controls.selectbox(row, "Paper", PAPERS, key="paper", format_func=PAPERS.get, on_change=leave, width=440)
    tables = printed.loc[printed["paper"] == paper, "table"].unique()
    chosen = controls.selectbox(row, "Table", tables, key="printed_table", width=120)
    rows = PUBLISHED.rows(of_page.choice, PublishedOptions(paper=paper, table=chosen))
    st.header(plain(PUBLISHED.question), anchor=False)
    sentence(PUBLISHED, of_page.choice, rows)
    table(PUBLISHED.table(rows), "published_table")
    downloads(PUBLISHED, of_page.choice, rows)
    notes(PUBLISHED.notes(of_page.choice, rows))


if __name__ == "__main__":  # processes that start import the page, and must not draw it
    draw(main)

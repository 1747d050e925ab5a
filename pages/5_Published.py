"""Values printed in papers beside those measured here; and the papers' claims with the rows that decide them."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from capbias_core.load.published import published_results
from capbias_core.views import published as published_views
from capbias_core.views.claims import CLAIMS, STYLE, claim_block, verdicts
from capbias_core.views.known_answer import kept_answers, known_shown
from capbias_core.views.tradeoff import AGAINST, NAMES, measured_points, printed_points, tradeoff_chart, tradeoff_note
from pages.ui import cached, view
from pages.ui.bar import Bar, attribute_names
from pages.ui.base import errors, note
from pages.ui.drawing import draw_chart
from pages.ui.page import draw, page
from pages.ui.shown import draw_shown

WIDTHS = {"measured": 170, published_views.HOLDS: 230, "measured with": 210, published_views.NOTE: 300}


def main() -> None:
    bar = page("Published")
    with errors():
        printed, measured = published_results(), _measured(bar)
        _table(bar, printed, measured)
        of_captioners = published_views.of_originals(measured)
        _tradeoff(bar, printed, of_captioners)
        st.header("The papers' claims")
        note(
            "Each claim is checked against the published values, and against your measured values by their 95% "
            "intervals. A verdict is about captions and labels, never about people. A low number does not show absence "
            "of bias."
        )
        blocks = cached.once(
            bar.workspace,
            "claims",
            lambda: "".join(claim_block(claim, verdicts(claim, printed, measured)) for claim in CLAIMS),
        )
        st.html(STYLE + blocks)
        _synthetic_sets(bar)


def _measured(bar: Bar) -> pd.DataFrame:
    """Results of the collection; none if nothing is loaded."""
    names = attribute_names(bar.items("labels")) if bar.collection else []
    labels, references = {}, {}
    if names:  # what is chosen for the first attribute, for each other one that has it, else the default
        table, usual = bar.labels(names[0]), cached.tables_read(bar.workspace, bar.collection)
        labels = {name: table if name in table.details["attributes"] else usual[name] for name in names}
        references = cached.references_read(bar.workspace, bar.collection)
        human = bar.references(names[0]) if references else None
        if human not in (None, references.get(names[0])):
            references = dict.fromkeys(names, human)
    return cached.once(
        bar.workspace,
        "measured",
        lambda: published_views.measured_rows(bar.workspace, bar.collection, labels, references),
    )


def _table(bar: Bar, printed: pd.DataFrame, measured: pd.DataFrame) -> None:
    side, papers = st.sidebar, list(published_views.PAPERS)
    opened = published_views.first_table(printed, measured)
    paper = view.selectbox(
        side, "Paper", papers, default=opened[0], format_func=published_views.PAPERS.get, key="paper"
    )
    rows = printed[printed["paper"] == paper]
    tables = list(dict.fromkeys(rows["table"]))
    first = opened[1] if paper == opened[0] else tables[0]
    table = view.selectbox(side, "Table", tables, default=first, key="printed_table", missing="the table")
    rows = rows[rows["table"] == table]
    shown = cached.once(
        bar.workspace, "table", lambda: published_views.published_shown(rows, measured, or_bundled=True)
    )
    draw_shown(
        replace(shown, chart=None),  # a page has room for the table alone
        "published",
        boxed=True,
        styled=lambda style: style.map(
            lambda text: published_views.CELLS.get(text, ""), subset=[published_views.HOLDS]
        ),
        column_config={name: st.column_config.Column(width=width) for name, width in WIDTHS.items()},
    )


def _tradeoff(bar: Bar, printed: pd.DataFrame, measured: pd.DataFrame) -> None:
    """The LIC paper's Figure 3 with measured points."""
    st.header("LIC by vocabulary size and BLEU-4")
    points = cached.once(bar.workspace, "points", lambda: (printed_points(printed), measured_points(measured)))
    charts = cached.once(
        bar.workspace, "charts", lambda: {against: tradeoff_chart(*points, against) for against in AGAINST}
    )
    drawn = [against for against, chart in charts.items() if chart.data]
    columns = st.container(key="stacks").columns(max(2, len(drawn)), gap="large")
    for column, against in zip(columns, drawn, strict=False):
        with column:
            draw_chart(charts[against], key=f"tradeoff_{against}", alt=f"LIC against {NAMES[against]}")
            if len(drawn) == len(AGAINST):
                note(tradeoff_note(*points, against))
    if len(drawn) < len(AGAINST):  # the notes are beside the chart
        with columns[-1]:
            for against in AGAINST:
                note(f"{NAMES[against][0].upper()}{NAMES[against][1:]}. {tradeoff_note(*points, against)}")
    note(
        "Gender. Published: the nine captioners of the LIC paper. Measured: LIC and BLEU-4 on images with human "
        "captions, vocabulary on all labelled images. A correlation over so few captioners does not show a cause."
    )


def _synthetic_sets(bar: Bar) -> None:
    """The DBAC paper's sets with a known answer, and what each metric makes of them."""
    folded = st.expander("Which metrics detect bias in wording alone? (synthetic sets C1 to C4)", key="synthetic")
    with folded:
        note(
            "C1 to C4 of the DBAC paper, 100 times as large. Gender and objects are balanced and independent; only "
            "verbs follow gender, in 60, 70, 80 and 90% of captions. In a control, verbs are balanced and objects "
            "follow gender in 80%."
        )
        rows = kept_answers(bar.workspace, compute=False)
        if rows is None:
            if st.button("Measure the sets (half a minute, on this page)", key="known"):
                with st.spinner("Measuring"):
                    kept_answers(bar.workspace, compute=True)
                st.rerun()
            return
        draw_shown(replace(known_shown(rows), chart=None), "known_answers")


if __name__ == "__main__":  # processes that start import the page, and must not draw it
    draw(main)

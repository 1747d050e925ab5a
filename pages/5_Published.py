"""What the papers printed, beside what was measured here; and the papers' claims with the rows that decide them."""

from __future__ import annotations

from html import escape

import pandas as pd
import streamlit as st

from capbias_core.experiments.claims import CLAIMS, verdicts
from capbias_core.experiments.engine import Engine
from capbias_core.experiments.published import PAPERS, beside_measured, measured_rows
from capbias_core.load.published import published_results
from capbias_core.present.published import HOLDS, STYLE, beside_sentence, beside_table, cell_style, claim_block
from pages.ui.base import collection_picker, errors, note, page
from pages.ui.running import progress

WIDTHS = {"measured": 170, HOLDS: 230, "measured with": 210}


def main() -> None:
    engine = page("Published")
    with errors():
        printed = published_results()
        measured = _measured(engine)
        _table(printed, measured)
        _claims(printed, measured)


def _measured(engine: Engine) -> pd.DataFrame:
    """Results of the chosen collection; none where nothing is loaded."""
    collection = collection_picker(engine.workspace)
    progress(engine)
    return measured_rows(engine.workspace, collection or "")


def _table(printed: pd.DataFrame, measured: pd.DataFrame) -> None:
    side = st.sidebar
    paper = side.selectbox("Paper", list(PAPERS), format_func=PAPERS.get, key="paper", bind="query-params")
    rows = printed[printed["paper"] == paper]
    table = side.selectbox("Table", list(dict.fromkeys(rows["table"])), key="printed_table", bind="query-params")
    rows = rows[rows["table"] == table]
    beside = beside_measured(rows, measured)
    headline, support = beside_sentence(beside, f"Table {table} of {PAPERS[paper]}")
    st.html(f'<div class="cb-answer"><b>{escape(headline)}</b><p>{escape(support)}</p></div>')
    shown = beside_table(beside)
    st.dataframe(
        shown.style.map(cell_style, subset=[HOLDS]), hide_index=True,
        column_config={name: st.column_config.Column(width=width) for name, width in WIDTHS.items()},
        alt="Printed and measured values",
    )  # fmt: skip
    note(
        "Printed: as in the paper, ± its standard deviation over seeds (or 95% where it says so). Measured: value ± "
        "standard deviation over attacker seeds [95% interval over images], in the paper's unit."
    )


def _claims(printed: pd.DataFrame, measured: pd.DataFrame) -> None:
    st.subheader("The papers' claims")
    note(
        "Each claim is checked row by row: printed values as they stand, measured ones of the same encoder by their "
        "95% interval. A verdict is about these captions and labels, never about people, and no low number shows that "
        "a captioner is without bias."
    )
    blocks = [claim_block(claim, verdicts(claim, printed, measured)) for claim in CLAIMS]
    st.html(STYLE + "".join(blocks))


with errors():
    main()

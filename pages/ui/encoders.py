"""Scores, tab Encoder sensitivity: scores, ranks and CVs by encoder, and a sweep over encoders."""

from __future__ import annotations

import streamlit as st

from capbias_core.attackers import ATTACKERS, DEFAULT_ATTACKER
from capbias_core.errors import CapbiasError
from capbias_core.measures.options import MOST_SEEDS
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.views.encoders import ENCODERS, EncodersOptions, measured_metrics
from capbias_core.workspace.conditions import originals
from pages.ui import controls
from pages.ui.base import note, show_error
from pages.ui.empty import nothing_measured
from pages.ui.page import Page
from pages.ui.runs import start_button
from pages.ui.show import show

SWEPT = {"lic": "LIC", "dbac": "DBAC"}
ARGUED = "LIC and DBAC"
SEEDS = 5
# One that answers in seconds and one of the DBAC paper's.
AT_FIRST = [DEFAULT_ATTACKER, "lstm"]


def encoders_tab(page: Page) -> None:
    if page.choice is None:
        nothing_measured(page, "Score the captions first; then other encoders can be compared with the first one.")
        return
    names = [ARGUED, *dict.fromkeys(name for name, _ in measured_metrics(page.choice))]
    metric = controls.selectbox(st, "Metric", names, key="metric", width=240)
    options = EncodersOptions(metric="" if metric == ARGUED else metric)
    show(ENCODERS, page.choice, ENCODERS.rows(page.choice, options))
    folded = st.expander("Run other encoders", key="sweep_open", on_change="rerun")
    if folded.open:
        with folded:
            _sweep(page)


def _sweep(page: Page) -> None:
    """What other encoders cost, and the button that runs them on the captioners, labels and human captions chosen."""
    choice = page.choice
    assert choice
    setting = choice.measured_with
    if not setting.references:
        note("LIC and DBAC need human captions of the same images.")
        controls.link(st, "pages/1_Data.py", "Add data", ":material/upload:")
        return
    left, right = st.container(key="stacks").columns(2, gap="large")
    encoders = left.multiselect(
        "Encoders",
        list(ATTACKERS),
        AT_FIRST,
        key="sweep_encoders",
        accept_new_options=True,
        help="Or type the folder or name of a sentence-transformers or transformers model on this machine.",
    )
    captioners = left.multiselect(
        "Captioners", originals(page.items("captions")), list(choice.captioners), key="sweep_of"
    )
    metric = right.segmented_control(
        "Metric", list(SWEPT), default="lic", format_func=SWEPT.__getitem__, key="sweep_metric", required=True
    )
    seeds = right.number_input("Seeds", 1, MOST_SEEDS, SEEDS, key="sweep_seeds", help="The papers use 10.")
    if not encoders or not captioners:
        note("Choose an encoder and a captioner.")
        return
    question = Question(
        *(page.collection, tuple(captioners), setting.labels, choice.attribute, (metric,), setting.references),
        *(tuple(encoders), int(seeds)),
    )
    refused: dict[str, CapbiasError] = {}
    try:
        specs = plan(page.workspace, question, refused)
    except CapbiasError as error:
        show_error(error)
        return
    for name, error in refused.items():
        note(f"⚠ {name} is left out: {error}")
    start_button(page, specs, "Start", "sweep")

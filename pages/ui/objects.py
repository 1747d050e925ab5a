"""Captions, tab Objects: the values that captions name beside objects, with people's; Gender Score by object."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from capbias_core.attributes import lacking_words
from capbias_core.errors import CapbiasError
from capbias_core.language.files import MINILM
from capbias_core.measures.registry import METRICS
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.views.choose import Choice
from capbias_core.views.objects import METRIC
from capbias_core.views.where import BY_OBJECT, WHERE, WhereOptions, metrics_of
from capbias_core.workspace.models import KINDS
from pages.ui import controls
from pages.ui.base import note, show_error
from pages.ui.empty import nothing_measured
from pages.ui.page import Page
from pages.ui.plain import plain
from pages.ui.runs import start_button
from pages.ui.where import show_where

OBJECTS = replace(WHERE, question="Which value goes with which object?")
TITLES = {
    METRIC: "Named beside objects",
    "gender_object_distance": "Gender Object Distance",
    "gender_score": "Gender Score",
}
MEASURED = {"gender_object_distance": ("god",), "gender_score": ("gs", "estimation")}


def objects_tab(page: Page) -> None:
    if page.choice is None or not page.choice.defined.names_values:
        nothing_measured(page, "Objects are counted beside the values that captions name, such as gender.")
        return
    choice = page.choice.of_captioners(page.choice.captioner)
    row = st.container(key="controls_objects", horizontal=True)
    metrics = [name for name in metrics_of(choice) if name in TITLES]
    metric = controls.selectbox(row, "What", metrics, key="metric", format_func=TITLES.__getitem__, width=240)
    show_where(page, OBJECTS, choice, WhereOptions(metric=metric))
    folded = st.expander("Measure the Gender Score", key="score_open", on_change="rerun")
    if folded.open:
        with folded:
            _gender_score(page, choice)


def _gender_score(page: Page, choice: Choice) -> None:
    """What the scores of the Gender Score's paper need, and the button that measures them."""
    if reason := lacking_words(choice.defined, every=True):
        note(f"{reason}, so captions cannot be rewritten for each value.")
        return
    metric = st.segmented_control(
        "Measure", BY_OBJECT, default=BY_OBJECT[0], format_func=TITLES.__getitem__, key="score_what", required=True
    )
    note(METRICS[metric].explanation)
    left, right = st.container(key="stacks").columns(2)
    encoder = left.text_input(
        "Sentence encoder",
        MINILM,
        key="sentence_encoder",
        help=f"A folder, a name, or {MINILM}. The paper's: {plain(KINDS['sentence_encoder'][1])}",
    )
    options = {"sentence_encoder": encoder.strip()}
    if metric == "gender_score":
        usual = KINDS["language_model"][1]
        language = right.text_input("Language model", usual, key="language_model", help="A folder, or a local name.")
        options["language_model"] = language.strip()
    labels = choice.measured_with.labels
    question = Question(page.collection, choice.captioners, labels, choice.attribute, MEASURED[metric], options=options)
    try:
        start_button(page, plan(page.workspace, question), "Measure", "gender_score")
    except CapbiasError as error:
        show_error(error)

"""Plain texts without images in the tab Objects: words beside the values that texts name, and the Gender Score."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, Future
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from capbias_core.attributes import lacking_words
from capbias_core.errors import CapbiasError
from capbias_core.language.files import MINILM
from capbias_core.load.read import read_texts, text_lines
from capbias_core.measures.gender_score_common import text_model
from capbias_core.measures.registry import METRICS, expand_metrics
from capbias_core.runs.engine import Engine, torch_executor
from capbias_core.spreadsheets import csv_text
from capbias_core.types import Attribute
from capbias_core.views.objects import percent
from capbias_core.views.texts import TextRows, keywords, text_results, text_table
from capbias_core.workspace import custom_attributes
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.models import KINDS
from pages.ui import cached, view
from pages.ui.base import box, errors, note
from pages.ui.table import draw_table
from pages.ui.uploads import uploaded_path

MOST_LETTERS = 500_000
MOST_SCORED = 2_000  # texts whose Gender Score a page measures; the command takes more
MOST_KEYWORDS = 100
COUNTED, SCORED = tuple(expand_metrics(["cooccurrence"])), tuple(expand_metrics(["gs"]))
WANTED = "text_score_wanted"


def plain_texts(engine: Engine) -> None:
    """What is pasted or uploaded, which words count, the table of words, and the form of the Gender Score."""
    known = {name: own for name, own in custom_attributes.known(engine.workspace).items() if own.names_values}
    attribute = known[view.selectbox(st.sidebar, "Protected attribute", known, default="gender", key="text_attribute")]
    given = _given(engine)
    words = view.text(st.sidebar, "Words", key="words", placeholder="family, coffee, gaming")
    number = view.number(
        st.sidebar,
        "Keywords from the texts",
        0,
        MOST_KEYWORDS,
        10,
        key="keywords",
        help="The nouns, verbs, adjectives and adverbs that most texts have. The paper takes them from KeyBERT.",
    )
    lead = view.text(
        st.sidebar,
        "Words before other texts",
        key="lead",
        placeholder="a {word} says:",
        help="A text that names no value needs a label or, for the Gender Score, these words in front of it.",
    )
    note(
        "Counts and ratios need no model. The Gender Score needs two models on this machine, a language model and a "
        "sentence encoder. Nothing that you paste or upload is saved."
    )
    if given is None:
        box("Nothing to show yet.", "Paste texts, one per line, or upload a file.")
        return
    name, texts, labels = given
    chosen = [*filter(None, map(str.strip, words.split(","))), *_keywords(tuple(texts), attribute, int(number))]
    asked = (tuple(texts), name, attribute, tuple(dict.fromkeys(chosen)), tuple(labels) if labels else None, lead)
    counted = _counted(*asked)
    score = _score(asked)
    by_object = counted.by_object if score is None else pd.concat([counted.by_object, score.by_object])
    rows = counted.rows if score is None else pd.concat([counted.rows, score.rows])
    shares = rows[rows["metric"] == COUNTED[0]]
    overall = ", ".join(f"{row['direction']} {percent(row['value'])}" for row in shares.to_dict("records"))
    box(f"{name}: {overall} of the texts with a value and a word.", counted.note)
    table = text_table(by_object, attribute)
    formats = {own: "%.0f%%" if own.startswith("share") else "%.3f" for own in table.select_dtypes("float")}
    draw_table(
        table,
        column_config={own: st.column_config.NumberColumn(format=format) for own, format in formats.items()},
        alt="Words in plain texts",
    )
    note(
        "Share: of the texts with the word and a value, those with this value; 95% intervals over texts. "
        + (f"Gender Score: {METRICS['gender_score'].explanation}" if score is not None else "")
    )
    st.download_button(
        "CSV",
        partial(csv_text, pd.concat([rows, by_object])),
        f"{name} words.csv",
        "text/csv",
        key="texts_csv",
        on_click="ignore",
    )
    if reason := lacking_words(attribute, every=True):
        note(f"{reason}, so the Gender Score cannot be measured.")
    elif len(texts) > MOST_SCORED:
        note(f"These are {len(texts):,} texts. For more than {MOST_SCORED:,}, use `capbias score --view text`.")
    else:
        _form(asked)
    note(attribute.note)


def _given(engine: Engine) -> tuple[str, list[str], list[str] | None] | None:
    """Name, texts and labels, or None if nothing is given."""
    left, right = st.container(key="stacks_texts").columns(2)
    pasted = left.text_area("Texts, one per line", key="texts", height=180, max_chars=MOST_LETTERS)
    upload = right.file_uploader("Or a file: one text per line (.txt), or a table", key="texts_file")
    if upload is None:
        texts = text_lines(pasted)
        return ("texts", texts, None) if texts else None
    path = uploaded_path(engine.folder, upload)
    column = view.text(right, "Column of texts", key="text_column", placeholder="detected")
    label = view.text(right, "Column of labels (optional)", key="label_column")
    texts, labels = within_limits(path.name, read_texts, path, column or None, label or None)
    return path.stem, texts, labels


@st.cache_data(show_spinner=False, max_entries=32, hash_funcs=cached.KEYS)
def _keywords(texts: tuple[str, ...], attribute: Attribute, most: int) -> list[str]:
    return keywords(texts, attribute, most) if most else []


@st.cache_data(show_spinner="Counting", max_entries=32, hash_funcs=cached.KEYS)
def _counted(
    texts: tuple[str, ...],
    name: str,
    attribute: Attribute,
    words: tuple[str, ...],
    labels: tuple[str, ...] | None,
    lead: str,
) -> TextRows:
    return text_results(texts, name, attribute, COUNTED, {"object_words": words}, labels, lead)


def _score(asked: tuple) -> TextRows | None:
    """The Gender Score of these texts and words; None where nobody asked for it, or it is still to come."""
    wanted, future = st.session_state.get(WANTED, (None, None))
    if wanted != asked:
        return None
    if not future.done():
        _wait(future)
        return None
    with errors():
        try:
            return future.result()
        except BrokenExecutor:
            raise CapbiasError("The worker ended before the Gender Score was there.", "Measure again.") from None
    return None


@st.fragment(run_every=1.0)
def _wait(future: Future) -> None:
    if future.done():
        st.rerun()
    note("The Gender Score is being computed, after runs that started earlier.")


def _form(asked: tuple) -> None:
    """The models of the Gender Score, and the button that starts it."""
    texts, name, attribute, words, labels, lead = asked
    st.header("Gender Score")
    with st.form("texts_score", border=True):
        left, right = st.columns(2)
        named = {
            "language_model": left.text_input(
                "Language model", KINDS["language_model"][1], help="A folder, or a name in the local cache."
            ),
            "sentence_encoder": right.text_input(
                "Sentence encoder", MINILM, help=f"A folder, a name, or {MINILM}. It comes as a package."
            ),
        }
        if not st.form_submit_button("Measure", type="primary"):
            return
    options: dict[str, Any] = {kind: own.strip() or None for kind, own in named.items()}
    with errors():
        for kind, own in options.items():
            text_model(kind, own)  # here, where visitors may name only some folders
        options["object_words"] = words
        future = torch_executor().submit(text_results, texts, name, attribute, SCORED, options, labels, lead)
        st.session_state[WANTED] = (asked, future)
        st.rerun()

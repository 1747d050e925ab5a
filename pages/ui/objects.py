"""The tab Objects of Captions: objects and the values named with them, and the Gender Score; also of plain texts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from capbias_core.attributes import attribute_folder, known_attributes, lacking_words
from capbias_core.language.files import MINILM
from capbias_core.load.texts import read_texts, text_lines
from capbias_core.measures.gender_score_common import text_model
from capbias_core.measures.registry import METRICS, expand_metrics
from capbias_core.processes import compute_apart
from capbias_core.question import Question
from capbias_core.runs.engine import rough_seconds, torch_environments
from capbias_core.runs.plan import plan
from capbias_core.spreadsheets import csv_text
from capbias_core.types import Attribute
from capbias_core.views import objects
from capbias_core.views.results import known_results
from capbias_core.views.sentence import decimals, duration, signed
from capbias_core.views.tables import value_text
from capbias_core.views.texts import TextRows, frequent_words, text_results, text_table
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.models import KINDS
from capbias_core.workspace.spec import RunSpec, attribute_from
from capbias_core.workspace.store import Item, Workspace
from pages.ui import cached, present, view
from pages.ui.bar import Bar, captions_and_labels, lacking
from pages.ui.base import box, errors, note
from pages.ui.drawing import draw_chart, draw_table
from pages.ui.plain import plain
from pages.ui.uploads import uploaded_path

FIRST_COLUMNS = 7  # of the table: as many as a window of 1280 pixels shows
PRESENTED = 12  # objects of the chart in present mode, where type is large
NAMED = "labels of an attribute that captions name (such as gender)"
READ = {"captions": "captions of a collection", "texts": "plain texts"}
SOURCES = {"caption": "named in captions", "image": "annotated in images"}
CHARTS = {"beside": "compared with people", "distribution": "distribution over objects"}
METRICS_OF = {objects.DISTANCE: ("god",), objects.SCORE: ("gs", "estimation")}
MEASURES_OF = {objects.DISTANCE: ("object_distance",), objects.SCORE: ("gender_score",)}
# Of plain texts
MOST_LETTERS = 500_000
MOST_SCORED = 2_000  # texts whose Gender Score a page measures; the command takes more
MOST_KEYWORDS = 100
COUNTED, SCORED = tuple(expand_metrics(["cooccurrence"])), tuple(expand_metrics(["gs"]))
WANTED = "text_score_wanted"
SCORING = ThreadPoolExecutor(1)  # Gender Scores of texts, one after another


def objects_tab(bar: Bar) -> None:
    what = view.selectbox(
        st, "Read", list(READ), format_func=READ.get, key="read", draw="segmented_control", required=True
    )
    if what == "texts":
        with errors():
            _texts(bar)
        return
    sets_and_tables = captions_and_labels(bar, NAMED)
    if sets_and_tables is None:
        return
    sets, tables = sets_and_tables
    named = {  # attribute -> whether captions name it
        name: attribute_from(entry["attribute"]).names_values
        for item in tables
        for name, entry in item.details["attributes"].items()
    }
    if not any(named.values()):
        lacking(bar, NAMED)
        return
    with errors():
        request, human = _request(bar, sets, named)
        spec = objects.cooccurrence_spec(bar.workspace, request)
        attribute = attribute_from(spec.attribute)
        ratios, table = _counted(bar.folder, spec, human)
        if absent := [word for word in spec.options.get("object_words", ()) if word not in set(table["object"])]:
            note(f"Not found in these captions: {', '.join(absent)}.")
        text = objects.object_answer(table, ratios.overall, ratios.n, spec.model, attribute)
        box(text.headline, text.support)
        _chart(bar, table, spec.model, attribute, text.headline)
        _table(bar, table, spec, attribute)
        st.divider()
        _gender_score(bar, request, spec, attribute)
        note(attribute.note)


def _request(bar: Bar, sets: list[str], named: dict[str, bool]) -> tuple[Question, Item | None]:
    side = st.sidebar
    silent = {name: f"Captions have no words for {name}, so objects cannot be counted." for name in named}
    attribute = bar.attribute([name for name in named if named[name]], silent)
    table, human = bar.labels(attribute), bar.references(attribute, optional=True)
    captioner = bar.captioner(sets)
    source = view.selectbox(
        side,
        "Objects",
        list(SOURCES),
        format_func=SOURCES.get,
        key="objects",
        help="Named: COCO's 80 objects and their other names. Of the image: annotated, where they are loaded.",
    )
    words = view.text(
        side,
        "Further words",
        key="further",
        placeholder="kitchen, baseball",
        help="Words to count as objects too, separated by commas.",
    )
    further = [word.strip() for word in words.split(",") if word.strip()]
    options = {"objects_from": source} | ({"object_words": further} if further else {})
    objects = bar.objects(table)
    return Question(bar.collection, (captioner,), table.name, attribute, (), objects=objects, options=options), human


KEYS: dict[str | type, Callable[[Any], Any]] = {**cached.KEYS, RunSpec: lambda spec: spec.run_id}


@st.cache_resource(show_spinner="Counting", max_entries=64, hash_funcs=KEYS)
def _counted(folder: str, spec: RunSpec, human: Item | None) -> tuple[objects.Ratios, pd.DataFrame]:
    """A row per object, beside the human captions if there are some."""
    return objects.counted_objects(Workspace(folder), spec, human)


@st.cache_resource(show_spinner=False, max_entries=16, hash_funcs=KEYS)
def _captions(folder: str, spec: RunSpec, name: str) -> pd.DataFrame:
    return objects.captions_with(Workspace(folder), spec, name)


def _chart(bar: Bar, table: pd.DataFrame, model: str, attribute: Attribute, headline: str) -> None:
    names = [name for name in CHARTS if name != "beside" or objects.comparable(table)]
    chosen = view.selectbox(
        st, "Chart", names, format_func=CHARTS.get, key="chart", draw="segmented_control", required=True
    )
    if chosen == "beside":
        most = PRESENTED if present.on() else objects.MOST
        work = partial(objects.beside_chart, table, attribute, model, most)
        notes = objects.beside_note(table, attribute)
    else:
        work, notes = partial(objects.distribution_chart, table, attribute, model), objects.BINS
    figure = cached.once(bar.workspace, "chart", work)
    draw_chart(figure, key="objects_chart", alt=f"Objects, {CHARTS[chosen]}", notes=notes, headline=headline)


def _table(bar: Bar, table: pd.DataFrame, spec: RunSpec, attribute: Attribute) -> None:
    """A row per object; the captions behind the selected one."""
    shown = cached.once(bar.workspace, "table", lambda: objects.object_table(table, attribute))
    if shown.shape[1] > FIRST_COLUMNS and not view.checkbox(st, "All columns", key="all_columns", draw="toggle"):
        shown = shown.iloc[:, :FIRST_COLUMNS]
    numbers = {
        name: st.column_config.NumberColumn(format="%.0f%%") for name in shown if name.startswith(("share", "humans"))
    }
    differences = [name for name in shown.select_dtypes("number") if name.startswith("difference")]
    event = draw_table(
        shown.style.format(partial(signed, decimals=0), subset=differences, na_rep=""),
        height=360,
        on_select="rerun",
        selection_mode="single-row",
        column_config=numbers,
        key=f"objects_{spec.run_id}",
        alt=f"Objects in captions of {spec.model}",
    )
    part = ""
    if "human_captions" in table:
        part = (
            "Sorted by the difference from human captions (percentage points), on images with both. Each interval is "
            "for one object: among many, some exclude 0 by chance. The answer above corrects for that. "
        )
    note(
        f"{part}Captions: those with the object that name one value. Share: of these captions, with a 95% interval "
        "over images. Select a row to read its captions."
    )
    if event.selection.rows:
        name = str(table["object"].iloc[event.selection.rows[0]])
        st.header(f"Captions with the object {plain(name)}")
        draw_table(
            _captions(bar.folder, spec, name).rename(columns={"image_id": "image"}),
            height=280,
            alt=f"Captions with {name}",
            key=f"captions_{spec.run_id}_{name}",
        )


def _gender_score(bar: Bar, request: Question, spec: RunSpec, attribute: Attribute) -> None:
    st.header("Gender Score")
    note(
        "Each caption is rewritten with the words of each value (a man, a woman, a person). Gender Object Distance: "
        "how close in meaning each version is to the object. Gender Score: the same, weighted by how likely a language "
        "model finds each version. Both describe text and models, never the people in an image."
    )
    for title, run in objects.scored_runs(bar.workspace, bar.collection, spec).items():
        name, metric = objects.SCORED[run.spec.measure]
        with st.expander(plain(f"{name}, {title.removeprefix(run.spec.measure).strip()}"), expanded=True):
            rows = known_results(bar.workspace, [run.run_id])
            values = [value_text(row) for row in rows.to_dict("records")]
            shown = rows[["metric", "direction"]].assign(**{"value [95%]": values}, n=rows["n"])
            shown = shown.rename(columns={"direction": "value of the attribute"})
            draw_table(shown, alt=f"{name} over the set", key=f"set_{run.run_id}")
            by_object = objects.scores_by_object(bar.workspace, run)
            figure = objects.score_chart(by_object, metric, (*attribute.values, "neutral"))
            draw_chart(figure, key=f"chart_{run.run_id}", alt=f"{name} by object")
            digits = decimals(metric, 1)
            table = by_object.rename(
                columns=lambda name, of=metric: name.removeprefix(of).strip("_ ").replace("_", " ")
            )
            formats = {column: st.column_config.NumberColumn(format=f"%.{digits}f") for column in table.columns[1:]}
            draw_table(table, alt=f"{name} of each object", key=f"by_{run.run_id}", column_config=formats)
            note(f"{METRICS[metric].explanation} {' '.join(run.notes)}")
    if reason := lacking_words(attribute, every=True):
        note(f"{reason}, so captions cannot be rewritten for each value.")
        return
    with st.form("gender_score", border=True):
        what = st.radio("Measure", [objects.DISTANCE, objects.SCORE], horizontal=True, key="measure")
        left, middle, right = st.columns(3)
        language = left.text_input(
            "Language model",
            KINDS["language_model"][1],
            key="language_model",
            help="For the Gender Score. A folder, or a name in the local cache.",
        )
        encoder = middle.text_input(
            "Sentence encoder",
            MINILM,
            key="sentence_encoder",
            help=f"A folder, a name, or {MINILM}. The paper's: {plain(KINDS['sentence_encoder'][1])}",
        )
        masked = right.text_input(
            "Masked language model (optional)", key="masked_model", placeholder=KINDS["masked_model"][1]
        )
        pressed = st.form_submit_button("Run", type="primary")
    costs = [
        f"{name} about {duration(rough_seconds(bar.workspace, spec.captions, measures))}"
        for name, measures in MEASURES_OF.items()
    ]
    note(f"{spec.model} on two cores: {', '.join(costs)}. Models must be on this machine.")
    if pressed:
        models = {"sentence_encoder": encoder}
        if what == objects.SCORE:
            models |= {"language_model": language, "masked_model": masked}
        options = request.options | {key: name.strip() for key, name in models.items() if name.strip()}
        with errors():
            specs = plan(bar.workspace, replace(request, metrics=METRICS_OF[what], options=options))
            bar.engine.submit(specs, bar.collection)
            st.rerun()


# Plain texts


def _texts(bar: Bar) -> None:
    """What is pasted or uploaded, which words count, the table of words, and the form of the Gender Score."""
    side = st.sidebar
    known = known_attributes(attribute_folder(bar.workspace.folder))
    attributes = {name: attribute for name, attribute in known.items() if attribute.names_values}
    attribute = attributes[
        view.selectbox(side, "Protected attribute", attributes, default="gender", key="text_attribute")
    ]
    texts_and_labels = _read_texts(bar)
    words = view.text(side, "Words", key="words", placeholder="family, coffee, gaming")
    number = view.number(
        side,
        "Keywords from the texts",
        0,
        MOST_KEYWORDS,
        10,
        key="keywords",
        help="The nouns, verbs, adjectives and adverbs that most texts have. The paper takes them from KeyBERT.",
    )
    lead = view.text(
        side,
        "Words before other texts",
        key="lead",
        placeholder="a {word} says:",
        help="A text that names no value needs a label or, for the Gender Score, these words in front of it.",
    )
    note(
        "Counts and ratios need no model. The Gender Score needs two models on this machine, a language model and a "
        "sentence encoder. Nothing that you paste or upload is saved."
    )
    if texts_and_labels is None:
        box("Nothing to show yet.", "Paste texts, one per line, or upload a file.")
        return
    name, texts, labels = texts_and_labels
    chosen = [*filter(None, map(str.strip, words.split(","))), *_keywords(tuple(texts), attribute, int(number))]
    request = (tuple(texts), name, attribute, tuple(dict.fromkeys(chosen)), tuple(labels) if labels else None, lead)
    results = [_counted_texts(*request), *filter(None, [_text_score(request)])]
    by_object, rows = (pd.concat([getattr(result, part) for result in results]) for part in ("by_object", "rows"))
    shares = rows[rows["metric"] == COUNTED[0]]
    overall = ", ".join(f"{row['direction']} {objects.percent(row['value'])}" for row in shares.to_dict("records"))
    box(f"{name}: {overall} of the texts with a value and a word.", results[0].note)
    table = text_table(by_object, attribute)
    formats = {name: "%.0f%%" if name.startswith("share") else "%.3f" for name in table.select_dtypes("float")}
    draw_table(
        table,
        column_config={key: st.column_config.NumberColumn(format=format) for key, format in formats.items()},
        alt="Words in plain texts",
    )
    note(
        "Share: of the texts with the word and a value, those with this value; 95% intervals over texts. "
        + (f"Gender Score: {METRICS['gender_score'].explanation}" if len(results) > 1 else "")
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
        note(f"These are {len(texts):,} texts. For more than {MOST_SCORED:,}, use `capbias view text`.")
    else:
        _text_score_form(request)
    note(attribute.note)


def _read_texts(bar: Bar) -> tuple[str, list[str], list[str] | None] | None:
    """Name, texts and labels, or None if there are no texts."""
    left, right = st.container(key="stacks_texts").columns(2)
    pasted = left.text_area("Texts, one per line", key="texts", height=180, max_chars=MOST_LETTERS)
    upload = right.file_uploader("Or a file: one text per line (.txt), or a table", key="texts_file")
    if upload is None:
        texts = text_lines(pasted)
        return ("texts", texts, None) if texts else None
    path = uploaded_path(bar.folder, upload)
    column = view.text(right, "Column of texts", key="text_column", placeholder="detected")
    label = view.text(right, "Column of labels (optional)", key="label_column")
    texts, labels = within_limits(path.name, read_texts, path, column or None, label or None)
    return path.stem, texts, labels


@st.cache_data(show_spinner=False, max_entries=32, hash_funcs=cached.KEYS)
def _keywords(texts: tuple[str, ...], attribute: Attribute, most: int) -> list[str]:
    return frequent_words(texts, attribute, most) if most else []


@st.cache_data(show_spinner="Counting", max_entries=32, hash_funcs=cached.KEYS)
def _counted_texts(
    texts: tuple[str, ...],
    name: str,
    attribute: Attribute,
    words: tuple[str, ...],
    labels: tuple[str, ...] | None,
    lead: str,
) -> TextRows:
    return text_results(texts, name, attribute, COUNTED, {"object_words": words}, labels, lead)


def _text_score(request: tuple) -> TextRows | None:
    """The Gender Score of these texts and words; None if nobody asked for it, or it is still to come."""
    wanted, future = st.session_state.get(WANTED, (None, None))
    if wanted != request:
        return None
    if not future.done():
        _wait(future)
        return None
    with errors():
        return future.result()
    return None


@st.fragment(run_every=1.0)
def _wait(future: Future) -> None:
    if future.done():
        st.rerun()
    note("The Gender Score is being computed, after others that started earlier.")


def _text_score_form(request: tuple) -> None:
    texts, name, attribute, words, labels, lead = request
    st.header("Gender Score")
    with st.form("texts_score", border=True):
        left, right = st.columns(2)
        language = left.text_input(
            "Language model", KINDS["language_model"][1], help="A folder, or a name in the local cache."
        )
        encoder = right.text_input(
            "Sentence encoder", MINILM, help=f"A folder, a name, or {MINILM}. It comes as a package."
        )
        if not st.form_submit_button("Measure", type="primary"):
            return
    options: dict[str, Any] = {"language_model": language.strip() or None, "sentence_encoder": encoder.strip() or None}
    with errors():
        for kind, model in options.items():
            text_model(kind, model)  # here, where visitors may name only some folders
        options["object_words"] = words
        call = partial(text_results, texts, name, attribute, SCORED, options, labels, lead)
        future = SCORING.submit(compute_apart, call, **torch_environments()[0])
        st.session_state[WANTED] = (request, future)
        st.rerun()

"""The tab Objects of Captions: objects and the values named with them, and the Gender Score; also of plain texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from capbias_core.attributes import lacking_words
from capbias_core.language.files import MINILM
from capbias_core.measures.registry import METRICS
from capbias_core.runs.durations import rough_seconds
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import Request, plan
from capbias_core.types import Attribute
from capbias_core.views import objects
from capbias_core.views.objects import (
    BINS,
    DISTANCE,
    MOST,
    SCORE,
    SCORED,
    beside_chart,
    beside_note,
    comparable,
    counted_objects,
    distribution_chart,
    object_answer,
    object_table,
    score_chart,
    short_names,
)
from capbias_core.views.results import known_results
from capbias_core.views.sentence import decimals, duration, signed
from capbias_core.views.tables import value_text
from capbias_core.workspace.models import KINDS
from capbias_core.workspace.spec import RunSpec, attribute_from
from capbias_core.workspace.store import Item, Workspace
from pages.ui import cached, present, view
from pages.ui.bar import Bar
from pages.ui.base import box, captions_and_labels, errors, lacking, note
from pages.ui.chart import draw_chart
from pages.ui.table import draw_table
from pages.ui.texts import plain_texts

PRESENTED = 12  # objects of the chart in present mode, where type is large
NAMED = "labels of an attribute that captions name (such as gender)"
READ = {"captions": "captions of a collection", "texts": "plain texts"}
SOURCES = {"caption": "named in captions", "image": "annotated in images"}
CHARTS = {"beside": "compared with people", "distribution": "distribution over objects"}
METRICS_OF = {DISTANCE: ("god",), SCORE: ("gs", "estimation")}
MEASURES_OF = {DISTANCE: ("object_distance",), SCORE: ("gender_score",)}


def objects_tab(bar: Bar) -> None:
    engine, collection = bar.engine, bar.collection
    what = view.selectbox(
        st, "Read", list(READ), format_func=READ.get, key="read", draw="segmented_control", required=True
    )
    if what == "texts":
        with errors():
            plain_texts(engine)
        return
    sets_and_tables = captions_and_labels(engine, collection, NAMED)
    if sets_and_tables is None:
        return
    sets, named = sets_and_tables[0], _named(sets_and_tables[1])
    if not any(named.values()):
        lacking(engine, collection, NAMED)
        return
    with errors():
        request, human = _request(bar, sets, named)
        spec = objects.cooccurrence_spec(engine.workspace, request)
        attribute = attribute_from(spec.attribute)
        ratios, table = _counted(engine.folder, spec, human)
        if absent := [word for word in spec.options.get("object_words", ()) if word not in set(table["object"])]:
            note(f"Not found in these captions: {', '.join(absent)}.")
        headline = _answer(table, ratios, spec.model, attribute)
        _charts(engine, table, spec.model, attribute, headline)
        _table(engine, table, spec, attribute)
        st.divider()
        _scores(engine, collection, request, spec, attribute)
        note(attribute.note)


def _named(tables: list[Item]) -> dict[str, bool]:
    """Attribute -> whether captions name it."""
    return {
        name: attribute_from(entry["attribute"]).names_values
        for item in tables
        for name, entry in item.details["attributes"].items()
    }


def _request(bar: Bar, sets: list[str], named: dict[str, bool]) -> tuple[Request, Item | None]:
    """What the controls ask for; every choice is in the URL."""
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
    options = {"objects_from": source}
    further = [word.strip() for word in words.split(",") if word.strip()]
    options |= {"object_words": further} if further else {}
    request = Request(bar.collection, (captioner,), table.name, attribute, (), options=options)
    return request, human


KEYS: dict[str | type, Callable[[Any], Any]] = {**cached.KEYS, RunSpec: lambda spec: spec.run_id}


@st.cache_resource(show_spinner="Counting", max_entries=64, hash_funcs=KEYS)
def _counted(folder: str, spec: RunSpec, human: Item | None) -> tuple[objects.Ratios, pd.DataFrame]:
    """A row an object, and the rows beside the human captions where there are some."""
    return counted_objects(Workspace(folder), spec, human)


@st.cache_resource(show_spinner=False, max_entries=16, hash_funcs=KEYS)
def _captions(folder: str, spec: RunSpec, name: str) -> pd.DataFrame:
    return objects.captions_with(Workspace(folder), spec, name)


def _answer(table: pd.DataFrame, own: objects.Ratios, model: str, attribute: Attribute) -> str:
    text = object_answer(table, own.overall, own.n, model, attribute)
    box(text.headline, text.support)
    return text.headline


def _table(engine: Engine, table: pd.DataFrame, spec: RunSpec, attribute: Attribute) -> None:
    """A row an object; the captions behind the selected one."""
    shown = cached.once(engine.workspace, "table", lambda: object_table(table, attribute))
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
        found = _captions(engine.folder, spec, name)
        st.header(f"Captions with the object {name}" if name.replace(" ", "").isalnum() else "Its captions")
        draw_table(
            found.rename(columns={"image_id": "image"}),
            height=280,
            alt=f"Captions with {name}",
            key=f"captions_{spec.run_id}_{name}",
        )


def _charts(engine: Engine, table: pd.DataFrame, model: str, attribute: Attribute, headline: str) -> None:
    names = [name for name in CHARTS if name != "beside" or comparable(table)]
    chosen = view.selectbox(
        st, "Chart", names, format_func=CHARTS.get, key="chart", draw="segmented_control", required=True
    )
    if chosen == "beside":
        most = PRESENTED if present.on() else MOST
        work = partial(beside_chart, table, attribute, model, most)
    else:
        work = partial(distribution_chart, table, attribute, model)
    drawn = cached.once(engine.workspace, "chart", work)
    said = beside_note(table, attribute) if chosen == "beside" else BINS
    draw_chart(drawn, key="objects_chart", alt=f"Objects, {CHARTS[chosen]}", notes=said, headline=headline)


def _scores(engine: Engine, collection: str, request: Request, spec: RunSpec, attribute: Attribute) -> None:
    """Gender Score and Gender Object Distance: what was measured, and the form that starts a run."""
    st.header("Gender Score")
    note(
        "Each caption is rewritten with the words of each value (a man, a woman, a person). Gender Object Distance: "
        "how close in meaning each version is to the object. Gender Score: the same, weighted by how likely a language "
        "model finds each version. Both describe text and models, never the people in an image."
    )
    for title, run in objects.scored_runs(engine.workspace, collection, spec).items():
        _scored(engine, title, run, attribute)
    if reason := lacking_words(attribute, every=True):
        note(f"{reason}, so captions cannot be rewritten for each value.")
        return
    _form(engine, collection, request, spec)


def _scored(engine: Engine, title: str, run, attribute: Attribute) -> None:
    name, metric = SCORED[run.spec.measure]
    with st.expander(f"{name}, {title.removeprefix(run.spec.measure).strip()}", expanded=True):
        rows = known_results(engine.workspace, [run.run_id])
        values = [value_text(row) for row in rows.to_dict("records")]
        shown = rows[["metric", "direction"]].assign(**{"value [95%]": values}, n=rows["n"])
        names = {"direction": "value of the attribute"}
        draw_table(shown.rename(columns=names), alt=f"{name} over the set", key=f"set_{run.run_id}")
        by_object = objects.scores_by_object(engine.workspace, run)
        figure = score_chart(by_object, metric, (*attribute.values, "neutral"))
        draw_chart(figure, key=f"chart_{run.run_id}", alt=f"{name} by object")
        table, digits = short_names(by_object, metric), decimals(metric, 1)
        formats = {column: st.column_config.NumberColumn(format=f"%.{digits}f") for column in table.columns[1:]}
        draw_table(table, alt=f"{name} of each object", key=f"by_{run.run_id}", column_config=formats)
        note(f"{METRICS[metric].explanation} {' '.join(run.notes)}")


def _form(engine: Engine, collection: str, request: Request, spec: RunSpec) -> None:
    with st.form("gender_score", border=True):
        what = st.radio("Measure", [DISTANCE, SCORE], horizontal=True, key="measure")
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
            help=f"A folder, a name, or {MINILM}. The paper's: {KINDS['sentence_encoder'][1]}",
        )
        masked = right.text_input(
            "Masked language model (optional)", key="masked_model", placeholder=KINDS["masked_model"][1]
        )
        pressed = st.form_submit_button("Run", type="primary")
    costs = [
        f"{name} about {duration(rough_seconds(engine.workspace, spec.captions, MEASURES_OF[name]))}"
        for name in MEASURES_OF
    ]
    note(f"{spec.model} on two cores: {', '.join(costs)}. Models must be on this machine.")
    if not pressed:
        return
    models = {"sentence_encoder": encoder.strip() or None}
    if what == SCORE:
        models |= {"language_model": language.strip() or None, "masked_model": masked.strip() or None}
    given = {key: value for key, value in models.items() if value}
    with errors():
        asked = replace(request, metrics=METRICS_OF[what], options=request.options | given)
        engine.submit(plan(engine.workspace, asked), collection)
        st.rerun()

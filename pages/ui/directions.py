"""The tab Directions of Scores: A->T against T->A, and metrics on sets whose bias is in the language alone."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import Request, plan
from capbias_core.views.directions import (
    MEASURES,
    WAY,
    basis,
    directions,
    directions_answer,
    directions_table,
    explained,
    measured_otherwise,
    measures_in,
    of_tasks,
    plane,
    way_text,
    ways_measured,
)
from capbias_core.views.known_answer import kept_answers, known_basis, known_sentence, known_table
from capbias_core.views.published import measured_rows
from capbias_core.views.sentence import intervals_over, named_notes, variants_warning
from capbias_core.workspace.conditions import originals
from capbias_core.workspace.store import Item
from pages.ui import cached, view
from pages.ui.bar import Bar
from pages.ui.base import attribute_names, box, captions_and_labels, errors, label_caveats, note
from pages.ui.chart import draw_chart
from pages.ui.running import answer_box, start_button, to_do
from pages.ui.table import draw_table

SEEDS = 5
WHAT = (
    "A captioner can over-reveal the person's {attribute} (A→T) or the objects in the image (T→A). Each captioner is a "
    "point in the chart, which suggests which images to add to the training set."
)
ADVICE = (
    "Images to add to the training set follow the DBAC paper's advice; capbias has not tested that it helps. A→T above "
    "0: this value without its usual objects. T→A above 0: these objects with the other value."
)
BELOW_TABLE = (
    "± is the standard deviation over attacker seeds. Unclear: the interval contains 0; for A→T also if the result "
    "does not beat an attacker that reads no text."
)


def directions_tab(bar: Bar) -> None:
    sets_and_tables = captions_and_labels(bar.engine, bar.collection)
    if sets_and_tables:
        with errors():
            _plane(bar, sets_and_tables[1])
    st.divider()
    _known(bar.engine)


def _plane(bar: Bar, tables: list[Item]) -> None:
    engine, collection = bar.engine, bar.collection
    sets = tuple(originals(engine.workspace.items("captions", collection)))
    attribute = bar.attribute(attribute_names(tables))
    table, human = bar.labels(attribute), bar.references(attribute)
    rows = cached.once(
        engine.workspace,
        "rows",
        lambda: measured_rows(engine.workspace, collection, {attribute: table}, {attribute: human} if human else {}),
    )
    rows = rows[(rows["attribute"] == attribute) & rows["model"].isin(sets)]
    measures = measures_in(rows)
    if not measures:
        box("Nothing is measured in both directions yet.", WHAT.format(attribute=attribute))
        _measure(engine, collection, sets, table, attribute, human)
        return
    name = view.selectbox(bar.place, "Metric", measures, key="measure", missing="the metric", any_case=True)
    every_way = directions(rows, name)
    frame = _measured_with(bar, every_way)
    text = directions_answer(frame, rows, name, attribute)
    answer_box(engine, collection, text)
    if otherwise := measured_otherwise(every_way, frame):
        note(otherwise)
    if warning := variants_warning(rows):
        note(f"⚠ {warning}")
    draw_chart(plane(frame, name), key="plane", alt=f"{name} in both directions", headline=text.headline)
    draw_table(directions_table(frame, rows, name), alt="Both directions of each captioner")
    note(f"{basis(frame)} Value [{intervals_over(rows)}]. {BELOW_TABLE}")
    notes = cached.once(engine.workspace, "notes", lambda: _notes(engine, rows, frame, name))
    label_caveats({attribute: table}, [of_tasks(ADVICE, name), explained(name), *notes])
    _measure(engine, collection, sets, table, attribute, human)


def _notes(engine: Engine, rows: pd.DataFrame, frame: pd.DataFrame, name: str) -> list[str]:
    """What the runs behind these points say of themselves, such as whose objects they read."""
    own = rows["metric"].isin([metric for metric, _ in MEASURES[name].values()]) & rows["model"].isin(frame["model"])
    ids = rows.loc[own & rows["encoder"].isin(frame["encoder"]), "run_id"].unique()
    return named_notes([(run.spec.model, run.notes) for run in engine.workspace.runs_of(list(ids)).values()])


def _measured_with(bar: Bar, frame: pd.DataFrame) -> pd.DataFrame:
    """The captioners that were measured alike: one attacker, variant and number of seeds."""
    ways = {way_text(way): way for way in ways_measured(frame)}
    choices = {title: {"attacker": way[WAY.index("encoder")]} for title, way in ways.items()}
    chosen = bar.measured_with(choices, {title: title for title in ways}, "way")
    return frame[(frame[list(WAY)] == list(ways[chosen])).all(axis=1)]


def _measure(
    engine: Engine, collection: str, sets: tuple[str, ...], table: Item, attribute: str, human: Item | None
) -> None:
    """A button that measures DBAC and DBA, with what it costs; nothing where that is done."""
    if human is None:
        note("Both directions need human captions of the same images.")
        view.link(st, "pages/1_Data.py", "Add data", ":material/upload:")
        return
    request = Request(collection, sets, table.name, attribute, ("dbac", "dba", "ba"), human.name, seeds=SEEDS)
    specs = plan(engine.workspace, request)
    if to_do(engine, specs)[1]:
        note(f"DBAC (attacker ngram, {SEEDS} seeds), DBA and BA. Other metrics and attackers: in the tab Table.")
        start_button(engine, collection, specs, "Measure", "measure_now")


def _known(engine: Engine) -> None:
    st.header("Which metrics detect bias in wording alone?")
    note(
        "Four synthetic sets (C1 to C4 of the DBAC paper, 100 times as large). Gender and objects are balanced and "
        "independent; only verbs follow gender, in 60, 70, 80 and 90% of captions. In a control, verbs are balanced "
        "and objects follow gender in 80%."
    )
    rows = kept_answers(engine.workspace, compute=False)
    if rows is None:
        if st.button("Measure the sets (half a minute)", key="known"):
            with st.spinner("Measuring"):
                kept_answers(engine.workspace, compute=True)
            st.rerun()
        return
    st.markdown(f"**{known_sentence(rows)}**")
    draw_table(known_table(rows), alt="Metrics of the controlled sets beside what they tend to")
    note(known_basis(rows))

"""The tabs of Images: the masking experiment, one photograph, and what photographs still need."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from capbias_core.attackers import ATTACKERS, attacker_entry
from capbias_core.load.published import published_results
from capbias_core.measures.options import MOST_SEEDS
from capbias_core.runs.condition_runs import Plan, plan_conditions
from capbias_core.runs.engine import Engine
from capbias_core.spreadsheets import csv_text
from capbias_core.types import CONDITIONS
from capbias_core.views.conditions import (
    TITLES,
    WHAT,
    apart_from_measured,
    condition_answer,
    condition_chart,
    condition_rows,
    condition_table,
    panel_names,
    without_value,
)
from capbias_core.views.published import printed_conditions
from capbias_core.views.sentence import intervals_over
from capbias_core.workspace.conditions import all_sets, condition_of, condition_sets, describe, taken_of_several
from capbias_core.workspace.store import Item
from pages.ui import view
from pages.ui.artifact_runs import artifact_tabs, upload
from pages.ui.bar import Bar
from pages.ui.base import attribute_names, box, empty_state, errors, label_caveats, note
from pages.ui.chart import draw_chart
from pages.ui.photo_inspector import photo_inspector
from pages.ui.running import active_runs, start_button
from pages.ui.table import draw_table

SEEDS = 10


@dataclass(frozen=True)
class Masked:
    """What the tabs read. sets: those of the captioner by condition. chosen: names of sets where there are several of
    one condition. table: the labels of the attribute, None if there are none."""

    bar: Bar
    captioner: str
    attribute: str
    table: Item | None
    chosen: list[str]
    sets: dict[str, Item]


def experiment_tab(bar: Bar) -> None:
    """How far the score falls when the person, the objects or both are hidden."""
    masked = _masked(bar)
    if masked is None:
        return
    if len(masked.sets) < 2 or masked.table is None:
        box("Nothing to show yet.", _missing(bar.collection, len(masked.sets) > 1))
    else:
        with errors():
            human = bar.references(masked.attribute)
            attacker = view.selectbox(
                bar.place,
                "Attacker",
                list(ATTACKERS),
                key="attacker",
                accept_new_options=True,
                help="ngram: a linear attacker, a preview in seconds. lstm_bi and lstm: the LIC and the DBAC paper's.",
            )
            name = attacker_entry(attacker).name
            rows = _answer(masked, human, name)
            plan = _run(masked, human, name, _seeds(bar))
            for line in taken_of_several(bar.workspace, bar.collection, masked.captioner, masked.chosen):
                note(f"Of several sets of {masked.captioner}, {line}. Choose another on the left.")
            _chart(rows, masked.attribute, masked.captioner)
            if missing := without_value(bar.workspace, plan, masked.sets, rows):
                note(" ".join(missing))
    with errors():
        _which_is_which(bar.engine, bar.collection)
    if masked.table:
        label_caveats({masked.attribute: masked.table})


def photograph_tab(bar: Bar) -> None:
    masked = _masked(bar)
    if masked is not None:
        with errors():
            photo_inspector(bar.engine, bar.collection, masked.sets, masked.attribute, masked.table, _seeds(bar))


def prepare_tab(bar: Bar) -> None:
    masked = _masked(bar)
    with errors():
        if masked is not None:
            artifact_tabs(bar.engine, bar.collection, masked.sets, masked.attribute, masked.table)
        upload(bar.engine, bar.collection)


def _masked(bar: Bar) -> Masked | None:
    """What is chosen; None if nothing is loaded, and what to do next is shown."""
    if not bar.collection:
        empty_state(bar.engine, "No photographs and no captions are loaded yet.")
        return None
    sets = all_sets(bar.workspace, bar.collection)
    attribute = bar.attribute(attribute_names(bar.workspace.items("attributes", bar.collection)))
    table = bar.labels(attribute) if attribute else None
    captioner = bar.captioner(list(sets)) or ""
    chosen = [_which(condition, items) for condition, items in sets.get(captioner, {}).items() if len(items) > 1]
    of_captioner = condition_sets(bar.workspace, bar.collection, chosen).get(captioner, {})
    return Masked(bar, captioner, attribute, table, chosen, of_captioner)


def _seeds(bar: Bar) -> int:
    return int(view.number(bar.place, "Seeds", 1, MOST_SEEDS, SEEDS, key="seeds", help="The papers use 10."))


def _answer(masked: Masked, human: Item | None, attacker: str) -> pd.DataFrame:
    """The answer as a sentence; the rows that it rests on."""
    bar, name = masked.bar, masked.attribute
    rows = condition_rows(
        bar.workspace,
        bar.collection,
        masked.captioner,
        name,
        attacker,
        masked.chosen,
        table=masked.table,
        references=human,
    )
    text = condition_answer(rows, masked.captioner, name, bool(active_runs(bar.engine, bar.collection)))
    box(text.headline, text.support)
    return rows


def _missing(collection: str, masked: bool) -> str:
    if masked:
        return f"Load a table of labels for “{collection}” on Data."
    return (
        "Load captions of the same photographs, original and masked: name the files sat and sat_masked_person, or set "
        "captioner and condition below. The tab Prepare can mask photographs and write captions."
    )


def _which(condition: str, items: list[Item]) -> str:
    """The set of a condition that is shown, of several; the newest first."""
    return view.selectbox(
        st.sidebar,
        f"Set for condition {condition}",
        [item.name for item in items],
        key=f"set_{condition}",
        help="This captioner has several sets for this condition, such as grey and blurred.",
    )


def _run(masked: Masked, human: Item | None, attacker: str, seeds: int) -> Plan:
    """What is missing, what it costs, and the button."""
    bar = masked.bar
    plan = plan_conditions(
        bar.workspace,
        bar.collection,
        masked.captioner,
        masked.attribute,
        attacker,
        seeds,
        references=human.name if human else "",
        chosen=masked.chosen,
        table=masked.table,
    )
    for line in plan.lacking:
        note(line)
    start_button(bar.engine, bar.collection, list(plan.specs), "Run", "run_conditions")
    return plan


def _chart(rows: pd.DataFrame, attribute: str, captioner: str) -> None:
    beside = view.checkbox(st, "Overlay published values", default=True, key="printed", draw="toggle")
    printed = printed_conditions(published_results(), attribute)
    compared, alone = apart_from_measured(rows, printed)
    figure = condition_chart(rows, compared if beside else compared.iloc[:0])
    if figure is None:
        note("Nothing is measured yet.")
    else:
        masked = "; ".join(f"{name}: {what}" for name, what in WHAT.items())
        what = f"Metrics of {captioner} against what was masked"
        draw_chart(
            figure,
            key="conditions",
            alt=what,
            headline=what,
            notes="Dots: measured values with 95% intervals. Dashed: chance for LIC_M, 0 for the others. Grey: LIC "
            "(BiLSTM, Table 4) and DBAC (BLIP, LSTM, Table 4), other captioners or encoders, so not comparable. "
            f"Conditions: {masked}.",
        )
    if beside:
        _printed_alone(rows, alone)
    if figure is None:
        return
    if rows.empty:
        return
    draw_table(condition_table(rows), alt="Each metric and condition")
    part = " LIC_M is on all images, LIC on those that have human captions." if _parted(rows) else ""
    note(
        f"Value [{intervals_over(rows)}]. Minus original: paired over the images that both sets have, so it can differ "
        f"from the difference of the two values. Minus neutral: above chance for LIC_M, above 0 for the others.{part}"
    )
    st.download_button("CSV", csv_text(rows), f"{captioner}_masked.csv", "text/csv", key="conditions_csv")


def _printed_alone(rows: pd.DataFrame, alone: pd.DataFrame) -> None:
    """Metrics of which papers printed values and nothing is measured here, folded away."""
    figure = condition_chart(rows.iloc[:0], alone)
    if figure is None:
        return
    names = ", ".join(panel_names(alone))
    folded = st.expander(f"Published values only: {names}", key="printed_alone", on_change="rerun")
    if folded.open:
        with folded:
            draw_chart(figure, key="alone", alt=f"Printed values of {names} against the condition")


def _parted(rows: pd.DataFrame) -> bool:
    """Whether LIC rests on fewer images than LIC_M."""
    counts = rows.groupby("metric")["n"].max()
    return {"LIC", "LIC_M"} <= set(counts.index) and counts["LIC"] < counts["LIC_M"]


def _which_is_which(engine: Engine, collection: str) -> None:
    """Name captioner and condition of each kept set."""
    sets = engine.workspace.items("captions", collection)
    if not sets:
        return
    with st.expander("Captioner and condition of each set", key="which_is_which", on_change="rerun"):
        note(
            "Suggested from names such as sat_masked_person. Changing them does not delete results. If several sets "
            "have the same captioner and condition, the newest is used unless you choose another on the left."
        )
        described = [condition_of(item) for item in sets]
        table = pd.DataFrame(
            {
                "set": [item.name for item in sets],
                "captioner": [captioner for captioner, _ in described],
                "condition": [condition for _, condition in described],
            }
        )
        edited = st.data_editor(
            table,
            hide_index=True,
            disabled=["set"],
            key="described",
            column_config={
                "condition": st.column_config.SelectboxColumn(
                    options=list(CONDITIONS), required=True, format_func=lambda name: TITLES[str(name)]
                )
            },
        )
        if st.button("Save", key="describe", disabled=edited.equals(table)):
            _save(engine, sets, edited)


def _save(engine: Engine, sets: list[Item], edited: pd.DataFrame) -> None:
    changed = [
        (item, row["captioner"], row["condition"])
        for item, row in zip(sets, edited.to_dict("records"), strict=True)
        if (row["captioner"], row["condition"]) != condition_of(item)
    ]
    for item, captioner, condition in changed:
        describe(engine.workspace, item, captioner or item.name, condition)
    st.rerun()

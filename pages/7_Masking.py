"""Where does the bias come from: the person, the objects, or the language? Photographs masked, captioned, judged."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from capbias_core.analysis.conditions import COLUMNS, condition_rows, without_value
from capbias_core.analysis.printed import printed_conditions
from capbias_core.attackers import ATTACKERS, attacker_entry
from capbias_core.load.published import published_results
from capbias_core.measures.options import MOST_SEEDS
from capbias_core.present.conditions import (
    TITLES,
    WHAT,
    apart_from_measured,
    condition_answer,
    condition_chart,
    condition_table,
    missing_line,
    panel_names,
)
from capbias_core.present.sentence import intervals_over
from capbias_core.runs.condition_runs import Plan, plan_conditions
from capbias_core.runs.engine import Engine
from capbias_core.spreadsheets import csv_text
from capbias_core.types import CONDITIONS
from capbias_core.workspace.conditions import all_sets, condition_of, condition_sets, describe, taken_of_several
from capbias_core.workspace.store import Item
from pages.ui import view
from pages.ui.artifact_runs import artifact_tabs, upload
from pages.ui.base import (
    attribute_names,
    box,
    collection_picker,
    draw,
    empty_state,
    errors,
    human_by_attribute,
    label_caveats,
    label_tables,
    note,
    page,
)
from pages.ui.chart import draw_chart
from pages.ui.photo_inspector import photo_inspector
from pages.ui.running import active_runs, progress, start_button
from pages.ui.table import draw_table

BY_DEFAULT = ("gender",)
SEEDS = 10


def main() -> None:
    engine = page("Masking")
    collection = collection_picker(engine.workspace)
    if not collection:
        empty_state(engine, "No photographs and no captions are loaded yet.")
        upload(engine, "")
        return
    with st.container():  # what stands below keeps its place when progress comes and goes, so that nothing closes
        progress(engine)
    sets = all_sets(engine.workspace, collection)
    names = attribute_names(engine.workspace.items("attributes", collection))
    captioner, attributes, attacker, seeds, chosen = _choices(sets, names)
    labels = label_tables(st.sidebar, engine, collection, attributes)
    human = human_by_attribute(st.sidebar, engine, collection, attributes)
    own = condition_sets(engine.workspace, collection, chosen).get(captioner, {})
    rows = pd.DataFrame(columns=list(COLUMNS))
    first = next(iter(labels.items()), ("", None))
    whole = len(own) > 1 and bool(attributes)
    with errors():
        if whole:
            rows = _answers(engine, collection, captioner, labels, attacker, chosen, human)
    if whole:
        st.header("A whole set against the condition")
        with errors():
            plans = _run(engine, collection, captioner, labels, attacker, seeds, chosen, human)
            for line in taken_of_several(engine.workspace, collection, captioner, chosen):
                note(f"Of several sets of {captioner}, {line}. Choose another on the left.")
            _chart(rows, attributes, captioner)
            for name, found in plans.items():
                _missing_values(engine, name, found, own, rows)
    st.header("One photograph")
    with errors():
        photo_inspector(engine, collection, own, *first, seeds)
    with errors():
        artifact_tabs(engine, collection, own, *first)
        upload(engine, collection)
    if not whole:
        st.header("A whole set against the condition")
        note(_missing(collection, len(own) > 1))
    with errors():
        _which_is_which(engine, collection)
        label_caveats(labels)


def _answers(
    engine: Engine,
    collection: str,
    captioner: str,
    labels: dict[str, Item],
    attacker: str,
    chosen: list[str],
    human: dict[str, Item],
) -> pd.DataFrame:
    """A sentence for each attribute, and the rows that they rest on."""
    found = []
    for name, table in labels.items():
        rows = condition_rows(
            engine.workspace, collection, captioner, name, attacker, chosen, table=table, references=human.get(name)
        )
        found.append(rows)
        text = condition_answer(found[-1], captioner, name, bool(active_runs(engine, collection)))
        box(text.headline, text.support)
    return pd.concat([own for own in found if len(own)] or found, ignore_index=True)


def _missing(collection: str, masked: bool) -> str:
    if masked:
        return f"Choose a protected attribute; without a table of labels for “{collection}”, load one on the Data page."
    return (
        "For this, load captions of the same photographs, original and masked: name the files sat and "
        "sat_masked_person, or say below which captioner and which condition each set is of. Masked photographs and "
        "their captions can also be made here."
    )


def _choices(
    sets: dict[str, dict[str, list[Item]]], attributes: list[str]
) -> tuple[str, list[str], str, int, list[str]]:
    """Captioner, attributes, attacker, seeds, and the names of the sets that were chosen where there are several."""
    side = st.sidebar
    captioner = view.selectbox(side, "Captioner", list(sets), key="captioner", missing="the captioner") or ""
    ways = {name: {"attribute": name} for name in sorted(attributes, key=lambda name: name not in BY_DEFAULT)}
    first = [view.alike(ways)] if ways else []
    chosen = view.multiselect(
        side,
        "Protected attributes",
        attributes,
        default=first,
        key="attributes",
        missing="the attribute",
        help="The first is the one whose words and scores a photograph's captions show.",
    )
    if chosen:
        view.carry(ways, chosen[0])
    attacker = view.selectbox(
        side,
        "Attacker",
        list(ATTACKERS),
        key="attacker",
        accept_new_options=True,
        help="ngram: a linear attacker, a preview in seconds. lstm_bi and lstm: the LIC and the DBAC paper's.",
    )
    seeds = view.number(side, "Seeds", 1, MOST_SEEDS, SEEDS, key="seeds", help="The papers use 10.")
    taken = [_which(condition, items) for condition, items in sets.get(captioner, {}).items() if len(items) > 1]
    return captioner, chosen, attacker_entry(attacker).name, int(seeds), taken


def _which(condition: str, items: list[Item]) -> str:
    """The set of a condition that is shown, of several; the newest first."""
    return view.selectbox(
        st.sidebar,
        f"Set of the condition {condition}",
        [item.name for item in items],
        key=f"set_{condition}",
        help="This captioner has several sets of this condition, such as one filled with grey and one blurred.",
    )


def _run(
    engine: Engine,
    collection: str,
    captioner: str,
    labels: dict[str, Item],
    attacker: str,
    seeds: int,
    chosen: list[str],
    human: dict[str, Item],
) -> dict[str, Plan]:
    """What is missing, what it costs, and the button; the plan for each attribute."""
    plans = {
        name: plan_conditions(
            engine.workspace,
            collection,
            captioner,
            name,
            attacker,
            seeds,
            references=human[name].name if name in human else "",
            chosen=chosen,
            table=table,
        )
        for name, table in labels.items()
    }
    specs = {spec.run_id: spec for found in plans.values() for spec in found.specs}
    for line in dict.fromkeys(line for found in plans.values() for line in found.lacking):
        note(line)
    start_button(engine, collection, list(specs.values()), "Run", "run_conditions")
    return plans


def _missing_values(engine: Engine, attribute: str, found: Plan, sets: dict[str, Item], rows: pd.DataFrame) -> None:
    """Which metrics have no value for which conditions, and why."""
    missing = without_value(engine.workspace, found, sets, rows[rows["attribute"] == attribute])
    if missing:
        note(f"{attribute}: {' '.join(map(missing_line, missing))}")


def _chart(rows: pd.DataFrame, attributes: list[str], captioner: str) -> None:
    beside = view.checkbox(st, "Printed values beside, in grey", default=True, key="printed", draw="toggle")
    published = published_results()
    printed = pd.concat([printed_conditions(published, name) for name in attributes], ignore_index=True)
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
            notes="Dots are measured values with 95% intervals; dashed: chance for LIC_M, 0 for the others. Grey: "
            "printed by LIC (BiLSTM, Table 4) and DBAC (BLIP, LSTM, Table 4): other captioners or encoders, shown "
            f"beside, deciding nothing. Conditions: {masked}.",
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
        f"Value [{intervals_over(rows)}]. Minus original: over the images that the set shares with the originals, "
        "within each seed, so it need not be the difference of the two values (the CSV has the originals' value that "
        "it is against). Minus neutral: above chance for LIC_M, the "
        f"value itself for the others.{part}"
    )
    st.download_button("CSV", csv_text(rows), f"{captioner}_masked.csv", "text/csv", key="conditions_csv")


def _printed_alone(rows: pd.DataFrame, alone: pd.DataFrame) -> None:
    """Metrics of which papers printed values and nothing is measured here, folded away."""
    figure = condition_chart(rows.iloc[:0], alone)
    if figure is None:
        return
    names = ", ".join(panel_names(alone))
    folded = st.expander(f"Printed values alone: {names}", key="printed_alone", on_change="rerun")
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
    with st.expander("Which set is which condition", key="which_is_which", on_change="rerun"):
        note(
            "Suggested from names such as sat_masked_person. What was measured stays when you change it. Of several "
            "sets of one captioner and condition the newest is shown, or the one chosen on the left."
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


if __name__ == "__main__":  # tests import the page, and must not draw it
    draw(main)

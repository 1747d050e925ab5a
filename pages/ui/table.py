"""Scores, tab Table: the numbers of all captioners, what else to measure, and the files of everything."""

from __future__ import annotations

import json

import streamlit as st

from capbias_core.attackers import ATTACKERS, DEFAULT_ATTACKER, attacker_entry
from capbias_core.errors import CapbiasError, short
from capbias_core.kinds import CAPTIONS, LABELS, PHOTOGRAPHS
from capbias_core.measures import registry
from capbias_core.measures.options import MOST_SEEDS
from capbias_core.measures.protocols import PROTOCOLS, protocol_metrics, protocol_settings
from capbias_core.prepare.java import default_tokenizer
from capbias_core.question import Question
from capbias_core.runs.plan import left_out, plan, useful
from capbias_core.views.table import TABLE, TableOptions
from capbias_core.workspace.conditions import originals
from capbias_core.workspace.labels import table_with
from capbias_core.workspace.store import human_sets
from pages.ui import controls
from pages.ui.base import errors, note
from pages.ui.empty import empty_state, lacking, needs
from pages.ui.page import Page
from pages.ui.runs import start_button
from pages.ui.show import show

NO_HUMAN = "none"


def table_tab(page: Page) -> None:
    if not page.collection:
        empty_state(page, "Load captions of your model and labels of the same images.")
        return
    if missing := needs(page):
        lacking(page, missing)
        return
    choice = page.choice
    if choice:
        line = st.container(horizontal=True)
        known = [
            name
            for name in registry.METRICS
            if name in set(choice.rows["metric"]) and not registry.METRICS[name].gap_of
        ]
        metrics = controls.multiselect(
            line, "Metrics shown", known, key="shown", placeholder="the usual ones", width=420
        )
        others = [name for name in choice.options["attribute"] if name != choice.attribute]
        attributes = controls.multiselect(line, "Beside it", others, key="beside", width=300) if others else []
        options = TableOptions(metrics=tuple(metrics), attributes=tuple(attributes))
        with errors():
            show(TABLE, choice, TABLE.rows(choice, options))
        _whole(page)
    folded = st.expander("Measure more", key="measure_open", expanded=choice is None)
    with folded, errors():
        _measure(page)


def _whole(page: Page) -> None:
    """All results of the collection as a report to send and as a bundle to recompute, made when they are asked for."""
    box = st.popover("Report and bundle", icon=":material/download:", key="whole_files", on_change="rerun")
    if not box.open:
        return
    name = page.collection.replace(" ", "_")

    def bundle() -> bytes:
        from capbias_core.bundle.write import write_bundle

        return write_bundle(page.workspace, page.collection)

    def report() -> str:
        from capbias_core.bundle.write import write_report

        return write_report(page.workspace, page.collection)

    row = box.container(horizontal=True)
    row.download_button("Report (HTML)", report, f"{name}.html", on_click="ignore", key="whole_report")
    row.download_button("Bundle (zip)", bundle, f"{name}.zip", on_click="ignore", key="whole_bundle")
    with box:
        note("The report is for people. The bundle also has the inputs; capbias reproduce recomputes it.")


def _measure(page: Page) -> None:
    """What to measure, what it costs, and the button that starts it."""
    choice, workspace = page.choice, page.workspace
    left, right = st.container(key="stacks").columns(2, gap="large")
    captioners = controls.multiselect(
        left,
        "Captioners",
        [item.name for item in page.items(CAPTIONS)],
        key="sets",
        default=originals(page.items(CAPTIONS)),
    )
    names = page.attributes
    attribute = controls.selectbox(
        left, "Attribute", names, key="measured_attribute", default=choice.attribute if choice else None
    )
    human = [item.name for item in human_sets(workspace, page.collection)]
    references = controls.selectbox(left, "Human captions", [*human, NO_HUMAN], key="compared_with")
    protocol = controls.selectbox(
        right,
        "Protocol",
        ["usual", *PROTOCOLS],
        key="protocol",
        format_func=lambda name: PROTOCOLS[name].title if name in PROTOCOLS else "Each metric's paper, quick attacker",
        help="Sets attacker, seeds and split as in a paper. Results list every deviation.",
    )
    protocol = "" if protocol == "usual" else protocol
    settings = protocol_settings(protocol)
    attacker = controls.selectbox(
        right,
        "Attacker",
        list(ATTACKERS),
        key=f"attacker_{protocol}",
        default=settings.get("attacker", DEFAULT_ATTACKER),
        accept_new_options=True,
        help="ngram: a linear attacker, a preview in seconds. lstm_bi and lstm: the LIC and the DBAC paper's. Or type "
        "the folder or name of a sentence-transformers or transformers model on this machine.",
    )
    entry = attacker_entry(attacker)
    seeds = controls.number(
        right, "Seeds", 1, MOST_SEEDS, int(settings.get("seeds", entry.seeds)), key=f"seeds_{protocol}_{attacker}"
    )
    photographs = bool(workspace.items(PHOTOGRAPHS, page.collection))
    groups = {
        name: group
        for name, group in registry.GROUPS.items()
        if photographs or not registry.measure_of(group.metrics[0]).needs.photographs
    }
    metrics = controls.multiselect(
        left,
        "Metrics",
        groups,
        key=f"metrics_{protocol}",
        default=[name for name in protocol_metrics(protocol, registry.default_groups()) if name in groups],
        format_func=lambda name: groups[name].title,
    )
    words = controls.checkbox(
        right,
        "Score every caption",
        key="words",
        default=entry.in_process,
        help="Shows scores and words on Captions. Each caption is scored by an attacker that did not train on it.",
    )
    typed = controls.text(
        right,
        "Further options",
        key="options",
        placeholder='{"test_share": 0.2}',
        help="JSON: any option of a metric by its name. `capbias metrics NAME` lists them.",
    )
    if not captioners or not metrics:
        note("Choose a captioner and a metric.")
        return
    question = Question(
        collection=page.collection,
        captions=tuple(captioners),
        labels=table_with(page.items(LABELS), attribute).name,
        attribute=attribute,
        metrics=tuple(metrics),
        references="" if references == NO_HUMAN else references or "",
        attacker=(attacker,),
        seeds=int(seeds),
        words=words,
        options={"tokenizer": default_tokenizer()}
        | {name: value for name, value in settings.items() if name not in ("attacker", "seeds")}
        | _options(typed),
    )
    specs, reasons = useful(plan(workspace, question), question)
    for line in left_out(reasons, flags=False):
        note(f"{line}.")
    start_button(page, specs, "Run", "run_scores")


def _options(text: str) -> dict:
    """Options that were typed as JSON. Raises CapbiasError for anything but an object."""
    try:
        options = json.loads(text) if text.strip() else {}
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise CapbiasError(f"Further options are no JSON object: {short(text)}", 'Write such as {"test_share": 0.2}.')
    return options

"""The tab Alignment of Scores: how it changes the human captions, over delta, and leakage under both alignments."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from capbias_core.kinds import CAPTIONS, KINDS, LABELS, REFERENCES, VECTORS
from capbias_core.load.published import published_results
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.views.alignment import COMPARED, constant_sentence, side_by_side, sweep_shown
from capbias_core.views.published import measured_rows
from capbias_core.workspace.conditions import originals
from capbias_core.workspace.store import Item, bytes_frame
from pages.ui import view
from pages.ui.bar import Bar, attribute_names, empty_state, lacking
from pages.ui.base import box, errors, label_caveats, note
from pages.ui.drawing import draw_table
from pages.ui.plain import plain
from pages.ui.runs import start_button
from pages.ui.score_table import chosen_alignment
from pages.ui.shown import draw_shown

WHAT = (
    "People use more words than a captioner. Before an attacker reads human captions, words that the captioner never "
    "uses are replaced: by <unk> (constant alignment, LIC), or by the captioner's nearest word within a distance delta "
    "(contextual alignment, DBAC). A small delta loses words; a large one adds unrelated ones."
)
BRING = "Contextual alignment needs word vectors: a file of GloVe, word2vec or fastText."
MEASURED_BY = {
    "LIC_D": "press Measure LIC_D",
    "METEOR_aligned": "press Measure the sweep",
    "DBAC_H": "choose DBAC and a vocabulary alignment in the tab Table",
}


def alignment_tab(bar: Bar) -> None:
    note(WHAT)
    if not bar.collection:
        empty_state(bar, "No captions are loaded yet.")
        return
    if missing := " and ".join(KINDS[kind].title for kind in (CAPTIONS, REFERENCES, LABELS) if not bar.items(kind)):
        lacking(bar, missing)
        return
    with errors():
        request, table = _request(bar)
        if request.options:
            _measure(bar, request)
            _sweeps(bar, request)
        else:
            _constant(bar, request)
            _measure(bar, request)
        _compare_alignments(bar, request, table)
        label_caveats({request.attribute: table})


def _request(bar: Bar) -> tuple[Question, Item]:
    side, items = st.sidebar, bar.items("captions")
    names, unmasked = [item.name for item in items], originals(items)
    captions = view.multiselect(side, "Captioners", names, default=unmasked, key="sets", missing="the captioner")
    attribute = bar.attribute(attribute_names(bar.items("labels")))
    table, human = bar.labels(attribute), bar.references(attribute)
    options, vectors = {}, {item.name: item for item in bar.items(VECTORS)}
    if vectors:
        name = view.selectbox(side, "Word vectors", list(vectors), key="vectors", missing="the word vectors")
        options["alignment"] = chosen_alignment(vectors[name])
    request = Question(
        bar.collection,
        tuple(captions),
        table.name,
        attribute,
        ("alignment",),
        human.name if human else "",
        options=options,
    )
    return request, table


def _constant(bar: Bar, request: Question) -> None:
    """What can be said without word vectors, and what to bring for the rest."""
    if request.captions:
        model = bar.captioner(request.captions)
        lic = replace(request, captions=(model,), metrics=("lic",), options={})
        spec = next(spec for spec in plan(bar.workspace, lic) if spec.references)
        with st.spinner("Counting words"):
            headline, support = constant_sentence(bar.workspace, spec)
        box(headline, support)
    left, right = st.container(key="stacks_vectors").columns([4, 1], vertical_alignment="center")
    with left:
        note(BRING)
    if right.button("Add word vectors", icon=":material/upload_file:", width="stretch"):
        view.go("pages/1_Data.py", tab="Models and vectors")


def _measure(bar: Bar, request: Question) -> None:
    leakage = [
        spec
        for options in ([{}, request.options] if request.options else [{}])
        for spec in plan(bar.workspace, replace(request, metrics=("lic",), options=options))
        if spec.references
    ]
    if request.options:
        start_button(bar, plan(bar.workspace, request), "Measure the sweep", "measure_sweep")
    start_button(bar, leakage, "Measure LIC_D", "measure_lic_d")


def _sweeps(bar: Bar, request: Question) -> None:
    runs = bar.workspace.runs_of([spec.run_id for spec in plan(bar.workspace, request)])
    finished = [run for run in runs.values() if run.status == "finished"]
    tables = {run.spec.model: bytes_frame(bar.workspace.array(run.run_id, "sweep")) for run in finished}
    if not tables:
        note("The sweep is not measured yet for these choices.")
        return
    primary = bar.captioner(list(tables))
    delta = request.options["alignment"]["delta"]
    notes = list(dict.fromkeys(text for run in runs.values() for text in run.notes))
    shown = sweep_shown(tables, primary, delta, notes)
    draw_shown(shown, "sweep", boxed=True, headline=shown.sentence, folded=f"The numbers of {primary}")


def _compare_alignments(bar: Bar, request: Question, table: Item) -> None:
    """Metrics of the human captions under both alignments, beside printed ones."""
    option = request.options.get("alignment")
    st.header("Constant and contextual alignment, side by side" if option else "Constant alignment")
    human = bar.workspace.item("references", request.references, bar.collection)
    measured = measured_rows(bar.workspace, bar.collection, {request.attribute: table}, {request.attribute: human})
    measured = measured[measured["model"].isin(request.captions)]
    printed = published_results()
    for metric, (_, title) in COMPARED.items():
        if metric == "METEOR_aligned" and not option:
            continue  # only the sweep has it
        both = side_by_side(measured, printed, metric, request.attribute, option)
        st.markdown(f"**{plain(title)}**")
        if both.empty:
            note(f"Not measured yet: {MEASURED_BY[metric]}.")
        else:
            draw_table(both, alt=title)
    note(
        "Value ± standard deviation over attacker seeds [95% interval], all ×100. Published "
        "values, if any, are from Tables 7, 8, 16 and 17, for other images and attackers, so not directly comparable. "
        "A number is about captions and labels, never about a person."
    )

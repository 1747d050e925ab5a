"""The tab Table of Scores: choose captioners, settings and metrics; run; read and download table and chart."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

from capbias_core.aggregate.comparison import Sensitivity, unlearned_note
from capbias_core.attackers import ATTACKERS, at_hand, attacker_entry
from capbias_core.bundle.write import write_bundle
from capbias_core.measures.options import MOST_SEEDS
from capbias_core.measures.protocols import PROTOCOLS, protocol_metrics, protocol_settings
from capbias_core.measures.registry import (
    DEFAULT_GROUPS,
    GROUPS,
    MEASURES,
    METRICS,
    expand_metrics,
    measure_of,
    protocol_notes,
)
from capbias_core.prepare.java import default_tokenizer
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import PER_CAPTION, Request, left_out, plan, useful
from capbias_core.types import left_out_lines
from capbias_core.views.charts import chart_series, interval_chart
from capbias_core.views.encoders import encoder_note, encoders_warning, sensitivity_alike
from capbias_core.views.groups import (
    BEYOND,
    BY_VALUE,
    GAPS,
    READING,
    beyond_table,
    by_captioner,
    by_value_table,
    cells_left_out,
    gap_table,
    no_beyond,
    of_gaps,
    of_groups,
)
from capbias_core.views.latex import to_latex
from capbias_core.views.results import attribute_of_run, comparisons, known_results, with_inputs
from capbias_core.views.sentence import (
    BY_HUMAN,
    best_text,
    decimals,
    headline,
    intervals_over,
    named_notes,
    second_dots,
    told_apart,
    variants_warning,
)
from capbias_core.views.tables import first_columns, lettered, pair_table, scores_table, to_csv
from capbias_core.workspace.conditions import left_out_as_masked, originals
from capbias_core.workspace.ingest import WARNINGS
from capbias_core.workspace.labels import reads
from capbias_core.workspace.objects import object_sources
from capbias_core.workspace.photographs import photograph_sets
from capbias_core.workspace.spec import RunSpec, attribute_from
from capbias_core.workspace.store import ACTIVE, Item
from pages.ui import cached, present, view
from pages.ui.bar import Bar
from pages.ui.base import MASKED_TOO, attribute_names, captions_and_labels, caveats, errors, masked_left_out, note
from pages.ui.chart import draw_chart
from pages.ui.lengths import lengths_view
from pages.ui.options import OF_PAGE, option_controls
from pages.ui.running import answer_box, start_button
from pages.ui.table import draw_table

ON_FEWER = " (with references)"  # ends the names of columns on a part of the images
MOST_BUTTONS = 8


def score_table(bar: Bar) -> None:
    engine, collection = bar.engine, bar.collection
    sets_and_tables = captions_and_labels(engine, collection)
    if sets_and_tables is None:
        return
    request, protocol = _request(bar, *sets_and_tables)
    with errors():
        specs, reasons = useful(plan(engine.workspace, request), request)
        for line in left_out(reasons, flags=False):
            note(f"{line}.")
        start_button(engine, collection, specs, "Run", "run_scores")
        _results(engine, collection, request, specs, protocol)


def _request(bar: Bar, sets: list[str], tables: list[Item]) -> tuple[Request, str]:
    """What the controls ask for, and the protocol; every choice is in the URL."""
    side, engine, collection = st.sidebar, bar.engine, bar.collection
    first = originals(engine.workspace.items("captions", collection))
    captions = view.multiselect(side, "Captioners", sets, default=first, key="sets", missing="the captioner")
    if len(first) < len(sets):
        side.caption(MASKED_TOO)
    attribute = bar.attribute(attribute_names(tables))
    table = bar.labels(attribute)
    human = bar.references(
        attribute,
        optional=True,
        help="LIC compares a model with the human captions of the same images. Without them only LIC_M is given.",
    )
    protocol = view.selectbox(
        side,
        "Protocol",
        ["", *PROTOCOLS],
        key="protocol",
        format_func=lambda name: PROTOCOLS[name].title if name else "Default: each metric's paper, fast attacker",
        help="Sets attacker, seeds and split as in a paper. Results list every deviation.",
    )
    settings = protocol_settings(protocol)
    suffix = f"_{protocol}" if protocol else ""
    # The page opens on what the front page says, where anything was measured.
    measured = [
        own
        for own in cached.compared(engine.workspace, collection)
        if own.attribute.name == attribute and reads(own.runs[0].spec.labels, attribute, table)
    ]
    attacker = view.selectbox(
        bar.place,
        "Attacker",
        list(ATTACKERS),
        default=settings.get("attacker") or next((own.attacker for own in measured if at_hand(own.attacker)), None),
        key=f"attacker{suffix}",
        accept_new_options=True,
        help="ngram: a linear attacker, a preview in seconds. lstm_bi and lstm: the LIC and the DBAC paper's "
        "protocols, minutes per seed on a CPU. minilm and the rest read with a pretrained encoder; or type the folder "
        "or name of any other, or one of these with its folder: bert_ft=FOLDER.",
    )
    known_seeds = next((own.seeds for own in measured if own.attacker == attacker), attacker_entry(attacker).seeds)
    seeds = view.number(
        bar.place,
        "Seeds",
        1,
        MOST_SEEDS,
        settings.get("seeds", known_seeds),
        key=f"seeds{suffix}",
        help="The papers use 10.",
    )
    seen = bool(photograph_sets(engine.workspace, collection))
    known = [name for name, group in GROUPS.items() if seen or not measure_of(group.metrics[0]).needs.photographs]
    metrics = view.multiselect(
        side,
        "Metrics",
        known,
        default=[name for name in protocol_metrics(protocol, DEFAULT_GROUPS) if name in known],
        format_func=lambda name: GROUPS[name].title,
        key=f"metrics{suffix}",
        missing="the metric",
        any_case=True,
    )
    words = view.checkbox(
        side,
        "Score every caption",
        default=attacker_entry(attacker).in_process,
        key=f"words_{attacker}",
        help=f"Shows scores and words on Captions. Trains {attacker_entry(attacker).folds} more attackers per set, so "
        "that each caption is scored by one that did not train on its image.",
    )
    merge = view.checkbox(
        side,
        "Merge runs of masked words",
        key="merge",
        help="Off: one mask per word, as in the papers. On: one mask for several masked words in a row.",
    )
    objects = list(object_sources(engine.workspace, collection, table))
    shown = ""
    if objects[1:]:
        shown = view.selectbox(
            side,
            "Objects of the images",
            ["", *objects],
            key="objects",
            format_func=lambda name: name or "the source that covers most images",
        )
    measures = {measure_of(name) for group in metrics for name in GROUPS[group].metrics}
    measures |= {MEASURES[PER_CAPTION]} if words else set()
    options = option_controls(
        engine.workspace, collection, sorted(measures, key=lambda own: own.place), human is not None, settings
    )
    request = Request(
        collection=collection,
        captions=tuple(captions),
        table=table.name,
        attribute=attribute,
        metrics=tuple(metrics),
        references=human.name if human else "",
        attacker=attacker,
        seeds=int(seeds),
        merge_masks=merge,
        words=words,
        objects=shown,
        options={"tokenizer": default_tokenizer()}
        | {name: value for name, value in settings.items() if name not in OF_PAGE}
        | options,
    )
    return request, protocol


def _results(engine: Engine, collection: str, request: Request, specs: list[RunSpec], protocol: str) -> None:
    asked = {spec.run_id for spec in specs}
    once = partial(cached.of_runs, engine.workspace, sorted(asked))
    rows = once("rows", lambda: known_results(engine.workspace, asked))
    if rows.empty:
        runs = engine.workspace.runs_of(list(asked)).values()
        lacking = [f"{run.spec.model}: {line}" for run in runs for line in left_out_lines(run.lacking)]
        under_way = any(run.status in ACTIVE for run in runs)
        said = "Running: the numbers appear as they arrive." if under_way else "No results yet. Press Run."
        for line in [*lacking, *([said] if under_way or not lacking else [])]:
            note(line)
        return
    found = once("found", lambda: comparisons(engine.workspace, collection))
    alike = [item for item in found if asked & set(item.run_ids)]
    letters, said, metric, ids = {}, None, "", ()
    if alike:
        best = alike[0]
        ids = tuple(run_id for run_id in best.run_ids if run_id in asked)
        metric, letters = best.metric, cached.ranking(engine.folder, ids, best.metric).letters
        if text := once("headline", lambda: headline(engine.workspace, collection, rows[rows["run_id"].isin(ids)])):
            answer_box(engine, collection, text)
        said = once("sensitivity", lambda: sensitivity_alike(engine.workspace, found, best))
        if said and (warning := encoders_warning(said, best.metric)):
            note(warning)
    groups = of_groups(rows)
    shown = rows[~groups & ~of_gaps(rows)]
    _table(shown, once("table", lambda: scores_table(lettered(shown, letters, ids, metric))), letters, metric, said)
    measured = [(spec.measure, spec.options) for spec in specs]
    for line in protocol_notes(measured, protocol):
        note(line)
    _take_away(engine, collection, request, lettered(rows, letters, ids, metric))
    gaps = not GAPS.keys().isdisjoint(expand_metrics(request.metrics))
    if gaps:
        _gaps(rows)
    _chart(engine, rows[~groups & (gaps | ~of_gaps(rows))], once)
    _by_value(engine, rows)
    lengths_view(engine, collection, request)
    caveats(once("caveats", lambda: _caveats(engine, collection, request, rows)))


def _caveats(engine: Engine, collection: str, request: Request, rows: pd.DataFrame) -> list[str]:
    measured = engine.workspace.runs_of(list(rows["run_id"].unique()))
    attributes = {own.name: own for own in map(attribute_of_run, measured.values())}
    sets = [item for item in engine.workspace.items("captions", collection) if item.name in request.captions]
    return [
        *(f"{item.name}: {warning}" for item in sets for warning in item.details.get(WARNINGS, ())),
        *(own.note for own in attributes.values()),
        variants_warning(rows),
        unlearned_note(rows, {name: len(own.values) for name, own in attributes.items()}),
        _masked(engine, collection, request),
        *named_notes([(run.spec.model, run.notes) for run in measured.values()]),
    ]


def _masked(engine: Engine, collection: str, request: Request) -> str:
    """What is said where no captions of masked photographs are chosen."""
    masked = left_out_as_masked(engine.workspace.items("captions", collection))
    return "" if set(masked) & set(request.captions) else masked_left_out(masked, "Choose them under Captioners. ")


def _gaps(rows: pd.DataFrame) -> None:
    """Metrics by group, where they were measured."""
    table = gap_table(rows)
    if table.empty:
        return
    st.header("By group")
    draw_table(table, alt="Each metric by group, and the difference")
    note(READING)


def _by_value(engine: Engine, rows: pd.DataFrame) -> None:
    """Whose captions give most away, of the runs of LIC in view; drawn when it is opened."""
    if "LIC_M" not in set(rows["metric"]):
        return
    box = st.expander("Leakage by group", key="by_value", on_change="rerun")
    if not box.open:
        return
    measured = engine.workspace.runs_of(list(rows[rows["metric"] == "LIC_M"]["run_id"].unique()))
    runs = by_captioner(measured.values())
    with box:
        found = {model: cached.by_value(str(engine.folder), run.run_id) for model, run in runs.items()}
        draw_table(by_value_table({model: own for model, (own, _) in found.items()}), alt="LIC_M by labelled value")
        note(BY_VALUE)
        if crossed := {model: own for model, (_, own) in found.items() if own is not None}:
            draw_table(beyond_table(crossed), alt="The cell and both attributes, as an attacker names them")
            note(BEYOND)
        elif left_out := max(map(cells_left_out, runs.values()), default=0):
            note(no_beyond(left_out))


def _table(shown: pd.DataFrame, table: pd.DataFrame, letters: dict, metric: str, said: Sensitivity | None) -> None:
    """Captioners by metric. letters: by this metric. said: what other encoders say, where any was run."""
    names = [name for name in table if name.partition(" ")[0] in METRICS]
    # LIC is LIC_M minus LIC_D on the images with references, so these stand beside it, and those on all images where a
    # captioner has nothing else.
    first = [
        name for name in first_columns(names) if name + ON_FEWER not in names or (table[name + ON_FEWER] == "").any()
    ]
    chosen = view.multiselect(
        st.sidebar, "Columns of the table", names, default=first, key="columns", missing="the column", follows=True
    )
    left_out = [name for name in names if name not in chosen]
    table = table.drop(columns=left_out)
    if said:
        table["encoders"] = [encoder_note(said, model) for model in table["captioner"]]
    event = draw_table(
        table,
        intervals=chosen,
        on_select="rerun",
        selection_mode="single-row",
        key="scores_table",
        alt="Scores of each captioner",
    )
    share = ""
    if len(letters) > 1:
        share = f" Same letter: no significant difference in {metric} ({best_text(metric)}; a is lowest)."
    note(
        f"Value ± standard deviation over attacker seeds [interval, {intervals_over(shown)}].{share} Select a row to "
        "read that captioner's captions."
        + (f" Hidden columns: {', '.join(left_out)} (choose them on the left)." if left_out else "")
    )
    if any(name.endswith(ON_FEWER) for name in names):
        note(
            "“With references”: only images with human captions. LIC is LIC_M minus LIC_D on these images. Columns for "
            "all labelled images can be chosen on the left."
        )
    if event.selection.rows:
        model = str(table.iloc[event.selection.rows[0]]["captioner"])
        view.go("pages/3_Captions.py", captioner=model)


def _take_away(engine: Engine, collection: str, request: Request, rows: pd.DataFrame) -> None:
    """The numbers in view, with their letters, as files, each made when it is asked for."""
    in_view = expand_metrics(request.metrics)
    runs = engine.workspace.runs_of(list(rows["run_id"].unique())).values()
    read = cached.once(engine.workspace, "read", lambda: with_inputs(engine.workspace, collection, rows, runs))
    table = partial(to_csv, read)
    latex = partial(to_latex, rows, in_view)
    place = st.container(horizontal=True)
    place.download_button("CSV", table, f"{collection}.csv", "text/csv", key="csv", on_click="ignore")
    place.download_button("LaTeX", latex, f"{collection}.tex", "text/x-tex", key="tex", on_click="ignore")
    with place.popover("Bundle"):
        note(
            "A zip with a report, the rows, the plan, versions and figures. `capbias reproduce` recomputes the numbers "
            "from it on another machine."
        )
        data = view.checkbox(
            st,
            "With the captions and labels",
            default=True,
            key="bundle_data",
            help="Off: only content hashes, for data that you may not share. Anyone with the files can still reproduce "
            "the numbers.",
        )
        ids = tuple(rows["run_id"].unique())
        st.download_button(
            "Make the bundle",
            partial(write_bundle, engine.workspace, collection, ids, data),
            f"{collection}.zip",
            "application/zip",
            type="primary",
            on_click="ignore",
            key="bundle",
        )


def _chart(engine: Engine, rows: pd.DataFrame, once: Callable) -> None:
    """One metric at a time, with its neutral point; of metrics without any value none."""
    series = once("series", lambda: chart_series(rows))
    if not series:
        return
    if len(series) > MOST_BUTTONS:
        chosen = view.selectbox(st, "Chart", list(series), key="chart", follows=True)
    else:
        chosen = view.selectbox(
            st, "Chart", list(series), key="chart", draw="segmented_control", required=True, follows=True
        )
    shown = series[chosen]
    metric, direction = shown.iloc[0]["metric"], shown.iloc[0]["direction"]
    attribute = engine.workspace.there(shown.iloc[0]["run_id"]).spec.attribute
    pairs = cached.ranking(engine.folder, tuple(shown["run_id"]), metric, direction)
    second = second_dots(rows[rows["run_id"].isin(shown["run_id"])], metric)
    figure = once("chart", lambda: interval_chart(shown, metric, attribute_from(attribute), pairs.letters, second))
    notes = f"{METRICS[metric].explanation} {BY_HUMAN if second else ''} {told_apart(pairs)}"
    draw_chart(
        figure,
        key="chart_figure",
        alt=f"{chosen} of each captioner",
        notes=notes,
        headline=f"{metric} of each captioner",
        legend=present.marks(bool(second), pairs.letters),
    )
    if pairs.pairs:
        with st.expander(f"Pairwise comparisons of {chosen}"):
            matrix = once("pairs", lambda: pair_table(pairs, decimals(metric, shown["scale"].iloc[0])))
            draw_table(matrix, alt="Each captioner minus each other")
            note(
                "Row minus column, p value after Holm's correction, and which is higher if the difference is "
                "significant."
            )

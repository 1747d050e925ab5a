"""The tab Encoder sensitivity of Scores: scores by encoder, CVs, ranks, agreement; a sweep over encoders."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from capbias_core.aggregate.comparison import Sensitivity, learned, unlearned_note
from capbias_core.attackers import ATTACKERS, DEFAULT_ATTACKER
from capbias_core.attackers.device import DEVICES
from capbias_core.errors import CapbiasError
from capbias_core.load.published import published_results, read_human_scores
from capbias_core.measures.options import MOST_SEEDS
from capbias_core.measures.registry import METRICS
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import Request
from capbias_core.views.charts import Look, captioner_looks
from capbias_core.views.consistency import agreement, alignment, variation
from capbias_core.views.encoders import (
    LARGEST_BAR,
    PRINTED,
    Series,
    alignment_table,
    answering,
    cv_chart,
    cv_reasons,
    cv_table,
    devices_note,
    encoders_answer,
    encoders_table,
    human_note,
    judges_table,
    like_named,
    named,
    plan_sweep,
    printed_scores,
    printed_variation,
    rank_chart,
    ranks_note,
    rows_of,
    scores_by_encoder,
    seeds_note,
    sensitivity_of,
    series_of,
)
from capbias_core.views.published import measured_rows
from capbias_core.views.sentence import intervals_over, measure
from capbias_core.views.tables import to_csv
from capbias_core.workspace.conditions import originals
from capbias_core.workspace.labels import attribute_of
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.store import Item
from pages.ui import cached, view
from pages.ui.bar import Bar
from pages.ui.base import (
    LABELS,
    MASKED_TOO,
    attribute_names,
    empty_state,
    errors,
    label_caveats,
    lacking,
    note,
    show_error,
)
from pages.ui.chart import draw_chart
from pages.ui.running import answer_box, start_button
from pages.ui.table import draw_table
from pages.ui.uploads import uploaded_path

MEASURED, NONE = "measured here", "none"
SWEPT = {"lic": "LIC", "dbac": "DBAC"}
SEEDS = 5
# One that answers in seconds and one of the DBAC paper's.
BY_DEFAULT = [DEFAULT_ATTACKER, "lstm"]


def encoders_tab(bar: Bar) -> None:
    engine, collection = bar.engine, bar.collection
    attribute, table, human = "", None, None
    with errors():
        if collection:
            attribute = bar.attribute(attribute_names(engine.workspace.items("attributes", collection)))
        if attribute:
            table, human = bar.labels(attribute), bar.references(attribute)
        if _encoders(bar, attribute, table, human) == MEASURED and table:
            label_caveats({attribute: table})
    st.divider()
    st.header("Sweep over encoders")
    with errors():
        if collection and table:
            _sweep(engine, collection, table, attribute, human)
        elif collection:
            lacking(engine, collection, LABELS)
        else:
            empty_state(engine, "A sweep needs captions and a table of labels.")


def _measured(
    engine: Engine, collection: str | None, attribute: str, table: Item | None, human: Item | None
) -> pd.DataFrame:
    rows = measured_rows(
        engine.workspace, collection or "", {attribute: table} if table else {}, {attribute: human} if human else {}
    )
    return rows[(rows["attribute"] == attribute) & (rows["encoder"] != "")]


def _encoders(bar: Bar, attribute: str, table: Item | None, human: Item | None) -> str:
    """The answer, then what it rests on. Which values are shown: those measured here, or a paper's."""
    engine, collection = bar.engine, bar.collection
    once = partial(cached.once, engine.workspace)
    measured = once("measured", lambda: _measured(engine, collection, attribute, table, human))
    sources = [*([MEASURED] if once("any", lambda: series_of(measured)) else []), *PRINTED]
    source = view.selectbox(
        bar.place,
        "Values",
        sources,
        format_func=_title,
        key="values",
        follows=True,  # what was measured, as soon as there is any
        help="Measured in this collection, or printed in a paper.",
    )
    own = source == MEASURED
    published = published_results()
    every = measured if own else once("printed", lambda: printed_scores(published, source))
    beside = _beside(engine, published, attribute) if own else NONE
    looks = captioner_looks(every["model"])
    rows = _chosen_encoders(every)
    if rows.empty:
        note("No encoder is chosen.")
        return source
    values = len(attribute_of(table, attribute)[0].values) if own and table else 2
    known = {attribute: values}
    judged = once("judged", lambda: rows[learned(rows, known)])
    found = once(
        "answers",
        lambda: {
            named(key): sensitivity_of(engine.workspace, rows_of(judged, key), values) for key in answering(judged)
        },
    )
    text = encoders_answer(found, "" if own else PRINTED[source].title)
    answer_box(engine, collection, text)
    keys = once("series", lambda: series_of(rows))
    key = view.selectbox(
        bar.place, "Metric", keys, format_func=named, key="measure", missing="the metric", any_case=True
    )
    shown = once("shown", lambda: rows_of(rows, key))
    grey = once("grey", lambda: _grey(published, beside, shown, key))
    able = once("able", lambda: rows_of(judged, key))
    said = once("said", lambda: sensitivity_of(engine.workspace, able, values))
    several = judged["encoder"].nunique() > 1
    ranks = once("ranks", lambda: rank_chart(able, said, looks, values)) if several else None
    charts = 1 + several + (ranks is not None)
    _scores(engine, shown, grey, key, values, said, looks, text.headline, charts)
    if own and beside != NONE and grey.empty:
        note(f"No published {measure(*key[:2])} for these captioners ({PRINTED[beside].title}).")
    if unlearned := once("unlearned", lambda: unlearned_note(rows, known)):
        note(f"{unlearned} They are shown, but not compared.")
    if several:
        _variation(engine, judged, source, published, beside, looks, charts)
        _ranks(ranks, able, named(key), values, charts)
    _judges(engine, able, named(key))
    st.download_button("CSV", partial(_csv, rows, judged), "encoders.csv", "text/csv", key="csv", on_click="ignore")
    return source


def _csv(rows: pd.DataFrame, judged: pd.DataFrame) -> str:
    return to_csv(pd.concat([rows, variation(judged), agreement(judged)]))


def _title(source: str) -> str:
    return source if source in (MEASURED, NONE) else f"printed, {PRINTED[source].title}"


def _beside(engine: Engine, published: pd.DataFrame, attribute: str) -> str:
    """The printed values of the same attribute to draw in grey."""
    alike = cached.once(
        engine.workspace,
        "beside",
        lambda: [name for name in PRINTED if attribute in set(printed_scores(published, name)["attribute"])],
    )
    return view.selectbox(st.sidebar, "Overlay published values", [*alike, NONE], format_func=_title, key="beside")


def _chosen_encoders(rows: pd.DataFrame) -> pd.DataFrame:
    every = list(dict.fromkeys(rows["encoder"]))
    chosen = view.multiselect(st.sidebar, "Encoders", every, default=every, key="encoders", missing="the encoder")
    return rows[rows["encoder"].isin(chosen)]


def _grey(published: pd.DataFrame, beside: str, shown: pd.DataFrame, key: Series) -> pd.DataFrame:
    """Printed rows of the same metric, direction and captioners, whatever condition was measured."""
    if beside == NONE:
        return shown.iloc[:0]
    printed = printed_scores(published, beside)
    same = (printed["metric"] == key[0]) & (printed["direction"] == key[1])
    return like_named(printed[same], list(shown["model"]))


def _scores(
    engine: Engine,
    shown: pd.DataFrame,
    grey: pd.DataFrame,
    key: Series,
    values: int,
    said: Sensitivity,
    looks: dict[str, Look],
    headline: str,
    charts: int,
) -> None:
    st.header(f"{named(key)} by encoder and captioner")
    once = partial(cached.once, engine.workspace)
    figure = once("scores chart", lambda: scores_by_encoder(shown, grey, key, values, looks))
    lines = f"Lines are intervals, {intervals_over(shown)}. " if (shown["paper"] == "measured").any() else ""
    printed = "Grey: published values of captioners with the same name. " if len(grey) else ""
    colours = "Colour: captioner. Shape: encoder. "
    notes = f"{colours}{lines}{printed}{METRICS[key[0]].explanation}"
    alt = f"{named(key)} of each captioner by each encoder"
    draw_chart(figure, key="scores", alt=alt, notes=notes, headline=headline, presented=(1, charts))
    table = once("scores table", lambda: encoders_table(shown, said))
    draw_table(table, alt="Every captioner by every encoder")
    note(
        f"Value ± standard deviation over seeds [{intervals_over(shown)}]. "
        + " ".join(filter(None, (seeds_note(shown), devices_note(shown))))
    )


def _variation(
    engine: Engine,
    rows: pd.DataFrame,
    source: str,
    published: pd.DataFrame,
    beside: str,
    looks: dict[str, Look],
    charts: int,
) -> None:
    """CVs of LIC beside those of DBAC."""
    st.header("Variation across encoders (CV)")
    once = partial(cached.once, engine.workspace)
    found = once("cvs", lambda: _cvs(rows))
    cvs = found.dropna(subset="value")
    name = beside if source == MEASURED else source
    printed = once("printed cvs", lambda: _printed_cvs(published, name, rows))
    grey = printed if source == MEASURED else cvs if printed.empty else printed
    colour = cvs if source == MEASURED else cvs.iloc[:0]
    if len(grey) or len(colour):
        figure = once("cv chart", lambda: cv_chart(colour, grey, looks))
        alt = "Coefficient of variation across encoders"
        draw_chart(figure, key="cvs", alt=alt, headline=alt, presented=(2, charts))
    table = once("cv table", lambda: cv_table(cvs))
    if len(table):
        draw_table(table, alt="Coefficients of variation with their intervals and noise floors")
        note(
            "Noise floor: the CV of one encoder with other seeds and splits. The interval is for the CV without this "
            "noise; if it starts at 0, no difference between encoders is shown."
        )
    for reason in cv_reasons(found):
        note(reason)
    own = "" if source == MEASURED or len(printed) else " Computed from the scores in the paper, which prints no CVs."
    note(
        f"CV: standard deviation over encoders / |mean|. A large CV can also mean that the score is near 0. Bars "
        f"longer than {LARGEST_BAR:g} are cut; the numbers are exact.{own}"
    )


def _cvs(rows: pd.DataFrame) -> pd.DataFrame:
    parts = [variation(rows_of(rows, key)) for key in answering(rows)]
    return pd.concat(parts, ignore_index=True) if parts else variation(rows.iloc[:0])


def _printed_cvs(published: pd.DataFrame, name: str, rows: pd.DataFrame) -> pd.DataFrame:
    """A paper's own CVs of the captioners of these rows."""
    if name == NONE:
        return pd.DataFrame(columns=["model", "measure", "direction", "value"])
    return like_named(printed_variation(published, name), list(rows["model"]))


def _ranks(figure: Any, shown: pd.DataFrame, name: str, values: int, charts: int) -> None:
    """figure: None if no two captioners can be ranked. charts: of the page, of which this is the last."""
    st.header(f"Ranks by {name}, encoder by encoder")
    if figure is None:
        note("Ranks need two captioners scored by every encoder. Remove encoders on the left, or run a sweep below.")
        return
    alt = f"Rank of each captioner by {name} for each encoder"
    draw_chart(figure, key="ranks", alt=alt, notes=ranks_note(shown, values), headline=alt, presented=(charts, charts))


def _judges(engine: Engine, shown: pd.DataFrame, name: str) -> None:
    """Pairs of encoders, and people where their scores are given."""
    st.header("Agreement between encoders")
    table = cached.once(engine.workspace, "judges", lambda: judges_table(agreement(shown)))
    if table.empty:
        note("Needs two encoders.")
    else:
        draw_table(table, alt="Agreement of pairs of encoders")
        note(
            "Conflict score: share of captioners that only one of the two encoders scores above 0. Ranking "
            "consistency: Pearson correlation over captioners."
        )
    upload = st.file_uploader("Human scores: a CSV with the columns model and value", type="csv", key="human")
    if upload is not None:
        with errors():
            human = within_limits(upload.name, read_human_scores, uploaded_path(engine.folder, upload))
            note(human_note(human, shown))
            draw_table(alignment_table(alignment(shown, human)), alt="Alignment with human scores")


def _sweep(engine: Engine, collection: str, table: Item, attribute: str, human: Item | None) -> None:
    """Choose encoders, captioners, metric, seeds and device; see what it will cost; start it."""
    workspace = engine.workspace
    items = workspace.items("captions", collection)
    sets, first = [item.name for item in items], originals(items)
    if not sets or human is None:
        note("LIC and DBAC need captions and human captions of the same images.")
        view.link(st, "pages/1_Data.py", "Add data", ":material/upload:")
        return
    left, right = st.container(key="stacks").columns(2, gap="large")
    encoders = left.multiselect(
        "Encoders",
        list(ATTACKERS),
        default=BY_DEFAULT,
        key="sweep_encoders",
        accept_new_options=True,
        help="Or type the folder or name of a sentence-transformers or transformers model on this machine.",
    )
    captions = left.multiselect("Captioners", sets, default=first, key="sweep_sets")
    if len(first) < len(sets):
        left.caption(MASKED_TOO)
    metric = right.segmented_control(
        "Metric", list(SWEPT), default="lic", format_func=SWEPT.__getitem__, key="sweep_metric", required=True
    )
    first, second = right.columns(2)
    seeds = first.number_input("Seeds", 1, MOST_SEEDS, SEEDS, key="sweep_seeds", help="The papers use 10.")
    device = second.selectbox(
        "Device", DEVICES, key="sweep_device", help="auto: CUDA where there is one. ngram always runs on the CPU."
    )
    same = right.checkbox(
        "Deterministic",
        key="sweep_deterministic",
        help="Slower on CUDA, but repeatable. On a CPU results always repeat.",
    )
    options = {"device": device, "deterministic": same}
    request = Request(
        collection, tuple(captions), table.name, attribute, (metric,), human.name, seeds=int(seeds), options=options
    )
    if encoders:
        _start(engine, request, encoders)
    else:
        note("Choose an encoder.")


def _start(engine: Engine, request: Request, encoders: list[str]) -> None:
    """What the sweep costs, which encoders cannot be had, and the button."""
    try:
        sweep = plan_sweep(engine.workspace, request, encoders)
    except CapbiasError as error:
        show_error(error)
        return
    for name, error in sweep.refused.items():
        note(f"⚠ {name} is left out: {error}")
    start_button(engine, request.collection, sweep.specs, "Start", "sweep")

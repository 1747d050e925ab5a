"""The tab Encoder sensitivity of Scores: scores by encoder, CVs, ranks, agreement; a sweep over encoders."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from capbias_core.aggregate.comparison import learned, name_key, unlearned_note
from capbias_core.attackers import ATTACKERS, DEFAULT_ATTACKER
from capbias_core.attackers.device import DEVICES
from capbias_core.errors import CapbiasError
from capbias_core.load.published import published_results, read_human_scores
from capbias_core.measures.options import MOST_SEEDS
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.types import counted
from capbias_core.views import encoders as encoder_views
from capbias_core.views.consistency import agreement, alignment, variation
from capbias_core.views.published import measured_rows
from capbias_core.views.sentence import measure
from capbias_core.workspace.conditions import originals
from capbias_core.workspace.labels import attribute_of
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.store import Item
from pages.ui import cached, view
from pages.ui.bar import LABELS, Bar, attribute_names, empty_state, lacking
from pages.ui.base import MASKED_TOO, errors, label_caveats, note, show_error
from pages.ui.drawing import draw_chart, draw_table
from pages.ui.plain import plain
from pages.ui.runs import answer_box, start_button
from pages.ui.shown import draw_shown
from pages.ui.uploads import uploaded_path

MEASURED, NONE = "measured here", "none"
SWEPT = {"lic": "LIC", "dbac": "DBAC"}
SEEDS = 5
# One that answers in seconds and one of the DBAC paper's.
BY_DEFAULT = [DEFAULT_ATTACKER, "lstm"]


def encoders_tab(bar: Bar) -> None:
    attribute, table, human = "", None, None
    with errors():
        if bar.collection:
            attribute = bar.attribute(attribute_names(bar.items("labels")))
        if attribute:
            table, human = bar.labels(attribute), bar.references(attribute)
        if _encoders(bar, attribute, table, human) == MEASURED and table:
            label_caveats({attribute: table})
    folded = st.expander("Sweep over encoders", key="sweep_open", on_change="rerun", expanded=not table)
    if not folded.open:
        return
    with folded, errors():
        if bar.collection and table:
            _sweep(bar, table, attribute, human)
        elif bar.collection:
            lacking(bar, LABELS)
        else:
            empty_state(bar, "A sweep needs captions and a table of labels.")


def _encoders(bar: Bar, attribute: str, table: Item | None, human: Item | None) -> str:
    """The answer, then its evidence. Returns which values are shown: those measured here, or a paper's."""
    workspace, published = bar.workspace, published_results()
    once = partial(cached.once, workspace)

    def work() -> pd.DataFrame:
        labels, references = {attribute: table} if table else {}, {attribute: human} if human else {}
        rows = measured_rows(workspace, bar.collection, labels, references)
        names = originals(bar.items("captions"))
        return rows[(rows["attribute"] == attribute) & (rows["encoder"] != "") & rows["model"].isin(names)]

    measured = once("measured", work)
    container = st.container(horizontal=True)
    source = view.selectbox(
        container,
        "Values",
        [*([MEASURED] if once("any", lambda: encoder_views.series_of(measured)) else []), *encoder_views.PRINTED],
        format_func=_title,
        key="values",
        help="Measured in this collection, or published in a paper.",
    )
    here = source == MEASURED
    overlay, rows = NONE, measured
    if here:
        papers = once(
            "beside",
            lambda: [
                paper
                for paper in encoder_views.PRINTED
                if attribute in set(encoder_views.printed_scores(published, paper)["attribute"])
            ],
        )
        overlay = view.selectbox(
            st.sidebar, "Overlay published values", [NONE, *papers], format_func=_title, key="beside"
        )
    else:
        rows = once("printed", lambda: encoder_views.printed_scores(published, source))
    encoders = list(dict.fromkeys(rows["encoder"]))
    chosen = view.multiselect(st.sidebar, "Encoders", encoders, default=encoders, key="encoders", missing="the encoder")
    rows = rows[rows["encoder"].isin(chosen)]
    if rows.empty:
        note("No encoder is chosen.")
        return source
    values = len(attribute_of(table, attribute)[0].values) if here and table else 2
    above_chance = once("judged", lambda: rows[learned(rows, {attribute: values})])
    title = "" if here else encoder_views.PRINTED[source].title
    text = once("answer", lambda: encoder_views.answer_of(workspace, rows, above_chance, values, title))
    answer_box(bar, text)
    options = once("series", lambda: encoder_views.series_of(rows))
    series = view.selectbox(
        container,
        "Metric",
        options,
        format_func=encoder_views.named,
        key="measure",
        missing="the metric",
        any_case=True,
    )
    name = encoder_views.named(series)
    shown = once("shown", lambda: encoder_views.rows_of(rows, series))

    def overlaid_rows() -> pd.DataFrame:  # printed values of the same metric, direction and captioners
        if overlay == NONE:
            return shown.iloc[:0]
        printed = encoder_views.printed_scores(published, overlay)
        same = (printed["metric"] == series[0]) & (printed["direction"] == series[1])
        return encoder_views.like_named(printed[same], list(shown["model"]))

    grey = once("grey", overlaid_rows)
    compared = once("able", lambda: encoder_views.rows_of(above_chance, series))
    sensitivity = once("said", lambda: encoder_views.sensitivity_of(workspace, compared, values))
    several = above_chance["encoder"].nunique() > 1
    ranks = once("ranks", lambda: encoder_views.rank_chart(compared, sensitivity, values)) if several else None
    charts = 1 + several

    draw_shown(
        once("view", lambda: encoder_views.encoders_shown(workspace, rows, series, above_chance, values, grey)),
        "scores",
        headline=text.headline,
        presented=(1, charts),
        folded=f"{name} by encoder and captioner: table",
    )
    if here and overlay != NONE and grey.empty:
        note(f"No published {measure(*series[:2])} for these captioners ({encoder_views.PRINTED[overlay].title}).")
    if unlearned := once("unlearned", lambda: unlearned_note(rows, {attribute: values})):
        note(f"{unlearned} They are in the table alone.")
    if several:
        _variation_across_encoders(bar, above_chance, published, source, overlay, charts)
    folded = st.expander(f"Ranks by {plain(name)}, encoder by encoder", key="ranks_open", on_change="rerun")
    if several and folded.open:
        with folded:
            if ranks is None:
                note("Ranks need two captioners scored by every encoder. Remove encoders on the left, or run a sweep.")
            else:
                alt = f"Rank of each captioner by {name} for each encoder"
                draw_chart(ranks, key="ranks", alt=alt, notes=encoder_views.ranks_note(compared, values))
    with st.expander("Agreement between encoders", key="agreement_open"):
        _agreement_between_encoders(bar, compared)
    return source


def _title(source: str) -> str:
    return source if source in (MEASURED, NONE) else f"published, {encoder_views.PRINTED[source].title}"


def _variation_across_encoders(
    bar: Bar, rows: pd.DataFrame, published: pd.DataFrame, source: str, overlay: str, charts: int
) -> None:
    st.header("Variation across encoders (CV)")
    once, here = partial(cached.once, bar.workspace), source == MEASURED

    def work() -> pd.DataFrame:
        parts = [variation(encoder_views.rows_of(rows, series)) for series in encoder_views.answering(rows)]
        return pd.concat(parts, ignore_index=True) if parts else variation(rows.iloc[:0])

    computed = once("cvs", work)
    cvs = computed.dropna(subset="value")
    printed = pd.DataFrame(columns=["model", "measure", "direction", "value"])  # a paper's CVs of these captioners
    if (paper := overlay if here else source) != NONE:
        printed = once(
            "printed cvs",
            lambda: encoder_views.like_named(encoder_views.printed_variation(published, paper), list(rows["model"])),
        )
    grey = printed if here or len(printed) else cvs
    colour = cvs if here else cvs.iloc[:0]
    if len(grey) or len(colour):
        figure = once("cv chart", lambda: encoder_views.cv_chart(colour, grey))
        alt = "Coefficient of variation across encoders"
        draw_chart(figure, key="cvs", alt=alt, headline=alt, presented=(2, charts))
    for reason in encoder_views.cv_reasons(computed):
        note(reason)
    if across := encoder_views.cv_encoders(computed):
        note(across)
    origin = "" if here or len(printed) else " Computed from the scores in the paper, which prints no CVs."
    note(
        "CV: standard deviation over encoders / |mean|. Noise: the CV of one encoder with other seeds and splits. A "
        "large CV can also mean that the score is near 0. Bars longer than "
        f"{encoder_views.LARGEST_BAR:g} are cut; the numbers are exact.{origin}"
    )


def _agreement_between_encoders(bar: Bar, rows: pd.DataFrame) -> None:
    """Pairs of encoders, and people if their scores are given."""
    table = cached.once(bar.workspace, "judges", lambda: encoder_views.judges_table(agreement(rows)))
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
            human = within_limits(upload.name, read_human_scores, uploaded_path(bar.folder, upload))
            here = {name_key(model): model for model in rows["model"]}
            names = [here[name_key(model)] for model in human.index if name_key(model) in here]
            note(f"Human scores of {counted(len(human), 'captioner')}; of those here: {', '.join(names) or 'none'}.")
            draw_table(encoder_views.alignment_table(alignment(rows, human)), alt="Alignment with human scores")


def _sweep(bar: Bar, table: Item, attribute: str, human: Item | None) -> None:
    items = bar.items("captions")
    if not items or human is None:
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
    sets, unmasked = [item.name for item in items], originals(items)
    captions = left.multiselect("Captioners", sets, default=unmasked, key="sweep_sets")
    if len(unmasked) < len(sets):
        left.caption(MASKED_TOO)
    metric = right.segmented_control(
        "Metric", list(SWEPT), default="lic", format_func=SWEPT.__getitem__, key="sweep_metric", required=True
    )
    first, second = right.columns(2)
    seeds = first.number_input("Seeds", 1, MOST_SEEDS, SEEDS, key="sweep_seeds", help="The papers use 10.")
    device = second.selectbox(
        "Device", DEVICES, key="sweep_device", help="auto: CUDA where there is one. ngram always runs on the CPU."
    )
    deterministic = right.checkbox(
        "Deterministic",
        key="sweep_deterministic",
        help="Slower on CUDA, but repeatable. On a CPU results always repeat.",
    )
    options = {"device": device, "deterministic": deterministic}
    names = tuple(captions)
    if not encoders:
        note("Choose an encoder.")
        return
    objects = bar.objects(table) if metric == "dbac" else ""
    asked = (bar.collection, names, table.name, attribute, (metric,), human.name, tuple(encoders), int(seeds))
    refused: dict[str, CapbiasError] = {}
    try:
        specs = plan(bar.workspace, Question(*asked, objects=objects, options=options), refused)
    except CapbiasError as error:
        show_error(error)
        return
    for name, error in refused.items():
        note(f"⚠ {name} is left out: {error}")
    start_button(bar, specs, "Start", "sweep")

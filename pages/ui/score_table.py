"""The tab Table of Scores: choose captioners, settings and metrics; run; read and download table and chart."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from capbias_core.aggregate.comparison import Sensitivity, unlearned_note
from capbias_core.attackers import ATTACKERS, at_hand, attacker_entry
from capbias_core.bundle.write import write_bundle, write_report
from capbias_core.kinds import VECTORS
from capbias_core.measures import registry
from capbias_core.measures.base import Measure
from capbias_core.measures.options import MOST_SEEDS, Option
from capbias_core.measures.protocols import PROTOCOLS, protocol_metrics, protocol_settings
from capbias_core.prepare.align import DELTA
from capbias_core.prepare.java import default_tokenizer
from capbias_core.prepare.text import mean_words
from capbias_core.question import Question
from capbias_core.runs.plan import PER_CAPTION, left_out, plan, useful
from capbias_core.types import counted, left_out_lines
from capbias_core.views import groups as group_views
from capbias_core.views import sentence
from capbias_core.views.charts import chart_series, interval_chart
from capbias_core.views.encoders import encoder_note, encoders_warning, sensitivity_alike
from capbias_core.views.latex import to_latex
from capbias_core.views.lengths import by_length, cuts_of, keep_cuts, lengths_shown
from capbias_core.views.results import attribute_of_run, comparisons, known_results, like_with_like, with_inputs
from capbias_core.views.tables import (
    FIRST_COLUMNS,
    ON_FEWER,
    first_columns,
    lettered,
    metric_columns,
    pair_table,
    to_csv,
)
from capbias_core.workspace.conditions import CUT, left_out_as_masked, originals
from capbias_core.workspace.content import content_of
from capbias_core.workspace.ingest import WARNINGS
from capbias_core.workspace.labels import reads
from capbias_core.workspace.photographs import ORIGINALS, people_sources, photograph_sets
from capbias_core.workspace.spec import AlignmentReference, RunSpec, attribute_from
from capbias_core.workspace.store import ACTIVE, Item
from capbias_core.workspace.vectors import CONSTANT, alignment_option
from pages.ui import cached, present, view
from pages.ui.bar import MEASURED_WITH, Bar, attribute_names, captions_and_labels
from pages.ui.base import MASKED_TOO, caveats, errors, masked_left_out, note, plain
from pages.ui.drawing import draw_chart, draw_table
from pages.ui.runs import active_runs, answer_box, cost, start_button, to_do
from pages.ui.shown import draw_shown

MOST_BUTTONS = 8
ALIGNMENT = (
    "What becomes of human words that the captioner never uses. Constant: <unk>, as in LIC. Contextual, as in DBAC: "
    "its nearest word by word vectors, where that is near. Load vectors on Data, in the tab Models and vectors."
)
# Drawn by the page itself, whatever is measured.
OF_PAGE = ("attacker", "seeds", "merge_masks")
AS_USUAL = "as usual"


def score_table(bar: Bar) -> None:
    sets_and_tables = captions_and_labels(bar)
    if sets_and_tables is None:
        return
    request, protocol = _request(bar, *sets_and_tables)
    with errors():
        specs, reasons = useful(plan(bar.workspace, request), request)
        to_run = partial(_to_run, bar, request, specs, left_out(reasons, flags=False))
        _results(bar, request, {spec.run_id for spec in specs}, protocol, to_run)


# What is asked for


def _request(bar: Bar, sets: list[str], tables: list[Item]) -> tuple[Question, str]:
    workspace = bar.workspace
    measured = cached.compared(workspace, bar.collection)
    side = st.sidebar.expander("What to measure", key="what_to_measure", expanded=not measured)
    expert = st.sidebar.expander("Expert options", key="expert")
    unmasked = originals(bar.items("captions"))
    captions = view.multiselect(side, "Captioners", sets, default=unmasked, key="sets", missing="the captioner")
    if len(unmasked) < len(sets):
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
    # The page opens on the settings of the front page's answer, if anything was measured.
    tried: dict[str, int] = {}  # attacker -> seeds
    for comparison in measured:
        if comparison.attribute.name == attribute and reads(comparison.runs[0].spec.labels, attribute, table):
            tried.setdefault(comparison.attacker, comparison.seeds)
    for run in active_runs(workspace, bar.collection):
        if run.spec.attacker and run.spec.attribute["name"] == attribute:
            tried.setdefault(run.spec.attacker, len(run.spec.seeds))
    if tried and view.chosen_elsewhere("attacker") not in (None, *tried):  # it opens on what is measured
        view.forget(["attacker"])
    attacker = view.selectbox(
        bar.container,
        MEASURED_WITH,
        list(ATTACKERS),
        default=settings.get("attacker") or next(filter(at_hand, tried), None),
        key=f"attacker{suffix}",
        accept_new_options=True,
        on_change=view.forget,
        args=([f"seeds{suffix}"],),  # each attacker has its number of seeds
        help="ngram: a linear attacker, a preview in seconds. lstm_bi and lstm: the LIC and the DBAC paper's "
        "protocols, minutes per seed on a CPU. minilm and the rest read with a pretrained encoder; or type the folder "
        "or name of any other, or one of these with its folder: bert_ft=FOLDER.",
    )
    entry = attacker_entry(attacker)
    seeds = view.number(
        side,
        "Seeds",
        1,
        MOST_SEEDS,
        settings.get("seeds", tried.get(attacker, entry.seeds)),
        key=f"seeds{suffix}",
        help="The LIC paper uses 10, its reproduction 3; the others do not say.",
    )
    photographs = bool(photograph_sets(workspace, bar.collection))
    groups = [
        name
        for name, group in registry.GROUPS.items()
        if photographs or not registry.measure_of(group.metrics[0]).needs.photographs
    ]
    metrics = view.multiselect(
        side,
        "Metrics",
        groups,
        default=[name for name in protocol_metrics(protocol, registry.default_groups()) if name in groups],
        format_func=lambda name: registry.GROUPS[name].title,
        key=f"metrics{suffix}",
        missing="the metric",
        any_case=True,
    )
    words = view.checkbox(
        side,
        "Score every caption",
        default=entry.in_process,  # of networks it is asked: it takes longer than the scores
        key=f"words_{attacker}",
        help=f"Shows scores and words on Captions. Trains {entry.folds} more attackers per set, so that each caption "
        "is scored by one that did not train on its image.",
    )
    merge = view.checkbox(
        expert,
        "Merge runs of masked words",
        key="merge",
        help="Off: one mask per word, as in the papers. On: one mask for several masked words in a row.",
    )
    objects = bar.objects(table, expert)
    measures = {registry.measure_of(name) for group in metrics for name in registry.GROUPS[group].metrics}
    measures |= {registry.MEASURES[PER_CAPTION]} if words else set()
    of_protocol = {name: value for name, value in settings.items() if name not in OF_PAGE}
    ordered = sorted(measures, key=lambda measure: measure.position)
    chosen = _option_controls(bar, expert, ordered, human is not None, settings)
    request = Question(
        collection=bar.collection,
        captions=tuple(captions),
        labels=table.name,
        attribute=attribute,
        metrics=tuple(metrics),
        references=human.name if human else "",
        attacker=(attacker,),
        seeds=int(seeds),
        words=words,
        objects=objects,
        options={"tokenizer": default_tokenizer(), "merge_masks": merge} | of_protocol | chosen,
    )
    return request, protocol


def _option_controls(
    bar: Bar, container: DeltaGenerator, measures: Iterable[Measure], references: bool, settings: dict[str, Any]
) -> dict:
    """`Question.options` from the controls of these measures, drawn from their Options; defaults are left out.

    references: whether human captions are chosen, which an alignment needs. settings: what controls start from instead
    of the defaults of measures.
    """
    options: dict[str, tuple[Option, Any]] = {}
    for measure in measures:
        defaults = {field.name: field.default for field in fields(measure.options)}
        for name, option in measure.options.about().items():
            if name not in OF_PAGE:
                same = name not in options or options[name][1] == defaults[name]
                options[name] = (option, settings.get(name, defaults[name] if same else None))
    chosen: dict[str, Any] = {}
    if "alignment" in options and references:
        vectors = {item.name: item for item in bar.items(VECTORS)}
        alignment = view.selectbox(
            container,
            "Vocabulary alignment",
            [CONSTANT, *vectors],
            key="alignment",
            missing="the alignment",
            help=ALIGNMENT,
            format_func=lambda name: name if name == CONSTANT else f"contextual, {name}",
        )
        if alignment != CONSTANT:
            chosen["alignment"] = chosen_alignment(vectors[alignment], container)
    photographs = [item.name for item in photograph_sets(bar.workspace, bar.collection)]
    stored = {
        "photographs": sorted(photographs, key=lambda name: name == ORIGINALS),
        "people": [item.name for item in people_sources(bar.workspace, bar.collection)],
    }
    for name, items in stored.items():
        if name in options and items:
            text = _as_sentence(options[name][0].help)
            chosen[name] = view.selectbox(container, name.capitalize(), items, key=name, help=text)
    rest = {name: pair for name, pair in options.items() if pair[0].flag and name not in (*stored, "alignment")}
    with container:
        for name, (option, default) in rest.items():
            value = _control(name, option, default)
            if value not in (default, None, (), ""):
                chosen[name] = value
    return chosen


def _control(name: str, option: Option, default: Any) -> Any:
    label, words = name.replace("_", " ").capitalize(), _as_sentence(option.help)
    if isinstance(default, bool):
        return view.checkbox(st, label, default=default, key=name, help=words)
    if option.known:
        known = [*option.known] if default in option.known else [AS_USUAL, *option.known]
        start = default if default in known else known[0]
        chosen = view.selectbox(st, label, known, default=start, key=name, help=words)
        return default if chosen == AS_USUAL else chosen
    if option.suggested:
        known = [*dict.fromkeys([default or AS_USUAL, *option.suggested])]
        chosen = view.selectbox(st, label, known, key=name, help=words, accept_new_options=True)
        return default if chosen == AS_USUAL else chosen
    if isinstance(default, tuple):
        text = view.text(st, label, key=name, help=f"{words} Commas between.")
        return tuple(word.strip() for word in text.split(",") if word.strip())
    if isinstance(default, int | float) or option.at_least is not None or option.above is not None:
        kind = float if isinstance(default, float) or option.above is not None else int
        low = option.at_least if option.at_least is not None else option.above
        high = option.at_most if option.at_most is not None else option.below
        low, high, start = (None if value is None else kind(value) for value in (low, high, default))
        return view.number(st, label, low, high, start, key=name, kind=kind, help=words, placeholder=AS_USUAL)
    return view.text(st, label, key=name, help=words, placeholder=str(default or "")) or default


def _as_sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def chosen_alignment(item: Item, container: Any = st.sidebar) -> AlignmentReference:
    """The option for these vectors at the delta that is chosen. container: of the control."""
    distance = view.number(
        container,
        "Delta",
        0.0,
        2.0,
        DELTA,
        step=0.05,
        key="delta",
        help=f"A word is near below this cosine distance. The paper on DBAC uses {DELTA} for GloVe.",
    )
    return alignment_option(item, round(distance, 4))


# What was measured


def _results(bar: Bar, request: Question, asked: set[str], protocol: str, to_run: Callable[[], None]) -> None:
    """asked: the IDs of the runs of the request. to_run: draws what is still to run of it."""
    workspace = bar.workspace
    once = partial(cached.of_runs, workspace, sorted(asked))
    rows = once("rows", lambda: known_results(workspace, asked))
    if rows.empty:
        runs = workspace.runs_of(list(asked)).values()
        lines = [f"{run.spec.model}: {line}" for run in runs for line in left_out_lines(run.lacking)]
        if any(run.status in ACTIVE for run in runs):
            lines.append("Running: the numbers appear as they arrive.")
        for line in lines or [f"Not measured yet with {_setting(request.attacker[0], request.seeds)}."]:
            note(line)
        to_run()
        return
    comparisons_here = once("compared", lambda: comparisons(workspace, bar.collection))
    best = next((comparison for comparison in comparisons_here if asked & set(comparison.run_ids)), None)
    letters, sensitivity, metric, ids = {}, None, "", ()
    if best:
        ids = tuple(run_id for run_id in best.run_ids if run_id in asked)
        metric, letters = best.metric, cached.ranking(bar.folder, ids, best.metric).letters
        if text := once(
            "headline", lambda: sentence.stored_headline(workspace, bar.collection, rows[rows["run_id"].isin(ids)])
        ):
            answer_box(bar, text)
        sensitivity = once("sensitivity", lambda: sensitivity_alike(workspace, comparisons_here, best))
        if sensitivity and (warning := encoders_warning(sensitivity, best.metric)):
            note(warning)
    groups = group_views.of_groups(rows)
    shown = rows[~groups & ~group_views.of_gaps(rows)]
    table, by_group = once("table", lambda: group_views.score_tables(lettered(rows, letters, ids, metric)))
    _table(shown, table, letters, metric, sensitivity)
    to_run()
    for line in registry.protocol_notes(rows, protocol):
        note(line)
    _downloads(bar, request, lettered(rows, letters, ids, metric))
    gaps = not group_views.GAPS.keys().isdisjoint(registry.expand_metrics(request.metrics))
    if gaps and len(by_group):
        st.header("By group")
        draw_table(by_group, alt="Each metric by group, and the difference")
        note(group_views.READING)
    _chart(bar, rows[~groups & (gaps | ~group_views.of_gaps(rows))], once)
    _by_value(bar, rows)
    _lengths(bar, request)
    caveats(once("caveats", lambda: _caveats(bar, request, rows)))


def _setting(attacker: str, seeds: int | None) -> str:
    return f"{attacker}, {counted(seeds or attacker_entry(attacker).seeds, 'seed')}"


def _to_run(bar: Bar, request: Question, specs: list[RunSpec], reasons: list[str]) -> None:
    """What is still to run of the request, and what was measured with other settings. reasons: why metrics are left
    out."""
    for line in reasons:
        note(f"{line}.")
    _other_settings(bar, request, specs)
    if not specs or len(_finished(bar, specs)) < len(specs):
        start_button(bar, specs, "Run", "run_scores")
    if request.words or attacker_entry(request.attacker[0]).in_process:
        return
    known = {spec.run_id for spec in specs}
    words = [spec for spec in plan(bar.workspace, replace(request, words=True)) if spec.run_id not in known]
    if len(_finished(bar, words)) < len(words):
        note(f"Scores and words of every caption, for the page Captions, need further runs of {request.attacker[0]}:")
        start_button(bar, words, "Score every caption", "run_words")


def _finished(bar: Bar, specs: list[RunSpec]) -> set[str]:
    """The IDs of the finished runs among some."""
    known = bar.workspace.runs_of([spec.run_id for spec in specs])
    return {run_id for run_id, run in known.items() if run.status == "finished"}


def _other_settings(bar: Bar, request: Question, specs: list[RunSpec]) -> None:
    """Chosen captioners that were measured with another attacker or number of seeds alone: a button shows these, one
    measures them with the settings in view."""
    workspace, of_lic = bar.workspace, [spec for spec in specs if spec.measure == "lic"]
    if not of_lic:
        return
    done = _finished(bar, of_lic)
    missing = {spec.model for spec in of_lic} - {spec.model for spec in of_lic if spec.run_id in done}
    settings: dict[tuple[str, int], list[str]] = {}  # attacker and seeds -> captioners, each by its best comparison
    settings_of_table = request.attribute, max(spec.references for spec in of_lic), CONSTANT
    work = partial(comparisons, workspace, bar.collection)
    for comparison in cached.of_collection(workspace, bar.collection, "all compared", work):
        first = comparison.runs[0].spec
        if (comparison.attribute.name, comparison.references, comparison.alignment) != settings_of_table:
            continue
        if (first.labels, first.merge_masks) != (of_lic[0].labels, of_lic[0].merge_masks):
            continue
        for model in (run.spec.model for run in comparison.runs if run.spec.model in missing):
            settings.setdefault((comparison.attacker, comparison.seeds), []).append(model)
            missing.discard(model)
    if not settings:
        return
    most = max(settings, key=lambda setting: len(settings[setting]))
    names = {name for models in settings.values() for name in models}
    what = "; ".join(f"{_setting(*setting)} ({', '.join(sorted(models))})" for setting, models in settings.items())
    todo = to_do(workspace, [spec for spec in specs if spec.model in names])[1]
    all_todo = len(todo) == len(to_do(workspace, specs)[1])  # then the button below runs the same
    row = st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute")
    with row:
        note(f"{counted(len(names), 'captioner')} used other settings: {what}.")

    def show() -> None:
        suffix = f"_{request.options['protocol']}" if "protocol" in request.options else ""
        view.choose(f"attacker{suffix}", most[0])
        view.choose(f"seeds{suffix}", most[1])

    row.button(f"Show {_setting(*most)}", key="show_others", on_click=show)
    if not all_todo and row.button(f"Run these ({cost(workspace, todo)})", key="run_others"):
        bar.engine.submit(todo, bar.collection)
        st.rerun()


def _caveats(bar: Bar, request: Question, rows: pd.DataFrame) -> list[str]:
    measured = bar.workspace.runs_of(list(rows["run_id"].unique()))
    attributes = {attribute.name: attribute for attribute in map(attribute_of_run, measured.values())}
    sets = bar.items("captions")
    masked = left_out_as_masked(sets)
    if set(masked) & set(request.captions):
        masked = []
    return [
        *(
            f"{item.name}: {warning}"
            for item in sets
            for warning in (item.details.get(WARNINGS, ()) if item.name in request.captions else ())
        ),
        *dict.fromkeys(
            f"{run.spec.model}: {each.text}"
            for run in measured.values()
            if run.spec.captions and run.spec.labels
            for each in content_of(bar.workspace, run.spec)
        ),
        *(attribute.note for attribute in attributes.values()),
        sentence.variants_warning(rows),
        unlearned_note(rows, {name: len(attribute.values) for name, attribute in attributes.items()}),
        masked_left_out(masked, "Choose them under Captioners. "),
        *sentence.named_notes([(run.spec.model, run.notes) for run in measured.values()]),
    ]


def _table(
    shown: pd.DataFrame, table: pd.DataFrame, letters: dict, metric: str, sensitivity: Sensitivity | None
) -> None:
    """Captioners by metric. letters: by this metric. sensitivity: to the encoder, if others were run."""
    names = metric_columns(table)
    chosen = view.multiselect(
        st.sidebar.expander("Columns of the table", key="choose_columns"),
        "Columns",
        names,
        default=first_columns(table, most=FIRST_COLUMNS - bool(sensitivity)),
        key="columns",
        missing="the column",
        label_visibility="collapsed",
    )
    hidden = [name for name in names if name not in chosen]
    table = table.drop(columns=hidden)
    if sensitivity:
        table["encoders"] = [encoder_note(sensitivity, model) for model in table["captioner"]]
    event = draw_table(
        table, on_select="rerun", selection_mode="single-row", key="scores_table", alt="Scores of each captioner"
    )
    share = ""
    if len(letters) > 1:
        share = f" Same letter: no significant difference in {metric} ({sentence.best_text(metric)}; a is lowest)."
    note(
        f"Value ± standard deviation over attacker seeds [interval, {sentence.intervals_over(shown)}].{share} Select a "
        "row to read that captioner's captions."
        + (f" Hidden columns: {', '.join(hidden)} (choose them on the left)." if hidden else "")
    )
    if any(letter.isupper() for letter in letters.values()):
        note(sentence.APART)
    if any(name.endswith(ON_FEWER) for name in names):
        note(
            "“With references”: only images with human captions. LIC is LIC_M minus LIC_D on these images. Columns for "
            "all labelled images can be chosen on the left."
        )
    if event.selection.rows:
        view.go("pages/3_Captions.py", captioner=str(table["captioner"].iloc[event.selection.rows[0]]))


def _downloads(bar: Bar, request: Question, rows: pd.DataFrame) -> None:
    """The numbers in view, with their letters, as files, each made when it is asked for."""
    workspace, name, ids = bar.workspace, bar.collection, tuple(rows["run_id"].unique())
    runs = workspace.runs_of(list(ids)).values()
    in_full = cached.once(workspace, "read", lambda: with_inputs(workspace, name, rows, runs))
    latex = partial(to_latex, rows, registry.expand_metrics(request.metrics))
    container = st.container(horizontal=True)
    container.download_button("CSV", partial(to_csv, in_full), f"{name}.csv", "text/csv", key="csv", on_click="ignore")
    container.download_button("LaTeX", latex, f"{name}.tex", "text/x-tex", key="tex", on_click="ignore")
    report = partial(write_report, workspace, name, ids)
    container.download_button("Report", report, f"{name}.html", "text/html", key="report", on_click="ignore")
    with container.popover("Bundle"):
        note(
            "A zip with a report, the rows and versions. `capbias reproduce` recomputes the numbers "
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
        st.download_button(
            "Make the bundle",
            partial(write_bundle, workspace, name, ids, data),
            f"{name}.zip",
            "application/zip",
            type="primary",
            on_click="ignore",
            key="bundle",
        )


def _chart(bar: Bar, rows: pd.DataFrame, once: Callable) -> None:
    """One metric at a time, with its neutral point; none for metrics without any value."""
    series = once("series", lambda: chart_series(rows))
    if not series:
        return
    buttons = {} if len(series) > MOST_BUTTONS else {"draw": "segmented_control", "required": True}
    chosen = view.selectbox(st, "Chart", list(series), key="chart", **buttons)
    shown = series[chosen]
    metric, direction = shown.iloc[0]["metric"], shown.iloc[0]["direction"]
    attribute = bar.workspace.get_run(shown.iloc[0]["run_id"]).spec.attribute
    pairs = cached.ranking(bar.folder, tuple(shown["run_id"]), metric, direction)
    second = sentence.second_dots(rows[rows["run_id"].isin(shown["run_id"])], metric)
    split = once("alike", lambda: like_with_like(bar.workspace, shown, pairs))
    drawn, of = split.compared, attribute_from(attribute)
    figure = once("chart", lambda: interval_chart(drawn, metric, of, pairs.letters, second))
    draw_chart(
        figure,
        key="chart_figure",
        alt=f"{chosen} of each captioner",
        notes=f"{registry.METRICS[metric].explanation} {sentence.BY_HUMAN if second else ''} "
        f"{split.shared_text} {sentence.told_apart(pairs)}",
        headline=f"{chosen} of each captioner ({attribute['name']})",
        legend=present.marks(bool(second), pairs),
    )
    if len(split.others):
        others = [f"{row['model']} {sentence.interval(row)} ({row['n']:,})" for _, row in split.others.iterrows()]
        note(f"Measured on different images (number), so not in the chart: {'; '.join(others)}.")
    if pairs.pairs:
        with st.expander(f"Pairwise comparisons of {chosen}"):
            matrix = once("pairs", lambda: pair_table(pairs, sentence.decimals(metric, shown["scale"].iloc[0])))
            draw_table(matrix, alt="Each captioner minus each other")
            note(
                "Row minus column, p value after Holm's correction, and which is higher if the difference is "
                "significant."
            )


def _by_value(bar: Bar, rows: pd.DataFrame) -> None:
    """Leakage by labelled value, of the runs of LIC in view; drawn when it is opened."""
    ids = list(rows.loc[rows["metric"] == "LIC_M", "run_id"].unique())
    if not ids:
        return
    box = st.expander("Leakage by group", key="by_value", on_change="rerun")
    if not box.open:
        return
    runs = group_views.by_captioner(bar.workspace.runs_of(ids).values())
    work = partial(group_views.leakage_of_runs, bar.workspace, rows["attribute"].iloc[0], runs)
    with box:
        draw_shown(cached.by_content(bar.workspace, "by value", tuple(ids), work), "leakage_by_group")


def _lengths(bar: Bar, request: Question) -> None:
    """Leakage of the chosen captioners at equal length: captions cut after more and more words, beside whole ones."""
    box = st.expander("Control for caption length", key="lengths", on_change="rerun")
    if not box.open:
        return
    workspace, collection = bar.workspace, bar.collection
    with box, errors():
        sets = {item.name: item for item in bar.items("captions")}
        whole = [name for name in request.captions if CUT not in sets[name].details]
        words = {}
        for name in whole:
            work = partial(mean_words, cached.captions(bar.folder, sets[name].hash))
            words[name] = cached.by_content(workspace, "mean words", sets[name].hash, work)
        means = "; ".join(f"{plain(name)} {mean:.1f}" for name, mean in words.items())
        note(f"Average caption length (words): {means}")
        cuts = cuts_of(workspace, collection)
        ready = [name for name in whole if name in cuts]
        if missing := [name for name in whole if name not in cuts]:
            note("Shortened sets keep the first sentence, or the first 5, 10, 20 or 40 words of each caption.")
            if st.button(f"Shorten the captions of {plain(', '.join(missing))}", key="cut"):
                for name in missing:
                    keep_cuts(workspace, collection, name)
                st.rerun()
        if not ready:
            return
        shortened = tuple(item.name for name in ready for item in cuts[name])
        specs = plan(workspace, replace(request, captions=shortened, metrics=("lic",), words=False))
        start_button(bar, specs, "Score shortened sets", "score_cuts")
        ids = sorted(spec.run_id for spec in specs)
        rows = cached.of_runs(
            workspace, ids, "lengths", lambda: by_length(workspace, collection, workspace.results(ids))
        )
        if len(rows):
            draw_shown(lengths_shown(rows, len(specs[0].attribute["values"])), "lengths_of_captions")

"""What the front page shows: the answer, what it rests on, what is loaded and what is running."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from capbias_core.aggregate.comparison import Sensitivity
from capbias_core.attackers import attacker_entry
from capbias_core.measures.registry import METRICS
from capbias_core.prepare import tokenize
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import Request, plan
from capbias_core.types import counted
from capbias_core.views.answer import (
    STYLE,
    Line,
    collection_rows,
    cross_table,
    interval_rows,
    overview,
    overview_rows,
    word_rows,
)
from capbias_core.views.captions import caption_runs, scoring_attackers
from capbias_core.views.charts import interval_chart
from capbias_core.views.encoders import encoders_warning, sensitivity_alike
from capbias_core.views.published import measured_rows
from capbias_core.views.results import Comparison, current_runs, earlier_runs
from capbias_core.views.sentence import (
    BY_HUMAN,
    Answer,
    answer,
    best_text,
    chance_warning,
    first_to_answer,
    intervals_over,
    named_notes,
    second_dots,
    told_apart,
    verdicts_text,
    with_attacker,
)
from capbias_core.views.words import STYLE as COLOURS
from capbias_core.workspace.conditions import left_out_as_masked, originals
from capbias_core.workspace.ingest import DEMO, WARNINGS
from capbias_core.workspace.labels import table_of, table_with, tables_with
from capbias_core.workspace.store import Item, RunRow, Workspace
from capbias_core.workspace.vectors import CONSTANT
from pages.ui import cached, present, view
from pages.ui.bar import Bar, draw_bar
from pages.ui.base import attribute_names, box, caveats, empty_state, masked_left_out, note, plain
from pages.ui.chart import take_away
from pages.ui.coloured import coloured_caption
from pages.ui.running import active_runs, answer_box, first_runs, nothing_scored, start_button

WORDS_A_SIDE = 6
# Kinds of data that an answer rests on.
SHOWN = ("captions", "attributes", "references")
HOW = (
    "Words that name the attribute are masked. An attacker (a text classifier) learns to guess each image's label from "
    "the masked captions of most images (nine tenths, if nothing else is asked for), with equally many images of every "
    "value. It is scored on the other images: its confidence if it is right, 0 if it is wrong. The same is done with "
    "human captions of the same images. LIC compares these two attackers, so captions that are easier to learn score "
    "higher. To rule that out, each attacker also reads the other side. The captioner amplifies if even the attacker "
    "trained on human captions guesses better from the captioner's (the interval of LIC_by_H lies above 0). It reduces "
    "if even the attacker trained on the captioner's guesses better from human ones (that of LIC_by_M lies below 0). "
    "Everything is repeated with other seeds."
)


def answer_page() -> None:
    """Draw everything below the frame."""
    st.html(STYLE)
    bar = draw_bar()
    engine, workspace, collection = bar.engine, bar.workspace, bar.collection
    if not collection:
        empty_state(
            engine,
            "Load captions of your model and a table of labelled images. You will see whether the captions reveal "
            "gender or race with every such word masked, how certain that is, and which words reveal it.",
        )
        return
    found = cached.compared(workspace, collection)
    if not found:
        _no_answer(engine, collection)
        return
    chosen, table = _chosen(bar, found)
    _answer(bar, chosen, table, found)
    if st.button("Load captions", icon=":material/upload:"):
        view.go("pages/1_Data.py")
    _loaded(engine, collection)


def _chosen(bar: Bar, found: list[Comparison]) -> tuple[Comparison, Item]:
    """One of what was measured for the attribute, and its table of labels. The link names the table and the human
    captions too, so that it means the same when more are added."""
    tables = bar.workspace.items("attributes", bar.collection)
    human = {item.hash: item.name for item in bar.workspace.items("references", bar.collection)}  # oldest first
    attribute = bar.attribute(dict.fromkeys(comparison.attribute.name for comparison in found))
    options, choices, titles = {}, {}, {}
    for comparison in found:
        if comparison.attribute.name != attribute:
            continue
        table = table_of(tables, attribute, comparison.runs[0].spec.labels) or table_with(tables, attribute)
        title = _describe(comparison)
        if comparison.references not in ("", *list(human)[:1]):
            title += f", human captions {human[comparison.references]}"
        if (name := f"{title}, {table.name}") not in options:  # the better of two with the same title
            options[name] = comparison, table
            titles[name] = name if len(tables_with(tables, attribute)) > 1 else title
            choices[name] = {"attacker": comparison.attacker, "table": table.name}
            if comparison.references and len(human) > 1:
                choices[name]["references"] = human[comparison.references]
    return options[bar.measured_with(choices, titles)]


def _no_answer(engine: Engine, collection: str) -> None:
    """Why a collection has none yet, what to do, and which others have one."""
    workspace = engine.workspace
    if active_runs(engine, collection):
        box("Running.", "The answer appears here by itself, as soon as the first of the runs above is done.")
    else:
        earlier = earlier_runs(workspace, collection)
        said = f" {earlier:,} results of an earlier version are hidden; run them again." if earlier else ""
        nothing_scored(engine, collection, f"Captions and labels are loaded, but nothing is scored.{said}")
    _loaded(engine, collection)


def _describe(comparison: Comparison) -> str:
    """How captioners were measured."""
    seeds = counted(comparison.seeds, "seed")
    alignment = f", {comparison.alignment}" if comparison.alignment not in ("", CONSTANT) else ""
    return f"{comparison.attacker}, {comparison.metric}, {seeds}{alignment}"


def _labels_note(name: str, read: Item, tables: list[Item]) -> str:
    """Whose labels of an attribute an answer rests on, where several tables have it; else ''."""
    others = ", ".join(own.name for own in tables_with(tables, name) if own.name != read.name)
    return f"Labels: {read.name}. Not used: {others}." if others else ""


def _other_human(engine: Engine, collection: str, chosen: Comparison) -> str:
    """Which human captions an answer compares with, where a collection has several sets; else ''."""
    sets = engine.workspace.items("references", collection)
    read = ", ".join(own.name for own in sets if own.hash == chosen.references)
    others = ", ".join(own.name for own in sets if own.hash != chosen.references)
    if not read or not others:
        return ""
    return f"Human captions: {read}. Not used: {others}."


def _answer(bar: Bar, chosen: Comparison, table: Item, found: list[Comparison]) -> None:
    engine, workspace, collection = bar.engine, bar.workspace, bar.collection
    rows = cached.once(workspace, "rows", lambda: workspace.results(chosen.run_ids))
    of_metric = rows[rows["metric"] == chosen.metric].sort_values("value", ascending=False)
    trained = {item.name: item.details.get("trained_on_references") for item in workspace.items("captions", collection)}
    names = list(first_to_answer(of_metric)["model"])
    model = bar.captioner(names, names[0])
    entry = attacker_entry(chosen.attacker)

    def work() -> Answer:
        return answer(rows, model, chosen.attribute, entry, trained.get(model))

    text = cached.once(workspace, "text", work)
    answer_box(engine, collection, text)
    if crossed := cross_table(rows, model):
        st.html(crossed)
    for item in workspace.items("captions", collection):
        for warning in item.details.get(WARNINGS, ()) if item.name in names else ():
            note(warning if item.name == model else f"{item.name}: {warning}")
    if whose := _labels_note(chosen.attribute.name, table, workspace.items("attributes", collection)):
        note(whose)
    if others := _other_human(engine, collection, chosen):
        note(others)
    if collection == DEMO:
        note("This is the demo. Its pictures, labels and captions are generated, and no person is on them.")
    said = cached.once(workspace, "sensitivity", lambda: sensitivity_alike(workspace, found, chosen))
    if said and (warning := encoders_warning(said, chosen.metric)):
        note(warning)
    pairs = cached.ranking(engine.folder, chosen.run_ids, chosen.metric)
    left, right = st.container(key="stacks").columns([3, 2], gap="large")
    with left:
        st.header(f"{with_attacker(chosen.metric, entry)} of each captioner")
        second = second_dots(rows, chosen.metric)
        drawn = cached.once(
            workspace,
            "intervals",
            lambda: interval_rows(of_metric, chosen.metric, chosen.attribute, pairs.letters, model, second),
        )
        said_of_all = verdicts_text(of_metric, trained)
        marks = present.marks(bool(second), pairs.letters)
        present.rows(drawn, text.headline, f"{marks} {said_of_all}")
        st.html(drawn)
        best = f"{chosen.metric}: {best_text(chosen.metric, len(chosen.attribute.values))}."
        note(f"{said_of_all} {best} {marks}")
        scored = {run.spec.model for own in found if own.attribute == chosen.attribute for run in own.runs}
        if others := sorted(scored - set(names)):
            note(f"{', '.join(others)}: other settings. Choose them under Measured with.")
        missing = [name for name in originals(workspace.items("captions", collection)) if name not in scored]
        specs = first_runs(engine, collection, chosen.attribute.name) if missing else []
        if specs := [spec for spec in specs if spec.model in missing]:
            start_button(engine, collection, specs, f"Score {', '.join(missing)}", "score_missing")
        figure = partial(interval_chart, of_metric, chosen.metric, chosen.attribute, pairs.letters, second)
        take_away(figure, "answer_chart", f"{chosen.metric} of each captioner")
    with right:
        guessed = rows[(rows["model"] == model) & (rows["metric"] == "SC")].iloc[0]
        _words(engine, collection, chosen, table, model, chance_warning(guessed, chosen.attribute))
    if run := _scored(workspace, collection, chosen, table, model):
        _try_a_caption(engine, run)
    _overview(engine, collection, chosen, table, model, said)
    _unmeasured(bar, found)
    lines = named_notes([(run.spec.model, run.notes) for run in chosen.runs])
    of_all = set.intersection(*(set(run.notes) for run in chosen.runs))
    sets = workspace.items("captions", collection)
    masked = masked_left_out(left_out_as_masked(sets))
    shared = [line for line in lines if line in of_all]
    caveats([chosen.attribute.note, masked, *shared])
    with st.expander("How is this measured?"):
        note(HOW)
        note(f"{METRICS[chosen.metric].title}: {METRICS[chosen.metric].explanation} {METRICS[chosen.metric].source}.")
        note(f"Lines are intervals, {intervals_over(of_metric)}. {BY_HUMAN if second else ''} {told_apart(pairs)}")
        for line in lines:
            if line not in of_all:
                note(line)
        of_model = of_metric[of_metric["model"] == model].iloc[0]
        note(f"Settings for {model}: {of_model['method']}. The button Runs shows every setting.")


def _unmeasured(bar: Bar, found: list[Comparison]) -> None:
    """Attributes with labels but without a result: what a first answer costs, and its button."""
    measured = {comparison.attribute.name for comparison in found}
    tables = bar.workspace.items("attributes", bar.collection)
    names = [name for name in attribute_names(tables) if name not in measured]
    if not names:
        return
    st.header("Attributes without scores")
    name = st.selectbox("Attribute", names, key="unmeasured") if len(names) > 1 else names[0]
    specs = first_runs(bar.engine, bar.collection, name)
    note(f"The images also have labels for {name}.{'' if specs else ' See Scores.'}")
    if specs:
        start_button(bar.engine, bar.collection, specs, f"Score {name}", "score_other")


@st.fragment
def _try_a_caption(engine: Engine, run: RunRow) -> None:
    """The attacker's guess for any caption, and what each word adds; nothing for attackers that cannot guess at once.

    run: of per-caption scores. The text starts as the caption of which the attacker is surest.
    """
    if not attacker_entry(run.spec.attacker).rescores:
        return
    st.header("Try a caption")
    scores = cached.scores(engine.folder, run.run_id)
    surest = scores.table.loc[scores.table["confidence"].idxmax()]
    written = cached.captions(engine.folder, run.spec.captions)["caption"].iloc[surest["kept_at"]]
    st.html(COLOURS)
    text = view.text(st, "Caption", key="try", default=written, label_visibility="collapsed")
    if not text.strip():
        return
    models = cached.attackers(engine.folder, run.run_id, int(surest["caption_index"]))
    guess = models.score(text, scores.attribute, int(surest["fold"]), run.spec.merge_masks)
    coloured_caption("Guess", guess.tokens, guess.words, scores.attribute, guess.probabilities, tokenize(text))


def _overview(
    engine: Engine, collection: str, chosen: Comparison, table: Item, model: str, said: Sensitivity | None
) -> None:
    """What else is known of the captioner that the answer is about."""
    name, items = chosen.attribute.name, engine.workspace.items("references", collection)

    human = next((own for own in items if own.hash == chosen.references), None)

    def work() -> list[Line]:
        rows = measured_rows(engine.workspace, collection, {name: table}, {name: human} if human else None)
        own = rows[(rows["model"] == model) & (rows["attribute"] == name)]
        return overview(own, chosen.attribute, chosen.attacker, said)

    st.header(f"More about {plain(model)}")
    against = {"references": human.name} if human else {}
    shown = view.query(collection=collection, attribute=name, table=table.name, captioner=model, **against)
    st.html(overview_rows(cached.once(engine.workspace, "overview", work), shown))


def _scored(workspace: Workspace, collection: str, chosen: Comparison, table: Item, model: str) -> RunRow | None:
    """The scores of each caption of a captioner by the chosen attacker, else by another one that has scored them."""
    attackers = [chosen.attacker, *scoring_attackers(workspace, collection)]
    runs = (caption_runs(workspace, collection, chosen.attribute.name, own, table).get(model) for own in attackers)
    return next(filter(None, runs), None)


def _words(engine: Engine, collection: str, chosen: Comparison, table: Item, model: str, warning: str) -> None:
    """warning: why no word is shown to reveal anything, '' where some are."""
    name = chosen.attribute.name
    st.header(f"Words that weigh most for {name}" if warning else f"Words that reveal {name}")
    if warning:
        note(warning)
    run = _scored(engine.workspace, collection, chosen, table, model)
    if run is None:
        asked = Request(collection, (model,), table.name, name, (), attacker=chosen.attacker, words=True)
        note(f"Words of {model} with {chosen.attacker} are not computed yet.")
        start_button(engine, collection, plan(engine.workspace, asked), "Find the words", "words_now")
        return
    top = cached.top_words(engine.folder, run.run_id, WORDS_A_SIDE)
    shown = view.query(
        collection=collection, attribute=name, table=table.name, measured_with=run.spec.attacker, captioner=model
    )
    st.html(word_rows(top, chosen.attribute, "Captions", shown))
    note(f"From the captions of {model}, by {run.spec.attacker}. Click a word to read the captions with it.")


def _loaded(engine: Engine, collection: str) -> None:
    """Every collection and what it has."""
    st.header("What is loaded")
    work = partial(_collections, engine)
    st.html(collection_rows(cached.of_collection(engine.workspace, "", "collections", work), collection))


def _collections(engine: Engine) -> pd.DataFrame:
    workspace, rows = engine.workspace, []
    items = workspace.items()
    for name in workspace.collections():
        of = {kind: [own for own in items if own.collection == name and own.kind == kind] for kind in SHOWN}
        labels, sets = attribute_names(of["attributes"]), originals(of["captions"])
        scored = {run.spec.model for run in current_runs(workspace, name, "lic")} & set(sets)
        share = "all" if len(scored) == len(sets) else f"{len(scored)} of {len(sets)}"
        rows.append(
            {
                "collection": name,
                "captions": ", ".join(own.name for own in of["captions"]) or "none",
                "labels": ", ".join(labels) or "none",
                "human captions": ", ".join(own.name for own in of["references"]) or "none",
                "scored": share if scored else "not yet",
            }
        )
    return pd.DataFrame(rows)

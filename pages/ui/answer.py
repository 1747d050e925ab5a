"""The front page: the answer, what it is based on, what is loaded and what is running."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from capbias_core.aggregate.comparison import Sensitivity
from capbias_core.attackers import attacker_entry
from capbias_core.errors import CapbiasError
from capbias_core.measures.protocols import PROTOCOLS
from capbias_core.measures.registry import METRICS
from capbias_core.prepare import tokenize
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.runs.run import is_current
from capbias_core.types import counted
from capbias_core.views import answer as answer_views
from capbias_core.views import sentence
from capbias_core.views.captions import caption_runs
from capbias_core.views.charts import interval_chart
from capbias_core.views.encoders import encoders_warning, sensitivity_alike
from capbias_core.views.leaderboard import leads
from capbias_core.views.published import measured_rows
from capbias_core.views.results import Comparison, like_with_like, while_running
from capbias_core.views.slices import slices_line
from capbias_core.views.view import Scope
from capbias_core.views.word_comparison import BOLD_MEANS, GREY_MEANS, INTERVALS, word_chart
from capbias_core.views.words import STYLE as COLOURS
from capbias_core.workspace.conditions import left_out_as_masked, originals
from capbias_core.workspace.content import content_of
from capbias_core.workspace.ingest import DEMO, WARNINGS
from capbias_core.workspace.labels import table_of, table_with, tables_with
from capbias_core.workspace.store import Item, RunRow
from capbias_core.workspace.vectors import CONSTANT
from pages.ui import cached, present, view
from pages.ui.bar import Bar, attribute_names, empty_state
from pages.ui.base import box, caveats, explained, masked_left_out, note, show_messages
from pages.ui.drawing import draw_chart
from pages.ui.one_image import caption_line
from pages.ui.page import draw_bar
from pages.ui.plain import plain
from pages.ui.runs import active_runs, answer_box, first_runs, nothing_scored, start_button
from pages.ui.words import compared_words

WORDS_A_SIDE, PRESENTED_A_SIDE = 6, 4
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
    st.html(answer_views.STYLE)
    bar = draw_bar()
    show_messages()
    workspace, collection = bar.workspace, bar.collection
    if not collection:
        empty_state(
            bar,
            "Load captions of your model and a table of labelled images. You will see whether the captions reveal "
            "gender or race with every such word masked, how certain that is, and which words reveal it.",
        )
        return
    active = active_runs(workspace, collection)
    comparisons = while_running(cached.compared(workspace, collection), active)
    if comparisons:
        comparison, table = chosen_comparison(bar, comparisons)
        _answer(bar, comparison, table, comparisons)
        if st.button("Load captions", icon=":material/upload:"):
            view.go("pages/1_Data.py")
    elif active:
        box("Running.", "The answer appears here when the first of the runs above is done.")
    else:
        finished = (run for run in workspace.runs(collection) if run.status == "finished")
        earlier = sum(not is_current(run.spec) for run in finished)
        hidden = f" {earlier:,} results of an earlier version are hidden; run them again." if earlier else ""
        nothing_scored(bar, f"Captions and labels are loaded, but nothing is scored.{hidden}")


def chosen_comparison(bar: Bar, comparisons: list[Comparison]) -> tuple[Comparison, Item]:
    """One of the comparisons of the attribute, and its table of labels. The link names the table and the human captions
    too, so that it means the same when more are added."""
    tables = bar.items("labels")
    human = {item.hash: item.name for item in bar.items("references")}  # oldest first
    unscored = {name: f"{name} is not scored yet." for name in attribute_names(tables)}
    attribute = bar.attribute(dict.fromkeys(comparison.attribute.name for comparison in comparisons), unscored)
    options, choices, titles = {}, {}, {}
    for comparison in comparisons:
        if comparison.attribute.name != attribute:
            continue
        table = table_of(tables, attribute, comparison.runs[0].spec.labels) or table_with(tables, attribute)
        title = f"{comparison.attacker}, {comparison.metric}, {counted(comparison.seeds, 'seed')}"
        if comparison.alignment not in ("", CONSTANT):
            title += f", {comparison.alignment}"
        if comparison.references not in ("", *list(human)[:1]):
            title += f", human captions {human[comparison.references]}"
        if (name := f"{title}, {table.name}") not in options:  # the better of two with the same title
            options[name] = comparison, table
            titles[name] = name if len(tables_with(tables, attribute)) > 1 else title
            choices[name] = {"attacker": comparison.attacker, "table": table.name}
            if comparison.references and len(human) > 1:
                choices[name]["references"] = human[comparison.references]
    return options[bar.measured_with(choices, titles)]


def _answer(bar: Bar, comparison: Comparison, table: Item, comparisons: list[Comparison]) -> None:
    workspace, attribute, metric = bar.workspace, comparison.attribute, comparison.metric
    sets, tables, references = bar.items("captions"), bar.items("labels"), bar.items("references")
    rows = cached.once(workspace, "rows", lambda: workspace.results(comparison.run_ids))
    of_metric = rows[rows["metric"] == metric].sort_values("value", ascending=False)
    trained = {item.name: item.details.get("trained_on_references") for item in sets}
    names = list(sentence.first_to_answer(of_metric)["model"])
    model = bar.captioner(names, names[0])
    entry = attacker_entry(comparison.attacker)
    text = cached.once(workspace, "text", lambda: sentence.answer(rows, model, attribute, entry, trained.get(model)))
    run = caption_runs(workspace, bar.collection, attribute.name, comparison.attacker, table).get(model)
    slides = 2 + (1 + entry.rescores if run else 0)  # sentence, chart, words, a caption to try
    support = f'<div class="cb-legend">{explained(text.support)}</div>'
    present.slide(lambda: st.html(support), text.headline, number=1, of=slides)
    answer_box(bar, replace(text, details=""))
    _confirm(bar, comparison, table, comparisons)
    if len(crossed := answer_views.cross_table(rows, model)):
        st.html(crossed.to_html(index=False, border=0, classes="cb-table"))
    warnings = [(item.name, tuple(item.details.get(WARNINGS, ()))) for item in sets if item.name in names]
    warnings += [
        (run.spec.model, tuple(each.text for each in content_of(workspace, run.spec))) for run in comparison.runs
    ]
    for line in sentence.named_notes([(name, texts) for name, texts in warnings if name == model]):
        note(line)
    of_others = sentence.named_notes([(model, ()), *((name, texts) for name, texts in warnings if name != model)])
    if others := ", ".join(item.name for item in tables_with(tables, attribute.name) if item.name != table.name):
        note(f"Labels: {table.name}. Not used: {others}.")
    read = ", ".join(item.name for item in references if item.hash == comparison.references)
    others = ", ".join(item.name for item in references if item.hash != comparison.references)
    if read and others:
        note(f"Human captions: {read}. Not used: {others}.")
    if bar.collection == DEMO:
        note("This is the demo. Its pictures, labels and captions are generated, and they show no real people.")
    sensitivity = cached.once(workspace, "sensitivity", lambda: sensitivity_alike(workspace, comparisons, comparison))
    if sensitivity and (warning := encoders_warning(sensitivity, metric)):
        note(warning)
    pairs = cached.ranking(bar.folder, comparison.run_ids, metric)
    split = cached.once(workspace, "alike", lambda: like_with_like(workspace, of_metric, pairs))
    second = sentence.second_dots(rows, metric)
    left, right = st.container(key="stacks").columns([3, 2], gap="large")
    title = f"{sentence.with_attacker(metric, entry)} of each captioner"
    with left:
        st.header(plain(title))

        def words(rows: pd.DataFrame) -> dict[str, float]:
            return {name: pairs.words[name] for name in rows["model"] if name in pairs.words}

        def chart(rows: pd.DataFrame):
            return interval_chart(rows, metric, attribute, pairs.letters, second, model, words(rows))

        verdict_explained = not trained.get(model) and "relative to" in text.headline  # what a verdict means, above
        verdicts = sentence.verdicts_text(split.compared, {} if verdict_explained else trained)
        marks = " ".join(
            filter(None, (present.marks(bool(second), pairs), sentence.lengths_note(words(split.compared))))
        )
        draw_chart(
            cached.once(workspace, "intervals", lambda: chart(split.compared)),
            key="answer_chart",
            alt=f"{metric} of each captioner",
            notes=f"{verdicts} {split.shared_text} {marks}",
            headline=f"{title}.",
            legend=f"{marks} {verdicts}",
            presented=(2, slides),
        )
        if len(split.others):
            st.markdown("**Measured on different images**")
            others = cached.once(workspace, "others", lambda: chart(split.others))
            draw_chart(others, key="others_chart", alt=f"{metric} of captioners measured on different images")
            note(
                f"{sentence.verdicts_text(split.others)} Not comparable with the captioners above. "
                f"{sentence.lengths_note(words(split.others))}"
            )
        scored = {run.spec.model for other in comparisons if other.attribute == attribute for run in other.runs}
        coming = {
            run.spec.model
            for run in active_runs(workspace, bar.collection)
            if (run.spec.attribute.get("name"), run.spec.attacker) == (attribute.name, comparison.attacker)
        }
        if waiting := sorted(coming - set(names)):
            note(f"{', '.join(waiting)}: still being measured.")
        if others := sorted(scored - set(names) - coming):
            note(f"{', '.join(others)}: not measured with these settings. Choose others under Measured with.")
        missing = [name for name in originals(sets) if name not in scored]
        specs = first_runs(bar, attribute.name) if missing else []
        if specs := [spec for spec in specs if spec.model in missing]:
            start_button(bar, specs, f"Score {', '.join(missing)}", "score_missing")
        if leads(comparisons):
            view.link(st, "pages/2_Scores.py", "Leaderboard", ":material/leaderboard:", tab="Leaderboard")
    with right:
        guessed = cached.once(
            workspace, "guessed", lambda: answer_views.guessing_row(workspace, bar.collection, comparison, model)
        )
        _words(bar, comparison, table, model, run, slides, sentence.chance_warning(guessed, attribute))
    if run and entry.rescores:
        present.slide(partial(_try_a_caption, bar, run), "Try a caption", number=4, of=slides)
        st.header("Try a caption")
        _try_a_caption(bar, run)
    _overview(bar, comparison, table, model, sensitivity)
    _other_attributes(bar, attribute.name, {other.attribute.name for other in comparisons})
    lines = sentence.named_notes([(run.spec.model, run.notes) for run in comparison.runs])
    of_all = set.intersection(*(set(run.notes) for run in comparison.runs))
    caveats(
        [
            attribute.note,
            masked_left_out(left_out_as_masked(sets)),
            *of_others,
            *(line for line in lines if line in of_all),
        ]
    )
    with st.expander("How is this measured?"):
        note(text.details)
        note(HOW)
        note(f"{METRICS[metric].title}: {METRICS[metric].explanation} {METRICS[metric].source}.")
        note(
            f"Lines are intervals, {sentence.intervals_over(of_metric)}. {sentence.BY_HUMAN if second else ''} "
            f"{sentence.told_apart(pairs)}"
        )
        for line in lines:
            if line not in of_all:
                note(line)
        of_model = of_metric[of_metric["model"] == model].iloc[0]
        note(f"Settings for {model}: {of_model['method']}. The button Runs shows every setting.")


def _confirm(bar: Bar, comparison: Comparison, table: Item, comparisons: list[Comparison]) -> None:
    """Below the preview: the same by the first encoder of the LIC paper, with its seeds, its cost and the button."""
    entry, settings = attacker_entry(comparison.attacker), PROTOCOLS["lic"].settings
    name = settings["attacker"][0]
    measured = {other.attacker for other in comparisons if other.attribute == comparison.attribute}
    if not entry.preview or comparison.metric != "LIC" or any(attacker_entry(other).lic_paper for other in measured):
        return
    references = next(item for item in bar.items("references") if item.hash == comparison.references)
    models = tuple(run.spec.model for run in comparison.runs)
    request = Question(
        *(bar.collection, models, table.name, comparison.attribute.name, ("lic",), references.name, (name,)),
        seeds=settings["seeds"],
    )
    try:
        specs = cached.once(bar.workspace, "confirm", lambda: plan(bar.workspace, request))
    except CapbiasError as error:
        note(f"{error.message} {error.hint}")
        return
    specs = [spec for spec in specs if spec.references]
    start_button(bar, specs, f"Confirm with the paper's attacker ({name}, {settings['seeds']} seeds)", "confirm")


def _words(
    bar: Bar, comparison: Comparison, table: Item, model: str, run: RunRow | None, slides: int, warning: str
) -> None:
    """run: the scores of each caption. slides: how many the page presents. warning: why no word is shown to reveal
    anything, '' if some are."""
    name = comparison.attribute.name
    st.header(f"Words that weigh most for {plain(name)}")
    if warning:
        note(warning)
    if run is None:
        request = Question(bar.collection, (model,), table.name, name, (), attacker=(comparison.attacker,), words=True)
        note(f"Words of {model} with {comparison.attacker} are not computed yet.")
        start_button(bar, plan(bar.workspace, request), "Find the words", "words_now")
        return
    compared = compared_words(bar, run, comparison.references)
    top = cached.top_words(bar.folder, run.run_id, WORDS_A_SIDE, compared)
    query = view.query(
        collection=bar.collection, attribute=name, table=table.name, measured_with=run.spec.attacker, captioner=model
    )

    def link(word: str) -> str:
        return f"Captions?{urlencode({**query, 'word': word})}"

    few = cached.top_words(bar.folder, run.run_id, PRESENTED_A_SIDE, compared)
    title = f"Words of {model} that weigh most for {name}"
    present.chart(word_chart(few, comparison.attribute, model), "words_presented", title, title, warning, 3, slides)
    dots = f"Dots: what a word adds to the logit on average in the captions of {model}"
    beside = f"{dots}, with its interval. {GREY_MEANS} {BOLD_MEANS} {INTERVALS}"
    draw_chart(
        word_chart(top, comparison.attribute, model, link=link),
        key="answer_words",
        alt=title,
        notes=f"{beside if compared else f'{dots}.'} By {run.spec.attacker}. Click a word to read its captions.",
    )


@st.fragment
def _try_a_caption(bar: Bar, run: RunRow) -> None:
    """The attacker's guess for any caption, and what each word adds. run: the scores of each caption, by an attacker
    that can guess at once. The text starts as the caption of which it is surest."""
    scores = cached.scores(bar.folder, run.run_id)
    surest = scores.table.loc[scores.table["confidence"].idxmax()]
    written = cached.captions(bar.folder, run.spec.captions)["caption"].iloc[surest["kept_at"]]
    st.html(COLOURS)
    text = view.text(st, "Caption", key="try", default=written, label_visibility="collapsed")
    if not text.strip():
        return
    models = cached.attackers(bar.folder, run.run_id, int(surest["caption_index"]))
    guess = models.score(text, scores.attribute, int(surest["fold"]), run.spec.merge_masks)
    st.html(caption_line("Guess", guess.tokens, guess.words, scores.attribute, guess.probabilities, tokenize(text)))


def _overview(bar: Bar, comparison: Comparison, table: Item, model: str, sensitivity: Sensitivity | None) -> None:
    name = comparison.attribute.name
    human = next((item for item in bar.items("references") if item.hash == comparison.references), None)

    def work() -> list[answer_views.Line]:
        rows = measured_rows(bar.workspace, bar.collection, {name: table}, {name: human} if human else None)
        of_model = rows[(rows["model"] == model) & (rows["attribute"] == name)]
        settings = comparison.attribute, comparison.attacker, sensitivity
        where = slices_line(Scope(bar.workspace, bar.collection, comparison, (model,)))
        where_line = answer_views.Line("Where does it amplify?", where, "Scores", "Where")
        return [where_line, *answer_views.overview(of_model, *settings)]

    st.header(f"More about {plain(model)}")
    against = {"references": human.name} if human else {}
    link = view.query(collection=bar.collection, attribute=name, table=table.name, captioner=model, **against)
    st.html(answer_views.overview_table(cached.once(bar.workspace, "overview", work), link))


def _other_attributes(bar: Bar, shown: str, measured: set[str]) -> None:
    """Links to the answers for other attributes; of those without one the cost, and its button."""
    names = [name for name in attribute_names(bar.items("labels")) if name != shown]
    if not names:
        return
    st.header("Other attributes")
    for name in names:
        if name in measured:
            view.link(st, "app.py", f"Answer for {name}", ":material/balance:", attribute=name)
    if not (names := [name for name in names if name not in measured]):
        return
    name = st.selectbox("Attribute", names, key="unmeasured") if len(names) > 1 else names[0]
    specs = first_runs(bar, name)
    note(f"The images also have labels for {name}.{'' if specs else ' See Scores.'}")
    if specs:
        start_button(bar, specs, f"Score {name}", "score_other")

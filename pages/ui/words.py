"""The tab Words of Captions: words compared with human captions as chart or table, and the captions with one word."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from capbias_core.prepare import tokenize
from capbias_core.types import Attribute, counted
from capbias_core.views import word_comparison
from capbias_core.views.captions import captions_with
from capbias_core.views.charts import GREY
from capbias_core.views.results import attribute_of_run
from capbias_core.views.sentence import limit
from capbias_core.views.view import Shown
from capbias_core.views.word_comparison import (
    BOLD_MEANS,
    FUNCTION,
    GREY_MEANS,
    INTERVALS,
    MEANING,
    ONE_TRAINING,
    YES,
    top_words,
    word_cells,
    word_chart,
    word_frame,
)
from capbias_core.workspace.store import RunRow
from pages.ui import cached, present, view
from pages.ui.bar import Bar
from pages.ui.base import note
from pages.ui.captions import human_names, scored_sets
from pages.ui.drawing import draw_chart, draw_table, select_row, selected_row
from pages.ui.one_image import caption_line
from pages.ui.plain import plain
from pages.ui.runs import start_button
from pages.ui.shown import downloads

CHART, TABLE = "chart", "table"
WORDS = 20
PRESENTED = 8  # words that can be read from far away
LISTED = 8  # captions with a word, beside the chart


def words_tab(bar: Bar) -> None:
    """The words of one set that weigh most, compared with human captions: chart or table, and the captions with one."""
    runs = scored_sets(bar)
    if not runs:
        return
    name = bar.captioner(list(runs))
    run, attribute = runs[name], cached.scores(bar.folder, runs[name].run_id).attribute
    st.header(f"Words that weigh most for {plain(attribute.name)}")
    compared = "" if name in human_names(bar) else compared_words(bar, run)
    smallest = view.number(st, "Minimum captions with the word", 1, None, 10, key="smallest")
    table = cached.words(bar.folder, run.run_id, compared)
    table = table[table["strength"].notna() & (table.filter(["count", "human_count"]).max(axis=1) >= smallest)]
    top, figure = _strongest(bar.folder, run.run_id, compared, attribute, smallest, name)
    if top.empty:
        note("No word occurs in that many captions.")
    else:
        kind = view.selectbox(st, "Words as", [CHART, TABLE], key="words_as", draw="segmented_control", required=True)
        alt = f"What the words of {name} that weigh most add{', beside human captions' if compared else ''}"
        legend = "Average contribution of a word to the logit of captions with it."
        large = _strongest(bar.folder, run.run_id, compared, attribute, smallest, name, PRESENTED)[1]
        present.chart(large, "words_presented", alt, f"Words of {name} that weigh most for {attribute.name}", legend)
        widths = [5, 2] if kind == TABLE else [1, 1]
        left, right = st.container(key="stacks_words").columns(widths, gap="medium")
        content = top[~top["word"].isin(cached.function_words(bar.folder, tuple(top["word"])))]
        strongest = (top if content.empty else content).sort_values("strength")["word"].iloc[-1]
        with right:
            words = list(table["word"].unique())
            word = view.selectbox(
                st, "Captions with the word", words, default=strongest, key="listed", missing="the word"
            )
            count, lines = _lines_with(bar.folder, run.run_id, word)
            if st.button(f"Read {counted(count, 'caption')}", icon=":material/notes:", key="list_word"):
                view.go("pages/3_Captions.py", tab="Captions", word=word)
            st.html("".join(f'<div style="margin-bottom: .7rem">{line}</div>' for line in lines))
            if count > len(lines):
                note(f"The {len(lines)} of {count:,} captions of {name} to which it adds most.")
        with left:
            if kind == TABLE:
                functional = cached.function_words(bar.folder, tuple(words))
                listed = table.sort_values("strength", ascending=False).drop_duplicates("word")
                rows = word_frame(listed, attribute, name, functional)
                _table(rows, f"words_{run.run_id}_{compared}_{smallest}", name, word)
            else:
                key = f"word_chart_{run.run_id}_{compared}_{len(top)}"
                draw_chart(figure, key=key, on_select=partial(_pick_bar, key), selection_mode="points", alt=alt)
                rows = word_frame(top, attribute, name, cached.function_words(bar.folder, tuple(top["word"])))
            downloads(Shown(f"Words of {name}", rows, table=word_cells(rows)), f"{name}_words")
        bold = BOLD_MEANS if kind == CHART else ""
        note(f"{MEANING} {f'{INTERVALS} {GREY_MEANS} {bold}' if compared else ONE_TRAINING}")
        note(
            f"{FUNCTION}: article, preposition, pronoun, conjunction, auxiliary or numeral. Select a word to see its "
            "captions."
        )
    note(attribute.note)


def compared_words(bar: Bar, run: RunRow, references: str = "") -> str:
    """The ID of the run that compared the words of a captioner with those of human captions, with what it found above;
    '' if there is none, with a button for it if there are human captions. run: the scores of each caption. references:
    the content hash of the human captions, '' for the default."""
    name = run.spec.attribute["name"]
    human = [item for item in bar.items("references") if references in ("", item.hash)]
    if not references and (default := cached.references_read(bar.workspace, bar.collection).get(name)):
        human = [default]
    if not human:
        note(f"Add human captions to see which words reveal {plain(name)} more than in theirs.")
        return ""
    compared = word_comparison.comparison_of(bar.workspace, bar.collection, run, human[0].hash)
    if compared is None:
        spec = word_comparison.plan_comparison(bar.workspace, run, human[0])
        if spec is not None:
            start_button(bar, [spec], "Compare with human captions", "words_compared")
        return ""
    table = cached.words(bar.folder, run.run_id, compared.run_id)
    note(word_comparison.comparison_sentence(table, attribute_of_run(run), run.spec.model))
    note(" ".join(compared.notes))
    return compared.run_id


@st.cache_resource(show_spinner=False, max_entries=16, hash_funcs=cached.KEYS)
def _strongest(
    folder: str, run_id: str, compared_id: str, attribute: Attribute, smallest: int, name: str, number: int = WORDS
) -> tuple[pd.DataFrame, Any]:
    """The words that push most, at most `number`, and their chart."""
    top = top_words(cached.words(folder, run_id, compared_id), smallest, number // len(attribute.values))
    return top, word_chart(top, attribute, name, cached.function_words(folder, tuple(top["word"])))


def _pick_bar(key: str) -> None:
    if points := st.session_state[key].selection.points:
        view.choose("listed", points[0]["customdata"])


def _table(rows: pd.DataFrame, key: str, name: str, word: str) -> None:
    """Rows of `word_frame`, those whose interval contains 0 in grey."""
    shown = rows[["word", "toward", "n", "value"]].copy()
    if "human" in rows:
        shown["interval"] = _intervals(rows, "ci_low", "ci_high")
        shown[["human", "difference"]] = rows[["human", "difference"]]
        shown["its interval"] = _intervals(rows, "difference_low", "difference_high")
    select_row(key, shown.index[shown["word"] == word].tolist())

    def pick() -> None:
        if (row := selected_row(key)) is not None:
            view.choose("listed", shown["word"].iloc[row])

    grey = rows["certain"] != YES if "certain" in rows else pd.Series(False, rows.index)
    draw_table(
        shown.style.apply(lambda row: [f"color: {GREY}" if grey[row.name] else ""] * len(row), axis=1),
        height=560,
        selection_mode="single-row",
        key=key,
        on_select=pick,
        column_config={
            "word": st.column_config.Column(pinned=False),  # a pinned one is paler, and grey means something here
            "n": st.column_config.NumberColumn(format="%d", help="Captions with the word."),
            "value": st.column_config.NumberColumn(format="%.2f", help=f"In the captions of {plain(name)}."),
            "human": st.column_config.NumberColumn(
                format="%+.2f", help="In human captions of the same images; negative pushes the other way."
            ),
            "difference": st.column_config.NumberColumn(format="%+.2f", help="Captioner minus human."),
        },
        alt=f"Words of {name} and what they add",
    )


def _intervals(rows: pd.DataFrame, low: str, high: str) -> list[str]:
    ends = zip(rows[low], rows[high], strict=True)
    return ["" if first != first else f"[{limit(first, 2)}, {limit(last, 2)}]" for first, last in ends]


@st.cache_data(show_spinner=False, max_entries=256)
def _lines_with(folder: str, run_id: str, word: str) -> tuple[int, list[str]]:
    """How many captions of a run contain a word, and those to which it adds most as HTML."""
    scores = cached.scores(folder, run_id)
    written = cached.captions(folder, scores.run.spec.captions)["caption"]
    count, rows = captions_with(scores, word, LISTED)
    largest = max((float(abs(scores.words_of(row)).max(initial=0.0)) for row in rows), default=0.0)
    lines = []
    for row in rows:
        facts = scores.table.loc[row]
        lines.append(
            caption_line(
                f"Image {facts['image_id']}",
                facts["masked"].split(),
                scores.words_of(row),
                scores.attribute,
                scores.probabilities_of(row),
                tokenize(written.iloc[facts["kept_at"]]),
                largest,
                f", labelled {scores.attribute.values[facts['label']]}",
                only=word,
            )
        )
    return count, lines

"""The tab Words of Captions: a chart beside the human captions', a table, and the captions with one word."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from capbias_core.prepare import tokenize
from capbias_core.types import Attribute, counted
from capbias_core.views.captions import captions_with
from capbias_core.views.words import FUNCTION, beside_human, top_words, where_words_come_from, word_chart
from pages.ui import cached, view
from pages.ui.bar import Bar
from pages.ui.base import note
from pages.ui.captions import human_names, scored_sets
from pages.ui.drawing import draw_chart, draw_table, select_row, selected_row
from pages.ui.one_image import caption_line

CHART, TABLE = "chart", "table"
WORDS = 20
LISTED = 8  # captions with a word, beside the chart


def words_tab(bar: Bar) -> None:
    """The most revealing words of one set beside the human captions: chart or table, and the captions with a word."""
    runs = scored_sets(bar)
    if not runs:
        return
    name = bar.captioner(list(runs))
    run_id, attribute = runs[name].run_id, cached.scores(bar.folder, runs[name].run_id).attribute
    people = human_names(bar)
    human_name = next((other for other in runs if other in people and other != name), "")
    human_id = runs[human_name].run_id if human_name else ""
    st.header("Most revealing words")
    smallest = view.number(st, "Minimum captions with the word", 1, None, 10, key="smallest")
    table = cached.words(bar.folder, run_id)
    table = table[(table["count"] >= smallest) & (table["word"] != attribute.mask_token)]
    top, figure = _strongest(bar.folder, run_id, attribute, smallest, name, human_name, human_id)
    if top.empty:
        note("No word occurs in that many captions.")
    else:
        if human_name:
            note(where_words_come_from(top, name, smallest))
        left, right = st.container(key="stacks_words").columns(2, gap="medium")
        content = top[~top["word"].isin(cached.function_words(bar.folder, tuple(top["word"])))]
        strongest = (top if content.empty else content).sort_values("mean", key=abs)["word"].iloc[-1]
        with right:
            word = view.selectbox(
                st, "Captions with the word", list(table["word"]), default=strongest, key="listed", missing="the word"
            )
            count, lines = _lines_with(bar.folder, run_id, word)
            if st.button(f"Read {counted(count, 'caption')}", icon=":material/notes:", key="list_word"):
                view.go("pages/3_Captions.py", tab="Captions", word=word)
            st.html("".join(f'<div style="margin-bottom: .7rem">{line}</div>' for line in lines))
            if count > len(lines):
                note(f"The {len(lines)} of {count:,} captions of {name} to which it adds most.")
        with left:
            kind = view.selectbox(
                st, "Words as", [CHART, TABLE], key="words_as", draw="segmented_control", required=True
            )
            if kind == TABLE:
                human = cached.words(bar.folder, human_id) if human_name else None
                functional = cached.function_words(bar.folder, tuple(table["word"]))
                shown = _shown(table, attribute, human, functional)
                _table(shown, attribute, f"words_{run_id}_{smallest}", name, word)
            else:
                key = f"word_chart_{run_id}_{len(top)}"
                beside = f", beside the human captions {human_name}" if human_name else ""
                draw_chart(
                    figure,
                    key=key,
                    on_select=partial(_pick_bar, key),
                    selection_mode="points",
                    alt=f"What the most revealing words of {name} add{beside}",
                )
        note(
            f"Average contribution of a word to the logit of captions with it. {FUNCTION}: article, preposition, "
            "pronoun, conjunction, auxiliary or numeral. Select a word to see its captions."
        )
    note(attribute.note)


@st.cache_resource(show_spinner=False, max_entries=16, hash_funcs=cached.KEYS)
def _strongest(
    folder: str, run_id: str, attribute: Attribute, smallest: int, name: str, human: str, human_id: str
) -> tuple[pd.DataFrame, Any]:
    """The words that push most, beside their contributions in the human captions if there are any, and their chart."""
    table = cached.words(folder, run_id)
    top = top_words(table[table["word"] != attribute.mask_token], smallest, WORDS // len(attribute.values))
    if human:
        top = beside_human(top, cached.words(folder, human_id), smallest)
    return top, word_chart(top, attribute, name, human, cached.function_words(folder, tuple(top["word"])))


def _pick_bar(key: str) -> None:
    if points := st.session_state[key].selection.points:
        view.choose("listed", points[0]["customdata"])


def _shown(table: pd.DataFrame, attribute: Attribute, human: pd.DataFrame | None, functional: set[str]) -> pd.DataFrame:
    """A row per word, the strongest first. human: the words of human captions."""
    means = table[[column for column in table if column.startswith("mean")]].to_numpy()
    binary = means.shape[1] == 1
    toward = (means[:, 0] > 0).astype(int) if binary else means.argmax(axis=1)
    shown = pd.DataFrame(
        {
            "word": table["word"].to_numpy(),
            "kind": ["function" if word in functional else "" for word in table["word"]],
            "pushes toward": [attribute.values[value] for value in toward],
            "mean": abs(means[:, 0]) if binary else means.max(axis=1),
            "count": table["count"].to_numpy(),
        }
    )
    if human is not None:
        of_human = human.set_index("word").reindex(table["word"]).filter(regex=r"^mean\d+$").to_numpy()
        signs = 2 * toward - 1
        shown.insert(4, "human mean", of_human[:, 0] * signs if binary else of_human[range(len(of_human)), toward])
    for number, value in enumerate(attribute.values):
        shown[f"share of {value}"] = 100 * table[f"share{number}"].to_numpy()
    return shown.sort_values("mean", ascending=False, ignore_index=True)


def _table(shown: pd.DataFrame, attribute: Attribute, key: str, name: str, word: str) -> None:
    select_row(key, shown.index[shown["word"] == word].tolist())

    def pick() -> None:
        if (place := selected_row(key)) is not None:
            view.choose("listed", shown["word"].iloc[place])

    draw_table(
        shown,
        height=560,
        selection_mode="single-row",
        key=key,
        on_select=pick,
        column_config={
            "mean": st.column_config.NumberColumn(format="%.3f"),
            "human mean": st.column_config.NumberColumn(
                format="%+.3f", help="The same in the human captions; negative pushes the other way."
            ),
            **{f"share of {value}": st.column_config.NumberColumn(format="%.1f%%") for value in attribute.values},
        },
        alt=f"Words of {name} and what they add",
    )
    note("Share: of the captions of each labelled value.")


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

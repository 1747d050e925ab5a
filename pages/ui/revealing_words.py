"""The most revealing words of a captioner: a chart beside the human captions', a table, and the captions with one."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from capbias_core.prepare import tokenize
from capbias_core.runs.engine import Engine
from capbias_core.types import Attribute, counted
from capbias_core.views.captions import CaptionScores, captions_with
from capbias_core.views.words import FUNCTION, beside_human, top_words, where_words_come_from, word_chart
from capbias_core.workspace.store import RunRow
from pages.ui import cached, view
from pages.ui.base import note
from pages.ui.chart import draw_chart
from pages.ui.coloured import caption_line
from pages.ui.table import draw_table, select_row, selected_row

CHART, TABLE = "chart", "table"
WORDS = 20
LISTED = 8  # captions with a word, beside the chart


def revealing_words(engine: Engine, run: RunRow, own: CaptionScores, name: str, human: tuple[str, RunRow] | None):
    """Chart or table at the left, the captions with the chosen word at the right. human: a set of human captions."""
    st.header("Most revealing words")
    attribute = own.attribute
    smallest = view.number(st, "Minimum captions with the word", 1, None, 10, key="smallest")
    table = cached.words(engine.folder, run.run_id)
    table = table[(table["count"] >= smallest) & (table["word"] != attribute.mask_token)]
    human_name, human_id = (human[0], human[1].run_id) if human else ("", "")
    top, figure = _strongest(engine.folder, run.run_id, attribute, smallest, name, human_name, human_id)
    if top.empty:
        note("No word occurs in that many captions.")
        return
    if human:
        note(where_words_come_from(top, name, smallest))
    left, right = st.container(key="stacks_words").columns(2, gap="medium")
    content = top[~top["word"].isin(cached.function_words(engine.folder, tuple(top["word"])))]
    strongest = (top if content.empty else content).sort_values("mean", key=abs)["word"].iloc[-1]
    with right:
        word = view.selectbox(
            st, "Captions with the word", list(table["word"]), default=strongest, key="listed", missing="the word"
        )
        _captions(engine, own, name, word)
    with left:
        kind = view.selectbox(st, "Words as", [CHART, TABLE], key="words_as", draw="segmented_control", required=True)
        if kind == TABLE:
            human_table = cached.words(engine.folder, human_id) if human else None
            functional = cached.function_words(engine.folder, tuple(table["word"]))
            _table(run, attribute, table, human_table, functional, name, smallest, word)
        else:
            _chart(figure, f"word_chart_{run.run_id}_{len(top)}", name, human_name)
    note(
        f"Average contribution of a word to the logit of captions with it. {FUNCTION}: article, preposition, pronoun, "
        "conjunction, auxiliary or numeral. Select a word to see its captions."
    )


@st.cache_resource(show_spinner=False, max_entries=16, hash_funcs=cached.KEYS)
def _strongest(
    folder: str, run_id: str, attribute: Attribute, smallest: int, name: str, human: str, human_id: str
) -> tuple[pd.DataFrame, Any]:
    """The words that push most, beside what they add in the human captions where there are any, and their chart."""
    table = cached.words(folder, run_id)
    top = top_words(table[table["word"] != attribute.mask_token], smallest, WORDS // len(attribute.values))
    if human:
        top = beside_human(top, cached.words(folder, human_id), smallest)
    return top, word_chart(top, attribute, name, human, cached.function_words(folder, tuple(top["word"])))


def _chart(figure: Any, key: str, name: str, human: str) -> None:
    draw_chart(
        figure,
        key=key,
        on_select=partial(_pick_bar, key),
        selection_mode="points",
        alt=f"What the most revealing words of {name} add" + (f", beside the human captions {human}" if human else ""),
    )


def _table(
    run: RunRow,
    attribute: Attribute,
    table: pd.DataFrame,
    human: pd.DataFrame | None,
    functional: set[str],
    name: str,
    smallest: int,
    word: str,
) -> None:
    means = table[[column for column in table if column.startswith("mean")]].to_numpy()
    two = means.shape[1] == 1
    place = (means[:, 0] > 0).astype(int) if two else means.argmax(axis=1)
    shown = pd.DataFrame(
        {
            "word": table["word"].to_numpy(),
            "kind": ["function" if own in functional else "" for own in table["word"]],
            "pushes toward": [attribute.values[value] for value in place],
            "mean": abs(means[:, 0]) if two else means.max(axis=1),
            "count": table["count"].to_numpy(),
        }
    )
    if human is not None:
        theirs = human.set_index("word").reindex(table["word"]).filter(regex=r"^mean\d+$").to_numpy()
        signs = 2 * place - 1
        shown.insert(4, "human mean", theirs[:, 0] * signs if two else theirs[range(len(theirs)), place])
    for number, value in enumerate(attribute.values):
        shown[f"share of {value}"] = 100 * table[f"share{number}"].to_numpy()
    shown = shown.sort_values("mean", ascending=False, ignore_index=True)
    formats = {f"share of {value}": st.column_config.NumberColumn(format="%.1f%%") for value in attribute.values}
    key = f"words_{run.run_id}_{smallest}"
    select_row(key, shown.index[shown["word"] == word].tolist())
    draw_table(
        shown,
        height=560,
        selection_mode="single-row",
        key=key,
        on_select=partial(_pick_row, key, list(shown["word"])),
        column_config={
            "mean": st.column_config.NumberColumn(format="%.3f"),
            "human mean": st.column_config.NumberColumn(
                format="%+.3f", help="The same in the human captions; negative pushes the other way."
            ),
            **formats,
        },
        alt=f"Words of {name} and what they add",
    )
    note("Share: of the captions of each labelled value.")


def _pick_row(key: str, words: list[str]) -> None:
    selected = selected_row(key)
    if selected is not None:
        view.choose("listed", words[selected])


def _pick_bar(key: str) -> None:
    points = st.session_state[key].selection.points
    if points:
        view.choose("listed", points[0]["customdata"])


def _captions(engine: Engine, own: CaptionScores, name: str, word: str) -> None:
    """The captions to which a word adds most, that word coloured, and a way to list all of them in the table above."""
    count, lines = _lines_with(engine.folder, own.run.run_id, word)
    if st.button(f"Read {counted(count, 'caption')}", icon=":material/notes:", key="list_word"):
        view.go("pages/3_Captions.py", tab="Captions", word=word)
    st.html("".join(f'<div style="margin-bottom: .7rem">{line}</div>' for line in lines))
    if count > len(lines):
        note(f"The {len(lines)} of {count:,} captions of {name} to which it adds most.")


@st.cache_data(show_spinner=False, max_entries=256)
def _lines_with(folder: str, run_id: str, word: str) -> tuple[int, list[str]]:
    """How many captions of a run contain a word, and those to which it adds most as HTML."""
    own = cached.scores(folder, run_id)
    written = cached.captions(folder, own.run.spec.captions)["caption"]
    count, places = captions_with(own, word, LISTED)
    largest = max((float(abs(own.words_of(place)).max(initial=0.0)) for place in places), default=0.0)
    lines = []
    for place in places:
        row = own.table.loc[place]
        lines.append(
            caption_line(
                f"Image {row['image_id']}",
                row["masked"].split(),
                own.words_of(place),
                own.attribute,
                own.probabilities_of(place),
                tokenize(written.iloc[row["kept_at"]]),
                largest,
                f", labelled {own.attribute.values[row['label']]}",
                only=word,
            )
        )
    return count, lines

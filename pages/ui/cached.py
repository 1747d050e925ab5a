"""Finished runs, read once. Keys are run IDs, content hashes and the workspace's version, so nothing stale is shown."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import pandas as pd
import streamlit as st

from capbias_core.aggregate import Ranking
from capbias_core.attackers.what_if import Rescored, StoredAttackers
from capbias_core.prepare.labels import Trial
from capbias_core.types import Attribute
from capbias_core.views import captions as caption_views
from capbias_core.views import labels as label_views
from capbias_core.views import results, word_comparison
from capbias_core.views import words as word_views
from capbias_core.views.sentence import first_to_answer
from capbias_core.workspace.conditions import originals
from capbias_core.workspace.derived import Derived, derive
from capbias_core.workspace.store import Item, Workspace
from pages.ui import view

SETS = 40
T = TypeVar("T")


def once(workspace: Workspace, piece: str, work: Callable[[], T]) -> T:
    """The result of some work of a page, computed again when items, finished runs or the choices made so far change.

    piece: its name within the page. work: reads items and finished runs; no run under way, no clock, and no choice that
    is not in the address. Shared by all sessions, so callers only read.
    """
    return _once(repr((str(workspace.folder), workspace.version(), view.choices(), piece)), work)


def of_collection(workspace: Workspace, collection: str, piece: str, work: Callable[[], T]) -> T:
    """`once` for work that depends on a collection and on no other choice."""
    return _once(repr((str(workspace.folder), workspace.version(), collection, piece)), work)


def compared(workspace: Workspace, collection: str) -> list[results.Comparison]:
    """The comparisons of a collection's original captions, the best first."""
    return of_collection(
        workspace,
        collection,
        "compared",
        lambda: results.comparisons(workspace, collection, originals(workspace.items("captions", collection))),
    )


def of_runs(workspace: Workspace, run_ids: Sequence[str], piece: str, work: Callable[[], T]) -> T:
    """`once` for work that also reads runs that the choices alone do not name."""
    return once(workspace, f"{piece} {' '.join(run_ids)}", work)


def by_content(workspace: Workspace, piece: str, key: Hashable, work: Callable[[], T]) -> T:
    """The result of work that depends on the key alone, such as run IDs and content hashes."""
    return _once(repr((str(workspace.folder), piece, key)), work)


@st.cache_resource(show_spinner=False, max_entries=256)
def _once(key: str, _work: Callable[[], T]) -> T:
    return _work()


def tables_read(workspace: Workspace, collection: str) -> dict[str, Item]:
    """Attribute -> the table of labels that is the default."""
    return of_collection(workspace, collection, "tables read", lambda: results.tables_read(workspace, collection))


def references_read(workspace: Workspace, collection: str) -> dict[str, Item]:
    """Attribute -> the human captions that are the default."""
    return of_collection(
        workspace, collection, "references read", lambda: results.references_read(workspace, collection)
    )


def answering(workspace: Workspace, collection: str, names: Sequence[str]) -> str | None:
    """The captioner that the answer of a collection is about, if it is among these names; else the first of them."""

    def work() -> list[str]:
        if not (comparisons := compared(workspace, collection)):
            return []
        best = comparisons[0]
        rows = workspace.results(best.run_ids)
        return list(first_to_answer(rows[rows["metric"] == best.metric])["model"])

    first = of_collection(workspace, collection, "answering", work)[:1]
    return next((name for name in first if name in names), next(iter(names), None))


@st.cache_resource(show_spinner=False, max_entries=64)
def ranking(folder: str, run_ids: tuple[str, ...], metric: str, direction: str = "") -> Ranking:
    """The captioners of these runs in pairs."""
    workspace = Workspace(folder)
    return results.ranking(workspace, list(workspace.runs_of(run_ids).values()), metric, direction)


@st.cache_resource(show_spinner=False, max_entries=SETS)
def scores(folder: str, run_id: str) -> caption_views.CaptionScores:
    """Per-caption scores and words of one run; shared by all sessions, so callers only read."""
    workspace = Workspace(folder)
    return caption_views.caption_scores(workspace, workspace.get_run(run_id))


@st.cache_resource(show_spinner=False, max_entries=SETS)
def words(folder: str, run_id: str, compared_id: str = "") -> pd.DataFrame:
    """The words of one run, beside those of human captions if a run compared them."""
    workspace = Workspace(folder)
    return word_comparison.words_of_set(
        workspace.get_run(run_id), workspace.get_run(compared_id) if compared_id else None
    )


@st.cache_resource(show_spinner=False, max_entries=SETS)
def top_words(folder: str, run_id: str, number: int, compared_id: str = "") -> pd.DataFrame:
    """The words of one run that push most toward each value, `number` each: content words that are not rare."""
    table = words(folder, run_id, compared_id)
    smallest = max(5, table["word"].nunique() // 100)
    common = tuple(table.loc[table["strength"].notna() & (table["count"] >= smallest), "word"].unique())
    return word_comparison.top_words(table[~table["word"].isin(function_words(folder, common))], smallest, number)


@st.cache_resource(show_spinner=False, max_entries=SETS)
def function_words(folder: str, words: tuple[str, ...]) -> set[str]:
    """The function words among some words."""
    return word_comparison.function_words(Workspace(folder), words)


@st.cache_resource(show_spinner=False, max_entries=SETS)
def attackers(folder: str, run_id: str, index: int) -> StoredAttackers:
    """The linear attackers of one run for captions of this index, for rescoring."""
    workspace = Workspace(folder)
    return caption_views.stored_attackers(workspace, workspace.get_run(run_id), index)


@st.cache_data(show_spinner="Rescoring", max_entries=256)
def edit_effect(folder: str, run_id: str, word: str, replacement: str) -> dict:
    """What replacing a word does over the captions of one run."""
    of_run = scores(folder, run_id)
    written = caption_views.written_captions(of_run.table, captions(folder, of_run.run.spec.captions))
    return word_views.edit_effect(of_run, written, attackers(folder, run_id, 0), word, replacement)


@st.cache_resource(show_spinner=False, max_entries=SETS)
def captions(folder: str, digest: str) -> pd.DataFrame:
    """A stored caption set or table of labels, as written."""
    return Workspace(folder).frame(digest)


# `derived` is not in the repr of an attribute.
KEYS = {
    Item: lambda item: (item.collection, item.kind, item.name, item.hash),
    Attribute: lambda attribute: (repr(attribute), attribute.derived),
}


@st.cache_resource(show_spinner="Counting", max_entries=8, hash_funcs=KEYS)
def derived(folder: str, references: Item, attribute: Attribute) -> Derived:
    """Labels of an attribute by the words of stored human captions; callers only read."""
    return derive(Workspace(folder), references, attribute)


@st.cache_data(show_spinner="Counting words", max_entries=256, hash_funcs=KEYS)
def trial(folder: str, item: Item, attribute: Attribute) -> Trial:
    """How often the words of an attribute occur in one stored caption set."""
    return label_views.trial(Workspace(folder), item, attribute)


@st.cache_resource(show_spinner=False, max_entries=SETS)
def encoder_view(folder: str, run_id: str) -> caption_views.EncoderView:
    """How an encoder read some captions."""
    workspace = Workspace(folder)
    return caption_views.encoder_view(workspace, workspace.get_run(run_id))


@st.cache_resource(show_spinner=False, max_entries=SETS)
def what_if(folder: str, run_id: str) -> list[Rescored]:
    """A caption and its edits as a network read them."""
    workspace = Workspace(folder)
    return caption_views.what_if(workspace, workspace.get_run(run_id))

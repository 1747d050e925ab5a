"""Finished runs, read once. Keys are run ids and content hashes, so nothing stale is ever served."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from capbias_core.aggregate import Ranking
from capbias_core.experiments import read
from capbias_core.experiments.store import Workspace
from capbias_core.explain.what_if import StoredAttackers

SETS = 40


@st.cache_resource(show_spinner=False, max_entries=64)
def ranking(folder: str, run_ids: tuple[str, ...], metric: str) -> Ranking:
    """Ranks of the captioners of these runs."""
    workspace = Workspace(folder)
    return read.ranking(workspace, list(workspace.runs_of(run_ids).values()), metric)


@st.cache_resource(show_spinner=False, max_entries=SETS)
def scores(folder: str, run_id: str) -> read.CaptionScores:
    """Per-caption scores and words of one run; shared by all sessions, so callers only read."""
    workspace = Workspace(folder)
    return read.caption_scores(workspace, workspace.run(run_id))


@st.cache_resource(show_spinner=False, max_entries=SETS)
def words(folder: str, run_id: str) -> pd.DataFrame:
    """The corpus table of one run."""
    workspace = Workspace(folder)
    return read.words_table(workspace, workspace.run(run_id))


@st.cache_resource(show_spinner=False, max_entries=SETS)
def attackers(folder: str, run_id: str, index: int) -> StoredAttackers:
    """The linear attackers of one run for captions of this index, for rescoring."""
    workspace = Workspace(folder)
    return read.stored_attackers(workspace, workspace.run(run_id), index)


@st.cache_resource(show_spinner=False, max_entries=SETS)
def captions(folder: str, digest: str) -> pd.DataFrame:
    """A kept caption set, as written."""
    return Workspace(folder).frame(digest)

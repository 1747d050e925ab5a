"""Runs under way: a line that polls, on whichever page one looks."""

from __future__ import annotations

import streamlit as st

from capbias_core.experiments.engine import Engine
from capbias_core.experiments.families import FAMILIES
from capbias_core.experiments.store import ACTIVE, RunRow
from capbias_core.experiments.vectors import alignment_name
from pages.ui.base import plain

EVERY = 1.0


def active_runs(engine: Engine, collection: str | None = None) -> list[RunRow]:
    """Runs that are queued or running."""
    return [run for run in engine.workspace.runs(collection) if run.status in ACTIVE]


def progress(engine: Engine, collection: str | None = None) -> None:
    """A progress bar over the runs under way; the page is drawn anew when the last one ends."""
    if active_runs(engine, collection):
        _poll(engine, collection)


@st.fragment(run_every=EVERY)
def _poll(engine: Engine, collection: str | None) -> None:
    active = active_runs(engine, collection)
    if not active:
        st.rerun()
    running = [run for run in active if run.status == "running"] or active
    first = running[-1]
    share = sum(run.progress for run in active) / len(active)
    waiting = f", {len(active) - len(running)} waiting" if len(active) > len(running) else ""
    st.progress(share, text=plain(f"{len(running)} running{waiting} · {first.spec['model']}: {first.message}"))


def label(run: RunRow) -> str:
    """A run in a few words."""
    spec = run.spec
    family = FAMILIES[spec["family"]]
    seeds = f", {len(spec['seeds'])} seeds" if family.seeded else ""
    with_references = ", with references" if spec["condition"] else ""
    name = alignment_name(spec.get("options", {}).get("alignment")).replace("_", " ")
    aligned = f", {name}" if name else ""
    attacker = f", {spec['attacker']}" if spec["attacker"] else ""
    if family.makes:
        return f"{spec['model']}: {family.title}, {spec['options']['name']}"
    what = f"{family.title} for {spec['attribute']['name']}"
    return f"{spec['model']}: {what}{attacker}{seeds}{with_references}{aligned}"

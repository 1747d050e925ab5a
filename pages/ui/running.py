"""Runs under way: a line that polls, on whichever page one looks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import streamlit as st

from capbias_core.errors import CapbiasError
from capbias_core.measures.base import RunSpec
from capbias_core.measures.registry import MEASURES
from capbias_core.runs.engine import Engine, Expected, expected
from capbias_core.runs.plan import plan, useful
from capbias_core.types import counted
from capbias_core.views.results import first_request
from capbias_core.views.sentence import Answer, cost_text, duration
from capbias_core.workspace.store import ACTIVE, RunRow
from pages.ui import cached, view
from pages.ui.base import LABELS, box, errors, lacking, note, plain

EVERY = 1.0
A_MOMENT = 120  # seconds that a first answer may take to be started by itself


def active_runs(engine: Engine, collection: str | None = None) -> list[RunRow]:
    """Runs that are queued or running."""
    return [run for run in engine.workspace.runs(collection) if run.status in ACTIVE]


def progress(engine: Engine, collection: str | None = None) -> None:
    """How far the runs under way are and how long they still take; the page is drawn anew when any of them ends, so
    that results appear as they arrive."""
    if active := active_runs(engine, collection):
        asked = min(run.created for run in active)
        _poll(engine, collection, expected(engine.workspace, [run.spec for run in active], before=asked))


def answer_box(engine: Engine, collection: str | None, answer: Answer) -> None:
    """The answer of a page, and how many runs are still to come."""
    waiting = active_runs(engine, collection) if collection else []
    about = ", ".join(dict.fromkeys(name for run in waiting if (name := run.spec.attribute.get("name", ""))))
    coming = f"{counted(len(waiting), 'run')} of this collection still to come{f' ({about})' if about else ''}."
    box(answer.headline, answer.support, coming if waiting else "")
    if answer.details:
        note(answer.details)


def start_button(engine: Engine, collection: str, specs: list[RunSpec], label: str, key: str) -> None:
    """How many of some runs are to do, what they cost, and the button that starts them; why earlier ones failed."""
    known, todo = to_do(engine, specs)
    _failures(known.values())
    row = st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute")
    with row:
        note(state_of(known, len(specs), len(todo)) + (f"; {cost(engine, todo)}." if todo else "."))
    if row.button(label, type="primary", disabled=not todo, key=key):
        engine.submit(todo, collection)
        st.rerun()


def _failures(runs: Iterable[RunRow]) -> None:
    """Why runs failed."""
    for run in runs:
        if run.status in ("failed", "died"):
            note(f"⚠ {run.spec.model} ({MEASURES[run.spec.measure].title}) {run.status}: {run.message}")


def first_runs(engine: Engine, collection: str, attribute: str = "") -> list[RunSpec]:
    """What a first answer of a collection still needs; nothing where it is there, under way or cannot be had.

    attribute: as of `first_request`.
    """

    def work() -> list[RunSpec]:
        request = first_request(engine.workspace, collection, attribute)
        try:
            return useful(plan(engine.workspace, request), request)[0] if request else []
        except CapbiasError:
            return []  # such as captions and human captions of other images; Scores says it

    return to_do(engine, cached.of_collection(engine.workspace, collection, f"first runs {attribute}", work))[1]


def start_cheap(engine: Engine, collection: str) -> None:
    """Start the first answer of a collection with human captions by itself, if it takes a moment only."""
    todo = first_runs(engine, collection)
    if todo and any(spec.references for spec in todo) and expected(engine.workspace, todo).seconds <= A_MOMENT:
        with errors():  # what is there already can be shown on a full disk too
            engine.submit(todo, collection)


def score_now(engine: Engine, collection: str) -> bool:
    """What a first answer costs, and the button that starts it and shows it; whether there was anything to start."""
    todo = first_runs(engine, collection)
    if not todo:
        if first_request(engine.workspace, collection):
            view.link(st, "app.py", "See the answer", ":material/balance:", collection=collection)
        return False
    _failures(engine.workspace.runs_of([spec.run_id for spec in todo]).values())
    left, right = st.container(key="stacks_score").columns([4, 1], vertical_alignment="center")
    with left:
        name = todo[0].attribute["name"]
        scored = collection in engine.workspace.scored()
        what = "Computing missing scores" if scored else "A first answer"
        note(f"{what} for “{collection}” ({name}) takes {cost(engine, todo)}.")
    if right.button("Score now", type="primary", width="stretch", key="score_now"):
        engine.submit(todo, collection)
        view.go("app.py", collection=collection)
    return True


def nothing_scored(engine: Engine, collection: str, text: str) -> None:
    """What to do next in a collection of which nothing is scored: score it, or load what that needs."""
    if not engine.workspace.items("captions", collection):
        lacking(engine, collection, "captions of a model")
    elif not first_request(engine.workspace, collection):
        lacking(engine, collection, LABELS)
    else:
        box("Nothing to show yet.", text)
        score_now(engine, collection)


def cost(engine: Engine, specs: Iterable[RunSpec]) -> str:
    """What runs will take, in words."""
    found = expected(engine.workspace, specs)
    return cost_text(found.seconds, found.learned)


def to_do(engine: Engine, specs: Sequence[RunSpec]) -> tuple[dict[str, RunRow], list[RunSpec]]:
    """Those of some runs that exist, by id, and those to start: neither finished nor queued nor running."""
    known = engine.workspace.runs_of([spec.run_id for spec in specs])
    going = {run_id for run_id, run in known.items() if run.status in ("finished", *ACTIVE)}
    return known, [spec for spec in specs if spec.run_id not in going]


def state_of(known: dict[str, RunRow], asked: int, todo: int) -> str:
    """`3 runs: 1 done, 1 running, 1 to do`; `All results are up to date` if nothing is left."""
    done = sum(run.status == "finished" for run in known.values())
    if done == asked:
        return "All results are up to date"
    running = asked - done - todo
    return f"{counted(asked, 'run')}: {done} done, {f'{running} running, ' if running else ''}{todo} to do"


@st.fragment(run_every=EVERY)
@errors()
def _poll(engine: Engine, collection: str | None, to_come: Expected) -> None:
    """to_come: how long the runs take that were under way when the page was drawn."""
    active = active_runs(engine, collection)
    if to_come.each.keys() != {run.run_id for run in active}:
        st.rerun()
    share, left = to_come.left(active)
    first = ([run for run in active if run.status == "running"] or active)[-1]
    st.progress(
        share,
        text=plain(f"{counted(len(active), 'run')} left, about {duration(left)} · {first.spec.model}: {first.message}"),
    )

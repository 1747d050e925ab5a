"""The runs: buttons that start them, the progress of those under way, and a dialog with log, settings and results."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from capbias_core.aggregate.resampling import LEAST_SEEDS
from capbias_core.errors import CapbiasError
from capbias_core.measures.protocols import protocol_of
from capbias_core.measures.registry import MEASURES
from capbias_core.runs.engine import Engine, Expected, expected, unfinished
from capbias_core.runs.plan import plan, useful
from capbias_core.runs.run import is_current
from capbias_core.types import counted, left_out_lines
from capbias_core.views.choose import first_request
from capbias_core.views.sentence import cost_text, left_text, run_text
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import ACTIVE, RunRow, Workspace
from capbias_core.workspace.vectors import alignment_name
from pages.ui import controls
from pages.ui.base import box, caveats, errors, note, once, show_error
from pages.ui.empty import lacking, needs
from pages.ui.page import Page
from pages.ui.plain import plain

POLL_SECONDS = 1.0  # seconds between two looks at the runs under way
LONG_SECONDS = 600  # from which the cost of fewer seeds is shown too
MOST_SECONDS = 120  # that a first answer may take to be started by itself
OPEN = "runs"  # in the address while the dialog is open
LISTED = 6  # active runs shown one by one


def active_runs(workspace: Workspace, collection: str | None = None) -> list[RunRow]:
    """Runs that are queued or running."""
    return [run for run in workspace.runs(collection) if run.status in ACTIVE]


def cost(workspace: Workspace, specs: Iterable[RunSpec]) -> str:
    """What runs will take, in words."""
    return cost_text(expected(workspace, specs))


def to_do(workspace: Workspace, specs: Sequence[RunSpec]) -> tuple[dict[str, RunRow], list[RunSpec]]:
    """Those of some runs that exist, by ID, and those to start: neither finished nor queued nor running."""
    known = workspace.runs_of([spec.run_id for spec in specs])
    going = {run_id for run_id, run in known.items() if run.status in ("finished", *ACTIVE)}
    return known, [spec for spec in specs if spec.run_id not in going]


# Buttons that start runs


def start_button(page: Page, specs: list[RunSpec], label: str, key: str) -> None:
    """How many of some runs are to do, what they cost, and the button that starts them; why earlier ones failed or
    left metrics out."""
    known, todo = to_do(page.workspace, specs)
    _show_failures(known.values())
    _show_left_out(known.values())
    done = sum(run.status == "finished" for run in known.values())
    text = "All results are up to date" if specs else "Nothing to run"
    if done < len(specs):
        running = len(specs) - done - len(todo)
        under_way = f"{running} running, " if running else ""
        text = f"{counted(len(specs), 'run')}: {done} done, {under_way}{len(todo)} to do"
    row = st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute")
    with row:
        note(text + (f"; {cost(page.workspace, todo)}{_with_fewer_seeds(page.workspace, todo)}." if todo else "."))
    if row.button(plain(label), type="primary", disabled=not todo, key=key):
        page.engine.submit(todo, page.collection)
        st.rerun()


def _with_fewer_seeds(workspace: Workspace, todo: Sequence[RunSpec]) -> str:
    """What long runs would cost with as few seeds as a verdict needs; '' for short ones."""
    fewer = [
        replace(spec, options={**spec.options, "seeds": LEAST_SEEDS}) for spec in todo if spec.options.get("seeds")
    ]
    if not fewer or len(fewer[0].seeds) >= len(todo[0].seeds) or expected(workspace, todo).seconds < LONG_SECONDS:
        return ""
    return f" ({cost(workspace, fewer)} with {LEAST_SEEDS} seeds, the fewest for a verdict)"


def _show_failures(runs: Iterable[RunRow]) -> None:
    for run in runs:
        if run.status in ("failed", "died"):
            what = ", ".join(filter(None, (MEASURES[run.spec.measure].title, run.spec.attacker)))
            note(f"⚠ {run.spec.model} ({what}) {run.status}: {run.message}")


def _show_left_out(runs: Iterable[RunRow]) -> None:
    models: dict[str, list[str]] = {}
    for run in runs:
        for line in left_out_lines(run.lacking):
            models.setdefault(line, []).append(run.spec.model)
    for line, names in models.items():
        note(f"{', '.join(dict.fromkeys(names))}: {line}")


def first_runs(page: Page, attribute: str = "") -> list[RunSpec]:
    """What a first answer of the collection still needs; nothing if it is there, under way or impossible.

    attribute: as of `first_request`.
    """
    return to_do(page.workspace, _first_plan(page, attribute)[0])[1]


def _first_plan(page: Page, attribute: str = "") -> tuple[list[RunSpec], CapbiasError | None]:
    """The runs of a first answer; none, with the error, if for example the human captions are of other images."""

    def work() -> tuple[list[RunSpec], CapbiasError | None]:
        request = first_request(page.workspace, page.collection, attribute, page.choice)
        try:
            return (useful(plan(page.workspace, request), request)[0] if request else []), None
        except CapbiasError as error:
            return [], error

    return once(repr((page.folder, page.workspace.version(), page.collection, "first runs", attribute)), work)


def start_cheap(page: Page) -> str:
    """Start the first answer of a collection with human captions by itself, if it takes a moment only. What it will
    take, in words; '' if no run was started."""
    todo = first_runs(page)
    if todo and any(spec.references for spec in todo) and expected(page.workspace, todo).seconds <= MOST_SECONDS:
        price = cost(page.workspace, todo)
        with errors():  # what is there already can be shown on a full disk too
            return price if page.engine.submit(todo, page.collection) else ""
    return ""


def score_now(page: Page) -> None:
    """What a first answer costs, and the button that starts it and shows it; a link if the answer is there."""
    todo = first_runs(page)
    if not todo:
        if error := _first_plan(page)[1]:
            show_error(error)
            controls.link(
                st, "pages/2_Scores.py", "Choose other settings", ":material/bar_chart:", collection=page.collection
            )
        elif first_request(page.workspace, page.collection, "", page.choice):
            controls.link(st, "app.py", "See the answer", ":material/balance:", collection=page.collection)
        return
    _show_failures(page.workspace.runs_of([spec.run_id for spec in todo]).values())
    left, right = st.container(key="stacks_score").columns([4, 1], vertical_alignment="center")
    with left:
        name = todo[0].attribute["name"]
        what = "Computing missing scores" if page.collection in page.workspace.scored() else "A first answer"
        note(f"{what} for “{page.collection}” ({name}) takes {cost(page.workspace, todo)}.")
    if right.button("Score now", type="primary", width="stretch", key="score_now"):
        page.engine.submit(todo, page.collection)
        controls.go("app.py", collection=page.collection)


def nothing_scored(page: Page, text: str) -> None:
    """What to do next in a collection without scores: score it, or load what that needs."""
    if missing := needs(page):
        lacking(page, missing)
    else:
        box("Nothing to show yet.", text)
        score_now(page)


# Progress


def progress(engine: Engine, collection: str | None = None) -> None:
    """How far the runs under way are and how long they still take; the page is drawn anew when any of them ends, so
    that results appear as they arrive."""
    active = active_runs(engine.workspace, collection)
    if active:
        _poll(engine, collection, expected(engine.workspace, [run.spec for run in active]))


@st.fragment(run_every=POLL_SECONDS)
@errors()
def _poll(engine: Engine, collection: str | None, to_come: Expected) -> None:
    """to_come: how long the runs take that were under way when the page was drawn."""
    active = active_runs(engine.workspace, collection)
    if to_come.each.keys() != {run.run_id for run in active}:
        st.rerun()
    share, left = to_come.left(active)
    first = ([run for run in active if run.status == "running"] or active)[-1]
    st.progress(
        share, text=plain(f"{counted(len(active), 'run')} to go{left_text(left)} · {first.spec.model}: {first.message}")
    )


# The dialog


def runs_dialog(engine: Engine, collection: str, container: DeltaGenerator) -> None:
    """The button that opens the dialog, and the dialog if the address has it open. collection: whose runs it lists
    first."""

    def close() -> None:
        controls.choose(runs=None, run=None)

    container.button(
        "Runs", icon=":material/pending_actions:", key="open_runs", on_click=controls.choose, kwargs={OPEN: 1}
    )
    if controls.kept(OPEN):
        st.dialog("Runs", width="large", on_dismiss=close)(_runs)(engine, collection)


@errors()
def _runs(engine: Engine, collection: str) -> None:
    workspace = engine.workspace
    if not workspace.runs():
        note("Nothing has been run yet.")
        return
    if active_runs(workspace):
        st.fragment(_under_way, run_every=POLL_SECONDS)(engine)
    else:
        note("Nothing is running.")
    ended = unfinished(workspace)
    if len(ended) > 1:
        states = ", ".join(f"{count} {status}" for status, count in Counter(run.status for run in ended).items())
        price = cost(workspace, [run.spec for run in ended])
        text = f"{len(ended)} runs did not finish ({states}). Re-running takes {price}."
        if _pressed_for_all(text, f"Re-run all {len(ended)}", "repeat_all"):
            engine.repeat_all()
            st.rerun()
    _all_runs(engine, collection)


@errors()
def _under_way(engine: Engine) -> None:
    """The queue, drawn anew each second; the whole page when it is empty."""
    active = active_runs(engine.workspace)
    if not active:
        st.rerun()
    if (count := len(active)) > 1:
        waiting = sum(run.status == "queued" for run in active)
        text = f"{count} runs: {count - waiting} running, {waiting} waiting. Cancelled runs can be resumed."
        if _pressed_for_all(text, f"Cancel all {count}", "cancel_all"):
            engine.cancel_all()
            st.rerun()
    for run in active[: -LISTED - 1 : -1]:
        left, right = st.columns([5, 1], vertical_alignment="center")
        with left:
            note(f"{run_text(run.spec)} · {run.status}, {_time_taken(run)}: {run.message}")
            st.progress(run.progress)
        if right.button("Cancel", key=f"cancel_{run.run_id}", width="stretch"):
            engine.cancel(run.run_id)
            st.rerun()
    if len(active) > LISTED:
        note(f"{len(active) - LISTED} more are waiting.")


def _pressed_for_all(text: str, label: str, key: str) -> bool:
    left, right = st.columns([2, 1], vertical_alignment="center")
    with left:
        note(text)
    return right.button(label, key=key, width="stretch")


def _time_taken(run: RunRow) -> str:
    if run.started is None:
        return "imported" if run.status == "finished" else "not started"
    total = max(0.0, (run.finished or time.time()) - run.started)
    return f"{total:.1f} s" if total < 90 else f"{total / 60:.1f} min"


def _all_runs(engine: Engine, collection: str) -> None:
    """The runs of the collection, or of all; how each was computed."""
    runs, all_runs = engine.workspace.runs(collection), engine.workspace.runs()
    elsewhere = controls.named("run") in {run.run_id for run in all_runs} - {run.run_id for run in runs}
    if len(runs) < len(all_runs) and controls.checkbox(
        st, "Runs of all collections", key="all_runs", default=elsewhere
    ):
        runs = all_runs
    if not runs:
        note(f"Nothing has been run for {collection} yet.")
        return
    states = [run.status if is_current(run.spec) else f"{run.status}, by an earlier version" for run in runs]
    table = pd.DataFrame(
        {
            "run": [run_text(run.spec) for run in runs],
            "state": states,
            "took": [_time_taken(run) for run in runs],
            **({"collection": [run.collection for run in runs]} if runs is all_runs else {}),
            "queued at": [pd.Timestamp(run.created, unit="s").floor("s") for run in runs],
            "ID": [run.run_id for run in runs],
        }
    )
    ids = list(table["ID"])
    key = f"runs_table {len(ids)} {runs[0].created}"  # another table once somebody else asked for a run

    def select() -> None:  # once: what is chosen in the box later has precedence over the row
        if rows := st.session_state[key].selection.rows:
            controls.choose(run=ids[rows[0]])

    st.dataframe(table, hide_index=True, on_select=select, selection_mode="single-row", key=key)
    titles = {run.run_id: f"{run_text(run.spec)} · {run.run_id[:6]}" for run in runs}
    chosen = controls.selectbox(
        st,
        "How a number was computed",
        ids,
        optional=True,
        key="run",
        placeholder="Choose a run",
        format_func=titles.get,
    )
    if chosen:
        _details(engine, runs[ids.index(chosen)])


def _details(engine: Engine, run: RunRow) -> None:
    """Inputs, settings, log and results of one run; a button to run one again that did not finish."""
    left, right = st.columns([5, 1])
    with left:
        note(f"{run_text(run.spec)} · {run.status}" + (f": {run.message}" if run.message != run.status else ""))
        caveats(run.notes)
    ended = run.status not in (*ACTIVE, "finished")
    if ended and right.button("Re-run", type="primary", width="stretch", key="repeat"):
        engine.submit([run.spec], run.collection)
        st.rerun()
    settings = pd.DataFrame(_settings(run.spec).items(), columns=["setting", "value"])
    st.dataframe(settings, hide_index=True)
    results = engine.workspace.results(run_ids=[run.run_id])
    if len(results):
        shown = results[["metric", "value", "ci_low", "ci_high", "spread", "spread_kind", "n", "seeds", "method"]]
        st.dataframe(shown, hide_index=True)
    log = "\n".join(
        f"{pd.Timestamp(at, unit='s'):%H:%M:%S}  {message}" for at, message in engine.workspace.log_of(run.run_id)
    )
    with st.expander("Log", expanded=run.status in ("failed", "died")):
        st.text(log)


def _settings(spec: RunSpec) -> dict[str, str]:
    """Inputs and choices of a run, as text; a run that makes an item from photographs has choices alone."""
    measure = MEASURES.get(spec.measure)
    settings = {"measure": f"{measure.title if measure else spec.measure}, version {spec.version}"}
    if spec.captions:
        words = [word for of_value in spec.attribute["words"].values() for word in of_value]
        mapping = spec.labels["mapping"].items()
        settings |= {
            "captions": f"{spec.model} (content {spec.captions})",
            "references": spec.references or "none",
            "labels": f"table {spec.labels['table']}, column {spec.labels['column']}",
            "mapping": ", ".join(f"{raw or 'empty'} → {to or 'dropped'}" for raw, to in mapping),
            "masked words": ", ".join(words) or "none",
            "mask token": spec.attribute["mask_token"],
            "coverage": spec.coverage.replace("_", " ") or "all images",
        }
    if measure:
        options = measure.options.read(spec.options)
        settings |= {name.replace("_", " "): _as_text(getattr(options, name)) for name in measure.options.about()}
        settings["protocol"] = protocol_of(measure.name, options.protocol) or "none"
    if "alignment" in settings and settings["references"] != "none":
        settings["alignment"] = alignment_name(spec.options.get("alignment"))
    return settings


def _as_text(value: object) -> str:
    """A choice: a file or item by its name, None and nothing as `none`."""
    if isinstance(value, dict):
        return str(value.get("name") or ", ".join(map(str, value)))
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value or "none")

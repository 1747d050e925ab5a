"""The runs: a button on every page, and a dialog with their progress, log, settings and results."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

from capbias_core.measures.registry import MEASURES
from capbias_core.runs.engine import Engine, unfinished
from capbias_core.runs.run import is_current
from capbias_core.views.sentence import run_text
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import ACTIVE, RunRow
from capbias_core.workspace.vectors import alignment_name
from pages.ui import view
from pages.ui.base import caveats, errors, note
from pages.ui.running import EVERY, active_runs, cost
from pages.ui.table import draw_table

OPEN = "runs"  # in the address while the dialog is open
LISTED = 6  # active runs shown one by one


def runs_dialog(engine: Engine) -> None:
    """The button that opens the dialog, and the dialog if the address says that it is open."""
    st.button("Runs", icon=":material/pending_actions:", key="open_runs", on_click=view.choose, args=(OPEN, True))
    if view.state(OPEN, False):
        st.dialog("Runs", width="large", on_dismiss=_close)(_runs)(engine)


def _close() -> None:
    view.choose(OPEN, False)
    view.choose("run", None)


@errors()
def _runs(engine: Engine) -> None:
    if not engine.workspace.runs():
        note("Nothing has been run yet.")
        return
    if active_runs(engine):
        st.fragment(_under_way, run_every=EVERY)(engine)
    else:
        note("Nothing is running.")
    _repeat_all(engine)
    _all_runs(engine)


@errors()
def _under_way(engine: Engine) -> None:
    """The queue, drawn anew every second; the whole page when it is empty."""
    active = active_runs(engine)
    if not active:
        st.rerun()
    own = [run for run in active if engine.may_cancel(run)]
    if len(own) > 1:
        _cancel_all(engine, own)
    for run in active[: -LISTED - 1 : -1]:
        left, right = st.columns([5, 1], vertical_alignment="center")
        with left:
            note(f"{run_text(run.spec)} · {run.status}, {elapsed(run)}: {run.message}")
            st.progress(run.progress)
        if run in own and right.button("Cancel", key=f"cancel_{run.run_id}", width="stretch"):
            engine.cancel(run.run_id)
            st.rerun()

    if len(active) > LISTED:
        note(f"{len(active) - LISTED} more are waiting.")


def _cancel_all(engine: Engine, active: list[RunRow]) -> None:
    waiting = sum(run.status == "queued" for run in active)
    told = f"{len(active)} runs: {len(active) - waiting} running, {waiting} waiting. Cancelled runs can be resumed."
    _of_all(told, f"Cancel all {len(active)}", "cancel_all", engine.cancel_all)


def _of_all(told: str, label: str, key: str, work: Callable[[], object]) -> None:
    """What is to be known before work on many runs, and the button that does it."""
    left, right = st.columns([2, 1], vertical_alignment="center")
    with left:
        note(told)
    if right.button(label, key=key, width="stretch"):
        work()
        st.rerun()


def _repeat_all(engine: Engine) -> None:
    """All runs that ended without finishing, in one click; what that costs."""
    runs = unfinished(engine.workspace)
    if len(runs) < 2:
        return
    counts = Counter(run.status for run in runs)
    what = ", ".join(f"{count} {status}" for status, count in counts.items())
    told = f"{len(runs)} runs did not finish ({what}). Re-running takes {cost(engine, [run.spec for run in runs])}."
    _of_all(told, f"Re-run all {len(runs)}", "repeat_all", engine.repeat_all)


def elapsed(run: RunRow) -> str:
    """How long a run took, or has taken so far."""
    if run.started is None:
        return "imported" if run.status == "finished" else "not started"
    total = max(0.0, (run.finished or time.time()) - run.started)
    return f"{total:.1f} s" if total < 90 else f"{total / 60:.1f} min"


def _all_runs(engine: Engine) -> None:
    runs = engine.workspace.runs()
    table = pd.DataFrame(
        {
            "run": [run_text(run.spec) for run in runs],
            "state": [_state(run) for run in runs],
            "took": [elapsed(run) for run in runs],
            "collection": [run.collection for run in runs],
            "queued at": [pd.Timestamp(run.created, unit="s").floor("s") for run in runs],
            "ID": [run.run_id for run in runs],
        }
    )
    ids = list(table["ID"])
    key = f"runs_table {len(ids)} {runs[0].created}"  # another table once somebody else asked for a run
    draw_table(table, on_select=partial(_selected, key, ids), selection_mode="single-row", key=key, alt="Every run")
    titles = {run.run_id: f"{run_text(run.spec)} · {run.run_id[:6]}" for run in runs}
    chosen = view.selectbox(
        st,
        "How a number was computed",
        ids,
        index=None,
        key="run",
        missing="the run",
        placeholder="Choose a run",
        format_func=titles.get,
    )
    if chosen:
        _details(engine, runs[ids.index(chosen)])


def _selected(key: str, ids: list[str]) -> None:
    """The run of the row that was just selected; what was chosen since in the box comes before a row."""
    if rows := st.session_state[key].selection.rows:
        view.choose("run", ids[rows[0]])


def _state(run: RunRow) -> str:
    """The status; of a run whose numbers are not those that this version gives, that too."""
    return run.status if is_current(run.spec) else f"{run.status}, by an earlier version"


def _details(engine: Engine, run: RunRow) -> None:
    """Inputs, settings, log and results of one run; repeat for one that did not finish."""
    spec = run.spec
    left, right = st.columns([5, 1])
    with left:
        note(f"{run_text(run.spec)} · {run.status}" + (f": {run.message}" if run.message != run.status else ""))
        caveats(run.notes)
    over = run.status not in (*ACTIVE, "finished")
    if over and right.button("Re-run", type="primary", width="stretch", key="repeat"):
        engine.submit([run.spec], run.collection)
        st.rerun()
    settings = _settings(spec)
    draw_table(pd.DataFrame(settings.items(), columns=["setting", "value"]), alt="How it was computed", row_height=None)
    results = engine.workspace.results(run_ids=[run.run_id])
    if len(results):
        shown = results[["metric", "value", "ci_low", "ci_high", "spread", "spread_kind", "n", "seeds", "method"]]
        draw_table(shown, alt="Results of this run")
    log = "\n".join(
        f"{pd.Timestamp(at, unit='s'):%H:%M:%S}  {message}" for at, message in engine.workspace.log_of(run.run_id)
    )
    with st.expander("Log", expanded=run.status in ("failed", "died")):
        st.text(log)


def _settings(spec: RunSpec) -> dict[str, str]:
    """Inputs and choices of a run, as text; a run that makes an item from photographs has choices alone."""
    measure = MEASURES.get(spec.measure)
    found = {"measure": f"{measure.title if measure else spec.measure}, version {spec.version}"}
    if spec.captions:
        words = [word for own in spec.attribute["words"].values() for word in own]
        mapping = spec.labels["mapping"].items()
        found |= {
            "captions": f"{spec.model} (content {spec.captions})",
            "references": spec.references or "none",
            "labels": f"table {spec.labels['table']}, column {spec.labels['column']}",
            "mapping": ", ".join(f"{raw or 'empty'} → {to or 'dropped'}" for raw, to in mapping),
            "masked words": ", ".join(words) or "none",
            "mask token": spec.attribute["mask_token"],
            "coverage": spec.coverage.replace("_", " ") or "all images",
        }
    options = measure.options.read(spec.options) if measure else None
    names = {name: name.replace("_", " ") for name in measure.options.about()} if measure else {}
    found |= {shown: _said(getattr(options, name)) for name, shown in names.items()}
    if "alignment" in found and found["references"] != "none":
        found["alignment"] = alignment_name(spec.options.get("alignment"))
    return found


def _said(value: object) -> str:
    """A choice as text: a file or item by its name, None and nothing as `none`."""
    if isinstance(value, dict):
        return str(value.get("name") or ", ".join(map(str, value)))
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value or "none")

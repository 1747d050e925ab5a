"""Runs from a terminal: what is to do, how far it is, how it ended; `list` and `demo`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Column

from capbias_core.api import failures
from capbias_core.cli.inputs import ANSWER, INPUTS, WorkspaceFlag, command, flag, known_collection, opened
from capbias_core.cli.terminal import DONE, RUN_FAILED, say, show, show_table
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.resources import DEMO_FOLDER
from capbias_core.runs import demo, engine
from capbias_core.runs.engine import Engine, Expected, expected, unfinished
from capbias_core.runs.run import Stopped, Watch
from capbias_core.types import counted
from capbias_core.views.answer import ONE
from capbias_core.views.sentence import cost_text, left_text, named_notes, number, run_text
from capbias_core.workspace.ingest import DEMO
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import ACTIVE, RunRow, Workspace

BETWEEN_LINES = 60.0


def run_all(workspace: Workspace, specs: Sequence[RunSpec], collection: str, stopped: Stopped = None) -> list[RunRow]:
    """`run_all` of runs/engine.py with workers, shown in the terminal."""
    return engine.run_all(
        workspace, specs, collection, True, lambda new: watched(new, expected(workspace, new)), stopped
    )


@contextmanager
def watched(specs: Sequence[RunSpec], to_come: Expected) -> Iterator[Watch]:
    """Say what is to do, and show how far it is: a bar with the time left on a terminal, elsewhere a line a minute."""
    if specs:
        say(f"{counted(len(specs), 'run')} to do: {cost_text(to_come)}")
    described = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    columns, hidden = (BarColumn(20), TaskProgressColumn(), described), not (sys.stderr.isatty() and to_come.each)
    last = time.monotonic()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=hidden) as bar:
        task = bar.add_task("Running", total=1.0)

        def watch(rows: Sequence[RunRow]) -> None:
            nonlocal last
            share, text = progress_of(rows, to_come)
            bar.update(task, completed=share, description=text)
            if hidden and time.monotonic() - last > BETWEEN_LINES:
                last = time.monotonic()
                say(f"{text} ({share:.0%})")

        yield watch


def progress_of(rows: Sequence[RunRow], to_come: Expected) -> tuple[float, str]:
    """The share that is done, and `Running: 3 of 9 done, about 12 s left`."""
    rows = [row for row in rows if row.run_id in to_come.each]
    done, left = to_come.left(rows)
    over = sum(row.status not in ACTIVE for row in rows)
    running = next((f": {row.spec.model}, {row.message}" for row in rows if row.status == "running"), "")
    return done, f"Running: {over} of {len(rows)} done{left_text(left)}{running}"


def outcome(rows: Sequence[RunRow]) -> int:
    """Say each note once, and what did not finish; returns the exit code."""
    for note in named_notes([(row.spec.model, row.notes) for row in rows if row.status == "finished"]):
        say(f"note: {note}")
    failed = failures(rows)
    for line in failed:
        say(f"error: {line}")
    return RUN_FAILED if failed else DONE


# commands

list_app = command(
    "list",
    """\
  capbias list
  capbias list --collection demo --json
  capbias list --cancel 3f2a
  capbias list --repeat all

Ctrl-C cancels the runs that a command started; --repeat starts runs again that failed, died or were cancelled.""",
)
demo_app = command("demo", "  capbias demo\n  capbias app")

ALL = "all"
SEE = "See: capbias list"


@list_app.default
def list_stored(
    *,
    collection: Annotated[str, flag("only this collection (default: all)", "NAME", INPUTS)] = "",
    cancel: Annotated[
        list[str] | None, flag("stop these runs, by the beginning of their IDs, or all", f"ID|{ALL}", INPUTS)
    ] = None,
    repeat: Annotated[
        list[str] | None, flag("start these unfinished runs again, or all, and wait for them", f"ID|{ALL}", INPUTS)
    ] = None,
    json_: Annotated[bool, flag("as JSON", group=ANSWER, name="--json")] = False,
    workspace: WorkspaceFlag = None,
) -> int:
    """List the stored files and the runs, newest first; cancel or repeat runs."""
    store = opened(workspace)
    only = known_collection(store, collection) if collection else None
    known = store.runs(only)
    if cancel or repeat:
        if cancel and repeat:
            raise CapbiasError("--cancel and --repeat cannot be combined.", "Leave one out.")
        return _cancel(store, known, cancel) if cancel else _repeat(store, known, repeat or ())
    items = [
        {key: getattr(item, key) for key in ("collection", "kind", "name", "rows", "images", "hash")}
        | {"kind": item.kind, "attributes": list(item.details.get("attributes", {}))}
        for item in store.items(collection=only)
    ]
    if json_:
        show(json.dumps({"items": items, "runs": [_run_details(run) for run in known]}, indent=2))
        return DONE
    if items:
        shown = [row | {"attributes": ", ".join(row["attributes"]), "hash": row["hash"][:12]} for row in items]
        show_table(pd.DataFrame(shown))
    else:
        show("The workspace is empty.")
    if known:
        frame = pd.DataFrame([_run_details(run) for run in known])
        frame = frame[["run_id", "collection", "what", "status", "progress", "seconds", "message"]]
        show_table(frame.assign(progress=frame["progress"].map("{:.0%}".format)), before="\n")
    return DONE


def _run_details(run: RunRow) -> dict:
    """All that a listing says of a run."""
    passed = max(0.0, (run.finished or time.time()) - run.started) if run.started else 0.0
    return {
        "run_id": run.run_id,
        "what": run_text(run.spec),
        "status": run.status,
        "progress": round(run.progress, 3),
        "seconds": round(passed, 1),
        "message": "" if run.status == "finished" else run.message,
        "collection": run.collection,
        "captioner": run.spec.model,
        "measure": run.spec.measure,
        "attribute": run.spec.attribute.get("name", ""),
        "attacker": run.spec.attacker,
        "seeds": len(run.spec.seeds),
        "coverage": " ".join(filter(None, (run.spec.coverage, "shared_images" if run.spec.shared_with else ""))),
        "notes": list(run.notes),
    }


def _chosen(ids: Sequence[str], known: Sequence[RunRow], candidates: Sequence[RunRow]) -> list[RunRow]:
    """The known runs whose IDs begin so; all candidates for `all`. Raises CapbiasError for the beginning of no ID, or
    of several."""
    if ALL in ids:
        return list(candidates)
    chosen = {}
    for name in ids:
        matches = [run for run in known if name and run.run_id.startswith(name)]
        if not matches:
            raise unknown_name("run", name, [run.run_id for run in candidates])
        if len(matches) > 1:
            several = ", ".join(run.run_id for run in matches[:3])
            raise CapbiasError(f"{len(matches)} runs have an ID that begins with {name!r}.", f"Write more: {several}.")
        chosen[matches[0].run_id] = matches[0]
    return list(chosen.values())


def _cancel(store: Workspace, known: Sequence[RunRow], ids: Sequence[str]) -> int:
    """Stop runs that are queued or running; a running one stops at its next report, in a second or two."""
    chosen = _chosen(ids, known, [run for run in known if run.status in ACTIVE])
    engine = Engine(store.folder)
    ended = [run for run in chosen if not engine.cancel(run.run_id)]
    for run in chosen:
        if run in ended:
            say(f"{run.run_id} is {run.status}: nothing to cancel")
        else:
            show(f"{run.run_id} cancelled: {run_text(run.spec)}")
    if chosen and len(ended) == len(chosen):
        raise CapbiasError("No run was cancelled, because none is queued or running.", SEE)
    return DONE


def _repeat(store: Workspace, known: Sequence[RunRow], ids: Sequence[str]) -> int:
    """Start runs again that failed, died or were cancelled, and wait for them."""
    here = {run.run_id for run in known}
    resumable = [run for run in unfinished(store) if run.run_id in here]
    chosen, code = _chosen(ids, known, resumable), DONE
    for run in chosen:
        if run.run_id not in {own.run_id for own in resumable}:
            why = "still under way" if run.status in ACTIVE else "finished, or of an earlier version"
            raise CapbiasError(f"The run {run.run_id} is {why}, so it cannot be repeated.", SEE)
    if not chosen:
        say("no run failed, died or was cancelled")
    for collection in dict.fromkeys(run.collection for run in chosen):
        specs = [run.spec for run in chosen if run.collection == collection]
        code = max(code, outcome(run_all(store, specs, collection)))
    return code


@demo_app.default
def load_demo(*, workspace: WorkspaceFlag = None) -> int:
    """Load and score the bundled demo, and print the true LIC next to the measured one."""
    store = opened(workspace, make=True)
    demo.load(store)
    rows = run_all(store, demo.demo_runs(store), DEMO)
    code = outcome(rows)
    frame = store.results([row.run_id for row in rows]).query("metric == 'LIC' and group == ''")
    truth = json.loads((DEMO_FOLDER / "truth.json").read_text(encoding="utf-8"))["truth"]
    lines = [
        {"captioner": row["model"], "verdict": row["verdict"], "LIC": ONE.text(row)}
        | {"true LIC": number(truth[row["model"]]["LIC"], 2)}
        for row in frame.rename(columns={"ci_low": "low", "ci_high": "high"})
        .sort_values("value", ascending=False)
        .to_dict("records")
    ]
    show_table(pd.DataFrame(lines))
    say("Next: capbias explain --collection demo --captions amplifier --attribute gender")
    say("In the browser: capbias app")
    return code

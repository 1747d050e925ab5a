"""Runs from a terminal: what is to do, how far it is, how it ended; `run`, `list` and `demo`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Annotated

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Column

from capbias_core.api import failures
from capbias_core.cli.inputs import (
    ANSWER,
    INPUTS,
    ForceFlag,
    OutputFlag,
    WorkspaceFlag,
    command,
    flag,
    known_collection,
    opened,
)
from capbias_core.cli.terminal import DONE, RUN_FAILED, checked_output, say, show, show_table, write_table
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import kind_name
from capbias_core.load.places import checked_path
from capbias_core.measures.registry import expand_metrics
from capbias_core.resources import DEMO_FOLDER
from capbias_core.runs import demo
from capbias_core.runs.engine import Engine, Expected, expected, unfinished
from capbias_core.runs.plan import left_out, plan, useful
from capbias_core.runs.plan_file import keep_plan, read_plan
from capbias_core.runs.run import run_in_memory
from capbias_core.types import counted
from capbias_core.views.sentence import cost_text, left_text, named_notes, number, run_text
from capbias_core.views.tables import ordered, scores_table, to_csv
from capbias_core.workspace.ingest import DEMO
from capbias_core.workspace.memory import MemoryWorkspace
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import ACTIVE, STATUSES, RunRow, Workspace

BETWEEN_LINES = 60.0


def run_all(
    workspace: Workspace,
    specs: Sequence[RunSpec],
    collection: str,
    stopped: Callable[[KeyboardInterrupt], None] | None = None,
) -> list[RunRow]:
    """Run what is not finished yet, and wait for all. If it is stopped, the runs that were started here are cancelled.

    stopped: gets what stopped it; the runs are then returned as they are. Without it a stop is raised.
    Runs of another process are waited for, and started here if that process dies. Runs of a workspace in memory are
    computed in this process.
    """
    if isinstance(workspace, MemoryWorkspace):
        to_come = expected(workspace, specs)
        say(f"{counted(len(specs), 'run')} to do: {cost_text(to_come)}")
        with Shown(to_come) as shown:
            return run_in_memory(workspace, specs, collection, shown, stopped)
    engine = Engine(workspace.folder)
    started: set[str] = set()
    todo = list(specs)
    try:
        while True:
            new = engine.submit(todo, collection)
            started.update(new)
            to_come = expected(workspace, [spec for spec in todo if spec.run_id in new])
            if new:
                say(f"{counted(len(new), 'run')} to do: {cost_text(to_come)}")
            with Shown(to_come) as shown:
                rows = engine.wait([spec.run_id for spec in specs], shown)
            todo = [row.spec for row in rows if row.status == "died" and row.run_id not in started]
            if not todo:
                return rows
    except BaseException as error:
        engine.close()  # which cancels what was started here
        if stopped is None or not isinstance(error, KeyboardInterrupt):
            raise
        stopped(error)
        known = engine.workspace.runs_of([spec.run_id for spec in specs])
        return [known[spec.run_id] for spec in specs if spec.run_id in known]
    finally:
        engine.close()


class Shown:
    """A bar with the time left on a terminal; elsewhere a line now and then, for runs that take long.

    expected: how long the runs that are to do take.
    """

    def __init__(self, expected: Expected):
        self.expected = expected
        self.last = time.monotonic()
        text = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
        columns = BarColumn(20), TaskProgressColumn(), text
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True) if sys.stderr.isatty() else None
        self.task = self.bar.add_task("Running", total=1.0) if self.bar else None

    def __enter__(self) -> Shown:
        if self.bar and self.expected.each:
            self.bar.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self.bar:
            self.bar.stop()

    def __call__(self, rows: Sequence[RunRow]) -> None:
        share, text = self.state(rows)
        if self.bar and self.task is not None:
            self.bar.update(self.task, completed=share, description=text)
        elif time.monotonic() - self.last > BETWEEN_LINES:
            self.last = time.monotonic()
            say(f"{text} ({share:.0%})")

    def state(self, rows: Sequence[RunRow]) -> tuple[float, str]:
        """The share that is done, and `Running: 3 of 9 done, about 12 s left`."""
        rows = [row for row in rows if row.run_id in self.expected.each]
        done, left = self.expected.left(rows)
        over = sum(row.status not in ACTIVE for row in rows)
        running = next((f": {row.spec.model}, {row.message}" for row in rows if row.status == "running"), "")
        text = f"Running: {over} of {len(rows)} done{left_text(self.expected, left)}{running}"
        return done, text


def outcome(rows: Sequence[RunRow]) -> int:
    """Say each note once, and what did not finish; returns the exit code."""
    for note in named_notes([(row.spec.model, row.notes) for row in rows if row.status == "finished"]):
        say(f"note: {note}")
    failed = failures(rows)
    for line in failed:
        say(f"error: {line}")
    return RUN_FAILED if failed else DONE


# commands

app = command(
    "run",
    """\
  capbias run plan.toml
  capbias run plan.toml --check
  capbias run status
  capbias run resume --all

A plan names files, relative to itself, and what to measure; a bundle holds one (plan.toml), and the guide shows how to
write one. Files are stored in the workspace, so the dashboard shows the results, and a finished run is not repeated.
Ctrl-C cancels what was started; `capbias run resume --all` continues.""",
)
list_app = command("list", "  capbias list\n  capbias list --collection demo --json")
demo_app = command("demo", "  capbias demo\n  capbias demo --if-empty\n  capbias app")

JsonFlag = Annotated[bool, flag("as JSON", group=ANSWER, name="--json")]
RunIds = Annotated[str, flag("runs, from `capbias run status`; the beginning is enough", "ID", INPUTS)]


@app.default
def run(
    plan_file: Annotated[str, flag("the plan, a TOML file", "FILE", INPUTS)],
    /,
    *,
    check: Annotated[bool, flag("read the plan, list the runs that it makes, and stop", group=ANSWER)] = False,
    workspace: WorkspaceFlag = None,
    output: OutputFlag = None,
    force: ForceFlag = False,
) -> int:
    """Run a plan."""
    file = checked_path(plan_file)
    read = read_plan(file)
    path = checked_output(output, force, ["csv"], read.named_files(file.resolve().parent))
    store = opened(workspace, make=True)
    requests = keep_plan(store, read, file.resolve().parent, say)
    specs: dict[str, RunSpec] = {}
    for request in requests:
        able, reasons = useful(plan(store, request), request)
        specs |= {spec.run_id: spec for spec in able}
        for line in left_out(reasons):
            say(f"warning: {line}")
    if check:
        for spec in specs.values():
            show(f"{spec.run_id}  {run_text(spec)}")
        return DONE
    rows = run_all(store, list(specs.values()), read.collection)
    code = outcome(rows)
    frame = store.results(list(specs))
    wanted = dict.fromkeys(name for request in requests for name in expand_metrics(request.metrics))
    # In the order of the plan, whichever run ended first.
    frame = ordered(frame, [spec.model for spec in specs.values()], list(wanted))
    if frame.empty:
        raise CapbiasError("No run of the plan gave a number.", "See: capbias run status")
    write_table(frame, path, to_csv, scores_table)
    return code


@command("status", "  capbias run status\n  capbias run status --status running queued --json", app).default
def status(
    *,
    status: Annotated[
        list[str] | None, flag(f"only these: {', '.join(STATUSES)} (default: all)", "STATUS", INPUTS)
    ] = None,
    json_: JsonFlag = False,
    workspace: WorkspaceFlag = None,
) -> int:
    """List the runs, newest first, with status, progress and seconds."""
    for name in status or ():
        if name not in STATUSES:
            raise unknown_name("--status", name, STATUSES)
    store = opened(workspace)
    runs = [run for run in store.runs() if run.status in (status or STATUSES)]
    if json_:
        show(json.dumps([_run_details(run) for run in runs], indent=2))
    else:
        _show_runs(runs) if runs else show("No runs.")
    return DONE


@list_app.default
def list_stored(
    *,
    collection: Annotated[str, flag("only this collection (default: all)", "NAME", INPUTS)] = "",
    json_: JsonFlag = False,
    workspace: WorkspaceFlag = None,
) -> int:
    """List the stored files and the runs."""
    store = opened(workspace)
    only = known_collection(store, collection) if collection else None
    items = [
        {key: getattr(item, key) for key in ("collection", "kind", "name", "rows", "images", "hash")}
        | {"kind": kind_name(item.kind), "attributes": list(item.details.get("attributes", {}))}
        for item in store.items(collection=only)
    ]
    runs = store.runs(only)
    if json_:
        show(json.dumps({"items": items, "runs": [_run_details(run) for run in runs]}, indent=2))
        return DONE
    if items:
        shown = [row | {"attributes": ", ".join(row["attributes"]), "hash": row["hash"][:12]} for row in items]
        show_table(pd.DataFrame(shown))
    else:
        show("The workspace is empty.")
    if runs:
        show("")
        _show_runs(runs)
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


def _show_runs(runs: Sequence[RunRow]) -> None:
    frame = pd.DataFrame([_run_details(run) for run in runs])
    frame = frame[["run_id", "collection", "what", "status", "progress", "seconds", "message"]]
    show_table(frame.assign(progress=frame["progress"].map("{:.0%}".format)))


def _chosen(store: Workspace, ids: Sequence[str], all_: bool, candidates: Sequence[RunRow]) -> list[RunRow]:
    """The runs named by the beginning of their ids, or all candidates with `--all`.

    Raises CapbiasError for neither or both, and for an id that no run or more than one begins with.
    """
    if bool(ids) == all_:
        raise CapbiasError("Name runs by their ids, or all with --all.", "`capbias run status` lists them.")
    chosen = {run.run_id: run for run in candidates} if all_ else {}
    for name in ids:
        matches = [run for run in store.runs() if name and run.run_id.startswith(name)]
        if not matches:
            raise unknown_name("run", name, [run.run_id for run in candidates])
        if len(matches) > 1:
            several = ", ".join(run.run_id for run in matches[:3])
            raise CapbiasError(f"{len(matches)} runs have an id that begins with {name!r}.", f"Write more: {several}.")
        chosen[matches[0].run_id] = matches[0]
    return list(chosen.values())


@command("cancel", "  capbias run cancel 3f2a\n  capbias run cancel --all", app).default
def cancel(
    *ids: RunIds,
    all_: Annotated[bool, flag("all that are queued or running", group=INPUTS, name="--all")] = False,
    workspace: WorkspaceFlag = None,
) -> int:
    """Stop runs that are queued or running; a running one stops at its next report, in a second or two."""
    store = opened(workspace)
    chosen = _chosen(store, ids, all_, [run for run in store.runs() if run.status in ACTIVE])
    engine = Engine(store.folder)
    ended = [run for run in chosen if not engine.cancel(run.run_id)]
    for run in chosen:
        if run in ended:
            say(f"{run.run_id} is {run.status}: nothing to cancel")
        else:
            show(f"{run.run_id} cancelled: {run_text(run.spec)}")
    if chosen and len(ended) == len(chosen):
        raise CapbiasError("No run was cancelled, because none is queued or running.", "See: capbias run status")
    return DONE


@command("resume", "  capbias run resume 3f2a\n  capbias run resume --all", app).default
def resume(
    *ids: RunIds,
    all_: Annotated[bool, flag("all that failed, died or were cancelled", group=INPUTS, name="--all")] = False,
    workspace: WorkspaceFlag = None,
) -> int:
    """Start runs again that failed, died or were cancelled, and wait for them."""
    code = DONE
    store = opened(workspace)
    resumable = unfinished(store)
    chosen = _chosen(store, ids, all_, resumable)
    for run in chosen:
        if run not in resumable:
            why = "still under way" if run.status in ACTIVE else "finished, or of an earlier version"
            raise CapbiasError(f"The run {run.run_id} is {why}, so it cannot resume.", "See: capbias run status")
    if not chosen:
        say("no run failed, died or was cancelled")
    for collection in dict.fromkeys(run.collection for run in chosen):
        specs = [run.spec for run in chosen if run.collection == collection]
        code = max(code, outcome(run_all(store, specs, collection)))
    return code


@demo_app.default
def load_demo(
    *,
    if_empty: Annotated[bool, flag("do nothing if the workspace is not empty", group=INPUTS)] = False,
    workspace: WorkspaceFlag = None,
) -> int:
    """Load and score the bundled demo, and print the true LIC next to the measured one."""
    store = opened(workspace, make=True)
    if if_empty and store.items():
        say("the workspace is not empty; the demo was not loaded")
        return DONE
    demo.load(store)
    rows = run_all(store, demo.demo_runs(store), DEMO)
    code = outcome(rows)
    frame = store.results([row.run_id for row in rows])
    table = scores_table(frame, metrics=["LIC"])
    truth = json.loads((DEMO_FOLDER / "truth.json").read_text(encoding="utf-8"))["truth"]
    table["true LIC"] = [number(truth[name]["LIC"], 2) for name in table["captioner"]]
    show_table(table)
    say("Next: capbias explain --collection demo --captions amplifier --attribute gender")
    say("In the browser: capbias app")
    return code

"""`run`: a plan in a file, run in a workspace."""

from __future__ import annotations

from typing import Annotated

from capbias_core.api import ordered
from capbias_core.cli import cancel, resume, runs
from capbias_core.cli.flags import ANSWER, INPUTS, OutputFlag, WorkspaceFlag, command, flag
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.terminal import DONE, checked_output, on_terminal, say, show, write_output
from capbias_core.errors import CapbiasError
from capbias_core.measures.registry import expand_metrics
from capbias_core.present.table import scores_table, to_csv, to_text
from capbias_core.runs.plan import left_out, plan, useful
from capbias_core.runs.plan_file import keep_plan, read_plan
from capbias_core.workspace.inputs import checked_path, workspace_at
from capbias_core.workspace.spec import RunSpec

app = command(
    "run",
    """\
  capbias run plan.toml
  capbias run plan.toml --check

A plan names files, relative to itself, and what to measure; a bundle holds one (plan.toml), and the guide shows how to
write one. Files are kept in the workspace, so the dashboard shows the results, and a run that was made before is not
made again. Ctrl-C cancels what was started; `capbias run resume --all` continues.""",
)


for part in (runs, cancel, resume):
    app.command(part.app)


@app.default
def run(
    plan_file: Annotated[str, flag("the plan, a TOML file", "FILE", INPUTS)],
    *,
    check: Annotated[bool, flag("read the plan and say which runs it makes, and stop", group=ANSWER)] = False,
    workspace: WorkspaceFlag = None,
    output: OutputFlag = None,
) -> int:
    """Run a plan."""
    path, file = checked_output(output), checked_path(plan_file)
    read = read_plan(file)
    with workspace_at(workspace, make=True) as place:
        requests = keep_plan(place, read, file.resolve().parent, say)
        specs: dict[str, RunSpec] = {}
        for request in requests:
            found, reasons = useful(plan(place, request), request)
            specs |= {spec.run_id: spec for spec in found}
            for line in left_out(reasons):
                say(f"warning: {line}")
        if check:
            for spec in specs.values():
                show(f"{spec.run_id}  {spec.model}: {spec.measure}{f', {spec.attacker}' if spec.attacker else ''}")
            return DONE
        rows = run_all(place, list(specs.values()), read.collection)
        code = outcome(rows)
        frame = place.results(list(specs))
    wanted = dict.fromkeys(name for request in requests for name in expand_metrics(request.metrics))
    # In the order of the plan, whichever run ended first.
    frame = ordered(frame, [spec.model for spec in specs.values()], list(wanted))
    if frame.empty:
        raise CapbiasError("No run of the plan gave a number.", "See: capbias run status")
    if path or not on_terminal():
        write_output(to_csv(frame), path)
    else:
        show(to_text(scores_table(frame)).rstrip("\n"))
    return code

"""`view NAME`: a subcommand for each row of VIEWS; its flags are those of the bar and the fields of its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import pandas as pd
from cyclopts import App, Group, Parameter

from capbias_core.cli.inputs import (
    INPUTS,
    InputFlags,
    Output,
    ScoredFiles,
    WorkspaceFlag,
    command,
    flag,
    inputs,
    known_collection,
    opened,
)
from capbias_core.cli.run import outcome, run_all
from capbias_core.cli.terminal import BAD_INPUT, DONE, RUN_FAILED, say, show, text_width, write
from capbias_core.errors import CapbiasError
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.views.change import FAILED, PASSED, UNDECIDED
from capbias_core.views.choose import Choice, choose, measured_rows
from capbias_core.views.encoders import RESULTS
from capbias_core.views.files import FILES, content, printed
from capbias_core.views.registry import VIEWS
from capbias_core.views.view import View
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace

app = command(
    "view", "  capbias view table --collection coco\n  capbias view words --collection coco --output words.tex"
)
app.group_commands = Group("Views", sort_key=0)
CHOICES = Group("Choices", sort_key=2)
ANSWER = Group("The answer", sort_key=99)
TEXTS = ("csv", "json", "tex", "txt")
GATE = {FAILED: RUN_FAILED, UNDECIDED: BAD_INPUT, PASSED: DONE}


@dataclass(frozen=True, kw_only=True)
class Shown(Output):
    """What is shown, and where to."""

    collection: Annotated[str, flag("the collection (default: the one that was scored last)", "NAME", INPUTS)] = ""
    attribute: Annotated[str, flag("the attribute (default: as on the page)", "NAME", INPUTS)] = ""
    captioner: Annotated[list[str], flag("captioners (default: all of the setting)", "NAME", INPUTS)] = field(
        default_factory=list
    )
    setting: Annotated[str, flag('how it was measured, such as "ngram, 30 seeds"', "NAME", INPUTS)] = ""
    references: Annotated[str, flag("the human captions", "NAME", INPUTS)] = ""
    workspace: WorkspaceFlag = None
    format: Annotated[str, flag("its format (default: by --output, else text)", "|".join(FILES), ANSWER)] = ""


NO_FILES = ScoredFiles()  # as if none of its flags was given


def choice_of(
    shown: Shown, names: Sequence[str] = (), files: ScoredFiles = NO_FILES, metrics: Sequence[str] = ()
) -> Choice:
    """What these flags choose. names: captioners; or files, which are scored by these metrics. Raises CapbiasError for
    a name that is not there."""
    given = {name: getattr(shown, name) for name in ("collection", "attribute", "setting", "references")}
    captioners = [*names, *shown.captioner]
    if metrics and not shown.collection and any(Path(name).suffix for name in names):
        workspace, question = scored(shown, names, files, metrics)
        given |= {name: getattr(question, name) for name in ("collection", "attribute", "references")}
        captioners = [*question.captions]
    else:
        files.check()
        workspace = opened(shown.workspace)
        given["collection"] = shown.collection or next(iter([*workspace.scored(), *workspace.collections()]), "")
        if not given["collection"]:
            raise CapbiasError("Nothing is scored yet.", "Score files first: capbias score FILE ... --collection NAME.")
        known_collection(workspace, given["collection"])
    given["captioner"] = next(iter(captioners), "")
    return choose(workspace, measured_rows(workspace, given["collection"]), given, strict=True, captioners=captioners)


def scored(
    shown: Shown, names: Sequence[str], files: ScoredFiles, metrics: Sequence[str]
) -> tuple[Workspace, Question]:
    """A workspace with the scores of files, and what was asked. Raises CapbiasError for files that cannot be scored."""
    how = {"attacker": [files.attacker] if files.attacker else None, "seeds": files.seeds}
    reading = {name: value for name, value in vars(files).items() if name not in how}
    flags = InputFlags(attribute=shown.attribute, workspace=shown.workspace, **reading)
    asked = flags.question(tuple(names), metrics=metrics, references=shown.references or None, **how)
    workspace, question = inputs(flags, asked)
    outcome(run_all(workspace, plan(workspace, question), question.collection))
    return workspace, question


def compute(choice: Choice, runs: list[RunSpec]) -> int:
    """Compute what a view reads besides, if it is not there yet. Returns the exit code."""
    done = choice.workspace.runs_of([run.run_id for run in runs])
    if all(run.run_id in done and done[run.run_id].status == "finished" for run in runs):
        return DONE
    return outcome(run_all(choice.workspace, runs, choice.collection))


def write_view(view: View, choice: Choice | None, rows: pd.DataFrame, path: Path | None, ending: str) -> None:
    """A view as a file, in a format to stdout, or as text."""
    if path or ending:
        write(content(view, choice, rows, ending or "csv"), path)
    else:
        show(printed(view, choice, rows, text_width()).rstrip("\n"))


def view_command(name: str, view: View) -> App:
    """The subcommand of a view."""

    def run(*names, shown, options, files=NO_FILES) -> int:
        to = shown.place({name: name for name in (FILES if shown.output else TEXTS)}, shown.format)
        if getattr(options, "results", "") or getattr(options, "human", ""):  # of no workspace
            write_view(RESULTS, None, RESULTS.rows(None, options), *to)
            return DONE
        unscored = view.optional and not shown.collection and not opened(shown.workspace).scored()
        choice = None if unscored else choice_of(shown, names, files, view.of_files(options) if view.of_files else ())
        if choice and (code := compute(choice, view.needs(choice, options))):
            return code
        rows = view.rows(choice, options)
        write_view(view, choice, rows, *to)
        if not view.gate or not getattr(options, "fail_if", ""):
            return DONE
        ended, text = view.gate(rows)
        say(text)
        return GATE[ended]

    run.__doc__ = view.question
    flags = Parameter(name="*", group=CHOICES)
    or_files = "; or files, which are scored first" if view.of_files else ""
    run.__annotations__ = {
        "names": Annotated[str, flag(f"captioners (default: all of the setting){or_files}", "NAME", INPUTS)],
        "shown": Annotated[Shown, Parameter(name="*")],
        "options": Annotated[view.options, flags],
        "return": int,
    }
    files = Parameter(name="*") if view.of_files else Parameter(parse=False)
    run.__annotations__["files"] = Annotated[ScoredFiles, files]
    run.__kwdefaults__ = {"shown": Shown(), "options": view.options(), "files": NO_FILES}
    made = command(name, view.example, app)
    made.default(run)
    return made


for name, view in VIEWS.items():
    view_command(name, view)

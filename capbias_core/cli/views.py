"""`view NAME`: a subcommand for each row of VIEWS; its flags are those of the bar and the fields of its options."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import Annotated

import pandas as pd
from cyclopts import App, Group, Parameter

from capbias_core.cli.inputs import INPUTS, WorkspaceFlag, command, flag, known_collection, opened
from capbias_core.cli.terminal import DONE, checked_output, on_terminal, show, write_file
from capbias_core.errors import unknown_name
from capbias_core.views.choose import Choice, choose, measured_rows
from capbias_core.views.encoders import RESULTS
from capbias_core.views.files import FILES, content, format_of, printed
from capbias_core.views.registry import VIEWS
from capbias_core.views.view import View

app = command(
    "view", "  capbias view table --collection coco\n  capbias view words --collection coco --output words.tex"
)
app.group_commands = Group("Views", sort_key=0)
CHOICES = Group("Choices", sort_key=2)
ANSWER = Group("The answer", sort_key=99)
PIPE_WIDTH = 200  # columns where nobody says how wide the reader's are


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What is shown, and where to."""

    collection: Annotated[str, flag("the collection (default: the one that was scored last)", "NAME", INPUTS)] = ""
    attribute: Annotated[str, flag("the attribute (default: as on the page)", "NAME", INPUTS)] = ""
    captioner: Annotated[list[str], flag("captioners (default: all of the setting)", "NAME", INPUTS)] = ()
    setting: Annotated[str, flag('how it was measured, such as "ngram, 30 seeds"', "NAME", INPUTS)] = ""
    references: Annotated[str, flag("the human captions", "NAME", INPUTS)] = ""
    workspace: WorkspaceFlag = None
    output: Annotated[
        str | None, flag(f"where to write it, as its ending says: {', '.join(FILES)}", "FILE", ANSWER)
    ] = None
    format: Annotated[str, flag("csv, json, tex or txt to stdout (default: text)", "NAME", ANSWER)] = ""
    force: Annotated[bool, flag("write over an existing file", group=ANSWER)] = False


def choice_of(shown: Shown) -> Choice:
    """What these flags choose. Raises CapbiasError for a name that is not there."""
    workspace = opened(shown.workspace)
    collection = shown.collection or next(iter([*workspace.scored(), *workspace.collections()]), "")
    known_collection(workspace, collection)
    given = {
        "collection": collection,
        "attribute": shown.attribute,
        "setting": shown.setting,
        "references": shown.references,
        "captioner": next(iter(shown.captioner), ""),
    }
    return choose(workspace, measured_rows(workspace, collection), given, strict=True, captioners=shown.captioner)


def write_view(view: View, choice: Choice | None, rows: pd.DataFrame, shown: Shown) -> None:
    """A view to stdout as text, or as a file."""
    if shown.output:
        path = checked_output(shown.output)
        assert path
        write_file(content(view, choice, rows, format_of(path.name)), path)
        return
    if shown.format and shown.format not in (texts := ["csv", "json", "tex", "txt"]):
        raise unknown_name("--format", shown.format, texts)
    if shown.format:
        show(content(view, choice, rows, shown.format).decode().rstrip("\n"))
        return
    width = shutil.get_terminal_size().columns if on_terminal() else PIPE_WIDTH
    show(printed(view, choice, rows, width).rstrip("\n"))


def view_command(name: str, view: View) -> App:
    """The subcommand of a view."""

    def run(*, shown, options) -> int:
        if shown.output:
            format_of(shown.output)  # before anything is computed
        if getattr(options, "results", "") or getattr(options, "human", ""):  # of no workspace
            write_view(RESULTS, None, RESULTS.rows(None, options), shown)
            return DONE
        unscored = view.optional and not shown.collection and not opened(shown.workspace).scored()
        choice = None if unscored else choice_of(shown)
        rows = view.rows(choice, options)
        write_view(view, choice, rows, shown)
        return DONE

    run.__doc__ = view.question
    flags = Parameter(name="*", group=CHOICES)
    run.__annotations__ = {
        "shown": Annotated[Shown, Parameter(name="*")],
        "options": Annotated[view.options, flags],
        "return": int,
    }
    run.__kwdefaults__ = {"shown": Shown(), "options": view.options()}
    made = command(name, view.example, app)
    made.default(run)
    return made


for name, view in VIEWS.items():
    view_command(name, view)

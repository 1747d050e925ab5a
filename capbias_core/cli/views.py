"""`view NAME`: a subcommand for each row of VIEWS, whose flags are the choices of its function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Group

from capbias_core.aggregate.change import WORSE
from capbias_core.api import measured, stored
from capbias_core.cli.inputs import (
    ANSWER,
    INPUTS,
    WHAT,
    Flags,
    ForceFlag,
    PairFlags,
    WorkspaceFlag,
    choices_of_measures,
    command,
    flag,
    flags_class,
    given,
    inputs,
    known_collection,
    one_name,
    opened,
)
from capbias_core.cli.run import outcome, run_all
from capbias_core.cli.terminal import BAD_INPUT, DONE, RUN_FAILED, checked_output, say, ticking, write_file, write_table
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.measures.options import choices_in
from capbias_core.question import DEFAULT_METRICS
from capbias_core.spreadsheets import csv_text
from capbias_core.views.change import FAILED, PASSED, UNDECIDED, Runs, change_rows, chosen_metrics, gate, pair_scope
from capbias_core.views.registry import FILES, PAIR, VIEWS, View
from capbias_core.views.view import FORMATS, Scope, Shown, exported, format_of, scope
from capbias_core.workspace.sources import scratch_workspace
from capbias_core.workspace.spec import RunSpec

app = command(
    "view",
    """\
  capbias view by-value --collection coco --attribute gender
  capbias view consistency --results scores.csv""",
)
app.group_commands = Group("Views", sort_key=0)

CHOICES = Group("Choices", sort_key=2)
ShownFlag = Annotated[
    str | None,
    flag(f"where to write it, as its ending says: {', '.join(FORMATS)} (default: stdout, as CSV)", "FILE", ANSWER),
]


def shown_path(output: str | None, force: bool) -> Path | None:
    """Where to write a view, checked before anything is computed."""
    path = checked_output(output, force, FORMATS)
    if path:
        format_of(path.name)
    return path


def write_shown(shown: Shown, path: Path | None) -> None:
    """A view for a reader, with its sentence and notes on stderr; or as a file."""
    if path:
        content = exported(shown, path.name)
        write_file(content.encode() if isinstance(content, str) else content, path)
    for line in filter(None, (shown.sentence, *(f"note: {line}" for line in shown.notes))):
        say(line)
    if not path:
        write_table(shown.rows, None, to_csv=csv_text, for_reader=lambda _: shown.for_reader)


# every view but those of pairs


@dataclass(frozen=True, kw_only=True)
class OfWorkspace:
    """The flag of views that read a workspace."""

    workspace: WorkspaceFlag = None


def view_command(name: str, view: View) -> App:
    """The subcommand of a view."""
    of_scope, of_view = choices_in(scope), choices_in(view.answer)
    choices = [(choice, of_scope, INPUTS) for choice in view.scoped] + [
        (choice, of_view, CHOICES) for choice in of_view.about()
    ]
    choices += choices_of_measures(view.measures, left_out=("objects_from",))
    chosen = flags_class(choices, *(() if view.reads == FILES else (OfWorkspace,)))

    def run(*, flags, output=None, force=False) -> int:
        path = shown_path(output, force)
        code, shown = answered(view, flags)
        if shown:
            write_shown(shown, path)
        return code

    run.__doc__ = f"{view.question.rstrip('.')}{'' if view.question.endswith('?') else '.'}"
    run.__annotations__ = {"flags": Annotated[chosen, Flags], "output": ShownFlag, "force": ForceFlag}
    required = any(not hasattr(options, choice) for choice, options, _ in choices)
    run.__kwdefaults__ = {"output": None, "force": False} | ({} if required else {"flags": chosen()})
    made = command(name, view.example, app)
    made.default(run)
    return made


def answered(view: View, flags: Any) -> tuple[int, Shown | None]:
    """The exit code, and what a view shows with these flags; None if runs failed without which it shows nothing."""
    of_scope, of_view, chosen, codes = choices_in(scope), choices_in(view.answer), given(flags), [DONE]
    folder, collection = chosen.pop("workspace", None), chosen.get("collection")
    store = opened(folder) if folder or collection else scratch_workspace()
    if collection:
        known_collection(store, collection)
    scoped = {name: of_scope.checked(name, chosen.pop(name)) for name in view.scoped if name in chosen}
    choices = {name: of_view.checked(name, chosen.pop(name)) for name in of_view.about() if name in chosen}

    def run(specs: Sequence[RunSpec], collection: str) -> None:
        codes.append(outcome(run_all(store, specs, collection)))

    with ticking() as tick:
        passed = {"run": run, "progress": tick, "options": chosen, "workspace": store}
        choices |= {name: passed[name] for name in signature(view.answer).parameters if name in passed}
        try:
            first = (scope(store, **scoped),) if view.scoped else ()
            shown = view.answer(*first, **choices)
            return codes[-1], shown
        except CapbiasError:
            if codes[-1] == DONE:
                raise
            return codes[-1], None


# pairs


GATE = {FAILED: RUN_FAILED, UNDECIDED: BAD_INPUT, PASSED: DONE}
ANY_PAIR = PairFlags()  # as if none of its flags was given


def pair(flags: PairFlags, names: Sequence[str], metrics: Sequence[str]) -> Scope:
    """The scope of two captioners: of a collection, or of files, which are scored by these metrics."""
    if flags.collection:
        if len(names) != 2:
            raise CapbiasError(f"Expected two captioners, got {len(names)}.", "Name the one before and the one after.")
        flags.check()
        store = opened(flags.workspace)
        known_collection(store, flags.collection)
        first, second = names
        chosen = (flags.attribute, flags.attacker, flags.seeds, one_name("references", flags.references or ""))
        return pair_scope(store, flags.collection, first, second, *chosen)
    given = {"references": flags.references or None, "attacker": [flags.attacker] if flags.attacker else None}
    store, resolved = inputs(flags, flags.question(tuple(names), metrics=metrics, **given))
    if len(resolved.captions) != 2:
        captioners = ", ".join(resolved.captions)
        raise CapbiasError(f"Expected captions of two captioners, got {len(resolved.captions)}: {captioners}.")
    for line in measured(stored(store, resolved, run_all), say).failed:
        say(f"error: {line}")
    first, second = resolved.captions
    return pair_scope(store, resolved.collection, first, second, resolved.attribute)


def change(
    *names: Annotated[
        str, flag("two captioners; without --collection, files, whose types are detected", "NAME", INPUTS)
    ],
    flags: Annotated[PairFlags, Flags] = ANY_PAIR,
    metric: Annotated[
        list[str] | None, flag("metrics to test (default: LIC, and what it may cost)", "NAME", WHAT)
    ] = None,
    fail_if: Annotated[str | None, flag("exit code 1 if a tested metric is significantly worse", WORSE, WHAT)] = None,
    words: Annotated[bool, flag("words that changed most in the value that they go with", group=WHAT)] = False,
    output: ShownFlag = None,
    force: ForceFlag = False,
) -> int:
    """Before and after: the change of each metric between two captioners, paired over images; a gate for CI."""
    if fail_if not in (None, WORSE):
        raise unknown_name("--fail-if", fail_if, [WORSE])
    if fail_if and words:
        raise CapbiasError("--words tests no metric.", "Leave out --words or --fail-if.")
    path, tested = shown_path(output, force), chosen_metrics(metric or ())
    of_pair = pair(flags, names, tested or DEFAULT_METRICS)
    if words:
        write_shown(VIEWS["change-words"].answer(of_pair), path)
        return DONE
    if fail_if and not tested:
        tested = [Runs(of_pair).answering]
    write_shown(VIEWS["change"].answer(of_pair, metrics=tested), path)
    if not fail_if:
        return DONE
    ended, text = gate(change_rows(of_pair, tested))
    say(text)
    return GATE[ended]


for name, view in VIEWS.items():
    if view.reads != PAIR:
        view_command(name, view)
command("change", VIEWS["change"].example, app).default(change)

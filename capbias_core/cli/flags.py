"""Flags of the command line. Those of measures come from their options: a new measure's flags appear by themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, make_dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from cyclopts import App, Group, Parameter

from capbias_core.measures.base import Measure
from capbias_core.measures.options import Attacked, Option, Options, Seeded, bounds_text, checked

INPUTS = Group("Inputs", sort_key=1)
WHAT = Group("What to measure", sort_key=2)
HOW = Group("How", sort_key=2)
HUMAN = Group("Human captions", sort_key=3)
ATTACKERS = Group("Attackers", sort_key=4)
ANSWER = Group("The answer", sort_key=99)


def command(name: str, example: str, parent: App | None = None) -> App:
    """A command, or a subcommand of parent. example: command lines and further paragraphs, which end the help."""
    parts = [part if "  " in part else " ".join(part.split()) for part in example.split("\n\n")]
    app = App(name=name, help_epilogue="\n\n".join(["Example:", *parts]))
    if parent:
        parent.command(app)
    return app


def flag(help: str, metavar: str | None = None, group: Group | None = None, **more: Any) -> Parameter:
    """A flag; its name is that of the parameter unless `name` is given."""
    return Parameter(help=help, metavar=metavar, group=group, **more)


def _at_least_one(type_: Any, value: int | None) -> None:
    if value is not None and value < 1:
        raise ValueError("Expected a whole number of 1 or more.")


# What takes a whole number of 1 or more.
Positive = Annotated[int, Parameter(validator=_at_least_one, metavar="N")]
# A class whose fields are flags.
Flags = Parameter(name="*")

WorkspaceFlag = Annotated[str | None, flag("the workspace (default: CAPBIAS_HOME, or ./workspace)", "FOLDER", INPUTS)]
CollectionFlag = Annotated[str, flag("the collection", "NAME", INPUTS)]
OutputFlag = Annotated[str | None, flag("where to write the CSV (default: stdout)", "FILE", ANSWER)]


# flags of measures


def option_flag(name: str, options: type[Options], group: Group | None = None) -> Parameter:
    """The flag for one choice of a measure."""
    about, kind = options.about()[name], _kind(name, options)
    metavar = about.metavar or ("|".join(about.known) if about.known else {int: "N", float: "NUMBER"}.get(kind, "NAME"))
    text = _help(about, getattr(options, name, None))
    return flag(text, None if kind is bool else metavar, group, name=about.flag)


def _kind(name: str, options: type[Options]) -> Any:
    """The type of what a user gives for a choice; a choice that may name a stored item takes its name."""
    if options.about()[name].several:
        return list[str]
    hint = get_type_hints(options)[name]
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return next((member for member in members if member in (bool, int, float, str)), str)


def _help(about: Option, default: Any) -> str:
    """The help of a choice, with its bounds and its default.

    >>> _help(Option("images that are held out", above=0, below=1), 0.1)
    'images that are held out (a number above 0 and below 1; default: 0.1)'
    """
    bounds = "" if about.at_least == 1 else bounds_text(about)  # a number counts from 1
    if about.at_least is not None and about.at_most is not None:
        bounds = f"{about.at_least:g} to {about.at_most:g}"
    notes = [bounds] if bounds else []
    if default not in (None, False, (), "") and "default" not in about.help:
        notes.append(f"default: {default:g}" if isinstance(default, float) else f"default: {default}")
    return about.help + (f" ({'; '.join(notes)})" if notes else "")


def choices_of(options: type[Options], *names: str, group: Group | None = None) -> type:
    """A class whose fields are the flags of these choices, None if they are not given."""
    return _choices([(name, options, group) for name in names])


def _choices(flags: Iterable[tuple[str, type[Options], Group | None]]) -> type:
    rows = [
        (name, Annotated[_kind(name, options) | None, option_flag(name, options, group)], field(default=None))
        for name, options, group in flags
    ]
    return make_dataclass("Choices", rows, frozen=True, kw_only=True, namespace={"__module__": __name__})


def measure_choices(measures: Iterable[Measure], inputs: Iterable[str] = (), left_out: Iterable[str] = ()) -> type:
    """A class whose fields are the flags of these measures.

    inputs: choices listed among the inputs. left_out: choices for which the command has other flags. Choices of
    measures that train attackers form one group; any other choice is listed under the measures that have it.
    """
    having: dict[str, list[Measure]] = {}
    for measure in measures:
        for name, about in measure.options.about().items():
            if about.flag and name not in left_out:
                having.setdefault(name, []).append(measure)
    flags = []
    for name, users in having.items():
        group = ATTACKERS if any(measure.attacked for measure in users) else None
        if name in inputs:
            group = INPUTS
        names = ", ".join(group.name for measure in users for group in measure.groups)
        flags.append((name, users[0].options, group or Group(f"For {names}", sort_key=10 + users[0].place)))
    return _choices(flags)


@dataclass(frozen=True, kw_only=True)
class Training(choices_of(Attacked, "attacker", "device", "deterministic", "merge_masks", group=ATTACKERS)):
    """The flags of one attacker."""


UNTRAINED = Training()  # as if none of its flags was given

# The flag of commands that draw seeds and are no measure themselves.
SeedsFlag = Annotated[int | None, option_flag("seeds", Seeded, ATTACKERS)]


def drawn(seeds: int | None) -> int:
    """How many seeds. Raises CapbiasError for a number out of bounds."""
    return checked("seeds", Seeded.seeds if seeds is None else seeds, Seeded.about()["seeds"])


def given(choices: Any, options: type[Options] | None = None) -> dict[str, Any]:
    """The choices that were given, by name. options: checks them. Raises CapbiasError for one that is not allowed."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in vars(choices).items()}
    about = options.about() if options else {}
    return {
        name: checked(name, value, about[name]) if name in about else value
        for name, value in values.items()
        if value is not None
    }

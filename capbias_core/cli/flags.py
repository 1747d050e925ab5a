"""Flags of the command line. Those of measures come from their options: a new measure's flags appear by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, field, fields, make_dataclass
from itertools import chain
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from cyclopts import App, Group, Parameter

from capbias_core.measures.base import Measure
from capbias_core.measures.options import Option, Options, Seeded, bounds_text, checked

CODES = (
    "Exit codes: 0 done; 1 a run failed, was cancelled or died; 2 bad input or workspace; 130 stopped with Ctrl-C; 143 "
    "ended by SIGTERM."
)

NARROW = 78  # columns

INPUTS = Group("Inputs", sort_key=1)
WHAT = Group("What to measure", sort_key=2)
HOW = Group("How", sort_key=2)
HUMAN = Group("Human captions", sort_key=3)
ATTACKERS = Group("Attackers", sort_key=4)
ANSWER = Group("The answer", sort_key=99)


def command(name: str, example: str) -> App:
    """A command. example: lines that show how it is used, and what else there is to say; they end its help."""
    parts = [_continued(part) if part.startswith("  ") else " ".join(part.split()) for part in example.split("\n\n")]
    return App(name=name, help_epilogue="\n\n".join(["Example:", *parts, CODES]))


def _continued(text: str) -> str:
    """Commands on lines that a terminal of 80 columns does not break, so that they can be copied."""
    return "\n".join(chain.from_iterable(map(_broken, re.sub(r" \\\n +", " ", text).split("\n"))))


def _broken(line: str) -> Iterator[str]:
    """A command in lines, each new one at a flag."""
    own, *flags = line.split(" --")
    for part in flags:
        if len(f"{own} --{part} \\") > NARROW:
            yield f"{own} \\"
            own = f"    --{part}"
        else:
            own += f" --{part}"
    yield own


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
OutputFlag = Annotated[str | None, flag("where to write the CSV (default: stdout)", "FILE", ANSWER)]


# flags of measures


def option_flag(name: str, options: type[Options], group: Group | None = None, suffix: str = "") -> Parameter:
    """The flag for one choice of a measure."""
    about, kind = options.about()[name], _kind(name, options)
    text = _help(about, _default(options, name)) + suffix
    metavar = about.metavar or ("|".join(about.known) if about.known else {int: "N", float: "NUMBER"}.get(kind, "NAME"))
    return flag(text, None if kind is bool else metavar, group, name=about.flag)


def _kind(name: str, options: type[Options]) -> Any:
    """The type of what a user gives for a choice."""
    return list[str] if options.about()[name].several else _type(get_type_hints(options)[name])


def _help(about: Option, default: Any) -> str:
    """The help of a choice, with its bounds and its default.

    >>> _help(Option("images that are held out", above=0, below=1), 0.1)
    'images that are held out (a number above 0 and below 1; default: 0.1)'
    """
    said = [_bounds(about)] if _bounds(about) else []
    if default not in (None, False, (), "") and "default" not in about.help:
        said.append(f"default: {default:g}" if isinstance(default, float) else f"default: {default}")
    return about.help + (f" ({'; '.join(said)})" if said else "")


def _bounds(about: Option) -> str:
    """The bounds in a few words; that a number counts from 1 goes without saying."""
    if about.at_least is not None and about.at_most is not None:
        return f"{about.at_least:g} to {about.at_most:g}"
    return "" if about.at_least == 1 else bounds_text(about)


def _default(options: type[Options], name: str) -> Any:
    found = next(own.default for own in fields(options) if own.name == name)
    return None if found is MISSING else found


def _type(hint: Any) -> Any:
    """The type of what a user gives: of a choice that may name something kept, its name."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return next((own for own in members if own in (bool, int, float, str)), str)


def choices_of(options: type[Options], *names: str, group: Group | None = None) -> type:
    """A class whose fields are the flags of these choices, None if they are not given."""
    return _choices([(name, _kind(name, options), option_flag(name, options, group)) for name in names])


def _choices(flags: Iterable[tuple[str, Any, Parameter]]) -> type:
    rows = [(name, Annotated[kind | None, own], field(default=None)) for name, kind, own in flags]
    return make_dataclass("Choices", rows, frozen=True, kw_only=True, namespace={"__module__": __name__})


def measure_choices(measures: Iterable[Measure], inputs: Iterable[str] = (), left_out: Iterable[str] = ()) -> type:
    """A class whose fields are the flags of these measures.

    inputs: choices that stand among the inputs. left_out: those that the command has flags of its own for. Choices of
    measures that train attackers stand together; others with those of the measures that share one with theirs.
    """
    having: dict[str, list[Measure]] = {}
    for measure in measures:
        for name, about in measure.options.about().items():
            if about.flag and name not in set(left_out):
                having.setdefault(name, []).append(measure)
    groups = _groups(having, set(inputs))
    flags = []
    for name, own in having.items():
        group, together = groups[name]
        suffix = f" [{_asked_by(own)}]" if len(own) < len(together) else ""
        options = own[0].options
        flags.append((name, _kind(name, options), option_flag(name, options, group, suffix)))
    return _choices(flags)


def _asked_by(measures: Iterable[Measure]) -> str:
    """`gs, estimation`: the words by which measures are asked for."""
    return ", ".join(group.name for measure in measures for group in measure.groups)


def _groups(having: Mapping[str, list[Measure]], inputs: set[str]) -> dict[str, tuple[Group, list[Measure]]]:
    """The group of each choice, and the measures that it is about, [] for groups that say nothing of measures."""
    common = {
        name: INPUTS if name in inputs else ATTACKERS
        for name, measures in having.items()
        if name in inputs or any(measure.attacked for measure in measures)
    }
    clusters: list[set[str]] = []
    for own in ({measure.name for measure in measures} for name, measures in having.items() if name not in common):
        touching = [cluster for cluster in clusters if cluster & own]
        clusters = [cluster for cluster in clusters if not cluster & own] + [own.union(*touching)]
    found: dict[str, tuple[Group, list[Measure]]] = {name: (group, []) for name, group in common.items()}
    for name, measures in having.items():
        if name not in found:
            cluster = next(cluster for cluster in clusters if measures[0].name in cluster)
            among = {own.name: own for those in having.values() for own in those if own.name in cluster}
            together = sorted(among.values(), key=lambda own: own.place)
            group = Group(f"For {_asked_by(together)}", sort_key=10 + together[0].place)
            found[name] = group, together
    return found


# The flag of commands that draw seeds and are no measure themselves.
SeedsFlag = Annotated[int | None, option_flag("seeds", Seeded, ATTACKERS)]


def drawn(seeds: int | None) -> int:
    """How many seeds. Raises CapbiasError for a number out of bounds."""
    return checked("seeds", Seeded.seeds if seeds is None else seeds, Seeded.about()["seeds"])


def given(choices: Any, options: type[Options] | None = None) -> dict[str, Any]:
    """The choices that were given, by name. options: checks them. Raises CapbiasError for one that is not allowed."""
    found = {own.name: getattr(choices, own.name) for own in fields(choices)}
    found = {name: tuple(own) if isinstance(own, list) else own for name, own in found.items() if own is not None}
    about = options.about() if options else {}
    return {name: checked(name, own, about[name]) if name in about else own for name, own in found.items()}

"""Flags that commands share, options of measures, and where captions, labels and references come from."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from cyclopts import App, Group, Parameter
from cyclopts.validators import Number

from capbias_core.attributes import attribute_folder
from capbias_core.cli.terminal import checked_output, say
from capbias_core.errors import CapbiasError, flag_name, unknown_name
from capbias_core.load.captions import SETS
from capbias_core.load.labels import RULES
from capbias_core.measures.base import Measure
from capbias_core.measures.options import Attacked, Checked, Option, Options, hints_of
from capbias_core.measures.registry import MEASURES
from capbias_core.question import Question
from capbias_core.runs.inputs import resolve
from capbias_core.whole_files import typed_path
from capbias_core.workspace.sources import scratch_workspace
from capbias_core.workspace.store import Workspace, default_folder

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


def flag(
    help: str, metavar: str | None = None, group: Group | None = None, choices: Iterable[str] = (), **more: Any
) -> Parameter:
    """A flag; its name is that of the parameter unless `name` is given. choices: the only values, if any."""
    known = tuple(choices)

    def check(_kind: Any, given: str | list[str] | None) -> None:
        wrong = [each for each in ([given] if isinstance(given, str) else given or ()) if each and each not in known]
        if wrong:
            raise ValueError(f"Known: {', '.join(known)}.")

    if known:
        metavar, more["validator"] = metavar or "|".join(known), check
    return Parameter(help=help, metavar=metavar, group=group, **more)


OF_FLAGS = ("attacker", "seeds", "photographs", "people")  # options that have flags of their own
COUNTED = "of at least 1"  # bounds that go without saying
# What takes a whole number of 1 or more.
Positive = Annotated[int, Parameter(validator=Number(gte=1), metavar="N")]
# A class whose fields are flags.
Flags = Parameter(name="*")

WorkspaceFlag = Annotated[str | None, flag("the workspace (default: CAPBIAS_HOME, or ./workspace)", "FOLDER", INPUTS)]
CollectionFlag = Annotated[str, flag("the collection", "NAME", INPUTS)]


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where an answer goes."""

    output: Annotated[str | None, flag("a file to write, as its ending says", "FILE", ANSWER)] = None
    force: Annotated[bool, flag("replace the --output file if it exists", group=ANSWER)] = False

    def place(self, formats: Mapping[str, str], format: str = "") -> tuple[Path | None, str]:
        """The file, None for stdout, and the format, '' if nobody said it; before anything is computed. formats: their
        endings. format: as --format names it. Raises CapbiasError for another, and where nothing may be written."""
        if format and format not in formats:
            raise unknown_name("--format", format, formats)
        path = checked_output(self.output, self.force, [formats[format]] if format else formats.values())
        by_ending = {ending: name for name, ending in formats.items()}
        return path, format or by_ending.get(path.suffix[1:].lower() if path else "", "")


STDOUT = Output()  # as if none of its flags was given


# flags of measures


def option_flag(name: str, options: type[Checked], group: Group | None = None) -> Parameter:
    """The flag for a field."""
    about, kind = options.about()[name], _kind(name, options)
    kind = next(iter(get_args(kind)), kind)
    metavar = about.metavar or ("|".join(about.known) if about.known else {int: "N", float: "NUMBER"}.get(kind, "NAME"))
    text = option_help(about, getattr(options, name, None))
    return flag(text, None if kind is bool else metavar, group, name=about.flag or flag_name(name))


def _kind(name: str, options: type[Checked]) -> Any:
    """The type of what a user gives for a choice; a choice that may name a stored item takes its name."""
    hint = hints_of(options)[name]
    if get_origin(hint) is tuple:
        return list[item if (item := get_args(hint)[0]) in (int, float) else str]
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return next((member for member in members if member in (bool, int, float, str)), str)


def option_help(about: Option, default: Any) -> str:
    """The help of a choice, with its bounds and its default.

    >>> option_help(Option("images that are held out", above=0, at_most=0.5), 0.1)
    'images that are held out (above 0 and at most 0.5; default: 0.1)'
    """
    notes = [about.bounds] if about.bounds and about.bounds != COUNTED else []
    if default not in (None, False, (), "") and "default" not in about.help:
        values = default if isinstance(default, tuple) else (default,)
        notes.append(
            f"default: {' '.join(f'{value:g}' if isinstance(value, float) else str(value) for value in values)}"
        )
    return about.help + (f" ({'; '.join(notes)})" if notes else "")


def choices_of(options: type[Checked], *names: str, group: Group | None = None) -> type:
    """A class whose fields are the flags of these fields, None if they are not given; one without a default must be
    given."""
    rows = []
    for name in names:
        required = not hasattr(options, name)  # a dataclass keeps a default as its attribute
        kind, default = _kind(name, options), field() if required else field(default=None)
        rows.append((name, Annotated[kind if required else kind | None, option_flag(name, options, group)], default))
    return make_dataclass("Choices", rows, frozen=True, kw_only=True, namespace={"__module__": __name__})


def options_of(measures: Iterable[Measure]) -> dict[str, type[Options]]:
    """The options of these measures that a user may give, by name, with a class that checks each."""
    of_all = ((name, about, measure.options) for measure in measures for name, about in measure.options.about().items())
    return {name: options for name, about, options in of_all if about.flag and name not in OF_FLAGS}


def known_options() -> dict[str, type[Options]]:
    """The options of all measures that `score` may be asked for."""
    return options_of(measure for measure in MEASURES.values() if measure.groups)


def read_options(texts: Iterable[str]) -> dict[str, Any]:
    """Options that were written as NAME=VALUE, by name; commas separate several values. Raises CapbiasError for an
    unknown one, and for a value that is not allowed."""
    known, chosen = known_options(), {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if name not in known:
            raise unknown_name("option", name, known)
        if not equals:
            raise CapbiasError(f"--option {text} has no value.", f"Write {name}=VALUE.")
        kind = _kind(name, known[name])
        of_each = next(iter(get_args(kind)), kind)
        values = value.split(",") if get_args(kind) else [value]
        read = tuple(each if of_each is str else _from_json(each) for each in values)
        chosen[name] = known[name].checked(name, read if get_args(kind) else read[0])
    return chosen


def _from_json(text: str) -> Any:
    try:
        return json.loads(text.lower())
    except ValueError:
        return text


@dataclass(frozen=True, kw_only=True)
class Training(choices_of(Attacked, "attacker", "device", "deterministic", "merge_masks", group=ATTACKERS)):
    """The flags of one attacker."""


UNTRAINED = Training()  # as if none of its flags was given


def given(choices: Any) -> dict[str, Any]:
    """The choices that were given, by name."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in vars(choices).items()}
    return {name: value for name, value in values.items() if value is not None}


# inputs


FILES = "files"  # the collection of files that are kept in memory
SETS_FLAG = flag("what several captions of an image are (default: asked)", "|".join(SETS), INPUTS)
Columns = list[str] | None
LabelsFlag = Annotated[Columns, flag("tables of labels; with --collection, the name of one", "FILE", INPUTS)]
ReferencesFlag = Annotated[Columns, flag("human captions; with --collection, their name", "FILE", HUMAN)]


OF_COLUMNS = {
    "image_id_column": ("[FILE:]COLUMN", "the column of image IDs of a file (default: the one that joins)"),
    "caption_column": ("COLUMN", "a column of a model's captions; several are a captioner each (default: by its name)"),
    "reference_column": ("COLUMN", "a column of human captions (default: by its name)"),
    "captioner_column": ("COLUMN", "the column that names the captioner of a row (default: by its name)"),
    "rows": ("COLUMN=VALUE", "read only rows with this value; min or max: of an image the caption with that number"),
    "map": ("ATTRIBUTE:LABEL=VALUE", "the value of a label; an empty value drops the label"),
}
_Columns = make_dataclass(
    "_Columns",
    [
        (name, Annotated[Columns, flag(about, metavar, INPUTS)], field(default=None))
        for name, (metavar, about) in OF_COLUMNS.items()
    ],
    frozen=True,
    kw_only=True,
    namespace={"__module__": __name__},
)


@dataclass(frozen=True, kw_only=True)
class ColumnFlags(_Columns):
    """What columns, rows and labels of files are."""

    several: Annotated[str, flag("label of an image whose rows differ (default: asked)", "|".join(RULES), INPUTS)] = ""


@dataclass(frozen=True, kw_only=True)
class FileFlags(ColumnFlags, choices_of(Question, "captions", "values", group=INPUTS)):
    """How files of captions and labels are read."""

    labels: LabelsFlag = None
    attribute_column: Annotated[
        Columns, flag("the column of labels; VALUE=COLUMN if true means the value", "COLUMN", INPUTS)
    ] = None


@dataclass(frozen=True, kw_only=True)
class InputFlags(FileFlags):
    """The flags of commands that read captions with labels."""

    attribute: Annotated[str, option_flag("attribute", Question, INPUTS)]
    collection: Annotated[str | None, flag("use a workspace's collection, and names for files", "NAME", INPUTS)] = None
    workspace: WorkspaceFlag = None

    def question(self, files: Sequence[str] = (), **more: Any) -> Question:
        """What is asked with these flags. files: their kinds are detected. more: arguments of `Question.of`. Raises
        CapbiasError if flags of files and of a collection are mixed."""
        if self.collection and files:
            raise CapbiasError(
                "Files cannot be combined with --collection.", "Import the files first, or leave one out."
            )
        if self.workspace and not self.collection:
            raise CapbiasError("--workspace needs --collection.", "Leave it out; an attribute of yours is a TOML file.")
        asked = vars(self) | more
        asked = {name: value for name, value in asked.items() if name not in ("workspace", "collection")}
        for name in ("labels", "references") if self.collection else ():  # the name of one
            if len(names := asked.get(name) or ()) > 1:
                raise CapbiasError(f"{flag_name(name)} takes one name of a collection, not {len(names)}.", "Name one.")
            asked[name] = "".join(names)
        return Question.of(stored=bool(self.collection), collection=self.collection or FILES, files=files, **asked)


@dataclass(frozen=True, kw_only=True)
class ScoredFiles(FileFlags):
    """The flags of a command that scores files before it shows them; of a collection they do not apply."""

    attacker: Annotated[str, flag("the attacker (default: ngram)", "NAME", HOW)] = ""
    seeds: Annotated[int | None, flag("its seeds (default: the usual)", "N", HOW)] = None

    def check(self) -> None:
        """Raises CapbiasError if any is given."""
        if stray := sorted(name for name, value in vars(self).items() if value):
            raise CapbiasError(f"{', '.join(map(flag_name, stray))} only applies to files.", "Leave it out.")


def opened(folder: str | None, make: bool = False) -> Workspace:
    """The workspace in a folder (None: the usual one). Without `make`, an empty one stands in for a missing one."""
    path = typed_path(folder) if folder else default_folder()
    return Workspace(path) if make or path.exists() else scratch_workspace()


def inputs(flags: InputFlags, question: Question, tell=say) -> tuple[Workspace, Question]:
    """A workspace and the question with the names of its inputs: of a collection, or of files, which leave
    nothing behind. tell: receives each line for the user."""
    workspace = scratch_workspace() if question.files else opened(flags.workspace)
    return workspace, resolve(workspace, question, tell)


def own_folder(workspace: str | None) -> Path:
    """The folder of the user's own attributes."""
    return attribute_folder(typed_path(workspace) if workspace else default_folder())


def known_collection(workspace: Workspace, name: str) -> str:
    """The name of a collection. Raises CapbiasError, with the known names, if there is no such collection."""
    if name not in workspace.collections():
        raise unknown_name("collection", name, workspace.collections())
    return name

"""Where captions, labels and references come from: files, or a collection that a workspace holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Protocol

from capbias_core.attributes import get_attribute, known_attributes
from capbias_core.cli.flags import INPUTS, WorkspaceFlag, flag
from capbias_core.cli.terminal import say, ticking
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load import read_captions
from capbias_core.load.archives import unpacked
from capbias_core.load.kinds import GENERATED, HUMAN, LABELS, OBJECTS, TITLES, kind_of_captions, likely
from capbias_core.load.sniff import reader_of
from capbias_core.types import Table
from capbias_core.workspace.custom_attributes import attribute_folder
from capbias_core.workspace.ingest import SAMPLES, SETS
from capbias_core.workspace.inputs import (
    Inputs,
    Kept,
    captioners,
    checked_path,
    columns_of_files,
    derivable,
    keep_inputs,
    temporary_workspace,
)
from capbias_core.workspace.inputs import workspace_at as opened
from capbias_core.workspace.store import RunRow, Workspace, default_folder

__all__ = [
    "FILES",
    "SETS_FLAG",
    "InputFlags",
    "chosen_runs",
    "inputs",
    "known_collection",
    "named_columns",
    "opened",
    "own_folder",
    "sorted_files",
    "unpacked_files",
]

# The collection of files that are read into a workspace of their own.
FILES = "files"
SETS_FLAG = flag(f"several captions of an image (default: {SAMPLES})", "|".join(SETS), INPUTS)


@dataclass(frozen=True, kw_only=True)
class InputFlags:
    """The flags of commands that read captions with labels."""

    captions: Annotated[
        list[str] | None, flag("files of captions; with --collection, names (default: all)", "FILE", INPUTS)
    ] = None
    labels: Annotated[
        str | None,
        flag(
            "a table of labels, or a name (gender, age: or --references)",
            "FILE",
            INPUTS,
            name=("--labels", "--attributes"),
        ),
    ] = None
    attribute: Annotated[
        str, flag(f"{', '.join(known_attributes())}, one of your own, a TOML file, or a column", "NAME", INPUTS)
    ]
    attribute_column: Annotated[str, flag("the column of labels, if not found", "COLUMN", INPUTS)] = ""
    values: Annotated[list[str] | None, flag("the labels of a column to compare (default: all)", "LABEL", INPUTS)] = (
        None
    )
    image_id_column: Annotated[str, flag("the column of image ids, if not found", "COLUMN", INPUTS)] = ""
    caption_column: Annotated[str, flag("the column of captions, if not found", "COLUMN", INPUTS)] = ""
    collection: Annotated[str | None, flag("use a workspace's collection, and names for files", "NAME", INPUTS)] = None
    workspace: WorkspaceFlag = None


@contextmanager
def inputs(flags: InputFlags, tell=say, **more: Any) -> Iterator[tuple[Workspace, Kept]]:
    """A workspace and the names of what was brought: of a collection, or of files in one that is removed afterwards.

    more: further fields of Inputs. tell: gets what is to be said of them.
    """
    check_form(flags, **more)
    given = Inputs(
        captions=dict.fromkeys(flags.captions or (), "") if flags.collection else captioners(flags.captions or []),
        attribute=flags.attribute,
        labels=flags.labels,
        attribute_column=flags.attribute_column,
        values=tuple(flags.values or ()),
        columns=named_columns(flags),
        own_attributes=own_folder(flags.workspace, of_files=not flags.collection),
        names=bool(flags.collection),
        **more,
    )
    if flags.collection:
        with opened(flags.workspace) as workspace:
            yield workspace, keep_inputs(workspace, flags.collection, given, tell)
    else:
        with temporary_workspace() as workspace, ticking() as tick:
            yield workspace, keep_inputs(workspace, FILES, given, tell, tick)


class Columns(Protocol):
    """Flags that name columns."""

    @property
    def image_id_column(self) -> str: ...

    @property
    def caption_column(self) -> str: ...


def named_columns(flags: Columns) -> dict[str, str]:
    """The columns that were named, by role."""
    named = {"image_id": flags.image_id_column, "caption": flags.caption_column}
    return {role: name for role, name in named.items() if name}


def unpacked_files(files: Sequence[str], folder: Path, tell=say) -> list[Path]:
    """Files, with those of archives, written into an empty folder, in their place.

    What lies in an archive and is in no format that is known, such as a readme, is left out and said. Raises
    CapbiasError for an archive with nothing else in it.
    """
    found = []
    for number, file in enumerate(files):
        path = checked_path(file)
        inside = unpacked(path, folder / str(number))
        if inside == [path]:
            found.append(path)
            continue
        errors = {own: error for own in inside if (error := _unknown(own))}
        if len(errors) == len(inside):
            raise errors[inside[0]]
        found += [own for own in inside if own not in errors]
        if errors:
            tell(f"{path.name}: left out {', '.join(own.name for own in errors)}, in no format that is known")
    return found


def _unknown(path: Path) -> CapbiasError | None:
    """Why no reader knows a file; None if one does."""
    try:
        reader_of(path)
    except CapbiasError as error:
        return error
    return None


def sorted_files(
    files: Sequence[str], flags: InputFlags, given: dict[str, Any], folder: Path, tell=say
) -> tuple[InputFlags, dict[str, Any]]:
    """The flags, and `references` and `objects` of further ones, with these files put where their content says.

    given: further flags. folder: an empty one for what is in archives. Of several tables of labels the one is taken
    that has the attribute. Raises CapbiasError for two files of human captions and the like, which the flag has to
    choose between.
    """
    if files and flags.collection:
        got = f"{Path(files[0]).name} beside --collection {flags.collection}"
        raise CapbiasError(got, "files, or a collection with names in it", "Import the files first, or leave one out.")
    found: dict[str, list[str]] = {kind: [] for kind in TITLES}
    read: dict[str, Table] = {}
    paths = unpacked_files(files, folder, tell)
    others = [Path(file) for file in (*(flags.captions or ()), flags.labels, given.get("references")) if file]
    named = columns_of_files(named_columns(flags), [*paths, *others]) if paths else {}
    for path in paths:
        own = likely(path, named[path])
        kind = own.kind
        if kind == GENERATED and not own.references:
            table = read_captions(path, dict(named[path]))
            kind = kind if table.prompts else kind_of_captions(kind, table.frame["image_id"].to_list())
            read |= {str(path): table} if kind == GENERATED else {}
        found[kind].append(str(path))
        tell(f"{path.name}: {TITLES[kind]} ({own.title})")
    captions = [*(flags.captions or ()), *found[GENERATED]]
    if files and not captions:
        taken = "; ".join(f"{Path(path).name} is {TITLES[kind]}" for kind, own in found.items() for path in own)
        raise CapbiasError(
            f"no captions of a model: by content and name, {taken}",
            "one or more sets of captions",
            "Name the file after --captions, and where it needs them its columns with --image-id-column and "
            "--caption-column.",
        )
    if len(found[LABELS]) > 1 and not flags.labels:
        found[LABELS] = _with_attribute(found[LABELS], flags, tell)
    for kind, own in (("references", HUMAN), ("objects", OBJECTS), ("labels", LABELS)):
        named = getattr(flags, kind) if kind == "labels" else given.get(kind)
        if len(found[own]) + bool(named) > 1:
            got = ", ".join(Path(path).name for path in [*found[own], *([named] if named else [])])
            raise CapbiasError(f"several files of {TITLES[own]}: {got}", "one", f"Name the one that counts: --{kind}.")
    more = {kind: own for kind, own in (("references", HUMAN), ("objects", OBJECTS)) if found[own]}
    given = given | {kind: found[own][0] for kind, own in more.items()} | ({"read": read} if read else {})
    labels = found[LABELS][0] if found[LABELS] else flags.labels
    return replace(flags, captions=captions or None, labels=labels), given


def _with_attribute(tables: list[str], flags: InputFlags, tell: Callable[[str], None]) -> list[str]:
    """The one of some tables of labels that has a column of the attribute; all where none or several have."""
    names = {flags.attribute_column.lower()} - {""} or _columns_of(flags)
    has = {path: {name.strip().lower() for name in reader_of(Path(path)).columns(Path(path))} for path in tables}
    fitting = [path for path in tables if names & has[path]]
    if len(fitting) != 1:
        return tables
    left_out = ", ".join(Path(path).name for path in tables if path not in fitting)
    tell(f"labels of {flags.attribute}: {Path(fitting[0]).name}; left out: {left_out}, without such a column")
    return fitting


def _columns_of(flags: InputFlags) -> set[str]:
    """What columns with labels of the attribute may be called."""
    folder = own_folder(flags.workspace, of_files=True)
    known = flags.attribute in known_attributes(folder) or flags.attribute.endswith(".toml")
    own = get_attribute(flags.attribute, folder) if known else None
    return {name.lower() for name in ((own.name, *own.columns) if own else (flags.attribute,))}


def check_form(flags: InputFlags, **more: Any) -> None:
    """Raises CapbiasError if flags of files and of a collection are mixed, or neither says where labels are."""
    folder = own_folder(flags.workspace, of_files=not flags.collection)
    derived = not flags.labels and not flags.collection and derivable(flags.attribute, folder)
    if not (flags.labels or flags.collection or derived):
        raise CapbiasError(
            "neither --labels nor --collection",
            "--labels with files, or --collection with names in a workspace",
            "Name a table of labels, or a collection.",
        )
    if derived and flags.attribute_column:
        got = f"--attribute-column {flags.attribute_column} without --labels"
        raise CapbiasError(got, "a table of labels that has the column", "Name it with --labels, or leave it out.")
    if more.get("weights") and (flags.collection or more.get("objects") or not more.get("photographs")):
        raise CapbiasError(
            "--weights without photographs in files, or with --objects",
            "--weights with --photographs FOLDER; or --objects, as `detect` wrote or kept them",
            "Leave one out, or run detect --collection first.",
        )
    own = known_attributes(folder).keys() - known_attributes().keys()
    of_files = ("image_id_column", "caption_column", "attribute_column", "values")
    of_workspace = () if flags.attribute in own else ("workspace",)
    stray = [name for name in (of_files if flags.collection else of_workspace) if getattr(flags, name)]
    if stray:
        named = ", ".join("--" + name.replace("_", "-") for name in stray)
        raise CapbiasError(
            f"{named} {'with a collection' if flags.collection else 'with files'}",
            "options of files (columns, values) with --labels, --workspace with --collection or with an attribute of "
            "your own in it",
            "Leave it out.",
        )


def own_folder(workspace: str | None, of_files: bool = False) -> Path | None:
    """Where attributes of the user's own are. Files alone are read without a workspace, unless one is named, here or by
    CAPBIAS_HOME."""
    if of_files and not (workspace or os.environ.get("CAPBIAS_HOME")):
        return None
    return attribute_folder(Path(workspace) if workspace else default_folder())


def known_collection(workspace: Workspace, name: str) -> str:
    """The name, if there is such a collection. Raises CapbiasError naming those that there are."""
    if name not in workspace.collections():
        raise unknown_name("collection", name, workspace.collections())
    return name


def chosen_runs(workspace: Workspace, ids: Sequence[str], every: bool, those: Sequence[RunRow]) -> list[RunRow]:
    """The runs that are named by the beginning of their ids, or those that `--all` stands for.

    Raises CapbiasError for neither or both, and for an id that no run or more than one begins with.
    """
    if bool(ids) == every:
        got = "ids and --all" if every else "no run"
        raise CapbiasError(got, "ids of runs, as `capbias runs` shows them, or --all", "Name one or the other.")
    if every:
        return list(those)
    found: dict[str, RunRow] = {}
    for name in ids:
        meant = [run for run in workspace.runs() if name and run.run_id.startswith(name)]
        if not meant and not those:
            raise CapbiasError(f"run {name!r}", "a run of this kind; there is none", "`capbias runs` lists every run.")
        if not meant:
            raise unknown_name("run", name, [run.run_id for run in those])
        if len(meant) > 1:
            got = f"run {name!r}, with which {len(meant)} ids begin"
            raise CapbiasError(got, "one run", f"Write more of it: {', '.join(run.run_id for run in meant[:3])}.")
        found[meant[0].run_id] = meant[0]
    return list(found.values())

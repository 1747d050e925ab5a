"""Where captions, labels and references come from: files, or a collection that a workspace holds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from capbias_core.attributes import known_attributes
from capbias_core.cli.flags import INPUTS, WorkspaceFlag, flag
from capbias_core.cli.terminal import say, ticking
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.labels import RULES
from capbias_core.load.parsed import CAPTIONS, LABELS, OBJECTS, REFERENCES
from capbias_core.workspace.custom_attributes import attribute_folder
from capbias_core.workspace.derived import derivable
from capbias_core.workspace.ingest import SAMPLES, SETS, File, expand
from capbias_core.workspace.inputs import (
    Inputs,
    ResolvedInputs,
    caption_files,
    resolve,
    source_file,
    temporary_workspace,
)
from capbias_core.workspace.inputs import workspace_at as opened
from capbias_core.workspace.labels import mapping_overrides
from capbias_core.workspace.store import Workspace, default_folder

FILES = "files"  # the collection of files that are read into a temporary workspace
SETS_FLAG = flag(f"several captions of an image (default: {SAMPLES})", "|".join(SETS), INPUTS)
MAP_FLAG = flag("the value of a label; an empty value drops the label", "ATTRIBUTE:LABEL=VALUE", INPUTS)
SEVERAL_FLAG = flag("label of an image with several rows (default: by the columns)", "|".join(RULES), INPUTS)
ImageIdFlag = Annotated[str, flag("the column of image IDs (default: detected)", "COLUMN", INPUTS)]
CaptionFlag = Annotated[str, flag("the column of captions (default: detected)", "COLUMN", INPUTS)]
ATTRIBUTE_HELP = f"{', '.join(known_attributes())}, an attribute of the workspace, a TOML file, or a column"


@dataclass(frozen=True, kw_only=True)
class InputFlags:
    """The flags of commands that read captions with labels."""

    captions: Annotated[
        list[str] | None, flag("files of captions; with --collection, names (default: all)", "FILE", INPUTS)
    ] = None
    labels: Annotated[str | None, flag("a table of labels, or its name in the collection", "FILE", INPUTS)] = None
    attribute: Annotated[str, flag(ATTRIBUTE_HELP, "NAME", INPUTS)]
    attribute_column: Annotated[str, flag("the column of labels (default: detected)", "COLUMN", INPUTS)] = ""
    map: Annotated[list[str] | None, MAP_FLAG] = None
    several: Annotated[str, SEVERAL_FLAG] = ""
    values: Annotated[list[str] | None, flag("labels of a column to compare (default: all)", "LABEL", INPUTS)] = None
    image_id_column: ImageIdFlag = ""
    caption_column: CaptionFlag = ""
    collection: Annotated[str | None, flag("use a workspace's collection, and names for files", "NAME", INPUTS)] = None
    workspace: WorkspaceFlag = None

    @property
    def columns(self) -> dict[str, str]:
        """The columns that were named, by role."""
        named = {"image_id": self.image_id_column, "caption": self.caption_column}
        return {role: name for role, name in named.items() if name}


@contextmanager
def inputs(
    flags: InputFlags,
    tell=say,
    files: Sequence[str] = (),
    references: str | None = None,
    objects: str | None = None,
    sets: str = SAMPLES,
    **more: Any,
) -> Iterator[tuple[Workspace, ResolvedInputs]]:
    """A workspace and the names of the inputs in it: of a collection, or of files in a workspace that is removed.

    files: whose kinds are detected. more: further fields of Inputs. tell: receives each line for the user.
    """
    _check_form(flags, bool(files), references, objects, sets, more)
    folder = own_folder(flags.workspace, of_files=not flags.collection)
    common = {"attribute": flags.attribute, "own_attributes": folder, **more}
    if flags.collection:
        named = {CAPTIONS: tuple(flags.captions or ()), LABELS: flags.labels, REFERENCES: references, OBJECTS: objects}
        with opened(flags.workspace) as workspace:
            yield workspace, resolve(workspace, flags.collection, Inputs(names=named, **common), tell)
        return
    with temporary_workspace() as workspace, ticking() as tick, tempfile.TemporaryDirectory() as unpacked:
        about = {"columns": flags.columns, "sets": sets, "several": flags.several}
        given = [File(path, **about) for path in expand(files, Path(unpacked), tell)]
        given += caption_files(flags.captions, **about) if flags.captions else []
        for source, kind in ((flags.labels, LABELS), (references, REFERENCES), (objects, OBJECTS)):
            given += [source_file(source, kind, columns=flags.columns, several=flags.several)] if source else []
        read = Inputs(
            files=given,
            attribute_column=flags.attribute_column,
            values=tuple(flags.values or ()),
            overrides=mapping_overrides(flags.map or ()),
            **common,
        )
        yield workspace, resolve(workspace, FILES, read, tell, tick)


def _check_form(
    flags: InputFlags, files: bool, references: str | None, objects: str | None, sets: str, more: dict[str, Any]
) -> None:
    """Raises CapbiasError if flags of files and of a collection are mixed, or neither is given."""
    if flags.collection and files:
        raise CapbiasError("Files cannot be combined with --collection.", "Import the files first, or leave one out.")
    if flags.collection:
        of_files = ("image_id_column", "caption_column", "attribute_column", "values", "map", "several")
        stray = [f"--{name.replace('_', '-')}" for name in of_files if getattr(flags, name)]
        stray += ["--sets"] if sets != SAMPLES else []
        if stray:
            raise CapbiasError(f"{', '.join(stray)} only applies to files.", "Leave it out.")
    elif (
        flags.workspace
        and flags.attribute not in known_attributes(own_folder(flags.workspace)).keys() - known_attributes()
    ):
        raise CapbiasError("--workspace needs --collection, or an attribute of the workspace.", "Leave it out.")
    derived = derivable(flags.attribute, own_folder(flags.workspace, of_files=True))
    if not (flags.collection or files or flags.labels or (derived and references) or flags.captions):
        raise CapbiasError("There is nothing to read.", "Name files, or a collection with --collection.")
    if more.get("weights") and (flags.collection or objects or not more.get("photographs")):
        raise CapbiasError(
            "--weights needs --photographs and files, and --objects replaces it.",
            "Leave one out, or run images detect --collection first.",
        )


def own_folder(workspace: str | None, of_files: bool = False) -> Path | None:
    """The folder of the user's own attributes; None for files without a workspace, named here or by CAPBIAS_HOME."""
    if of_files and not (workspace or os.environ.get("CAPBIAS_HOME")):
        return None
    return attribute_folder(Path(workspace) if workspace else default_folder())


def known_collection(workspace: Workspace, name: str) -> str:
    """The name of a collection. Raises CapbiasError, with the known names, if there is no such collection."""
    if name not in workspace.collections():
        raise unknown_name("collection", name, workspace.collections())
    return name

"""`import`: files read, reported on, and stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import pandas as pd

from capbias_core.cli.inputs import (
    HOW,
    INPUTS,
    SETS_FLAG,
    ColumnFlags,
    Flags,
    WorkspaceFlag,
    command,
    flag,
    opened,
    own_folder,
)
from capbias_core.cli.terminal import DONE, say, show, show_table
from capbias_core.errors import CapbiasError, flag_name
from capbias_core.kinds import CAPTIONS, KINDS, LABELS, SEGMENTS, SOURCES, VECTORS, checked_name, suggested_name
from capbias_core.kinds import PHOTOGRAPHS as IMAGES
from capbias_core.load.photographs import find_pictures, picture_files
from capbias_core.load.read import File, read
from capbias_core.question import files_of, given_of
from capbias_core.workspace.conditions import ORIGINAL, condition_of
from capbias_core.workspace.ingest import DEFAULT_COLLECTION, every_attribute, held_by, replaced_items, store
from capbias_core.workspace.labels import dropped_line, mapping_line
from capbias_core.workspace.photographs import ORIGINALS, keep_images, twins_text
from capbias_core.workspace.store import Workspace
from capbias_core.workspace.vectors import keep_vectors, offer_vectors

TRAINED = {"yes": True, "no": False}
# Flags that apply to one kind.
FOR_KIND = {"trained_on_references": CAPTIONS, "attribute": LABELS, "map": LABELS, "several": LABELS}

app = command(
    "import",
    """\
  capbias import nic.json sat.json labels.csv captions.json --collection coco
  capbias import attributes.csv --attribute gender=sex --map gender:f=Female
  capbias import sat.json --trained-on-references yes
  capbias import instances_val2014.json --kind segments
  capbias import glove.6B.300d.txt --kind vectors
  capbias import val2014/ --collection coco""",
)


SourceFlag = Annotated[list[str] | None, flag("files that hold these, also one that is named already", "FILE", INPUTS)]


@dataclass(frozen=True, kw_only=True)
class ImportFlags(ColumnFlags):
    """What the user says about files."""

    kind: Annotated[str, flag("kind of all files (default: detected)", None, INPUTS, KINDS)] = ""
    captions: SourceFlag = None
    references: SourceFlag = None
    labels: SourceFlag = None
    objects: SourceFlag = None
    name: Annotated[str, flag("its name (default: the file's, without the ending)", "NAME", INPUTS)] = ""
    collection: Annotated[str, flag(f"(default: {DEFAULT_COLLECTION})", "NAME", INPUTS)] = DEFAULT_COLLECTION
    workspace: WorkspaceFlag = None
    sets: Annotated[str, SETS_FLAG] = ""
    dry_run: Annotated[bool, flag("only report", group=INPUTS)] = False
    attribute: Annotated[
        list[str] | None,
        flag(
            "attributes of a table (default: the shipped ones with a column); columns of several annotators give "
            "a table each",
            "NAME[=COLUMN]",
            HOW,
        ),
    ] = None
    trained_on_references: Annotated[
        str | None, flag("whether the captioner was trained on the references", None, HOW, TRAINED)
    ] = None


@app.default
def import_files(
    *files: Annotated[
        str, flag("captions, labels, objects, outlines, word vectors, or a folder of photographs", "FILE", INPUTS)
    ],
    flags: Annotated[ImportFlags, Flags] = ImportFlags(),
) -> int:
    """Read files, report on each, and store them in the workspace."""
    given = {name: getattr(flags, name) for name in SOURCES}
    if not files and not any(given.values()):
        raise CapbiasError("Name a file to read.")
    if flags.kind and (said := [flag_name(name) for name, sources in given.items() if sources]):
        raise CapbiasError(f"--kind says what all files hold, and {' and '.join(said)} what some do.", "Leave one out.")
    named, collection = files_of(files, given), checked_name(flags.collection)
    paths = [Path(file.source) for file in named]
    folders = [path for path in paths if _holds_photographs(path)]
    if not flags.kind and folders:
        flags = replace(flags, kind=IMAGES)
    if flags.kind in (VECTORS, IMAGES):
        _check_flags(flags, {flags.kind})
        if len(paths) > 1:
            raise CapbiasError(f"Import {(folders or paths)[0].name} alone: it holds {flags.kind}.")
    workspace = opened(flags.workspace, make=not flags.dry_run)
    if flags.kind in (VECTORS, IMAGES):
        stored = _import_path(workspace, flags, paths[0], collection)
    else:
        stored = _import(workspace, flags, named, collection)
    show("nothing was stored (--dry-run)" if flags.dry_run else stored)
    return DONE


def _import(workspace: Workspace, flags: ImportFlags, named: Sequence[File], collection: str) -> str:
    """Report on files and, unless --dry-run, store them together; returns what was stored."""
    if flags.name and len(named) > 1:
        raise CapbiasError(f"--name {flags.name} needs one file, not {len(named)}.", "Leave it out.")
    kinds = (flags.kind,) if flags.kind else ()
    name, trained = checked_name(flags.name) if flags.name else "", TRAINED.get(flags.trained_on_references or "")
    files = [File(each.source, kinds or each.kinds, name, trained) for each in named]
    given = replace(given_of({**vars(flags), "attribute": ""}), attribute=tuple(flags.attribute or ()))
    wanted = every_attribute(own_folder(flags.workspace), flags.attribute or ())
    held = held_by(workspace, collection)
    parts = [
        part
        for part in read(files, given, wanted, held).parts
        if not (part.beside and (flags.kind or part.kind == SEGMENTS))
    ]
    _check_flags(flags, {part.kind for part in parts})
    replaced, lines = replaced_items(workspace, collection, parts), []
    items = [] if flags.dry_run else store(workspace, collection, parts)
    known = {kind: set(images) for kind, images in held.images.items()}
    for part in parts:
        known.setdefault(part.kind, set()).update(part.images)
    for part in parts:
        show_table(pd.DataFrame(part.lines(known), columns=["", ""]))
        for text in part.told:
            say(f"warning: {part.title}: {text}")
        for details in part.mapping:
            show(f"{details['attribute']['name']} (column {details['column']}): {mapping_line(details)}")
            show(dropped_line(part.frame, details))
    for item in items:
        lines.append(f"stored: {item.kind} {item.name} in the collection {collection}")
        if item.kind == CAPTIONS and condition_of(item) != (item.name, ORIGINAL):
            captioner, condition = condition_of(item)
            lines.append(f"captions of {captioner}, condition of the photographs: {condition}")
    return "\n".join([*lines, *(f"replaced: {item.kind} {item.name}; its results are deleted" for item in replaced)])


def _holds_photographs(path: Path) -> bool:
    """Whether a folder holds photographs and nothing else; hidden files do not count."""
    pictures = picture_files(path)
    return bool(pictures) and all(file in pictures for file in path.iterdir() if not file.name.startswith("."))


def _check_flags(flags: ImportFlags, kinds: set[str]) -> None:
    """Raises CapbiasError for a flag that applies to none of the kinds that the files hold."""
    for name, kind in FOR_KIND.items():
        if getattr(flags, name) and kind not in kinds:
            held = " and ".join(sorted(kinds))
            raise CapbiasError(f"{flag_name(name)} applies to {kind}, not to {held}.", "Leave it out.")


def _import_path(workspace: Workspace, flags: ImportFlags, path: Path, collection: str) -> str:
    """Report on word vectors or a folder of photographs and, unless --dry-run, store its path."""
    name = checked_name(flags.name or (ORIGINALS if flags.kind == IMAGES else suggested_name(path.stem)))
    if flags.kind == IMAGES:
        show(f"{len(find_pictures(path)):,} photographs")
        twins = "" if flags.dry_run else twins_text(keep_images(workspace, path, collection, name))
        if twins:
            say(f"note: {twins}")
        return f"stored: the path of the photographs {name} in the collection {collection}"
    offered = offer_vectors(workspace, path, collection)
    show_table(pd.DataFrame(offered.lines(), columns=["", ""]))
    if not flags.dry_run:
        keep_vectors(workspace, offered, name, collection)
    return f"stored: the path of the vectors {name} in the collection {collection}"

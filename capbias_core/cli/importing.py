"""`import`: files read, reported on, and stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import pandas as pd

from capbias_core.attributes import known_attributes
from capbias_core.cli.flags import HOW, INPUTS, Flags, WorkspaceFlag, command, flag
from capbias_core.cli.inputs import MAP_FLAG, SETS_FLAG, SEVERAL_FLAG, known_collection, opened, own_folder
from capbias_core.cli.terminal import DONE, say, show
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load import CAPTIONS, LABELS, OBJECTS, REFERENCES, SEGMENTS
from capbias_core.load.photographs import find_pictures, picture_files
from capbias_core.load.places import checked_path
from capbias_core.prepare import with_rule
from capbias_core.present.table import to_text
from capbias_core.types import CONDITIONS, WITHOUT_ORDER
from capbias_core.workspace.conditions import ORIGINAL, condition_of
from capbias_core.workspace.derived import derivable, derive, keep_derived
from capbias_core.workspace.ingest import (
    DEFAULT_COLLECTION,
    SAMPLES,
    File,
    expand,
    held_by,
    preview,
    replaced_items,
    store,
    with_mapping,
)
from capbias_core.workspace.inputs import warn
from capbias_core.workspace.labels import dropped_line, mapping_line, mapping_overrides, unread_columns
from capbias_core.workspace.photographs import KIND as IMAGES
from capbias_core.workspace.photographs import ORIGINALS, keep_images, twins_text
from capbias_core.workspace.store import Workspace, checked_name, suggested_name
from capbias_core.workspace.vectors import VECTORS, keep_vectors, offer_vectors

KINDS = (CAPTIONS, REFERENCES, LABELS, OBJECTS, SEGMENTS, VECTORS, IMAGES)
TRAINED = {"yes": True, "no": False}
# Flags that apply to one kind.
FOR_KIND = {
    "trained_on_references": CAPTIONS,
    "captioner": CAPTIONS,
    "condition": CAPTIONS,
    "attribute": LABELS,
    "map": LABELS,
    "several": LABELS,
    "from_references": LABELS,
}

app = command(
    "import",
    """\
  capbias import nic.json sat.json attributes.csv captions.json --collection coco
  capbias import 20260806_102223_samples_coco2014_cap_val.jsonl
  capbias import attributes.csv --kind attributes --attribute gender=sex --map gender:f=Female
  capbias import sat.json --kind captions --trained-on-references yes
  capbias import instances_val2014.json --kind objects
  capbias import instances_val2014.json --kind segments
  capbias import glove.6B.300d.txt --kind vectors
  capbias import val2014/ --collection coco""",
)


@dataclass(frozen=True, kw_only=True)
class ImportFlags:
    """What the user says about files."""

    kind: Annotated[str, flag("what the file holds (default: found by content)", "|".join(KINDS), INPUTS)] = ""
    name: Annotated[str, flag("its name (default: the file's, without the ending)", "NAME", INPUTS)] = ""
    collection: Annotated[str, flag(f"(default: {DEFAULT_COLLECTION})", "NAME", INPUTS)] = DEFAULT_COLLECTION
    workspace: WorkspaceFlag = None
    image_id_column: Annotated[str, flag("the column of image ids, if not found", "COLUMN", INPUTS)] = ""
    caption_column: Annotated[str, flag("the column of captions, if not found", "COLUMN", INPUTS)] = ""
    sets: Annotated[str, SETS_FLAG] = SAMPLES
    dry_run: Annotated[bool, flag("only report", group=INPUTS)] = False
    attribute: Annotated[
        list[str] | None,
        flag(
            "attributes of a table (default: the shipped ones that have a column); one attribute's columns by several "
            "annotators are a table each",
            "NAME[=COLUMN]",
            HOW,
        ),
    ] = None
    map: Annotated[list[str] | None, MAP_FLAG] = None
    several: Annotated[str, SEVERAL_FLAG] = ""
    from_references: Annotated[
        str | None,
        flag("instead of FILE: derive the labels of --attribute from these stored human captions", "NAME", HOW),
    ] = None
    at_least: Annotated[int | None, flag("with --from-references: minimum captions naming the value", "N", HOW)] = None
    both: Annotated[
        str | None, flag("with --from-references: images with conflicting captions", "|".join(WITHOUT_ORDER), HOW)
    ] = None
    trained_on_references: Annotated[
        str | None, flag("whether the captioner was trained on the references", "|".join(TRAINED), HOW)
    ] = None
    captioner: Annotated[str, flag("who wrote the captions (default: as the name suggests)", "NAME", HOW)] = ""
    condition: Annotated[
        str,
        flag(
            f"what was masked on the photographs, one of: {', '.join(CONDITIONS)} (default: as the name suggests, such "
            "as person in sat_masked_person)",
            "CONDITION",
            HOW,
        ),
    ] = ""


NO_FLAGS = ImportFlags()


@app.default
def import_files(
    *files: Annotated[
        str, flag("captions, labels, objects, outlines, word vectors, or a folder of photographs", "FILE", INPUTS)
    ],
    flags: Annotated[ImportFlags, Flags] = NO_FLAGS,
) -> int:
    """Read files, report on each, and store them in the workspace."""
    for name, known in (("kind", KINDS), ("trained_on_references", tuple(TRAINED)), ("condition", CONDITIONS)):
        if (value := getattr(flags, name)) and value not in known:
            raise unknown_name("--" + name.replace("_", "-"), value, known)
    if flags.from_references:
        return _import_derived(files, flags)
    if flags.at_least is not None or flags.both:
        raise CapbiasError("--at-least and --both need --from-references.", "Add it, or leave them out.")
    if not files:
        raise CapbiasError("Name a file to read, or --from-references.")
    paths, collection = [checked_path(file) for file in files], checked_name(flags.collection)
    folders = [path for path in paths if _holds_photographs(path)]
    if not flags.kind and folders:
        flags = replace(flags, kind=IMAGES)
    if flags.kind in (VECTORS, IMAGES):
        _check_flags(flags, {flags.kind})
        if len(paths) > 1:
            raise CapbiasError(f"Import {(folders or paths)[0].name} by itself: it is one of kind {flags.kind}.")
        with opened(flags.workspace, make=not flags.dry_run) as workspace:
            return (_import_photographs if flags.kind == IMAGES else _import_vectors)(
                workspace, flags, paths[0], collection
            )
    with TemporaryDirectory() as folder, opened(flags.workspace, make=not flags.dry_run) as workspace:
        return _import(workspace, expand(paths, Path(folder), say), flags, collection)


def _import(workspace: Workspace, paths: Sequence[Path], flags: ImportFlags, collection: str) -> int:
    """Report on files and, unless --dry-run, store them together."""
    if flags.name and len(paths) > 1:
        raise CapbiasError(f"--name {flags.name} needs one file, not {len(paths)}.", "Leave it out.")
    named = {"image_id": flags.image_id_column, "caption": flags.caption_column}
    about = File(
        None,
        kind=flags.kind,
        name=checked_name(flags.name) if flags.name else "",
        columns={role: name for role, name in named.items() if name},
        sets=flags.sets,
        several=flags.several,
        trained=TRAINED.get(flags.trained_on_references or ""),
        captioner=flags.captioner,
        condition=flags.condition,
    )
    parts = [part for part in preview([replace(about, source=path) for path in paths], held_by(workspace, collection))]
    for part in parts:
        if part.reading.error:
            raise part.reading.error
    # What a file holds besides the kind that was asked for stays out.
    parts = [
        part for part in parts if part.wanted and not (part.reading.second and (flags.kind or part.kind == SEGMENTS))
    ]
    _check_flags(flags, {part.kind for part in parts})
    folder, overrides = own_folder(flags.workspace), mapping_overrides(flags.map or ())
    parts = [with_mapping(part, folder, flags.attribute or (), overrides) for part in parts]
    for part in parts:
        assert part.report is not None
        first, *others = part.report.lines()
        show(to_text(pd.DataFrame([first, ("Read as", part.kind), *others], columns=["", ""])).strip("\n"))
        warn([replace(part.report, notes=())], say)  # the report shows the notes
        for error in (
            unread_columns(part.frame, part.file.mapping) if part.kind == LABELS and not flags.attribute else ()
        ):
            say(f"note: {error}")
        for details in part.file.mapping:
            show(f"{details['attribute']['name']} (column {details['column']}): {mapping_line(details)}")
            show(dropped_line(part.frame, details))
    if flags.dry_run:
        return _nothing_stored()
    replaced = replaced_items(workspace, collection, parts)
    for item in store(workspace, collection, parts):
        show(f"stored: {item.kind} {item.name} in the collection {collection}")
        if item.kind == CAPTIONS and condition_of(item) != (item.name, ORIGINAL):
            captioner, condition = condition_of(item)
            show(f"captions of {captioner}, condition of the photographs: {condition}")
    for item in replaced:
        show(f"replaced: {item.kind} {item.name}; its results are deleted")
    return DONE


def _holds_photographs(path: Path) -> bool:
    """Whether a folder holds photographs and nothing else; hidden files do not count."""
    pictures = picture_files(path)
    return bool(pictures) and all(own in pictures for own in path.iterdir() if not own.name.startswith("."))


def _check_flags(flags: ImportFlags, kinds: set[str]) -> None:
    """Raises CapbiasError for a flag that applies to none of the kinds that the files hold."""
    for name, kind in FOR_KIND.items():
        if getattr(flags, name) and kind not in kinds:
            raise CapbiasError(
                f"--{name.replace('_', '-')} applies to {kind}, not to {' and '.join(sorted(kinds))}.", "Leave it out."
            )


def _nothing_stored() -> int:
    show("nothing was stored (--dry-run)")
    return DONE


def _import_vectors(workspace: Workspace, flags: ImportFlags, path: Path, collection: str) -> int:
    """How many words of the captions have a vector, then the file's path and those vectors (unless --dry-run)."""
    name = checked_name(flags.name or suggested_name(path.stem))
    offered = offer_vectors(workspace, path, collection)
    show(to_text(pd.DataFrame(offered.lines(), columns=["", ""])).strip("\n"))
    if flags.dry_run:
        return _nothing_stored()
    keep_vectors(workspace, offered, name, collection)
    show(f"stored: the path of the vectors {name} in the collection {collection}")
    return DONE


def _import_photographs(workspace: Workspace, flags: ImportFlags, folder: Path, collection: str) -> int:
    """How many photographs a folder holds, then its path (unless --dry-run)."""
    show(f"{len(find_pictures(folder)):,} photographs")
    if flags.dry_run:
        return _nothing_stored()
    name = checked_name(flags.name or ORIGINALS)
    if twins := twins_text(keep_images(workspace, folder, collection, name)):
        say(f"note: {twins}")
    show(f"stored: the path of the photographs {name} in the collection {collection}")
    return DONE


def _import_derived(files: Sequence[str], flags: ImportFlags) -> int:
    """Labels from the words of stored human captions: their counts, then the table (unless --dry-run)."""
    stray = ["FILE"] if files else []
    stray += [
        "--" + name.replace("_", "-") for name in ("map", "image_id_column", "caption_column") if getattr(flags, name)
    ]
    if stray:
        raise CapbiasError(f"{', '.join(stray)} cannot be combined with --from-references.", "Leave one out.")
    names, folder = flags.attribute or [], own_folder(flags.workspace)
    rule = derivable(names[0], folder) if len(names) == 1 else None
    if rule is None:
        known = ", ".join(name for name, own in known_attributes(folder).items() if own.derived)
        raise CapbiasError(
            "--from-references needs one attribute with a rule to derive it.",
            f"Name it with --attribute: {known}, or a TOML file with [derived].",
        )
    with opened(flags.workspace) as workspace:
        collection = known_collection(workspace, flags.collection)
        if not workspace.items(REFERENCES, collection):
            raise CapbiasError(f"The collection {collection!r} has no human captions.", "Import them first.")
        references = workspace.item(REFERENCES, flags.from_references or "", collection)
        derived = derive(workspace, references, with_rule(rule, flags.at_least, flags.both))
        show(derived.line(references.name))
        if flags.dry_run:
            return _nothing_stored()
        item = keep_derived(workspace, derived, flags.name)
    show(f"stored: {LABELS} {item.name} in the collection {collection}")
    return DONE

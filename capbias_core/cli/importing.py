"""`import`: files read, reported on, and kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import pandas as pd

from capbias_core.attributes import known_attributes
from capbias_core.cli.flags import HOW, INPUTS, Flags, WorkspaceFlag, command, flag
from capbias_core.cli.inputs import SETS_FLAG, known_collection, named_columns, opened, own_folder, unpacked_files
from capbias_core.cli.terminal import DONE, say, show
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.kinds import HUMAN, likely
from capbias_core.load.photographs import find_pictures, picture_files
from capbias_core.prepare import with_rule
from capbias_core.present.table import to_text
from capbias_core.types import CONDITIONS, WITHOUT_ORDER, Attribute
from capbias_core.workspace import ingest
from capbias_core.workspace.conditions import ORIGINAL, condition_of
from capbias_core.workspace.inputs import checked_path, columns_of_files, derivable, warn
from capbias_core.workspace.labels import (
    dropped_line,
    mapping_line,
    mapping_overrides,
    resolve_attributes,
    unread_columns,
)
from capbias_core.workspace.offers import offers_of
from capbias_core.workspace.photographs import KIND as IMAGES
from capbias_core.workspace.photographs import ORIGINALS
from capbias_core.workspace.store import Item, Workspace, checked_name, suggested_name
from capbias_core.workspace.vectors import VECTORS, keep_vectors, offer_vectors

KINDS = ("captions", "references", "attributes", "objects", ingest.SEGMENTS, VECTORS, IMAGES)
OF_KIND = {
    "trained_on_references": "captions",
    "captioner": "captions",
    "condition": "captions",
    "attribute": "attributes",
    "map": "attributes",
    "from_references": "attributes",
}
TRAINED = {"yes": True, "no": False}

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
    """What is said of a file."""

    kind: Annotated[str, flag("what the file holds (default: found by content)", "|".join(KINDS), INPUTS)] = ""
    name: Annotated[str, flag("its name (default: the file's, without the ending)", "NAME", INPUTS)] = ""
    collection: Annotated[str, flag(f"(default: {ingest.DEFAULT_COLLECTION})", "NAME", INPUTS)] = (
        ingest.DEFAULT_COLLECTION
    )
    workspace: WorkspaceFlag = None
    image_id_column: Annotated[str, flag("the column of image ids, if not found", "COLUMN", INPUTS)] = ""
    caption_column: Annotated[str, flag("the column of captions, if not found", "COLUMN", INPUTS)] = ""
    sets: Annotated[str, SETS_FLAG] = ingest.SAMPLES
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
    map: Annotated[
        list[str] | None, flag("what a label means; an empty value drops it", "ATTRIBUTE:LABEL=VALUE", HOW)
    ] = None
    from_references: Annotated[
        str | None,
        flag("instead of FILE: derive the labels of --attribute from these kept human captions", "NAME", HOW),
    ] = None
    at_least: Annotated[int | None, flag("with --from-references: captions that have to name the value", "N", HOW)] = (
        None
    )
    both: Annotated[
        str | None, flag("with --from-references: of an image that is named both ways", "|".join(WITHOUT_ORDER), HOW)
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


NOTHING_SAID = ImportFlags()


@app.default
def import_files(
    *files: Annotated[
        str, flag("captions, labels, objects, outlines, word vectors, or a folder of photographs", "FILE", INPUTS)
    ],
    flags: Annotated[ImportFlags, Flags] = NOTHING_SAID,
) -> int:
    """Read files, report on each, and keep them in the workspace."""
    _check(flags)
    if flags.from_references:
        return _import_derived(files, flags)
    if not files:
        raise CapbiasError("no FILE", "a file to read, or --from-references", "Name one.")
    given, collection = [checked_path(file) for file in files], checked_name(flags.collection)
    if not flags.kind and (folders := [path for path in given if _holds_photographs(path)]):
        if len(given) > 1:
            raise CapbiasError(
                f"{folders[0].name}, a folder of photographs, among other files",
                "one at a time",
                "Import it by itself.",
            )
        flags = replace(flags, kind=IMAGES)
        _check(flags)
    if flags.kind in (VECTORS, IMAGES):
        if len(given) > 1:
            got = f"--kind {flags.kind} with {len(given)} files"
            raise CapbiasError(got, "one file or folder of that kind at a time", "Import the others by themselves.")
        if flags.kind == IMAGES:
            return _import_photographs(flags, given[0], collection)
        return _import_vectors(flags, given[0], checked_name(flags.name or suggested_name(given[0].stem)), collection)
    with TemporaryDirectory() as folder:
        paths = unpacked_files(files, Path(folder))
        if flags.name and len(paths) > 1:
            got = f"--name {flags.name} for {len(paths)} files"
            raise CapbiasError(got, "--name with one file", "Leave it out: each is named after its file.")
        columns = columns_of_files(named_columns(flags), paths)
        several = len(paths) > 1 and not flags.kind
        likely_kinds = {path: likely(path, columns[path]).kind for path in paths} if several else {}
        if likely_kinds:
            _check_of_kind(flags, list(dict.fromkeys(likely_kinds.values())))
            _check_names(likely_kinds)
            paths.sort(key=lambda path: likely_kinds[path] != HUMAN)  # they may be needed to join captions to images
        for own in paths:
            if len(paths) > 1:
                show(f"{own.name}:")
            name = checked_name(flags.name or suggested_name(own.stem))
            _import_file(flags, own, name, collection, columns[own], alone=not likely_kinds)
    return _nothing_kept() if flags.dry_run else DONE


def _holds_photographs(path: Path) -> bool:
    """Whether a folder holds photographs and nothing else; hidden files do not count."""
    pictures = picture_files(path)
    return bool(pictures) and all(own in pictures for own in path.iterdir() if not own.name.startswith("."))


def _check_names(kinds: Mapping[Path, str]) -> None:
    """Raises CapbiasError for two files of one kind that would have one name, so that the last would be all there is.

    kinds: file -> what it holds.
    """
    counts = Counter((kind, suggested_name(path.stem)) for path, kind in kinds.items())
    if twice := [name for (_, name), count in counts.items() if count > 1]:
        raise CapbiasError(
            f"several files that would be called {', '.join(twice)}",
            "a name each",
            "Import them one by one, each with --name.",
        )


def _import_file(
    flags: ImportFlags, path: Path, name: str, collection: str, columns: Mapping[str, str], alone: bool
) -> None:
    """Report on a file and, unless it is only to be reported on, keep it.

    columns: those that were named and that it has, by role. alone: every flag is said of it.
    """
    with opened(flags.workspace, make=not flags.dry_run) as workspace:
        offered = _offered(workspace, path, flags.kind, collection, columns)
        if alone:
            _check_of_kind(flags, [own.kind for own in offered])
        read = [_read_as(own, name, flags) for own in offered]
        for own in read if not flags.dry_run else ():
            before = {item.name: item.hash for item in workspace.items(own.kind, collection)}
            kept = _keep_read(workspace, own, path, collection, flags)
            replaced = [item.name for item in kept if before.get(item.name, item.hash) != item.hash]
            show(f"kept: {own.kind} {', '.join(item.name for item in kept)} in the collection {collection}")
            if replaced:
                show(f"in place of other {own.kind} called {', '.join(replaced)}, whose results are gone")


@dataclass(frozen=True)
class _Read:
    """A file read as a kind. sets: what is kept, by name. attributes: of a table of labels, a mapping per column."""

    kind: str
    sets: dict[str, ingest.ImportPreview]
    attributes: list[dict]


def _offered(
    workspace: Workspace, path: Path, kind: str, collection: str, columns: Mapping[str, str]
) -> list[ingest.ImportPreview]:
    """A file read as a kind; without one as what it holds by its content, which may be captions of a model and human
    ones: these are kept first."""
    if kind:
        return [ingest.preview_import(workspace, path, kind, collection, dict(columns))]
    offers = offers_of(workspace, path, collection, columns=dict(columns))
    for own in offers:
        if own.error:
            raise own.error
    return [own.preview for own in reversed(offers) if own.preview]


def _read_as(offered: ingest.ImportPreview, name: str, flags: ImportFlags) -> _Read:
    """Report on a file that was read as a kind."""
    kind = offered.kind
    sets = ingest.caption_sets(offered, name, flags.sets if kind == "captions" else ingest.SAMPLES)
    file, *others = offered.report.lines()
    show(to_text(pd.DataFrame([file, ("Read as", kind), *others], columns=["", ""])).strip("\n"))
    warn([replace(offered.report, notes=())], say)  # the report shows the notes
    attributes: list[dict] = []
    if kind == "attributes":
        overrides, folder = mapping_overrides(flags.map or ()), own_folder(flags.workspace)
        attributes = resolve_attributes(offered.frame, flags.attribute or (), overrides, folder)
        for error in () if flags.attribute else unread_columns(offered.frame, attributes):
            say(f"note: {error}")
    for details in attributes:
        show(f"{details['attribute']['name']} (column {details['column']}): {mapping_line(details)}")
        show(dropped_line(offered.frame, details))
    return _Read(kind, sets, attributes)


def _keep_read(workspace: Workspace, read: _Read, path: Path, collection: str, flags: ImportFlags) -> list[Item]:
    """What is kept of a file that was read."""
    kept: list[Item] = []
    for name, offered in read.sets.items():
        if read.kind == "attributes":
            kept += ingest.keep_columns(workspace, offered.frame, name, collection, path.name, read.attributes)
        elif read.kind == "objects":
            kept.append(ingest.keep_objects(workspace, offered, name, collection, path.name))
        elif read.kind == ingest.SEGMENTS:
            kept.append(ingest.keep_segments(workspace, offered, name, collection, path.name))
        else:
            trained = TRAINED.get(flags.trained_on_references or "")
            written = {"captioner": flags.captioner, "condition": flags.condition}
            kept.append(ingest.keep_captions(workspace, offered, name, collection, path.name, trained, **written))
            _say_condition(kept[-1])
    return kept


def _check(flags: ImportFlags) -> None:
    if not flags.from_references and (flags.at_least is not None or flags.both):
        raise CapbiasError("--at-least or --both without --from-references", "all of them", "Leave them out.")
    for name, known in (("kind", KINDS), ("trained_on_references", tuple(TRAINED)), ("condition", CONDITIONS)):
        value = getattr(flags, name)
        if value and value not in known:
            raise unknown_name("--" + name.replace("_", "-"), value, known)
    if flags.kind or flags.from_references:
        _check_of_kind(flags, [flags.kind or "attributes"])


def _check_of_kind(flags: ImportFlags, kinds: Sequence[str]) -> None:
    """Raises CapbiasError for a flag that is said of none of the kinds that a file holds."""
    for name, kind in OF_KIND.items():
        if getattr(flags, name) and kind not in kinds:
            shown = "--" + name.replace("_", "-")
            raise CapbiasError(f"{shown} with {' and '.join(kinds)}", f"{shown} with {kind}", "Leave it out.")


def _nothing_kept() -> int:
    show("nothing was kept (--dry-run)")
    return DONE


def _say_condition(item: Item) -> None:
    captioner, condition = condition_of(item)
    if item.kind == "captions" and (captioner, condition) != (item.name, ORIGINAL):
        show(f"captions of {captioner} on photographs of the condition: {condition}")


def _import_vectors(flags: ImportFlags, path: Path, name: str, collection: str) -> int:
    """How many words of the captions have a vector, then the file's place and those vectors (unless --dry-run)."""
    with opened(flags.workspace, make=not flags.dry_run) as workspace:
        offered = offer_vectors(workspace, path, collection)
        show(to_text(pd.DataFrame(offered.lines(), columns=["", ""])).strip("\n"))
        if flags.dry_run:
            return _nothing_kept()
        keep_vectors(workspace, offered, name, collection)
    show(f"kept: the place of the vectors {name} in the collection {collection}")
    return DONE


def _import_photographs(flags: ImportFlags, folder: Path, collection: str) -> int:
    """How many photographs a folder holds, then its place (unless --dry-run)."""
    with opened(flags.workspace, make=not flags.dry_run) as workspace:
        show(f"{len(find_pictures(folder)):,} photographs")
        if flags.dry_run:
            return _nothing_kept()
        name = checked_name(flags.name or ORIGINALS)
        twins = ingest.twins_text(ingest.keep_images(workspace, folder, collection, name))
        if twins:
            say(f"note: {twins}")
    show(f"kept: the place of the photographs {name} in the collection {collection}")
    return DONE


def _import_derived(files: Sequence[str], flags: ImportFlags) -> int:
    """Labels from the words of kept human captions: their counts, then the table (unless --dry-run)."""
    attribute = _asked_rule(files, flags)
    with opened(flags.workspace) as workspace:
        collection = known_collection(workspace, flags.collection)
        references = ingest.references_in(workspace, collection, flags.from_references or "")
        derived = ingest.derive(workspace, references, attribute)
        show(derived.line(references.name))
        if flags.dry_run:
            return _nothing_kept()
        item = ingest.keep_derived(workspace, derived, flags.name)
    show(f"kept: attributes {item.name} in the collection {collection}")
    return DONE


def _asked_rule(files: Sequence[str], flags: ImportFlags) -> Attribute:
    """The one attribute whose labels are to be derived. Raises CapbiasError for options of files."""
    stray = ["FILE"] if files else []
    stray += [
        "--" + name.replace("_", "-") for name in ("map", "image_id_column", "caption_column") if getattr(flags, name)
    ]
    if stray:
        raise CapbiasError(f"{', '.join(stray)} with --from-references", "one or the other", "Leave one out.")
    asked, folder = flags.attribute or [], own_folder(flags.workspace)
    rule = derivable(asked[0], folder) if len(asked) == 1 else None
    if rule is None:
        known = ", ".join(name for name, own in known_attributes(folder).items() if own.derived)
        raise CapbiasError(
            f"--from-references with --attribute {' '.join(asked) or 'left out'}",
            f"one attribute with a rule for it: {known}, or a TOML file with [derived]",
            "Name it with --attribute.",
        )
    return with_rule(rule, flags.at_least, flags.both)

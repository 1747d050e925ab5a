"""`import`: a file read, reported on, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from capbias_core.attributes import known_attributes
from capbias_core.cli.inputs import known_collection, opened, own_folder
from capbias_core.cli.labels import derivable, dropped_line, holds, mapped
from capbias_core.cli.terminal import DONE, say, show, warn
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.photographs import find_pictures
from capbias_core.present.table import to_text
from capbias_core.types import Attribute
from capbias_core.workspace import ingest
from capbias_core.workspace.conditions import ORIGINAL, condition_of
from capbias_core.workspace.photographs import KIND as IMAGES
from capbias_core.workspace.photographs import ORIGINALS
from capbias_core.workspace.store import Item, checked_name, suggested_name
from capbias_core.workspace.vectors import VECTORS, keep_vectors, offer_vectors

OF_KIND = {
    "trained_on_references": "captions",
    "captioner": "captions",
    "condition": "captions",
    "attribute": "attributes",
    "map": "attributes",
    "from_references": "attributes",
}


def import_file(args) -> int:
    """Report on a file, then keep it (unless --dry-run)."""
    _check_kind(args)
    if args.from_references:
        return _import_derived(args)
    if not args.file:
        raise CapbiasError("no FILE", "a file to read, or --from-references", "Name one.")
    path, overrides = Path(args.file), _overrides(args.map or ())
    name, collection = checked_name(args.name or suggested_name(path.stem)), checked_name(args.collection)
    if args.kind == VECTORS:
        return _import_vectors(args, path, name, collection)
    if args.kind == IMAGES:
        return _import_photographs(args, path, collection)
    with opened(args, make=not args.dry_run) as workspace:
        columns = {"image_id": args.image_id_column, "caption": args.caption_column}
        offered = ingest.preview_import(workspace, path, args.kind, collection, columns)
        show(to_text(pd.DataFrame(offered.report.lines(), columns=["", ""])).strip("\n"))
        warn([offered.report])
        attributes = _mapped_attributes(offered.frame, args, overrides) if args.kind == "attributes" else {}
        for attribute, details in attributes.items():
            show(f"{attribute} (column {details['column']}): {_mapping_line(details)}")
            show(dropped_line(offered.frame, details))
        if args.dry_run:
            print("nothing was kept (--dry-run)")
        elif args.kind == "attributes":
            ingest.keep_attributes(workspace, offered.frame, name, collection, path.name, attributes)
        elif args.kind == "objects":
            ingest.keep_objects(workspace, offered, name, collection, path.name)
        elif args.kind == ingest.SEGMENTS:
            ingest.keep_segments(workspace, offered, name, collection, path.name)
        else:
            trained = {"yes": True, "no": False}.get(args.trained_on_references)
            own = {"captioner": args.captioner or "", "condition": args.condition or ""}
            item = ingest.keep_captions(workspace, offered, name, collection, path.name, trained, **own)
            _say_condition(item)
    if not args.dry_run:
        print(f"kept: {args.kind} {name} in the collection {collection}")
    return DONE


def _say_condition(item: Item) -> None:
    captioner, condition = condition_of(item)
    if item.kind == "captions" and (captioner, condition) != (item.name, ORIGINAL):
        show(f"captions of {captioner} on photographs of the condition: {condition}")


def _import_vectors(args, path: Path, name: str, collection: str) -> int:
    """How many words of the captions have a vector, then the file's place and those vectors (unless --dry-run)."""
    with opened(args, make=not args.dry_run) as workspace:
        offered = offer_vectors(workspace, path, collection)
        show(to_text(pd.DataFrame(offered.lines(), columns=["", ""])).strip("\n"))
        if args.dry_run:
            print("nothing was kept (--dry-run)")
            return DONE
        keep_vectors(workspace, offered, name, collection)
    print(f"kept: the place of the vectors {name} in the collection {collection}")
    return DONE


def _import_photographs(args, folder: Path, collection: str) -> int:
    """How many photographs a folder holds, then its place (unless --dry-run)."""
    with opened(args, make=not args.dry_run) as workspace:
        print(f"{len(find_pictures(folder)):,} photographs")
        if args.dry_run:
            print("nothing was kept (--dry-run)")
            return DONE
        name = checked_name(args.name or ORIGINALS)
        twins = ingest.twins_text(ingest.keep_images(workspace, folder, collection, name))
        if twins:
            say(f"note: {twins}")
    print(f"kept: the place of the photographs {name} in the collection {collection}")
    return DONE


def _import_derived(args) -> int:
    """Labels from the words of kept human captions: their counts, then the table (unless --dry-run)."""
    attribute = _asked_rule(args)
    with opened(args) as workspace:
        collection = known_collection(workspace, args.collection)
        references = ingest.references_in(workspace, collection, args.from_references)
        derived = ingest.derive(workspace, references, attribute)
        show(derived.line(references.name))
        if args.dry_run:
            print("nothing was kept (--dry-run)")
            return DONE
        item = ingest.keep_derived(workspace, derived, args.name or "")
    print(f"kept: attributes {item.name} in the collection {collection}")
    return DONE


def _asked_rule(args) -> Attribute:
    """The one attribute whose labels are to be derived. Raises CapbiasError for options of files."""
    stray = [name for name in ("file", "map", "image_id_column", "caption_column") if getattr(args, name)]
    if stray:
        options = ", ".join("FILE" if name == "file" else "--" + name.replace("_", "-") for name in stray)
        raise CapbiasError(f"{options} with --from-references", "one or the other", "Leave one out.")
    asked = args.attribute or []
    rule = derivable(asked[0], own_folder(args)) if len(asked) == 1 else None
    if rule is None:
        known = ", ".join(name for name, own in known_attributes(own_folder(args)).items() if own.derived)
        raise CapbiasError(
            f"--from-references with --attribute {' '.join(asked) or 'left out'}",
            f"one attribute with a rule for it: {known}, or a TOML file with [derived]",
            "Name it with --attribute.",
        )
    return rule


def _check_kind(args) -> None:
    for option, kind in OF_KIND.items():
        if getattr(args, option) and kind != args.kind:
            name = "--" + option.replace("_", "-")
            raise CapbiasError(f"{name} with {args.kind}", f"{name} with {kind}", "Leave it out.")


def _mapped_attributes(frame: pd.DataFrame, args, overrides: dict) -> dict[str, dict]:
    """The attributes asked for (NAME or NAME=COLUMN) with their mappings; else the shipped ones with a column."""
    pairs = [item.partition("=")[::2] for item in args.attribute or _columns_present(frame)]
    own = {"overrides": overrides, "folder": own_folder(args)}
    details = dict(mapped(frame, name, column, **own) for name, column in pairs)
    for name in set(overrides) - set(details):
        raise unknown_name("attribute in --map", name, details)
    return details


def _columns_present(frame: pd.DataFrame) -> list[str]:
    """Shipped attributes for which the table has a column."""
    lower = {column.lower() for column in frame.columns}
    found = [attribute for attribute in known_attributes().values() if lower & {*attribute.columns, attribute.name}]
    names = [attribute.name for attribute in found if holds(frame, attribute)] or [item.name for item in found]
    if not names:
        raise CapbiasError(
            f"the columns {', '.join(frame.columns)}",
            f"one for a shipped attribute ({', '.join(known_attributes())})",
            "Name an attribute with --attribute NAME or --attribute NAME=COLUMN.",
        )
    return names


def _overrides(pairs: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """`gender:f=Female` to {'gender': {'f': 'Female'}}; `gender:f=` drops the label."""
    found: dict[str, dict[str, str | None]] = {}
    for pair in pairs:
        attribute, _, rest = pair.partition(":")
        raw, equals, value = rest.rpartition("=")
        if not (attribute and equals):
            raise CapbiasError(f"--map {pair}", "the form ATTRIBUTE:LABEL=VALUE", "For example: --map gender:f=Female")
        found.setdefault(attribute, {})[raw] = value or None
    return found


def _mapping_line(details: dict) -> str:
    """`Female from F, female; Male from M`"""
    by_value: dict[str, list[str]] = {}
    for raw, value in sorted(details["mapping"].items()):
        if value is not None:
            by_value.setdefault(value, []).append(raw or "empty")
    return "; ".join(f"{value} from {', '.join(raw)}" for value, raw in by_value.items())

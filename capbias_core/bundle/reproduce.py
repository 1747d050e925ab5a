"""The numbers of a bundle made again in an empty workspace, and compared one by one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from pyarrow.parquet import read_metadata

from capbias_core.aggregate.variants import ORIGINS
from capbias_core.bundle.manifest import FORMAT, MANIFEST, PLAN, ROWS, manifest_fault, options_fault, table_fault
from capbias_core.bundle.write import versions
from capbias_core.errors import CapbiasError
from capbias_core.load.archives import unpacked_tree
from capbias_core.load.parsed import CAPTIONS, LABELS, MOST_COLUMNS, MOST_ROWS, OBJECTS, REFERENCES
from capbias_core.prepare import derive_labels
from capbias_core.runs.plan import plan
from capbias_core.runs.plan_file import PlanFile, parse_plan
from capbias_core.types import RESULT_COLUMNS, Derivation
from capbias_core.workspace.ingest import File, Held, preview
from capbias_core.workspace.inputs import Tell
from capbias_core.workspace.labels import DERIVED
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.spec import RunSpec, attribute_from
from capbias_core.workspace.store import RunRow, Workspace, bytes_frame, content_hash

# What tells rows apart and names them, and what is compared of each.
KEYS = ("model", "metric", "direction", "encoder", "attribute", *ORIGINS)
NUMBERS = ("value", "spread", "ci_low", "ci_high")
WORDS = ("n", "seeds", "training", "interval", "verdict")
# How far a number may be off on another machine, whose processor sums in another order.
TOLERANCE = 1e-6
MOST_CANDIDATES = 5_000
MOST_BYTES = 1_000_000_000  # of a table in a bundle, by its own account

# Kinds of items that come from files; the others are made.
FROM_FILES = (CAPTIONS, REFERENCES, LABELS, OBJECTS)

Compute = Callable[[Workspace, Sequence[RunSpec], str], list[RunRow]]


@dataclass(frozen=True)
class Bundle:
    """A bundle that was read. items: as of the manifest. frames: of those that it holds, by content."""

    manifest: dict[str, Any]
    plan: PlanFile
    rows: pd.DataFrame
    items: list[dict[str, Any]]
    frames: dict[str, pd.DataFrame]


@dataclass(frozen=True)
class Comparison:
    """rows: of the bundle. same: equal to the last digit. near: not the same, and within the tolerance. differ: a row
    for each number that is off or was not made: what it is, of the bundle, here. largest: absolute difference of any
    number that was made. reasons: why runs could not be made. versions: package -> (there, here) where they differ."""

    rows: int
    same: int
    near: int
    differ: pd.DataFrame
    largest: float
    reasons: tuple[str, ...]
    versions: dict[str, tuple[str, str]]


def read_bundle(path: Path, folder: Path) -> Bundle:
    """A bundle, all of which was checked. folder: an empty one for what is in it.

    It is read in a process of its own, with limits. Raises CapbiasError for a file that is no bundle, or was changed.
    """
    return within_limits(path.name, _read_bundle, path, folder)


def _read_bundle(path: Path, folder: Path) -> Bundle:
    files = unpacked_tree(path, folder)
    if missing := [name for name in (MANIFEST, PLAN, ROWS) if name not in files]:
        raise _no_bundle(path, f"it lacks {', '.join(missing)}")
    found = {}
    for name in (MANIFEST, ROWS):
        try:
            found[name] = json.loads(files[name].read_bytes())
        except (ValueError, RecursionError) as error:
            raise _no_bundle(path, f"{name} cannot be read ({error})") from None
    manifest, rows = found[MANIFEST], found[ROWS]
    if fault := manifest_fault(manifest, rows):
        form = manifest.get("format") if isinstance(manifest, dict) else None
        other = f" The bundle has format {form}, and this capbias reads {FORMAT}." if form != FORMAT else ""
        raise _no_bundle(path, f"{fault} is missing or wrong", other)
    plan_file = parse_plan(files[PLAN].read_text(encoding="utf-8", errors="replace"), PLAN)
    if fault := options_fault(plan_file.requests):
        raise _no_bundle(path, f"{fault} in {PLAN} is wrong")
    if plan_file.collection != manifest["collection"]:
        raise _no_bundle(path, f"{PLAN} names another collection than {MANIFEST}")
    frames = {own["content"]: _table(path, own, files.get(own["file"])) for own in manifest["items"] if own["file"]}
    return Bundle(manifest, plan_file, pd.DataFrame(rows, columns=list(RESULT_COLUMNS)), manifest["items"], frames)


def _no_bundle(path: Path, why: str, more: str = "") -> CapbiasError:
    return CapbiasError(f"{path.name} is not a bundle that capbias wrote: {why}.", f"Choose another file.{more}")


def _table(path: Path, item: dict[str, Any], file: Path | None) -> pd.DataFrame:
    """A table of a bundle, whose size is known before it is unpacked."""
    name = item["file"]
    if file is None:
        raise _no_bundle(path, f"it lacks {name}")
    try:
        about = read_metadata(file)
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        size = sum(group.total_byte_size for group in groups)
        if about.num_rows > MOST_ROWS or about.num_columns > MOST_COLUMNS or size > MOST_BYTES:
            raise _no_bundle(
                path, f"{name} has {about.num_rows:,} rows, {about.num_columns:,} columns and {size:,} bytes"
            )
        frame = bytes_frame(file.read_bytes()).reset_index(drop=True)
    except (MemoryError, CapbiasError):
        raise
    except Exception as error:  # whatever a damaged Parquet file makes pyarrow say
        raise _no_bundle(path, f"{name} cannot be read ({type(error).__name__})") from None
    if not len(frame) == about.num_rows == item["rows"]:
        raise _no_bundle(path, f"{name} has {len(frame):,} rows instead of {item['rows']:,}")
    if content_hash(frame) != item["content"]:
        raise _no_bundle(path, f"the content of {name} was changed")
    return frame


def find_data(bundle: Bundle, places: Iterable[Path], tell: Tell) -> dict[str, pd.DataFrame]:
    """The tables that a bundle leaves out, by content: from files, or all files in folders, whatever their names."""
    wanted = {
        item["content"]: item for item in bundle.items if item["content"] and item["content"] not in bundle.frames
    }
    found: dict[str, pd.DataFrame] = {}
    candidates = _candidates(places)
    # The second time, image IDs are joined to those of the tables that were found, as they were at the import.
    for join in (False, True):
        held = Held(images=_images(bundle, found)) if join else Held()
        for path in candidates:
            open_ = [own for own in wanted.values() if not (join and DERIVED in own["details"])]
            for kind in dict.fromkeys(own["kind"] for own in open_ if own["kind"] in FROM_FILES):
                frame = preview([File(path, kind)], held)[0].frame
                digest = content_hash(frame) if frame is not None else ""
                if frame is not None and digest in wanted:
                    item = wanted.pop(digest)
                    tell(f"{path.name}: {item['kind']} {item['name']}")
                    found[digest] = frame
    for item in [own for own in wanted.values() if DERIVED in own["details"]]:
        frame = _derived(item, bundle, found)
        if frame is not None and content_hash(frame) == item["content"]:
            tell(f"{item['kind']} {item['name']}: derived from the human captions")
            found[item["content"]] = frame
    return found


def _derived(item: dict[str, Any], bundle: Bundle, found: dict[str, pd.DataFrame]) -> pd.DataFrame | None:
    """Labels that were made from human captions, made from them again; None where these are missing."""
    made = item["details"][DERIVED]
    human = (own for own in bundle.items if own["kind"] == "references")
    content = next((own["content"] for own in human if own["hash"] == made["references"]), "")
    frame = (bundle.frames | found).get(content)
    (entry,) = item["details"]["attributes"].values()
    rule = Derivation(made["precedence"], made.get("at_least", 1), made.get("both", "precedence"))
    attribute = replace(attribute_from(entry["attribute"]), derived=rule)
    return None if frame is None else derive_labels(frame, attribute)


def _candidates(places: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for place in places:
        if not place.exists():
            raise CapbiasError(f"{place} does not exist.", "Check the path.")
        found += sorted(own for own in place.rglob("*") if own.is_file()) if place.is_dir() else [place]
    if len(found) > MOST_CANDIDATES:
        raise CapbiasError(
            f"There are {len(found):,} files to look through, more than {MOST_CANDIDATES:,}.",
            "Name the files, or a smaller folder.",
        )
    return found


def _images(bundle: Bundle, found: dict[str, pd.DataFrame]) -> dict[str, frozenset[str]]:
    """The image IDs of each kind of table that is at hand."""
    images: dict[str, frozenset[str]] = {}
    for item in bundle.items:
        frame = (bundle.frames | found).get(item["content"])
        if frame is not None and "image_id" in frame:
            images[item["kind"]] = images.get(item["kind"], frozenset()) | frozenset(frame["image_id"])
    return images


def reproduce(
    workspace: Workspace,
    bundle: Bundle,
    frames: dict[str, pd.DataFrame],
    compute: Compute,
    tolerance: float = TOLERANCE,
) -> Comparison:
    """Run the plan of a bundle in a workspace that is empty, and compare every number.

    frames: tables that the bundle leaves out, by content. compute: runs what is planned. tolerance: by how much a
    number may be off. Raises CapbiasError for data that are missing.
    """
    if workspace.items() or workspace.runs():
        raise CapbiasError(f"The workspace {workspace.folder} is not empty.", "Name another folder.")
    _keep(workspace, bundle, bundle.frames | frames)
    specs: dict[str, RunSpec] = {}
    reasons: list[str] = []
    for request in bundle.plan.requests:
        try:
            specs |= {spec.run_id: spec for spec in plan(workspace, request)}
        except CapbiasError as error:
            reasons.append(f"{', '.join(request.metrics)}: {error}")
    wanted = set(bundle.rows["run_id"])
    # Runs with another id are those of a changed version, model or input; they are compared all the same.
    all_known = bool(wanted) and wanted <= specs.keys()
    chosen = [spec for run_id, spec in specs.items() if not all_known or run_id in wanted]
    rows = compute(workspace, chosen, bundle.manifest["collection"])
    reasons += [f"{row.spec.measure} of {row.spec.model}: {row.message}" for row in rows if row.status != "finished"]
    made = workspace.results([spec.run_id for spec in chosen])
    there, here = bundle.manifest.get("versions", {}), versions(networks=True)
    changed = {name: (own, here.get(name, "none")) for name, own in there.items() if own != here.get(name)}
    return compared(bundle.rows, made, tolerance, tuple(dict.fromkeys(reasons)), changed)


def _keep(workspace: Workspace, bundle: Bundle, frames: dict[str, pd.DataFrame]) -> None:
    missing = [item for item in bundle.items if item["content"] and item["content"] not in frames]
    if missing:
        named = ", ".join(f"{item['kind']} {item['name']} (content {item['content']})" for item in missing)
        hidden = sorted({item["kind"] for item in missing} - set(FROM_FILES))
        hint = f"Ask for a bundle with its data: no file is {' or '.join(hidden)}." if hidden else ""
        raise CapbiasError(
            f"The bundle lacks {named}.", hint or "Name the unchanged files that these were read from, with --data."
        )
    for item in bundle.items:
        if item["content"] and (column := table_fault(item, frames[item["content"]])):
            raise CapbiasError(
                f"The column {column[:100]!r} of the {item['kind']} {item['name']} is missing or wrong.",
                "capbias did not write this bundle.",
            )
    for item in bundle.items:
        if item["content"]:
            digest = item["hash"] if item["hash"] != item["content"] else ""
            collection = bundle.manifest["collection"]
            workspace.keep(
                item["kind"], item["name"], frames[item["content"]], collection, "bundle", item["details"], digest
            )


def compared(
    rows: pd.DataFrame,
    made: pd.DataFrame,
    tolerance: float,
    reasons: tuple[str, ...] = (),
    changed: dict[str, tuple[str, str]] | None = None,
) -> Comparison:
    """The rows of a bundle beside those made now."""
    by_key: dict[tuple[str, ...], dict] = {}
    for row in made.to_dict("records"):
        # What runs read is in their id alone; a run of another version has another.
        by_key[_key(row)] = by_key[row["run_id"], *_key(row)] = row
    same = near = 0
    largest, differ = 0.0, []
    for row in rows.to_dict("records"):
        other = by_key.get((row["run_id"], *_key(row))) or by_key.get(_key(row))
        if other is None:
            differ.append({"row": _named(row), "number": "value", "bundle": _shown(row["value"]), "here": "not made"})
            continue
        gaps = {name: _gap(row[name], other[name]) for name in NUMBERS}
        largest = max(largest, *(gap for gap in gaps.values() if math.isfinite(gap)), 0.0)
        off = [name for name, gap in gaps.items() if not gap <= tolerance]
        off += [name for name in WORDS if _word(row[name]) != _word(other[name])]
        differ += [
            {"row": _named(row), "number": name, "bundle": _shown(row[name]), "here": _shown(other[name])}
            for name in off
        ]
        if not off and not any(gaps.values()):
            same += 1
        elif not off:
            near += 1
    table = pd.DataFrame(differ, columns=["row", "number", "bundle", "here"])
    return Comparison(len(rows), same, near, table, largest, reasons, changed or {})


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(_word(row[name]) for name in KEYS)


def _word(value: Any) -> str:
    return "" if _missing(value) else str(int(value)) if isinstance(value, float) else str(value)


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _gap(one: Any, other: Any) -> float:
    """The absolute difference; infinite where one of both is missing."""
    if _missing(one) or _missing(other):
        return 0.0 if _missing(one) and _missing(other) else math.inf
    return abs(float(one) - float(other))


def _shown(value: Any) -> str:
    return "none" if _missing(value) else f"{value:.17g}" if isinstance(value, float) else str(value)


def _named(row: dict[str, Any]) -> str:
    """`nic LIC ngram gender`"""
    return " ".join(str(row[name]) for name in KEYS if not _missing(row[name]) and row[name] not in ("", "constant"))

"""The numbers of a bundle computed again in an empty workspace, and compared one by one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, Literal, NotRequired
from zipfile import is_zipfile

import pandas as pd
from pyarrow.parquet import read_metadata
from pydantic import Field, with_config
from typing_extensions import TypedDict

from capbias_core.aggregate.variants import ORIGINS
from capbias_core.attackers import attacker_entry
from capbias_core.bundle.write import FORMAT, MANIFEST, ROWS, versions
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import LABELS, VECTORS
from capbias_core.load.files import readable, unpacked_tree
from capbias_core.load.sheet import MOST_COLUMNS, MOST_ROWS
from capbias_core.measures.registry import MEASURES
from capbias_core.typed import from_json
from capbias_core.types import RESULT_COLUMNS
from capbias_core.workspace.labels import DERIVED
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.models import encoder_option
from capbias_core.workspace.shape import PLACES, TABLES, Details, Name, table_fault, that
from capbias_core.workspace.spec import OPEN, ContentHash, Count, HashOrNone, RunSpec, StoredRun, Text
from capbias_core.workspace.store import RunRow, Workspace, bytes_frame, content_hash

# The columns that identify and name a row, and the columns that are compared.
KEYS = ("model", "metric", "direction", "encoder", "attribute", *ORIGINS)
NUMBERS = ("value", "spread", "ci_low", "ci_high")
WORDS = ("n", "seeds", "training", "interval", "verdict")
# How far a number may be off on another machine, whose processor sums in another order.
TOLERANCE = 1e-6
MOST_BYTES = 1_000_000_000  # of a table in a bundle, by its own account
# Of these files, which are read and checked piece by piece; a bundle of 40,000 rows is smaller.
MOST_OF_FILE = {MANIFEST: 4_000_000, ROWS: 32_000_000}


def _fits_its_kind(item: ItemEntry) -> bool:
    """Whether an item has the parts of its kind. Vectors are named by the file that they are an excerpt of, everything
    else by its content."""
    of_table, details = bool(item["content"]), item["details"]
    entries = len(details.get("attributes", ()))
    named = item["kind"] in TABLES and (item["kind"] == VECTORS or item["hash"] == item["content"])
    labelled = entries == 1 if DERIVED in details else entries or item["kind"] != LABELS
    return bool(labelled) and (named if of_table else not item["file"]) and not details.keys() & {*PLACES}


class ItemEntry(TypedDict):
    """An input: its kind and name, its file in the bundle, the hash by which runs name it, that of its content."""

    kind: Text
    name: Name
    file: Text
    hash: ContentHash
    content: HashOrNone
    rows: Count
    images: Count
    details: Details


@with_config(OPEN)
class Manifest(TypedDict):
    """What is read of manifest.json; it holds more."""

    format: Literal[2]
    collection: Name
    rows: Annotated[Count, Field(gt=0)]
    items: Annotated[
        list[Annotated[ItemEntry, that(_fits_its_kind)]],
        that(lambda items: len({(item["kind"], item["name"]) for item in items}) == len(items)),
    ]
    runs: list[Annotated[StoredRun, that(lambda run: run.captions)]]
    versions: NotRequired[dict[str, Text]]


Whole = Annotated[float, that(lambda value: abs(value) < 2**53 and value == int(value))]
_columns: dict[str, Any] = dict.fromkeys(RESULT_COLUMNS, Text | None)
_columns |= dict.fromkeys(("value", "spread", "scale", "ci_low", "ci_high"), float | None)
_columns |= dict.fromkeys(("seeds", "training", "n"), Whole | None)
Row: Any = TypedDict("Row", _columns)  # pyright: ignore[reportArgumentType]
Rows: Any = GenericAlias(list, with_config(OPEN)(Row))


@dataclass(frozen=True)
class Bundle:
    """A bundle that was read. specs: its runs, of this version of their measures. frames: the tables that it holds, by
    content."""

    manifest: Manifest
    specs: list[RunSpec]
    rows: pd.DataFrame
    frames: dict[str, pd.DataFrame]

    @property
    def items(self) -> list[ItemEntry]:
        return self.manifest["items"]


@dataclass(frozen=True)
class Reproduction:
    """rows: of the bundle. same: equal to the last digit. near: not the same, and within the tolerance. differ: a row
    for each number that is off or was not made: what it is, of the bundle, here. largest: absolute difference of any
    number that was made. reasons: why runs could not be made. versions: package -> (there, here) where they differ."""

    rows: int
    same: int
    near: int
    differ: pd.DataFrame
    largest: float
    reasons: tuple[str, ...] = ()
    versions: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def read_bundle(path: Path, folder: Path) -> Bundle:
    """A bundle, checked as a whole. folder: an empty one for its files. It is read in a process with limits, since a
    table may be much larger than its file says. Raises CapbiasError for a file that is no bundle, or was changed."""
    with readable(path):
        if not is_zipfile(path):
            raise _no_bundle(path, "it is no zip file")
    return within_limits(path.name, _read_bundle, path, folder)


def _read_bundle(path: Path, folder: Path) -> Bundle:
    files = unpacked_tree(path, folder)
    try:
        manifest, rows = _json(files, MANIFEST, Manifest), _json(files, ROWS, Rows)
        if len(rows) != manifest["rows"]:
            raise ValueError(f"it has {len(rows):,} rows instead of {manifest['rows']:,}")
        frames = {item["content"]: _table(files, item) for item in manifest["items"] if item["file"]}
    except ValueError as error:
        raise _no_bundle(path, str(error)) from None
    try:
        specs = [_current(run) for run in manifest["runs"]]
    except CapbiasError as error:
        others = manifest.get("versions", {}).keys() - versions(networks=True).keys()
        if not others:
            raise
        hint = f"The bundle was made with {', '.join(sorted(others))}. Install what is missing."
        raise CapbiasError(error.message, hint) from None
    return Bundle(manifest, specs, pd.DataFrame(rows, columns=list(RESULT_COLUMNS)), frames)


def _no_bundle(path: Path, why: str) -> CapbiasError:
    hint = f"Choose another file. This capbias reads bundles of format {FORMAT}."
    return CapbiasError(f"{path.name} is not a bundle that capbias wrote: {why}.", hint)


def _json(files: Mapping[str, Path], name: str, kind: Any) -> Any:
    """A file of a bundle as a type. Its size is checked before it is read. Raises ValueError."""
    if name not in files:
        raise ValueError(f"it lacks {name}")
    if (size := files[name].stat().st_size) > MOST_OF_FILE[name]:
        raise ValueError(f"{name} has {size:,} bytes; at most {MOST_OF_FILE[name]:,} are read")
    return from_json(kind, files[name].read_bytes(), name.removesuffix(".json"))


def _current(run: RunSpec) -> RunSpec:
    """A run of a bundle, of this version of its measure. Raises CapbiasError for an unknown measure, or an option that
    is not allowed."""
    if run.measure not in MEASURES:
        raise unknown_name("measure", run.measure, MEASURES)
    measure = MEASURES[run.measure]
    options = measure.options.read(run.options).to_dict()
    return replace(run, version=measure.version_with(options.get("attacker", "")), options=options)


def _table(files: Mapping[str, Path], item: ItemEntry) -> pd.DataFrame:
    """A table of a bundle. Its size is checked before it is unpacked. Raises ValueError."""
    name, frame = item["file"], None
    if name not in files:
        raise ValueError(f"it lacks {name}")
    try:
        about = read_metadata(files[name])
        size = sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups))
        if about.num_rows <= MOST_ROWS and about.num_columns <= MOST_COLUMNS and size <= MOST_BYTES:
            frame = bytes_frame(files[name].read_bytes()).reset_index(drop=True)
    except MemoryError:
        raise
    except Exception as error:  # whatever pyarrow raises for a damaged Parquet file
        raise ValueError(f"{name} cannot be read ({type(error).__name__})") from None
    if frame is None or not len(frame) == about.num_rows == item["rows"]:
        raise ValueError(f"{name} has {about.num_rows:,} rows of {size:,} bytes instead of {item['rows']:,} rows")
    if content_hash(frame) != item["content"]:
        raise ValueError(f"the content of {name} was changed")
    return frame


def reproduce(
    workspace: Workspace, bundle: Bundle, compute: Callable[[Workspace, Sequence[RunSpec], str], list[RunRow]]
) -> Reproduction:
    """Repeat the runs of a bundle in an empty workspace, and compare the numbers.

    compute: computes runs. Raises CapbiasError for missing data.
    """
    if workspace.items() or workspace.runs():
        raise CapbiasError(f"The workspace {workspace.folder} is not empty.", "Name another folder.")
    collection, frames = bundle.manifest["collection"], bundle.frames
    stored = [item for item in bundle.items if item["content"]]
    if missing := [item for item in stored if item["content"] not in frames]:
        named = ", ".join(f"{item['kind']} {item['name']}" for item in missing)
        raise CapbiasError(f"The bundle lacks {named}.", "Ask for a bundle with its data.")
    for item in stored:
        if fault := table_fault(item["kind"], item["details"], frames[item["content"]]):
            raise CapbiasError(
                f"The {fault} of the {item['kind']} {item['name']} is missing or wrong.",
                "capbias did not write this bundle.",
            )
    for item in stored:
        frame, digest = frames[item["content"]], item["hash"] if item["hash"] != item["content"] else ""
        workspace.keep(item["kind"], item["name"], frame, collection, "bundle", dict(item["details"]), digest)
    specs, reasons = [], []
    for spec in bundle.specs:
        try:
            if not spec.inputs() <= {item["hash"] for item in stored}:
                raise CapbiasError("The bundle lacks what it read.")
            if spec.options.get("encoder"):  # as it is on this machine
                encoder = encoder_option(workspace, attacker_entry(spec.attacker))
                spec = replace(spec, options=spec.options | {"encoder": encoder})
            specs.append(spec)
        except CapbiasError as error:
            reasons.append(f"{spec.measure} of {spec.model}: {error}")
    rows = compute(workspace, specs, collection)
    reasons += [f"{row.spec.measure} of {row.spec.model}: {row.message}" for row in rows if row.status != "finished"]
    made = workspace.results([spec.run_id for spec in specs])
    recorded, here = bundle.manifest.get("versions", {}), versions(networks=True)
    changed = {name: (number, here.get(name, "none")) for name, number in recorded.items() if number != here.get(name)}
    found = compared(bundle.rows, made)
    return replace(found, reasons=tuple(dict.fromkeys(reasons)), versions=changed)


def compared(rows: pd.DataFrame, made: pd.DataFrame, tolerance: float = TOLERANCE) -> Reproduction:
    """The rows of a bundle compared with those made now."""
    by_key: dict[tuple[str, ...], dict] = {}
    for row in made.to_dict("records"):
        # The inputs of a run are only in its id; a run of another version has another id.
        by_key[_key(row)] = by_key[row["run_id"], *_key(row)] = row
    same, largest, differ = [], 0.0, []
    for row in rows.to_dict("records"):
        name = " ".join(str(row[key]) for key in KEYS if pd.notna(row[key]) and row[key] not in ("", "constant"))
        other = by_key.get((row["run_id"], *_key(row))) or by_key.get(_key(row))
        if other is None:
            differ.append({"row": name, "number": "value", "bundle": _shown(row["value"]), "here": "not made"})
            continue
        gaps = {number: _gap(row[number], other[number]) for number in NUMBERS}
        largest = max(largest, *filter(math.isfinite, gaps.values()))
        off = [number for number, gap in gaps.items() if not gap <= tolerance]
        off += [word for word in WORDS if _word(row[word]) != _word(other[word])]
        differ += [
            {"row": name, "number": each, "bundle": _shown(row[each]), "here": _shown(other[each])} for each in off
        ]
        same += [] if off else [not any(gaps.values())]
    table = pd.DataFrame(differ, columns=["row", "number", "bundle", "here"])
    return Reproduction(len(rows), sum(same), len(same) - sum(same), table, largest)


def _gap(one: float | None, other: float | None) -> float:
    """The absolute difference of two numbers; infinite if one is missing, 0 if both are."""
    missing = [number is None or math.isnan(number) for number in (one, other)]
    if one is None or other is None or any(missing):
        return 0.0 if all(missing) else math.inf
    return abs(one - other)


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(_word(row[name]) for name in KEYS)


def _word(value: Any) -> str:
    return "" if pd.isna(value) else str(int(value)) if isinstance(value, float) else str(value)


def _shown(value: Any) -> str:
    return "none" if pd.isna(value) else f"{value:.17g}" if isinstance(value, float) else str(value)

"""The specification of a run: everything that its numbers depend on."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, TypeAdapter, with_config
from typing_extensions import TypedDict  # on Python before 3.12, pydantic reads no other

from capbias_core.typed import CONFIG
from capbias_core.types import WITHIN, Attribute

# Which labelled images a run reads: all that have captions, or only those that also have human captions.
ALL_IMAGES, WITH_REFERENCES = "", "with_references"
HASH = re.compile(r"[0-9a-f]{16,64}")  # files are named by a content hash, so nothing else may become a path


# What is stored may be of a stranger, so pydantic checks these types where it is read (typed.py, shape.py).
ContentHash = Annotated[str, StringConstraints(pattern=f"^(?:{HASH.pattern})$")]
HashOrNone = Annotated[str, StringConstraints(pattern=f"^(?:|{HASH.pattern})$")]
Text = Annotated[str, StringConstraints(max_length=10_000)]
Count = Annotated[int, Field(ge=0, lt=2**53)]
Nothing = Annotated[dict[str, Any], Field(max_length=0)]
OPEN = CONFIG | {"extra": "allow"}  # of tables that may hold more
MOST_SEEDS = 1000  # of a stored run: each makes a number in memory


@with_config(CONFIG)
class ModelReference(TypedDict):
    """A model or other file of a run. name: as shown. digest: of the bytes of its files."""

    name: Text
    digest: ContentHash


@with_config(CONFIG)
class ItemReference(TypedDict):
    """A stored item of a run. name: as shown. item: its content hash."""

    name: Text
    item: ContentHash


@with_config(CONFIG)
class PeopleReference(ItemReference):
    """Where people are on photographs. kind: of the item, outlines or boxes."""

    kind: Text


@with_config(CONFIG)
class AlignmentReference(ItemReference):
    """Word vectors, and below which cosine distance (delta) they align words."""

    delta: float


@with_config(CONFIG)
class PhotographsReference(ItemReference):
    """Photographs. item: of their list. digest: of the contents of the files."""

    digest: ContentHash


@with_config(CONFIG)
class StoredAttribute(TypedDict):
    """An Attribute as `stored` gives it."""

    name: Text
    title: Text
    values: Annotated[list[Text], Field(min_length=2)]
    words: dict[str, list[Text]]
    mask_token: Text
    columns: list[Text]
    aliases: dict[str, Text]
    note: Text


class StoredLabels(TypedDict):
    """Where the labels of a run are: the table, its column, and the value that each raw label means."""

    table: ContentHash
    column: Text
    mapping: dict[str, Text | None]


class StoredObjects(TypedDict):
    """Where the objects of the images of a run are."""

    table: ContentHash
    column: Text


@with_config(OPEN)
class StoredOptions(TypedDict, total=False):
    """Options that are read of every run; all of them are checked by its measure when it is computed."""

    attacker: Text
    seeds: Annotated[Count, Field(le=MOST_SEEDS)]
    test_share: float
    merge_masks: bool
    alignment: AlignmentReference | None


_OPTIONS = TypeAdapter(StoredOptions)


def _check_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options as they are, in their order, which files of the demo keep."""
    _OPTIONS.validate_python(options)
    return options


@dataclass(frozen=True)
class RunSpec:
    """One run. Its ID is a hash of all fields, so that a run with the same inputs is never computed twice.

    measure, version: a name in MEASURES, and the version of its numbers. model: the name of the caption set. captions,
    references: content hashes. labels: {'table': hash, 'column': name, 'mapping': {raw label: value or None}}.
    attribute: the Attribute as a dict. objects: {'table': hash, 'column': name} of the objects of each image, {} for
    none. coverage: ALL_IMAGES or WITH_REFERENCES. shared_with: content hash of a caption set on whose images alone this
    one is read, '' for all (see runs/condition_runs.py). options: what differs from the defaults of the measure's
    Options, as JSON.
    """

    __pydantic_config__ = CONFIG

    measure: Text
    version: Count
    model: Text
    captions: HashOrNone = ""
    references: HashOrNone = ""
    labels: StoredLabels | Nothing = field(default_factory=dict)
    attribute: StoredAttribute | Nothing = field(default_factory=dict)
    objects: StoredObjects | Nothing = field(default_factory=dict)
    coverage: Literal["", "with_references"] = ALL_IMAGES
    shared_with: HashOrNone = ""
    options: Annotated[dict[str, Any], AfterValidator(_check_options)] = field(default_factory=dict)

    @cached_property
    def run_id(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    @property
    def attacker(self) -> str:
        """The attacker's name, '' for a measure without one."""
        return self.options.get("attacker", "")

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds: 0 alone for a measure that draws nothing."""
        return tuple(range(self.options.get("seeds", 1)))

    @property
    def merge_masks(self) -> bool:
        return self.options.get("merge_masks", False)

    @property
    def read_by_options(self) -> list[str]:
        """Content hashes of the stored items that options name."""
        options = [
            part for option in self.options.values() for part in (option if isinstance(option, list) else [option])
        ]
        return [part["item"] for part in options if isinstance(part, dict) and "item" in part]

    def inputs(self) -> set[str]:
        """Content hashes of the stored items that the run reads."""
        tables = {self.labels.get("table", ""), self.objects.get("table", "")}
        return {self.captions, self.references, self.shared_with, *tables, *self.read_by_options} - {""}


def maps_to_values(attribute: Mapping[str, Any], mapping: Mapping[str, str | None]) -> bool:
    """Whether values are different, and a mapping and the words are of them. Words of a crossed attribute are those of
    the attributes that it crosses, also of values without a cell."""
    values = attribute["values"]
    named, is_crossed = {*mapping.values(), *attribute["aliases"].values()}, all(WITHIN in value for value in values)
    whole = len({*values}) == len(values) and named <= {*values, None}
    return whole and (is_crossed or attribute["words"].keys() <= {*values})


def _check_run(spec: RunSpec) -> RunSpec:
    """Raises ValueError for parts that do not belong together."""
    if len({bool(spec.captions), bool(spec.labels), bool(spec.attribute)}) == 2:
        raise ValueError("captions, labels and attribute belong together")
    if spec.labels and not maps_to_values(spec.attribute, spec.labels["mapping"]):
        raise ValueError("other values")
    if not all(isinstance(item, str) and HASH.fullmatch(item) for item in spec.read_by_options):
        raise ValueError("no content hash")
    return spec


StoredRun = Annotated[RunSpec, AfterValidator(_check_run)]  # as it is read


# Options that tell how an attacker was trained; the device on which it was is no part of a setting.
OF_ATTACKER = ("attacker", "encoder", "seeds", "test_share", "merge_masks")
# Options that have a part of their own, change no number, or are chosen for each captioner, as a judge that wrote the
# captions is.
APART = ("alignment", "shuffled", "device", "deterministic", "judge", "captioner")
NOT_READ = "-"


@dataclass(frozen=True)
class Setting:
    """What two numbers must share to be comparable: labels, references, attacker with its seeds, alignment, coverage
    and objects.

    key: a hash of each of these in that order and of the further options of the measure, NOT_READ for one that the
    measure does not read, joined by dots. Numbers with the same key were measured alike. name: for people, such as
    `ngram, 30 seeds`.
    """

    key: str = ""
    name: str = ""

    @classmethod
    def of(cls, spec: RunSpec) -> Setting:
        attacker = {name: spec.options[name] for name in OF_ATTACKER if name in spec.options}
        apart = {*APART, *(OF_ATTACKER if spec.attacker else ())}
        # With references a number depends on the images that have some, be they all of a captioner's or a part.
        coverage = "" if spec.references else spec.coverage
        parts = (
            [spec.attribute, spec.labels, spec.options.get("shuffled", False)],
            spec.references,
            attacker if spec.attacker else "",
            spec.options.get("alignment"),
            [coverage, spec.shared_with] if coverage or spec.shared_with else "",
            spec.objects,
            {name: value for name, value in spec.options.items() if name not in apart},
        )
        texts = (json.dumps(part, sort_keys=True) if part else "" for part in parts)
        key = ".".join(hashlib.sha256(text.encode()).hexdigest()[:8] if text else NOT_READ for text in texts)
        words = [spec.attacker, f"{len(spec.seeds)} seed{'s' * (len(spec.seeds) != 1)}"] if spec.attacker else []
        words += [f"test share {spec.options['test_share']:g}"] if "test_share" in attacker else []
        words += ["merged masks"] if spec.merge_masks else []
        words += [f"alignment {spec.options['alignment']['name']}"] if spec.options.get("alignment") else []
        words += ["images with human captions"] if coverage else []
        words += ["shared images"] if spec.shared_with else []
        return cls(key, ", ".join(words) or "counted")

    def fits(self, other: str) -> bool:
        """Whether numbers of another key may stand beside those of this setting: both share what both read. Further
        options are those of one measure."""
        pairs = zip(self.key.split(".")[:-1], other.split(".")[:-1], strict=True)
        return all(one == two or NOT_READ in (one, two) for one, two in pairs)


_ATTRIBUTE = TypeAdapter(Attribute)


def attribute_from(data: Mapping[str, Any]) -> Attribute:
    """The Attribute whose fields are in a mapping from JSON; its lists become tuples."""
    return _ATTRIBUTE.validate_python(data)

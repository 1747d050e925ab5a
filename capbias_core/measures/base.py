"""What every family of runs is given, and what it leaves."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, issparse

from capbias_core.aggregate import Estimate
from capbias_core.errors import CapbiasError
from capbias_core.prepare import masked_captions
from capbias_core.types import Attribute, Result
from capbias_core.workspace.photographs import PHOTOGRAPHS, photograph_files
from capbias_core.workspace.store import Workspace

COLLECTION, NAME = "collection", "name"


JUDGE, SELF = "judge", "self"  # a family and its option; that a captioner judges its own captions


CAPTIONER = "captioner"  # the option that names one


MOST_IMAGES = "most_images"  # the option that limits how many a run reads


# Raised when a change of the code changes the numbers, so that earlier runs are not taken for its own.
PROTOCOL = 7

ALL_IMAGES, WITH_REFERENCES = "", "with_references"

EMPTY = {"references": "", "attacker": "", "seeds": (0,), "condition": ALL_IMAGES, "merge_masks": False}


@dataclass(frozen=True)
class RunSpec:
    """One run, with everything that its numbers depend on.

    family: a name in FAMILIES. captions, references: content hashes. labels: {'table': hash, 'column': name,
    'mapping': {raw label: value or None}}. attribute: the Attribute as a dict. objects: {'table': hash, 'column':
    name} of the objects of each image, {} for none. options: those of the request that its family reads.
    """

    family: str
    model: str
    captions: str
    references: str
    labels: dict
    attribute: dict
    attacker: str
    seeds: tuple[int, ...]
    condition: str
    merge_masks: bool
    objects: dict = field(default_factory=dict)
    options: dict = field(default_factory=dict)
    protocol: int = PROTOCOL

    @cached_property
    def run_id(self) -> str:
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @classmethod
    def from_dict(cls, data: dict) -> RunSpec:
        return cls(**{**data, "seeds": tuple(data["seeds"])})


# (share done, text): reported often; raises Cancelled where the run must stop.
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Job:
    """A run with its inputs.

    frame: the captions of labelled images, image_id, caption_index and caption, its index that of the set as kept.
    labels: value of the attribute by image id. table: the attribute table. A run that makes an item has none of them.
    """

    workspace: Workspace
    spec: RunSpec
    attribute: Attribute
    frame: pd.DataFrame
    labels: pd.Series
    table: pd.DataFrame
    progress: Progress

    def references(self) -> pd.DataFrame:
        """The human captions of labelled images."""
        human = self.workspace.frame(self.spec.references)
        return of_images(human, self.labels.index)

    def objects(self) -> pd.Series | None:
        """Text such as `cat|dog` by image id, or None where the objects of images are not known."""
        where = self.spec.objects
        return self.workspace.frame(where["table"]).set_index("image_id")[where["column"]] if where else None

    def photographs(self) -> dict[str, Path]:
        """The file of each photograph by image id. Raises CapbiasError where they are gone, or are others now."""
        return photograph_files(self.workspace, self.spec.options[PHOTOGRAPHS])

    def masked(self, captions: Iterable[str]) -> list[str]:
        """Captions with the words of the attribute masked."""
        return masked_captions(captions, self.attribute, self.spec.merge_masks)

    def codes(self, images: list[str]) -> np.ndarray:
        """The labels of these images as places of the attribute's values."""
        return label_codes(images, self.labels, self.attribute)

    def result(self, name: str, found: Estimate, n: int, method: str, direction: str = "", interval=None) -> Result:
        """A row of the results table. n: captions or images that the value rests on. interval: where it is known."""
        low, high = interval or found.interval()
        return Result(
            attribute=self.attribute.name,
            model=self.spec.model,
            metric=name,
            value=found.value,
            encoder=self.spec.attacker,
            direction=direction,
            condition=self.spec.condition,
            spread=found.spread,
            spread_kind="std" if found.spread is not None else "",
            scale=found.scale,
            seeds=len(found.seed_values),
            n=n,
            ci_low=low,
            ci_high=high,
            method=method,
        )


@dataclass(frozen=True)
class Outcome:
    """What a run leaves: rows, named arrays (Parquet or npz bytes) and notes for the reader."""

    results: list[Result]
    arrays: dict[str, bytes]
    notes: tuple[str, ...]


def run_available(
    ways: dict[str, Callable[[], tuple[object, str]]], what: str = ""
) -> tuple[dict[str, object], list[str]]:
    """What several ways give, of those that the inputs allow, and a note on each. Raises where they allow none.

    ways: by name, what gives a result and its note. what: before a name in its note, such as `DBAC `.
    """
    found, notes, lacking = {}, [], {}
    for name, way in ways.items():
        try:
            found[name], note = way()
            notes.append(f"{what}{name}: {note}")
        except CapbiasError as error:
            lacking[name] = error
            notes.append(f"{what}{name} left out: got {error.got}; expected {error.expected}.")
    if not found:
        raise _nothing(lacking)
    return found, notes


def _nothing(lacking: dict[str, CapbiasError]) -> CapbiasError:
    """One error for metrics none of which can be had: what each lacks."""
    got, expected = (
        "; ".join(f"for {name} {getattr(error, part)}" for name, error in lacking.items())
        for part in ("got", "expected")
    )
    return CapbiasError(got, expected, " ".join(dict.fromkeys(error.remedy for error in lacking.values())))


def of_images(frame: pd.DataFrame, images: Iterable[str]) -> pd.DataFrame:
    """The rows of these images. A set of Python's is quicker here than `isin`, which converts all of them."""
    known = set(images)
    return frame[np.array([image in known for image in frame["image_id"]], dtype=bool)]


def label_codes(images: list[str], labels: pd.Series, attribute: Attribute) -> np.ndarray:
    """The labels of these images as places of the attribute's values."""
    code = {value: place for place, value in enumerate(attribute.values)}
    return labels[images].map(code).to_numpy(dtype=int)


def to_npz(about, **matrices: csr_array | np.ndarray) -> bytes:
    """What a run leaves as the bytes of an npz file; `from_npz` reads it back. about: whatever JSON can hold."""
    arrays = {"about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)}
    for name, matrix in matrices.items():
        if not issparse(matrix):
            arrays[name] = matrix
            continue
        matrix = csr_array(matrix)
        arrays |= {f"{name}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")}
    return npz(**arrays)


def from_npz(data: bytes) -> tuple[object, dict[str, csr_array | np.ndarray]]:
    """What `to_npz` was told about, and its matrices by name."""
    arrays = dict(np.load(io.BytesIO(data)))
    about = json.loads(arrays.pop("about").tobytes())
    for name in [name.removesuffix("_indptr") for name in arrays if name.endswith("_indptr")]:
        parts = [arrays.pop(f"{name}_{part}") for part in ("data", "indices", "indptr", "shape")]
        arrays[name] = csr_array(tuple(parts[:3]), shape=tuple(parts[3]))
    return about, arrays


def npz(**arrays) -> bytes:
    """Arrays as the bytes of a compressed npz file."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()

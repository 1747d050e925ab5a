"""`Measure`; `Job`, what a run reads, and `Outcome`, what it leaves."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from capbias_core.aggregate import NOTHING_MORE, Columns, Counts, Metric, Needs, RunFacts, object_rows, result_rows
from capbias_core.attackers import attacker_entry
from capbias_core.errors import CapbiasError, NotMeasurable
from capbias_core.language.files import ModelFiles
from capbias_core.measures.options import Aligned, Attacked, Options, Seeded
from capbias_core.measures.protocols import protocol_text
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Attribute, Progress, Result, left_out_lines
from capbias_core.workspace.spec import ModelReference, PhotographsReference, RunSpec
from capbias_core.workspace.store import COUNTS, Item, RunRow, Workspace, frame_bytes
from capbias_core.workspace.vectors import alignment_name

# Arrays of a run: what its rows say of its evidence, and rows of each object.
ABOUT, BY_OBJECT = "columns", "objects"


def nothing_stored(*_: object) -> Any:
    """What a job without stored items reads."""
    raise CapbiasError("This run reads no stored items.")


@dataclass(frozen=True)
class Group:
    """What a user asks for by one name: some metrics that are read together. default: asked for if nothing is."""

    name: str
    title: str
    metrics: tuple[str, ...]
    default: bool = False


def group_of(name: str, title: str, metrics: Iterable[Metric], default: bool = False) -> Group:
    """These metrics under one name."""
    return Group(name, title, tuple(metric.name for metric in metrics), default)


@dataclass(frozen=True)
class Measure:
    """What is computed together from the same inputs: all that is known about it, in the module that defines it."""

    name: str  # by which its runs are stored
    title: str  # what its runs give, in a few words
    count: Callable[..., Outcome]  # a Job to its evidence, from which `run` makes the rows
    seconds: float = 1.0  # roughly, on two free cores, for 15,000 captions or images and a seed, without the attacker
    explains: bool = False  # whether the attacker explains each caption
    balanced: bool = False  # whether it reads equally many images of each value
    metrics: tuple[Metric, ...] = ()
    groups: tuple[Group, ...] = ()  # what a user asks for
    options: type[Options] = Options
    needs: Needs = NOTHING_MORE
    version: int = 1  # raised when a change of the code changes its numbers, so that its earlier runs are repeated
    # Options that name files or stored items to options that name their content.
    freeze: Callable[[Workspace, str, Any, Any], Any] = lambda workspace, collection, options, attribute: options
    # Options of a request to options of one caption set.
    for_set: Callable[[Workspace, Any, Item], Any] = lambda workspace, options, item: options
    makes: str = ""  # the kind of item that a run makes instead of numbers
    of_texts: bool = False  # also reads plain texts, the second argument of `count` (see gender_score_common.py)
    in_process: bool = True  # light enough for the web server's process (for an attacker, its entry says so)
    packages: tuple[str, ...] = ()  # modules of extras that its metrics need, whatever the attacker
    position: int = 100  # position among the measures, smaller first

    def run(self, job: Job) -> Outcome:
        """What a run leaves: its evidence, and a row for each metric that reads it."""
        outcome = self.count(job)
        if not isinstance(outcome, Outcome):
            raise TypeError(f"count of measures/{self.name}.py returned {type(outcome).__name__}, not an Outcome")
        if outcome.results:
            return outcome
        about, facts = outcome.about, run_facts(job.spec, job.options, job.attribute)
        rows, of_objects = [], []
        for direction, counts in outcome.by_direction.items():
            rows += result_rows(self.metrics, counts, facts, about[direction], direction)
            of_objects += object_rows(self.metrics, counts, facts, about[direction])
        kept = {ABOUT: json.dumps(about).encode()} if about else {}
        if of_objects:
            kept[BY_OBJECT] = frame_bytes(pd.DataFrame([row.row() for row in of_objects]))
        notes = [*outcome.remarks(rows), *outcome.notes]
        return replace(outcome, results=rows, notes=notes, arrays={**outcome.arrays, **kept})

    @property
    def attacked(self) -> bool:
        """Whether it trains the attacker that was asked for."""
        return issubclass(self.options, Attacked)

    def version_with(self, attacker: str) -> int:
        """The version of its numbers by an attacker, '' for none."""
        return self.version + (attacker_entry(attacker).version if attacker else 0)

    @property
    def seeded(self) -> bool:
        return issubclass(self.options, Seeded)

    @property
    def aligned(self) -> bool:
        return issubclass(self.options, Aligned)

    @property
    def compares(self) -> bool:
        """Whether it needs the human captions of the same images."""
        return self.needs.references == "required"

    @property
    def both_sides(self) -> bool:
        """Whether it scores the model's captions and, if there are any, the human ones of the same images."""
        return self.needs.references == "optional"


@dataclass(frozen=True)
class Job:
    """A run with its inputs. Wherever these are stored, the job reads them by content hash."""

    spec: RunSpec
    options: Any  # of the measure
    attribute: Attribute
    # image_id, caption_index and caption of labelled images, indexed as in the whole set; empty if an item is made
    frame: pd.DataFrame
    labels: pd.Series  # value of the attribute by image ID
    progress: Progress
    table: Callable[[str], pd.DataFrame] = nothing_stored  # an item by its content hash
    tokens_of: Callable[[str], Tokens] = nothing_stored  # all captions of a set by its content hash
    # Raise CapbiasError for a model or photographs that are missing or have changed.
    model: Callable[[ModelReference], ModelFiles] = nothing_stored
    files: Callable[[PhotographsReference], dict[str, Path]] = nothing_stored  # by image ID
    # for large files that other runs may read too, such as vectors of captions; perhaps not made yet
    folder: Path = Path()
    kept: Path | None = None  # a folder for what a run that is stopped may go on from

    def tokens(self, frame: pd.DataFrame) -> Tokens:
        """The tokens of some rows of `frame`."""
        return self.tokens_of(self.spec.captions).rows(frame.index.to_numpy())

    def reference_tokens(self, frame: pd.DataFrame) -> Tokens:
        """The tokens of some rows of `references()`."""
        return self.tokens_of(self.spec.references).rows(frame.index.to_numpy())

    def references(self) -> pd.DataFrame:
        """The human captions of labelled images, their index that of the stored set."""
        return of_images(self.table(self.spec.references), self.labels.index)

    def objects(self) -> pd.Series | None:
        """Text such as `cat|dog` by image id, or None where the objects of images are not known."""
        source = self.spec.objects
        return self.table(source["table"]).set_index("image_id")[source["column"]] if source else None

    def photographs(self) -> dict[str, Path]:
        """The file of each photograph by image id. Raises CapbiasError where they are gone, or are others now."""
        return self.files(self.options.photographs)

    @property
    def embeddings(self) -> str:
        """The folder of vectors of captions: CAPBIAS_EMBEDDINGS, or `embeddings` in `folder`."""
        return os.environ.get("CAPBIAS_EMBEDDINGS") or str(self.folder / "embeddings")

    def masked(self, tokens: Tokens) -> Tokens:
        """Captions with the words of the attribute masked."""
        return tokens.masked(self.attribute, self.spec.merge_masks)

    def codes(self, images: Sequence[str]) -> np.ndarray:
        """The labels of these images as indices of the attribute's values."""
        return label_codes(images, self.labels, self.attribute)

    def sizes(self, counts: Counts) -> str:
        """How many captions were counted of each value: `Female 788, Male 1,662 captions`."""
        captions, values = counts.columns["captions"], enumerate(self.attribute.values)
        sizes = (f"{value} {int(captions[counts.label == code].sum()):,}" for code, value in values)
        return f"{', '.join(sizes)} captions"


def run_facts(spec: RunSpec, options: Any, attribute: Attribute) -> RunFacts:
    """What all rows of a run share. Their method ends with the protocol that the measure follows and each deviation
    from it."""
    aligned = isinstance(options, Aligned) and spec.references
    return RunFacts(
        attribute.name,
        attribute.values,
        {"model": spec.model, "encoder": spec.attacker, "coverage": spec.coverage},
        alignment_name(options.alignment) if aligned else "",
        partial(protocol_text, spec.measure, options),
    )


@dataclass(frozen=True)
class MadeItem:
    """An item that a run makes, under the name and in the collection that its options say."""

    frame: pd.DataFrame
    source: str
    details: dict[str, Any]
    digest: str = ""  # content hash, if not that of the frame


@dataclass(frozen=True)
class Outcome:
    """What a measure leaves of a run."""

    # The evidence, or that of each direction.
    counts: Counts | Mapping[str, Counts] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)  # of all rows, see `Columns` of aggregate/rows.py
    notes: Sequence[str] = ()  # for the reader
    lacking: Mapping[str, str] = field(default_factory=dict)  # why metrics have no value, by metric
    further: Columns = field(default_factory=dict)  # columns of the rows of some metric or direction, by its name
    arrays: Mapping[str, bytes] = field(default_factory=dict)  # further files of the run, by name
    results: list[Result] = field(default_factory=list)  # its rows, if they are no function of the counts alone
    remarks: Callable[[Sequence[Result]], Iterable[str]] = lambda rows: ()  # notes that need values; they come first
    item: MadeItem | None = None  # what it makes instead of numbers
    log: Sequence[str] = ()  # lines for the log of the run

    @property
    def by_direction(self) -> Mapping[str, Counts]:
        return {"": self.counts} if isinstance(self.counts, Counts) else self.counts

    @property
    def about(self) -> dict[str, Columns]:
        """By direction the columns of its rows, '' for metrics that have none of their own."""
        about = {}
        for direction in self.by_direction:
            common = {**self.columns, **self.further.get(direction, {})}
            directed = {
                name: {**common, **columns} for name, columns in self.further.items() if name not in self.by_direction
            }
            about[direction] = {"": common, **directed} if common else directed
        return about

    @property
    def kept(self) -> dict[str, bytes]:
        """All arrays as the workspace keeps them."""
        evidence = {f"{COUNTS} {name}".strip(): counts.save() for name, counts in self.by_direction.items()}
        return {**evidence, **self.arrays}


def columns_of(workspace: Workspace, run: RunRow, direction: str) -> Columns:
    """What the rows of a finished run say of its counts; {} of a run before this was kept."""
    if ABOUT not in workspace.arrays(run.run_id):
        return {}
    return json.loads(workspace.array(run.run_id, ABOUT))[direction]


def run_available(
    ways: Mapping[str, Callable[[], tuple[Any, str]]], what: str = ""
) -> tuple[dict[str, Any], list[str], dict[str, str]]:
    """What several ways give, of those that the inputs allow; a note on each; and why the others give nothing.

    ways: by name, what gives a result and its note, or raises NotMeasurable. what: before a name in its note, such as
    `DBAC `. Raises NotMeasurable where the inputs allow none. Any other error ends the run.
    """
    results, notes, errors = {}, [], {}
    for name, way in ways.items():
        try:
            results[name], note = way()
            notes.append(f"{what}{name}: {note}")
        except NotMeasurable as error:
            errors[name] = error
    reasons = {f"{what}{name}": error.message for name, error in errors.items()}
    if not results:
        alike = len(set(reasons.values())) == 1
        message = next(iter(reasons.values())) if alike else " ".join(left_out_lines(reasons))
        arguments = dict.fromkeys(name for error in errors.values() for name in error.arguments)
        raise NotMeasurable(message, " ".join(dict.fromkeys(error.hint for error in errors.values())), *arguments)
    return results, notes, reasons


def of_images(frame: pd.DataFrame, images: Iterable[str]) -> pd.DataFrame:
    """The rows of these images. Arrow compares texts as they are kept; pandas' `isin` takes twenty times as long."""
    wanted = images if isinstance(images, pd.Index | pd.Series) else list(images)
    ids, known = (pa.array(column, type=pa.large_string()) for column in (frame["image_id"], wanted))
    which = pc.is_in(ids, value_set=known).to_numpy(zero_copy_only=False)
    return frame if which.all() else frame[which]


def label_codes(images: Sequence[str], labels: pd.Series, attribute: Attribute) -> np.ndarray:
    """The labels of these images as indices of the attribute's values."""
    code = {value: number for number, value in enumerate(attribute.values)}
    return labels.loc[list(images)].map(code).to_numpy(dtype=int)


def npz(**arrays) -> bytes:
    """Arrays as the bytes of a compressed npz file."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def npy(values: np.ndarray) -> bytes:
    """An array whose digits hardly compress as the bytes of an npy file; `from_npy` reads it back."""
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def from_npy(data: bytes) -> np.ndarray:
    """The array that `npy` was given."""
    return np.load(io.BytesIO(data))

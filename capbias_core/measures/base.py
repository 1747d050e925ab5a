"""`Measure`, what is computed together from the same data, and `Outcome`, what it leaves."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from pydantic.dataclasses import dataclass as checked

from capbias_core.aggregate import NOTHING_MORE, Columns, Counts, Metric, Needs, RunFacts, object_rows, result_rows
from capbias_core.attackers import attacker_entry
from capbias_core.data import Captions, Data
from capbias_core.errors import NotMeasurable
from capbias_core.measures.options import Aligned, Options, Seeded
from capbias_core.measures.protocols import protocol_text
from capbias_core.types import Attribute, Progress, Result, left_out_lines
from capbias_core.workspace.spec import Setting
from capbias_core.workspace.store import COUNTS, frame_bytes
from capbias_core.workspace.vectors import alignment_name

UNNAMED = Setting()
BY_OBJECT = "objects"  # the array of a run with rows of each object


@checked(frozen=True)
class Group:
    """What a user asks for by one name: some metrics that are read together. default: asked for if nothing is."""

    name: str
    title: str
    metrics: tuple[str, ...]
    default: bool = False


def group_of(name: str, title: str, metrics: Iterable[Metric], default: bool = False) -> Group:
    """These metrics under one name."""
    return Group(name, title, tuple(metric.name for metric in metrics), default)


@checked(frozen=True)
class Measure:
    """What is computed together from the same inputs: all that is known about it, in the module that defines it."""

    name: str  # by which its runs are stored
    title: str  # what its runs give, in a few words
    count: Callable[..., Any]  # data of one captioner, options and progress to an Outcome, whose rows `run` makes
    seconds: float = 1.0  # roughly, on two free cores, for 15,000 captions or images and a seed, without the attacker
    explains: bool = False  # whether the attacker explains each caption
    balanced: bool = False  # whether it reads equally many images of each value
    metrics: tuple[Metric, ...] = ()
    groups: tuple[Group, ...] = ()  # what a user asks for
    options: type[Options] = Options
    needs: Needs = NOTHING_MORE
    version: int = 1  # raised when a change of the code changes its numbers, so that its earlier runs are repeated
    # Options that name files or stored items to options that name their content.
    freeze: Callable[[Any, Data], Any] = lambda options, data: options
    # Options of a request to options of one caption set.
    for_set: Callable[[Any, Captions], Any] = lambda options, captions: options
    makes: str = ""  # the kind of item that a run makes instead of numbers
    in_process: bool = True  # light enough for the web server's process (for an attacker, its entry says so)
    packages: tuple[str, ...] = ()  # modules of extras that its metrics need, whatever the attacker
    position: int = 100  # position among the measures, smaller first

    def run(self, data: Data, options: Any, progress: Progress, setting: Setting = UNNAMED) -> Outcome:
        """What a run leaves: its evidence, and a row for each metric that reads it."""
        outcome = self.count(data, options, progress)
        if not isinstance(outcome, Outcome):
            raise TypeError(f"count of measures/{self.name}.py returned {type(outcome).__name__}, not an Outcome")
        if outcome.results:
            named = {"setting": setting.key, "setting_name": setting.name}
            return replace(outcome, results=[replace(row, **named) for row in outcome.results])
        facts, rows, of_objects = self.facts(data, options, setting), [], []
        for direction, counts in outcome.counts_by_direction().items():
            columns = outcome.columns_of(direction)
            rows += result_rows(self.metrics, counts, facts, columns, direction)
            of_objects += object_rows(self.metrics, counts, facts, columns)
        kept = {BY_OBJECT: frame_bytes(pd.DataFrame([row.row() for row in of_objects]))} if of_objects else {}
        return replace(outcome, results=rows, arrays={**outcome.arrays, **kept})

    def facts(self, data: Data, options: Any, setting: Setting = UNNAMED) -> RunFacts:
        """What all rows of a run share. Their method ends with the protocol that the measure follows and each deviation
        from it."""
        columns = {"model": data.captioner, "encoder": getattr(options, "attacker", ""), "coverage": data.coverage}
        columns |= {"setting": setting.key, "setting_name": setting.name}
        aligned = isinstance(options, Aligned) and data.references
        alignment = alignment_name(options.alignment) if aligned else ""
        protocol = partial(protocol_text, self.name, options)
        return RunFacts(data.attribute.name, data.attribute.values, columns, alignment, protocol)

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


def sizes(counts: Counts, attribute: Attribute) -> str:
    """How many captions were counted of each value: `Female 788, Male 1,662 captions`."""
    captions, values = counts.columns["captions"], enumerate(attribute.values)
    each = (f"{value} {int(captions[counts.label == code].sum()):,}" for code, value in values)
    return f"{', '.join(each)} captions"


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
    own_columns: Columns = field(default_factory=dict)  # columns of the rows of some metric or direction, by its name
    arrays: Mapping[str, bytes] = field(default_factory=dict)  # further files of the run, by name
    results: list[Result] = field(default_factory=list)  # its rows, if they are no function of the counts alone
    item: MadeItem | None = None  # what it makes instead of numbers
    log: Sequence[str] = ()  # lines for the log of the run

    def counts_by_direction(self) -> dict[str, Counts]:
        """As of `RunRow.evidence`."""
        return {"": self.counts} if isinstance(self.counts, Counts) else dict(self.counts)

    def array(self, name: str) -> bytes | None:
        """As of `RunRow.evidence`."""
        return self.arrays.get(name)

    def columns_of(self, direction: str) -> Columns:
        """The columns of the rows of a direction by metric, '' for metrics that have none of their own."""
        common = {**self.columns, **self.own_columns.get(direction, {})}
        own = {name: {**common, **columns} for name, columns in self.own_columns.items()}
        return {"": common, **own} if common else own

    @property
    def kept(self) -> dict[str, bytes]:
        """All arrays as the workspace keeps them."""
        evidence = {f"{COUNTS} {name}".strip(): each.save() for name, each in self.counts_by_direction().items()}
        return {**evidence, **self.arrays}


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


def npy(values: np.ndarray) -> bytes:
    """An array whose digits hardly compress as the bytes of an npy file; `from_npy` reads it back."""
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def from_npy(data: bytes) -> np.ndarray:
    """The array that `npy` was given."""
    return np.load(io.BytesIO(data))

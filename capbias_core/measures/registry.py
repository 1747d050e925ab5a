"""All measures: those that the modules of this package define as MEASURE, or as MEASURES if they are several, and those
that are added."""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import pandas as pd

import capbias_core.measures as package
from capbias_core.aggregate import Metric
from capbias_core.aggregate.variants import INPUTS, variants
from capbias_core.errors import CapbiasError, taken_twice, unknown_name
from capbias_core.measures.base import Group, Measure
from capbias_core.measures.protocols import PROTOCOLS, protocol_in, protocol_of
from capbias_core.types import RESULT_COLUMNS

# Columns of tables of scores, whose names no metric can have.
COLUMNS = {*RESULT_COLUMNS, *INPUTS, "captioner", "encoders", "images", "letters", "name"}


def check(measures: list[Measure]) -> None:
    """Raises CapbiasError for a name or a flag that two measures claim, and for options that are no dataclass."""
    metrics: dict[str, str] = {}
    groups: dict[str, str] = {}
    flags: dict[str, str] = {}
    for measure in measures:
        if "__dataclass_fields__" not in vars(measure.options):
            message = f"{measure.options.__name__}, the options of {measure.name}, is no dataclass."
            raise CapbiasError(message, "Write @dataclass(frozen=True) above it.")
        for metric in measure.metrics:
            if metric.name.lower() in COLUMNS:
                where = f"{metric.name} in {measure.name}"
                raise CapbiasError(f"The metric {where} is called like a column of tables of scores.", "Rename it.")
            if (other := metrics.setdefault(metric.name.lower(), measure.name)) != measure.name:
                raise taken_twice("metric", metric.name, (other, measure.name))
        for name, about in measure.options.about().items():
            # A measure that makes an item has a command with flags of its own.
            if about.flag and not measure.makes and (other := flags.setdefault(about.flag, name)) != name:
                raise taken_twice("flag", about.flag, (other, f"{name} of {measure.name}"))
    for measure in measures:
        for group in measure.groups:
            if lost := sorted(set(group.metrics) - {metric.name for metric in measure.metrics}):
                raise unknown_name(f"metric of the group {group.name} in {measure.name}", lost[0], metrics)
            # A group may be called as its first metric: that name then asks for all of the group.
            name = group.name.lower()
            hidden = metrics.get(name) if name != group.metrics[0].lower() else None
            if other := hidden or groups.get(name):
                raise taken_twice("group", group.name, (other, measure.name))
            groups[name] = measure.name


# Name -> measure, in the order in which they are shown.
MEASURES: dict[str, Measure] = {}
# Name -> metric, in the same order.
METRICS: dict[str, Metric] = {}
# What a user asks for by one name.
GROUPS: dict[str, Group] = {}
# By names in lower case, as users ask: a metric with its measure; metrics (a group that is called as its first metric
# takes that name).
_BY_NAME: dict[str, tuple[Metric, Measure]] = {}
_ASKED_BY: dict[str, tuple[str, ...]] = {}


def add(*measures: Measure) -> None:
    """Make measures known. Raises CapbiasError for a name that is taken, and for facts that mean nothing."""
    known = sorted((*MEASURES.values(), *measures), key=lambda one: (one.position, one.name))
    names = [measure.name for measure in known]
    if twice := [name for name in names if names.count(name) > 1]:
        raise taken_twice("measure", twice[0], ["measures/"])
    check(known)
    for index in (MEASURES, METRICS, GROUPS):
        index.clear()
    for measure in known:
        MEASURES[measure.name] = measure
        METRICS.update({row.name: row for row in measure.metrics})
        GROUPS.update({group.name: group for group in measure.groups})
        _BY_NAME.update({row.name.lower(): (row, measure) for row in measure.metrics})
    _ASKED_BY.update({name: (row.name,) for name, (row, _) in _BY_NAME.items()})
    _ASKED_BY.update({name.lower(): group.metrics for name, group in GROUPS.items()})


def _shipped() -> Iterator[Measure]:
    for found in pkgutil.iter_modules(package.__path__):
        if found.name != "registry":
            module = import_module(f"{package.__name__}.{found.name}")
            yield from getattr(module, "MEASURES", None) or ([module.MEASURE] if hasattr(module, "MEASURE") else [])


add(*_shipped())


def default_groups() -> tuple[str, ...]:
    """The groups that are measured if nothing else is asked."""
    return tuple(name for name, group in GROUPS.items() if group.default)


NAME_RULE = (
    "Case does not matter. A name gives the metric and its parts: lic gives LIC, LIC_M, LIC_D and others, LIC_M only "
    "itself."
)


def is_metric(name: str) -> bool:
    """Whether one metric has this name, in any case."""
    return name.lower() in _BY_NAME


def metric(name: str) -> Metric:
    """A metric by its name, in any case. Raises CapbiasError for an unknown name."""
    if not is_metric(name):
        raise unknown_name("metric", name, METRICS)
    return _BY_NAME[name.lower()][0]


def measure_of(metric_name: str) -> Measure:
    """The measure that gives a metric."""
    return _BY_NAME[metric(metric_name).name.lower()][1]


def expand_metrics(asked: Iterable[str]) -> tuple[str, ...]:
    """What names ask for, each metric once; see NAME_RULE. Raises CapbiasError for an unknown name, and for none."""
    names: list[str] = []
    for word in asked:
        if (name := str(word).lower()) not in _ASKED_BY:
            known = (*GROUPS, *(name for name in METRICS if name.lower() not in map(str.lower, GROUPS)))
            error = unknown_name("metric", word, known, GROUPS)
            raise CapbiasError(error.message, f"{error.hint} {NAME_RULE}", *error.arguments)
        names += _ASKED_BY[name]
    if not names:
        raise CapbiasError("No metric is asked for.", f"Choose one or more of: {', '.join(GROUPS)}.")
    return tuple(dict.fromkeys(names))


def alike_with_references(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of results without a coverage where the metric needs references: it depends on the images that have some, be
    they all of one captioner's and a part of another's. Metrics that are in no table stay as they are."""
    beside_references = [name for name in METRICS if needs_references(name)]
    return rows.assign(coverage=rows["coverage"].mask(rows["metric"].isin(beside_references), ""))


def variants_of(rows: pd.DataFrame) -> pd.Series:
    """What each row was measured on or with, in the words of `variants`: rows with the same are compared."""
    return variants(alike_with_references(rows))


def protocol_notes(rows: pd.DataFrame, protocol: str = "") -> list[str]:
    """How results differ from their protocol, a line for each measure and each list of deviations.

    rows: results. protocol: the one that was chosen; measures that follow it are named even if nothing differs.
    'custom' for no line.
    """
    lines: dict[tuple[str, str, str], list[str]] = {}
    for metric, method in rows[["metric", "method"]].drop_duplicates().itertuples(index=False):
        measure = measure_of(metric)
        followed = protocol_of(measure.name, protocol)
        text, differ = protocol_in(method)
        if text and text == followed and (differ or protocol == followed):
            lines.setdefault((measure.name, followed, differ), []).append(metric)
    several = [name for name, _, _ in lines]
    notes = []
    for (name, followed, differ), metrics in lines.items():
        which = f" ({', '.join(dict.fromkeys(metrics))})" if several.count(name) > 1 else ""
        but = f", except {differ}" if differ else ""
        notes.append(f"{MEASURES[name].title}{which}: settings of the protocol {PROTOCOLS[followed].title}{but}.")
    return notes


def check_choices(given: Mapping[str, Any]) -> None:
    """Raises CapbiasError for a choice that no measure of captions has, or that is not allowed."""
    options = [measure.options for measure in MEASURES.values() if not measure.makes]
    known = {name for each in options for name in each.about()}
    if stray := [name for name in given if name not in known]:
        raise unknown_name("option", stray[0], known)
    for each in options:
        each.read(given)


def needs_references(name: str) -> bool:
    """Whether a metric needs the human captions of the same images."""
    return measure_of(name).compares or metric(name).needs.references == "required"


def _load_entry_points() -> None:
    """Import the modules of installed packages that call `capbias.register`. One that fails is a warning."""
    for entry in entry_points(group="capbias"):
        try:
            entry.load()
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            warnings.warn(f"capbias does without {entry.value}, which cannot be loaded ({why}).", stacklevel=2)


_load_entry_points()  # at the end: what they register is added above

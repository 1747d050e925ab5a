"""Every measure, found by itself: a module of this package with a MEASURE. Nothing here names one."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from importlib import import_module

import capbias_core.measures as package
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.measures.base import Group, Measure, Metric


def _found() -> dict[str, Measure]:
    modules = [
        import_module(f"{package.__name__}.{own.name}")
        for own in pkgutil.iter_modules(package.__path__)
        if own.name != "registry"
    ]
    measures = [module.MEASURE for module in modules if hasattr(module, "MEASURE")]
    return {own.name: own for own in sorted(measures, key=lambda own: (own.place, own.name))}


# Name -> measure, in the order in which they are shown.
MEASURES: dict[str, Measure] = _found()
# Name -> metric, in the same order.
METRICS: dict[str, Metric] = {row.name: row for own in MEASURES.values() for row in own.metrics}
# What a user asks for by one name.
GROUPS: dict[str, Group] = {group.name: group for own in MEASURES.values() for group in own.groups}
_MEASURE_OF = {row.name: own for own in MEASURES.values() for row in own.metrics}


def metric(name: str) -> Metric:
    """A metric. Raises CapbiasError for an unknown name."""
    if name not in METRICS:
        raise unknown_name("metric", name, METRICS)
    return METRICS[name]


def measure_of(metric_name: str) -> Measure:
    """The measure that gives a metric."""
    return _MEASURE_OF[metric(metric_name).name]


def expand_metrics(asked: Iterable[str]) -> tuple[str, ...]:
    """Groups ('lic' -> LIC, LIC_M, LIC_D) or names of metrics ('LIC_M') to names of metrics, each once."""
    known = {name: (name,) for name in METRICS} | {name: group.metrics for name, group in GROUPS.items()}
    names: list[str] = []
    for word in asked:
        found = known.get(word) or known.get(word.lower())
        if found is None:
            raise unknown_name("metric", word, known)
        names += found
    if not names:
        raise CapbiasError("no metric", f"at least one of: {', '.join(GROUPS)}", "Choose a metric.")
    return tuple(dict.fromkeys(names))


def needs_references(name: str) -> bool:
    """Whether a metric needs the human captions of the same images."""
    return measure_of(name).compares or metric(name).needs.references == "required"

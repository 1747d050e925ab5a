"""`Metric`: a number that a measure gives, as a row of facts with its formula; `Needs`: which inputs are read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from pydantic.dataclasses import dataclass

from capbias_core.aggregate.counts import Counts
from capbias_core.errors import taken_twice
from capbias_core.metrics.share import share

Presence = Literal["", "optional", "required"]  # of an input: not read, read if it is there, or must be there
WITHOUT_LIMIT = (0, math.inf)  # the range of a metric
LOTUS = "Hirota et al., ACL 2025 (LOTUS)"


@dataclass(frozen=True)
class Needs:
    """What a measure reads, or one of its metrics reads besides."""

    captions: bool = True
    labels: bool = True
    references: Presence = ""  # human captions of the same images
    objects: Presence = ""  # objects on the images
    photographs: bool = False
    people: bool = False  # where people are on the photographs
    vectors: bool = False  # word vectors for alignment
    words: Literal["", "any", "every"] = ""  # captions must be able to name a value, or each
    values: int = 0  # how many values the attribute must have, 0 for any number
    model: str = ""  # name of an option that must name a model


NOTHING_MORE = Needs()


def no_neutral(k: int) -> float:
    """For metrics of which no value means no bias, such as caption quality: nan."""
    return math.nan


def zero(k: int) -> float:
    """For metrics of which 0 means no bias, whatever the number of values."""
    return 0.0


# Scale, neutral value, which values are good, and range of metrics alike.
LOWER_SHARE = (100, no_neutral, "lower", (0, 100))
HIGHER_SHARE = (100, no_neutral, "higher", (0, 100))
DIFFERENCE = (100, zero, "lower", (-100, 100))
MISTAKES = (100, zero, "lower", (0, 100))
QUOTIENT = (1, lambda k: 1.0, "neutral", WITHOUT_LIMIT)  # of what would be equal without bias
WEIGHT = (1, no_neutral, "lower", WITHOUT_LIMIT)


@dataclass(frozen=True)
class Metric:
    """One number that a measure gives: its facts, the columns of `Counts` that it reads, and its formula."""

    name: str
    title: str
    scale: float  # shown value = scale * what the formula gives
    neutral: Callable[[int], float]  # shown value that means no bias, given K values; `no_neutral` if none does
    better: Literal["lower", "higher", "neutral", "none"]  # neutral: values near the neutral value are good
    range: tuple[float, float]  # of the shown value
    source: str
    explanation: str
    guessed: bool = False  # whether the neutral value is what guessing gives: chance
    of_labels: bool = False  # whether `neutral` holds for balanced labels alone: it is the same quotient of the labels
    digits: int | None = None  # shown after the point, None for the usual
    side: Literal["", "model", "human"] = ""  # whose captions alone it depends on, '' for both
    needs: Needs = NOTHING_MORE  # what it reads besides its measure
    reads: tuple[str, ...] = ()  # columns; () for a number that is no function of sums over images
    of: Any = share  # these columns summed, (...) or (..., W) each, to (...) unscaled values
    by_value: bool = False  # `of` gives (..., K), one for each value, or K + 1 with the neutral word last
    # Counts, K and the direction to further arguments of `of`, which are the same in all draws of a bootstrap.
    fix: Callable[[Counts, int, str], dict[str, Any]] | None = None
    gap_of: str = ""  # for a difference between groups: the metric whose values are compared
    # Pairs of metrics that decide its verdict: above 0 by the first, or below 0 by the second, in each pair counted.
    judged_by: tuple[tuple[str, str], ...] = ()
    training_twice: bool = True  # for attackers: False for a difference of sides trained on the same images
    # Over images: '' is Wilson's for a share, else a bootstrap within the range; 'share' Wilson's; 'free' a bootstrap
    # without limits.
    interval: Literal["", "share", "free"] = ""
    no_interval: str | Callable[[Counts], str] = ""  # why it has none; a function gives '' if these counts allow one


def with_gaps(*metrics: Metric, source: str = LOTUS) -> tuple[Metric, ...]:
    """Metrics of captions, each followed by its difference between groups, which are of this source."""
    rows = []
    for metric in metrics:
        short, top = metric.title.partition(",")[0], metric.range[1] - metric.range[0]
        difference = Metric(
            f"{metric.name}_gap",
            f"difference in {short} between groups",
            metric.scale,
            zero,
            "neutral",
            (-top, top),
            source,
            f"{short[0].upper()}{short[1:]} on the images of the second value minus {short} on those of the first; of "
            "more values the largest minus the smallest, which is above 0 by chance alone. The images of the groups "
            "differ too.",
            digits=metric.digits,
            needs=metric.needs,
            gap_of=metric.name,
            reads=metric.reads,
        )
        rows += [metric, difference]
    return tuple(rows)


def by_name(*metrics: Metric) -> dict[str, Metric]:
    """Metrics by name, in order. Raises CapbiasError for a name that comes twice."""
    named: dict[str, Metric] = {}
    for metric in metrics:
        if named.setdefault(metric.name, metric) is not metric:
            raise taken_twice("metric", metric.name, ["one measure"])
    return named

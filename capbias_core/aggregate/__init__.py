"""From rows of evidence to a number with its uncertainty, and to pairs that can be told apart."""

from capbias_core.aggregate.counts import Counts
from capbias_core.aggregate.estimate import (
    IMAGES,
    REFITS,
    Estimate,
    difference,
    estimate,
    intervals,
    provisional,
    quotient,
    shared_intervals,
)
from capbias_core.aggregate.ranking import Pair, Ranking, rank
from capbias_core.aggregate.refits import Refits

__all__ = [
    "IMAGES",
    "REFITS",
    "Counts",
    "Estimate",
    "Pair",
    "Ranking",
    "Refits",
    "difference",
    "estimate",
    "intervals",
    "provisional",
    "quotient",
    "rank",
    "shared_intervals",
]

"""From rows of evidence to a number with its uncertainty, and to pairs that can be told apart."""

from capbias_core.aggregate.estimate import (
    IMAGES,
    REFITS,
    Estimate,
    comparison,
    difference,
    estimate,
    provisional,
    quotient,
    shared_intervals,
)
from capbias_core.aggregate.ranking import Pair, Ranking, rank
from capbias_core.aggregate.refits import Refits

__all__ = [
    "IMAGES",
    "REFITS",
    "Estimate",
    "Pair",
    "Ranking",
    "Refits",
    "comparison",
    "difference",
    "estimate",
    "provisional",
    "quotient",
    "rank",
    "shared_intervals",
]

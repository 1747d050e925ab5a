"""From rows of evidence to a number with its two kinds of uncertainty, and to ranks that tie."""

from capbias_core.aggregate.estimate import Estimate, comparison, difference, estimate, quotient, shared_intervals
from capbias_core.aggregate.ranking import Pair, Ranking, rank

__all__ = [
    "Estimate",
    "Pair",
    "Ranking",
    "comparison",
    "difference",
    "estimate",
    "quotient",
    "rank",
    "shared_intervals",
]

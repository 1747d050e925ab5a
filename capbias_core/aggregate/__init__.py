"""`Counts` to numbers with intervals, and captioners compared in pairs."""

from capbias_core.aggregate.counts import Counts, unlabelled
from capbias_core.aggregate.estimate import IMAGES, REFITS, Estimate, intervals, provisional, quotient
from capbias_core.aggregate.ranking import Pair, Ranking, rank

__all__ = [
    "IMAGES",
    "REFITS",
    "Counts",
    "Estimate",
    "Pair",
    "Ranking",
    "intervals",
    "provisional",
    "quotient",
    "rank",
    "unlabelled",
]

"""`Counts` and `Metric` to numbers with intervals and to rows of results; captioners compared in pairs."""

from capbias_core.aggregate.counts import Counts, unlabelled
from capbias_core.aggregate.estimate import REFITS, Estimate, estimates_of, of_groups, provisional, quotient
from capbias_core.aggregate.metric import (
    DIFFERENCE,
    HIGHER_SHARE,
    LOTUS,
    LOWER_SHARE,
    MISTAKES,
    NOTHING_MORE,
    QUOTIENT,
    WEIGHT,
    WITHOUT_LIMIT,
    Metric,
    Needs,
    by_name,
    no_neutral,
    with_gaps,
    zero,
)
from capbias_core.aggregate.ranking import Pair, Ranking, rank
from capbias_core.aggregate.rows import FEWEST, OVER_SEEDS, Columns, RunFacts, object_rows, result_rows

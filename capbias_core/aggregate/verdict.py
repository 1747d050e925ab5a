"""What the attackers of LIC, each reading both sides, allow to say of amplification."""

from __future__ import annotations

from capbias_core.aggregate.estimate import REFITS, Estimate

AMPLIFIES, INCONCLUSIVE, REDUCES = "amplifies", "inconclusive", "reduces"
VERDICTS = (AMPLIFIES, INCONCLUSIVE, REDUCES)


def verdict_of(by_human: Estimate, by_model: Estimate) -> str:
    """The verdict from LIC_by_H and LIC_by_M: nothing follows from a single attacker, whose interval has no refits."""
    if by_human.interval_over != REFITS:
        return INCONCLUSIVE
    return verdict(by_human.interval()[0], by_model.interval()[1])


def verdict(by_human_low: float | None, by_model_high: float | None) -> str:
    """The verdict from the lower limit of LIC_by_H and the upper limit of LIC_by_M, None for no interval.

    >>> verdict(0.3, 2.1), verdict(-0.2, 2.1), verdict(-2.1, -0.3), verdict(0.3, -0.3)
    ('amplifies', 'inconclusive', 'reduces', 'inconclusive')
    """
    more = by_human_low is not None and by_human_low > 0
    less = by_model_high is not None and by_model_high < 0
    return INCONCLUSIVE if more == less else AMPLIFIES if more else REDUCES

"""What an interval allows to say of amplification."""

from __future__ import annotations

AMPLIFIES, NOT_SHOWN, REDUCES = "amplifies", "not shown", "reduces"
VERDICTS = (AMPLIFIES, NOT_SHOWN, REDUCES)


def verdict(low: float, high: float) -> str:
    """Of the 95% interval of an excess over a baseline.

    >>> verdict(0.3, 2.1), verdict(-0.2, 2.1), verdict(-2.1, -0.3)
    ('amplifies', 'not shown', 'reduces')
    """
    return AMPLIFIES if low > 0 else REDUCES if high < 0 else NOT_SHOWN

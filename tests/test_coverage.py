"""Intervals and pairs on data sets whose truth is known: a small run of benchmarks/statistics/coverage.py."""

from functools import partial

import pytest

from benchmarks.statistics.coverage import Setting, one_set, table


@pytest.mark.slow
def test_intervals_contain_the_truth_and_equal_captioners_are_not_told_apart():
    """24 small sets. At least 18 of 24 are contained: at 95% coverage but once in 8,000 times, at 60% once in 10."""
    setting = Setting(images=400, seeds=5, humans=2, captioners=3, amplified=1.0)
    found = table(list(map(partial(one_set, setting), range(24))))
    for name in ("LIC", "LIC_M", "LIC_D"):
        assert found[f"coverage of {name}"] > 100 * 17 / 24, name
    for name in ("a pair, LIC_M", "a pair, LIC", "any of all pairs, LIC_M"):
        assert found[name] <= 100 * 6 / 24, name
    assert found["power: an amplified captioner beside a plain one, LIC_M"] > 50

"""Metrics: each says what it is, its example runs, and small cases worked out by hand come out."""

import doctest
import inspect
import re

import numpy as np
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.measures import FAMILIES as RUNS
from capbias_core.metrics import FAMILIES, METRICS, HeldOut, Naming, expand_metrics, metric
from capbias_core.metrics.base import no_neutral
from capbias_core.metrics.error import error
from capbias_core.metrics.lic import lic
from capbias_core.metrics.ratio import ratio
from capbias_core.metrics.sentence_classification import sentence_classification


def value(parts) -> float:
    return float(parts.numerator.sum() / parts.denominator.sum())


def held_out(labels, probabilities) -> HeldOut:
    n = len(labels)
    images = tuple(map(str, range(n)))
    return HeldOut(images, np.zeros(n, int), np.arange(n), np.array(labels), np.array(probabilities, float))


def naming(labels, names) -> Naming:
    n = len(labels)
    return Naming(tuple(map(str, range(n))), np.arange(n), np.array(labels), np.array(names, bool))


def module_of(name: str):
    row = METRICS[name]
    return inspect.getmodule(row.parts or row.compare or row.function or METRICS[row.of].parts)


# the contract


@pytest.mark.parametrize("name", METRICS)
def test_every_row_says_what_it_is(name):
    row = METRICS[name]
    assert row.name == name and row.title and row.source and row.explanation
    assert re.search(r"\b(19|20)\d\d\b", row.source), "the year of its source"
    assert row.better in ("lower", "higher", "neutral") and row.scale > 0
    assert row.family in ("difference", *RUNS)
    low, high = row.range
    assert all(low <= row.neutral(k) <= high or row.neutral is no_neutral for k in (2, 3, 9))


@pytest.mark.parametrize("name", METRICS)
def test_a_difference_names_its_metric_and_others_have_parts(name):
    row = METRICS[name]
    assert (row.family == "difference") == bool(row.of)
    assert (row.family == "cooccurrence") == (row.compare is not None)
    ways = (row.compare, row.parts, row.function)
    assert [bool(row.of), *(way is not None for way in ways)].count(True) == 1
    if row.of:
        assert METRICS[row.of].parts is not None and METRICS[row.of].scale == row.scale


@pytest.mark.parametrize("name", METRICS)
def test_every_module_gives_formula_range_direction_source_and_example(name):
    module = module_of(name)
    text = module.__doc__
    assert any(line.startswith("    ") and " = " in line for line in text.splitlines()), "a formula"
    assert "Range [" in text
    assert "ower is better" in text or "igher is better" in text or "neutral point" in text
    assert any(venue in text for venue in ("CVPR", "ICCV", "ECCV", "ICML", "ACL", "EMNLP", "NeurIPS")), "a source"
    assert ">>> " in text, "an example"


@pytest.mark.parametrize("name", METRICS)
def test_examples_in_the_docstrings_run(name):
    done = doctest.testmod(module_of(name))
    assert done.attempted > 0 and done.failed == 0


# LIC and SC


def test_lic_is_the_confidence_where_right():
    # Right with 0.8, wrong, right with 0.6, right with 0.9: (0.8 + 0.6 + 0.9) / 4; three of four are right.
    evidence = held_out([1, 0, 0, 1], [[0.2, 0.8], [0.3, 0.7], [0.6, 0.4], [0.1, 0.9]])
    assert value(lic(evidence)) == pytest.approx(0.575)
    assert value(sentence_classification(evidence)) == pytest.approx(0.75)


@pytest.mark.parametrize("k", [2, 3, 9])
def test_captions_that_say_nothing_give_chance(k):
    labels = np.arange(k * 7) % k
    evidence = held_out(labels, np.full((len(labels), k), 1 / k))
    assert 100 * value(lic(evidence)) == pytest.approx(METRICS["LIC_M"].neutral(k))
    assert 100 * value(lic(evidence)) == pytest.approx(100 / k**2)
    assert 100 * value(sentence_classification(evidence)) == pytest.approx(METRICS["SC"].neutral(k))


def test_the_range_is_reached_at_both_ends():
    labels = [0, 1, 2]
    assert value(lic(held_out(labels, np.eye(3)))) == 1.0
    assert value(lic(held_out(labels, np.roll(np.eye(3), 1, axis=1)))) == 0.0


@pytest.mark.parametrize(("right", "expected"), [(0.6, 36.0), (0.7, 49.0), (0.8, 64.0), (0.9, 81.0)])
def test_an_attacker_as_sure_as_it_is_right_scores_the_square(right, expected):
    """The controlled sets of the DBAC paper (Table 3): right in a share of q with confidence q gives q squared."""
    n = 1000
    wrong = np.arange(n) >= n * right
    labels = np.arange(n) % 2
    predicted = np.where(wrong, 1 - labels, labels)
    shares = np.full((n, 2), 1 - right)
    shares[np.arange(n), predicted] = right
    assert 100 * value(lic(held_out(labels, shares))) == pytest.approx(expected)


# ratio and error

CAPTIONS = [  # label, names the first value, names the second
    (0, True, False),
    (0, False, True),
    (0, True, True),
    (0, False, False),
    (1, False, True),
    (1, False, True),
    (1, True, False),
]


def test_ratio_and_error_by_hand():
    evidence = naming([row[0] for row in CAPTIONS], [row[1:] for row in CAPTIONS])
    assert value(ratio(evidence)) == pytest.approx(3 / 2)
    assert value(error(evidence)) == pytest.approx(2 / 7)


def test_error_with_three_values():
    names = [[1, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 0]]
    assert value(error(naming([0, 0, 0, 0], names))) == pytest.approx(1 / 4)


def test_naming_only_one_value():
    evidence = naming([0] * 4, [[1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    assert evidence.only.tolist() == [[True, False, False], [False] * 3, [False] * 3, [False] * 3]


# names


def test_families_and_names_expand_once_each():
    assert expand_metrics(["lic"]) == ("LIC", "LIC_M", "LIC_D")
    assert expand_metrics(["SC", "Leakage", "error", "SC"]) == ("SC", "leakage", "SC_D", "error")
    assert expand_metrics(["sc"]) == ("SC", "SC_D") and expand_metrics(["LIC"]) == ("LIC",)
    assert {name for names in FAMILIES.values() for name in names} == set(METRICS)


def test_unknown_and_missing_names_are_refused():
    with pytest.raises(CapbiasError, match="leakage"):
        expand_metrics(["licc"])
    with pytest.raises(CapbiasError, match="no metric"):
        expand_metrics([])
    with pytest.raises(CapbiasError, match="LIC_M"):
        metric("lic_m")

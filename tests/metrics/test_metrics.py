"""Metrics: each module says what it is, its examples run, and small cases worked out by hand come out."""

import math
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from capbias_core import metrics
from capbias_core.errors import CapbiasError
from capbias_core.measures.lic import CUTS
from capbias_core.measures.registry import METRICS, expand_metrics
from capbias_core.metrics import error, lic, ratio, sentence_classification
from capbias_core.metrics.lic import lic_of_naming

ROOT = Path(__file__).resolve().parents[2]


def module(name: str):
    return import_module(f"capbias_core.metrics.{name}")


@pytest.mark.parametrize("name", METRICS)
def test_every_row_says_what_it_is(name):
    row = METRICS[name]
    assert row.name == name and row.title and row.source and row.explanation
    paper, page = re.search(r"\b(19|20)\d\d\b", row.source), (ROOT / row.source).is_file()
    assert paper or page, "the year of its source, or a page of the documentation that defines it"
    assert row.scale > 0
    low, high = row.range
    assert all(low <= row.neutral(k) <= high or math.isnan(row.neutral(k)) for k in (2, 3, 9))


TWO = [[0.2, 0.8], [0.6, 0.4]]
NAMES, TASKS = [[1, 0], [0, 1], [1, 0]], [[1], [0], [1]]
TEXTS, REFERENCES = ["a b", "c d"], [["a b", "a"], ["c d"]]
MAP, PERSON = [[0.2, 0.9]], [[True, False]]
MAPS = [
    f"attribution.{name}" for name in ("attribution_even", "attribution_pixels", "attribution_score", "pointing_game")
]
SIDES = NAMES, TASKS, NAMES, TASKS
NAMED = ([[2, 1]], [[1, 0]]), [([[0.5, 1.9]], [[0, 1]]), ([[-1, 1]], [[0, 1]]), ([[1, 1]], [[2, 1]])]
QUALITY = (REFERENCES, TEXTS), [(TEXTS, TEXTS), (REFERENCES, "a b"), ([[], ["a"]], TEXTS)]
# Each function with arguments that can be meant, and others that cannot.
ARGUMENTS: dict[str, tuple[tuple, list[tuple]]] = {
    **dict.fromkeys(MAPS, ((MAP, PERSON), [([[-1, 2]], PERSON), (MAP, [[2, 0]])])),
    "bias_amplification": (([[3], [1]], [[4], [0]]), [([[-3], [1]], [[4], [0]]), ([[0.5], [1]], [[4], [0]])]),
    "bias_ratio": (([1, 3],), [(3,)]),
    **dict.fromkeys(("bleu4", "cider", "meteor", "rouge_l"), QUALITY),
    **dict.fromkeys(("chair_i", "chair_s", "object_recall"), NAMED),
    "confidence": ((TWO, [1, 1]), [(TWO, [2, 1]), (TWO, [-1, 0]), ([[2, 8.0]], [1])]),
    "contextual_share": (([1, 1], [0, 2]), [([-1, 1], [0, 2]), ([0.5, 1], [0, 2])]),
    "unknown_share": (([0, 2], [4, 6]), [([5, 2], [2, 6]), ([-1, 2], [4, 6])]),
    **dict.fromkeys(("dba_g", "dba_o"), (SIDES, [([[2, 0]] * 3, *SIDES[1:])])),
    "multi": (SIDES, [([[2, 0]] * 3, *SIDES[1:]), (*SIDES, "TA")]),
    "dbac": ((0.9, 0.6), [(-1, 0.5), (0.5, -1), ([0.1, 0.2], [0.1])]),
    "error": ((NAMES, [0, 0, 0]), [([[2, 0]], [0]), (NAMES, [2, 0, 0]), (NAMES, [0.5, 0, 0])]),
    "estimation": (([[0.2, 0.1]],), [([0.2, 0.1],)]),
    "gender_score": (
        (0.25, 0.6, 0.5),
        [(1.5, 0.5, 0.5), (0.5, 1.5, 0.5), (0.5, 0.5, -0.1), ([0.1, 0.2], [0.1] * 3, 0.5)],
    ),
    "lic": ((TWO, [1, 1]), [(TWO, [2, 1]), (TWO, [-1, 0]), (TWO, [0, None]), (TWO, [[0], [1, 2]]), ([[2, 8.0]], [1])]),
    "lic.lic_of_naming": (([0.8, 0.4],), [([1.2, 0.4],), ([[0.8, 0.4]],)]),
    "sentence_classification": ((TWO, [1, 1]), [(TWO, ["Male", "Female"]), (TWO, [[0, 1], [1, 0]])]),
    "naming_ratio": (([792, 408], [930, 291]), [([-1, 408], [930, 291])]),
    "naming_share": ((NAMES,), [([True, False],), ([[2, 0]],)]),
    "neutral_ratio": (([0.1, 0.3], [0.4, 0.2]), []),
    "object_distance": (([[3, 4]], [[4, 3]]), [([[3, 4]], [[4, 3, 1]]), (3, 4)]),
    "performance_gap": (([0.3, 0.25],), [([0.3],), ([[0.3, 0.2]],)]),
    "predictability": ((1.0, 0.75), [(-1.0, 0.5), ([0.1, 0.2], [0.1])]),
    "ratio": ((NAMES,), [([[True, False, False]],), ([[2, 0]],)]),
    "vocabulary": ((TEXTS,), [("a man in a park",), ([1, 2],)]),
}
WITHOUT_TEXTS = {"vocabulary"}  # no caption has no word
UNPAIRED = WITHOUT_TEXTS | {"bias_ratio", "object_distance", "estimation", "lic.lic_of_naming"}
UNPAIRED |= {"naming_share", "performance_gap", "ratio"}


def function_of(name: str):
    own, _, function = name.rpartition(".")
    return getattr(module(own) if own else metrics, function)


def refused(name: str, given: tuple) -> bool:
    """Whether a function refuses arguments, with one sentence."""
    try:
        function_of(name)(*given)
    except CapbiasError as error:
        assert error.message[-1] == "." and ". " not in error.message and error.message[:1].isalpha()
        return True
    return False


def with_nan(given):
    """The same with a first number that is none, or a text."""
    if isinstance(given, list) and not isinstance(given[0], bool):
        return [with_nan(given[0]), *given[1:]]
    return math.nan


def test_every_public_metric_is_in_the_table():
    assert {name for name in ARGUMENTS if "." not in name} == set(metrics.__all__)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_that_cannot_be_meant_give_no_number(name):
    meant, others = ARGUMENTS[name]
    assert name == "meteor" or np.isfinite(function_of(name)(*meant)).all()
    for given in others:
        assert refused(name, given), given
    for place, argument in enumerate(meant):
        for wrong in ([], with_nan(argument), None, "text"):
            given = (*meant[:place], wrong, *meant[place + 1 :])
            assert refused(name, given) or (name in WITHOUT_TEXTS and wrong == []), given
        if isinstance(argument, list) and name not in UNPAIRED:
            longer = argument + argument[:1] * 2
            assert refused(name, (*meant[:place], longer, *meant[place + 1 :])), "of another length than the others"


def test_lic_of_naming_is_that_of_an_attacker_that_counts_who_is_named():
    """Of ten captions each: 9 of A name a value, 4 of B, so 9 of the 13 that do and 1 of the 7 that do not are A's."""
    named, label = np.repeat([1, 0, 1, 0], [9, 1, 4, 6]), np.repeat([0, 1], 10)
    of_a = np.where(named == 1, 9 / 13, 1 / 7)
    assert lic_of_naming([0.9, 0.4]) == pytest.approx(lic(np.column_stack([of_a, 1 - of_a]), label))
    assert lic_of_naming([0.3, 0.3, 0.3]) == pytest.approx(1 / 9)


def test_lic_is_the_confidence_where_right():
    # Right with 0.8, wrong, right with 0.6, right with 0.9: (0.8 + 0.6 + 0.9) / 4; three of four are right.
    guesses = [[0.2, 0.8], [0.3, 0.7], [0.6, 0.4], [0.1, 0.9]], [1, 0, 0, 1]
    assert lic(*guesses) == pytest.approx(0.575)
    assert sentence_classification(*guesses) == pytest.approx(0.75)


def test_captions_that_say_nothing_give_chance_and_who_is_as_sure_as_right_the_square():
    """The controlled sets of the DBAC paper (Table 3): right in a share of q with confidence q gives q squared."""
    for k in (2, 3, 9):
        labels = np.arange(k * 7) % k
        guesses = np.full((len(labels), k), 1 / k), labels
        assert 100 * lic(*guesses) == pytest.approx(100 / k**2) and METRICS["LIC_M"].neutral(k) == 100 / k**2
        assert 100 * sentence_classification(*guesses) == pytest.approx(METRICS["SC"].neutral(k))
    labels = np.arange(1000) % 2
    for right, expected in ((0.6, 36.0), (0.7, 49.0), (0.8, 64.0), (0.9, 81.0)):
        shares = np.full((1000, 2), 1 - right)
        shares[np.arange(1000), np.where(np.arange(1000) >= 1000 * right, 1 - labels, labels)] = right
        assert 100 * lic(shares, labels) == pytest.approx(expected)


def test_ratio_and_error_by_hand():
    """Of the first four captions, labelled 0, one names the other value alone; of the other three one does."""
    names = [(True, False), (False, True), (True, True), (False, False), (False, True), (False, True), (True, False)]
    assert ratio(names) == pytest.approx(3 / 2)
    assert math.isnan(ratio([(False, True)])), "not defined, as in results"
    assert error(names, [0] * 4 + [1] * 3) == pytest.approx(2 / 7)


def test_case_changes_nothing_in_a_name():
    first, *others = ("LIC", "LIC_by_H", "LIC_by_M", *CUTS, "LIC_M", "LIC_D", "LIC_HM", "LIC_MH")
    for asked, expected in (
        (["lic"], (first, *others)),
        (["lic_m"], ("LIC_M",)),
        (["SC", "Leakage", "error", "SC"], ("SC", "SC_D", "leakage", "error", "error_gap")),
        (["meteor_ALIGNED"], ("METEOR_aligned",)),
    ):
        assert expand_metrics(asked) == expected

"""Intervals of what attackers give: the corrected resampled variance, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from capbias_core.aggregate import IMAGES, REFITS, Estimate, difference, estimate
from capbias_core.aggregate.refits import refit_interval, refit_p
from capbias_core.measures.held_out import confidence_where_right, held_out_bytes, held_out_from
from capbias_core.metrics.evidence import HeldOut

# 2, 4 and 9: mean 5, variance (9 + 1 + 16) / 2 = 13. With a tenth of the images held out the test is a ninth of the
# training: standard error sqrt(13 * (1/3 + 1/9)) = 2.40370. t(0.975, 2) = 4.30265 (a table of Student's t).
VALUES = np.array([2.0, 4.0, 9.0])
HALF = 4.30265 * 2.40370


def held(scores, seed, image, training: int) -> HeldOut:
    """Held-out predictions whose LIC numerator is `scores`."""
    scores = np.asarray(scores, float)
    right = np.where(scores > 0, scores, 0.3)
    images = tuple(f"i{place}" for place in range(max(image) + 1))
    shares = np.column_stack([1 - right, right])
    return HeldOut(images, np.array(seed), np.array(image), np.ones(len(scores), int), shares, training)


def lic_of(own: HeldOut) -> Estimate:
    return estimate(confidence_where_right(own), own, 100)


def test_the_half_width_by_hand():
    assert refit_interval(VALUES, 1 / 9) == (pytest.approx(5 - HALF, abs=1e-3), pytest.approx(5 + HALF, abs=1e-3))


def test_p_by_hand():
    # t = 5 / 2.40370 = 2.0801 with 2 degrees of freedom: p = 1 - t / sqrt(t^2 + 2) = 0.17301.
    assert refit_p(VALUES, 1 / 9) == pytest.approx(0.17301, abs=1e-4)
    assert refit_p(VALUES - 5, 1 / 9) == 1
    assert refit_p(np.zeros(3), 1 / 9) == 1 and refit_p(np.ones(3), 1 / 9) == 0


def test_what_is_not_finite_has_no_interval():
    broken = np.array([1.0, np.inf])
    assert refit_interval(broken, 0.1) == (None, None) and refit_p(broken, 0.1) == 1


def test_a_level_and_a_difference_by_hand():
    """Seeds 0 and 1 hold out 2 images each and train on 8: a level adds 2 * 1/4 to 1/2, a difference 1/4.

    LIC_M by seed 40 and 80: variance 800. LIC_D by seed 30 and 50; the differences 10 and 30 have variance 200.
    t(0.975, 1) = 12.7062.
    """
    model = held([0.8, 0.0, 0.6, 1.0], [4, 4, 9, 9], [0, 1, 1, 2], 8)
    human = held([0.6, 0.0, 1.0, 0.0], [4, 4, 9, 9], [0, 1, 1, 2], 8)
    level = lic_of(model)
    assert level.interval_over == REFITS
    half = 12.7062 * np.sqrt(800 * (1 / 2 + 2 / 4))
    assert level.interval() == (pytest.approx(60 - half, abs=0.01), pytest.approx(60 + half, abs=0.01))
    both = difference(confidence_where_right(model), model, confidence_where_right(human), human, 100)
    half = 12.7062 * np.sqrt(200 * (1 / 2 + 1 / 4))
    assert both.interval() == (pytest.approx(20 - half, abs=0.01), pytest.approx(20 + half, abs=0.01))


def test_the_sums_of_seeds_are_over_the_images_that_count():
    model = held([0.8, 0.0, 0.6, 1.0], [4, 4, 9, 9], [0, 1, 1, 2], 8)
    refits = lic_of(model).refits
    assert refits.seeds == (4, 9)
    assert refits.held_out.tolist() == [[True, True, False], [False, True, True]]
    kept = refits.held_out & np.array([False, True, True])
    assert refits.sums(kept) == pytest.approx(np.array([[0.0, 1], [1.6, 2]]))


def test_one_seed_and_nothing_trained_keep_the_bootstrap():
    one = lic_of(held([0.8, 0.0, 0.6], [0, 0, 0], [0, 1, 2], 8))
    assert one.interval_over == IMAGES and "given this one attacker" in one.interval_method
    untrained = lic_of(held([0.8, 0.0, 0.6, 1.0], [4, 4, 9, 9], [0, 1, 1, 2], 0))
    assert untrained.interval_over == IMAGES and untrained.interval_method == "95% image bootstrap, 1000 draws"


def test_a_row_says_what_its_interval_is_over():
    found = lic_of(held([0.8, 0.0, 0.6, 1.0], [4, 4, 9, 9], [0, 1, 1, 2], 8))
    assert found.columns()["interval"] == REFITS
    assert found.columns((None, None))["interval"] == ""


def test_how_many_were_trained_on_survives_its_bytes():
    own = held([0.8, 0.0], [0, 1], [0, 1], 8)
    assert held_out_from(held_out_bytes(own)).training == 8
    assert held_out_from(held_out_bytes(replace(own, training=0))).training == 0

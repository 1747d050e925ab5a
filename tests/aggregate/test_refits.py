"""Intervals and pairs of what attackers give: the corrected resampled variance, worked out by hand."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from capbias_core.aggregate import REFITS, Counts, Estimate, rank
from capbias_core.aggregate.ranking import BY_SEED, compact_letters
from capbias_core.aggregate.resampling import refit_interval, refit_p
from capbias_core.measures.training import Guesses
from capbias_core.metrics.share import difference, share

# 2, 4 and 9: mean 5, variance (9 + 1 + 16) / 2 = 13. With a tenth of the images held out the test is a ninth of the
# training: standard error sqrt(13 * (1/3 + 1/9)) = 2.40370. t(0.975, 2) = 4.30265 (a table of Student's t).
VALUES = np.array([2.0, 4.0, 9.0])
HALF = 4.30265 * 2.40370


def held(scores, seed, image, training: int) -> Guesses:
    """Held-out predictions whose LIC numerator is `scores`."""
    scores = np.asarray(scores, float)
    right = np.where(scores > 0, scores, 0.3)
    images = tuple(f"i{place}" for place in range(max(image) + 1))
    shares = np.column_stack([1 - right, right])
    return Guesses(images, np.array(seed), np.array(image), np.ones(len(scores), int), shares, training)


def lic_of(own: Guesses, **given) -> Estimate:
    return Estimate.read(own.counts("m").reading(("m sure", "m captions")), share, 100, **given)


def test_the_half_width_by_hand():
    assert refit_interval(VALUES, 1 / 9) == (pytest.approx(5 - HALF, abs=1e-3), pytest.approx(5 + HALF, abs=1e-3))


def test_p_by_hand():
    # t = 5 / 2.40370 = 2.0801 with 2 degrees of freedom: p = 1 - t / sqrt(t^2 + 2) = 0.17301.
    assert refit_p(VALUES, 1 / 9) == pytest.approx(0.17301, abs=1e-4)
    assert refit_p(VALUES - 5, 1 / 9) == 1


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
    counts = Counts.merge([model.counts("m"), human.counts("h")])
    counts = counts.reading(("m sure", "m captions", "h sure", "h captions"))
    both = Estimate.read(counts, difference, 100, level=False)
    half = 12.7062 * np.sqrt(200 * (1 / 2 + 1 / 4))
    assert both.interval() == (pytest.approx(20 - half, abs=0.01), pytest.approx(20 + half, abs=0.01))


def test_an_interval_ends_where_the_range_of_its_metric_does():
    """LIC_M of 40 and 80 by seed is 60 ± 229 (above); seeds of 60 and 61 stay as they are by hand."""
    wide = held([0.8, 0.0, 0.6, 1.0], [4, 4, 9, 9], [0, 1, 1, 2], 8)
    assert lic_of(wide, span=(0, 100)).interval() == (0, 100)
    close = held([0.6, 0.6, 0.61, 0.61], [4, 4, 9, 9], [0, 1, 1, 2], 8)
    half = 12.7062 * np.sqrt(0.5 * (1 / 2 + 2 / 4))
    low, high = lic_of(close, span=(0, 100)).interval()
    assert low == pytest.approx(60.5 - half, abs=1e-3) and high == pytest.approx(60.5 + half, abs=1e-3)
    wider, closer = (seeded(own, [[0, 1, 2], [1, 2, 3]]) for own in ([[0.2] * 3, [1.0] * 3], [[0.6] * 3, [0.61] * 3]))
    first, other = (replace(own, span=(0, 100)) for own in (wider, closer))
    (pair,) = rank({"first": first, "other": other}).pairs
    assert (pair.ci_low, pair.ci_high) == (-100, 100), "a difference of two numbers of 0 to 100"


def test_seeds_that_agree_say_nothing_of_their_spread():
    """0.1 + 0.2 is not 0.3 to a computer: seeds agree but for the rounding of sums."""
    same = held([0.1 + 0.2, 0.3, 0.3, 0.3], [4, 4, 9, 9], [0, 1, 1, 2], 8)
    assert lic_of(same).columns() | {"value": 0} == {
        "value": 0, "spread": pytest.approx(0), "spread_kind": "std", "scale": 100, "seeds": 2, "training": 8,
        "ci_low": None, "ci_high": None, "interval": "",
    }  # fmt: skip
    assert refit_interval(np.ones(3), 1 / 9) == (None, None)
    assert refit_p(np.zeros(3), 1 / 9) == refit_p(np.ones(3), 1 / 9) == 1
    (pair,) = rank(
        {name: seeded([[score] * 3, [score] * 3], [[0, 1, 2], [1, 2, 3]]) for name, score in (("a", 0.9), ("b", 0.6))}
    ).pairs
    assert pair.ci_low is None and not pair.apart


# pairs


COPIES = 10  # of each image below: captioners need 30 shared images


def seeded(scores_by_seed: list[list[float]], images: list[list[int]], n_images: int = 4) -> Estimate:
    """LIC_M of attackers that hold out these images, each ten times, trained on 80 others."""
    seed = [number for number, places in enumerate(images) for _ in range(COPIES * len(places))]
    image = [COPIES * place + copy for places in images for place in places for copy in range(COPIES)]
    scores = [score for by_image in scores_by_seed for score in by_image for _ in range(COPIES)]
    return lic_of(
        replace(held(scores, seed, image, 80), images=tuple(f"i{place}" for place in range(COPIES * n_images)))
    )


HELD_OUT = [[0, 1], [1, 2], [2, 3]]


def test_a_pair_is_compared_within_each_seed_by_hand():
    """Differences by seed: 80 - 60, 70 - 60, 90 - 60 = 20, 10, 30: mean 20, variance 100, error 10 * sqrt(1/3 + 1/4).

    t(0.975, 2) = 4.30265; t = 20 / 7.63763 = 2.61861, p = 1 - t / sqrt(t^2 + 2) = 0.12012.
    """
    high = seeded([[0.8, 0.8], [0.7, 0.7], [0.9, 0.9]], HELD_OUT)
    low = seeded([[0.6, 0.6], [0.6, 0.6], [0.6, 0.6]], HELD_OUT)
    found = rank({"high": high, "low": low})
    (pair,) = found.pairs
    assert pair.difference == pytest.approx(20) and pair.p == pytest.approx(0.12012, abs=1e-4)
    assert (pair.ci_low, pair.ci_high) == (
        pytest.approx(20 - 4.30265 * 7.63763, abs=1e-3),
        pytest.approx(20 + 4.30265 * 7.63763, abs=1e-3),
    )
    assert not pair.apart and found.letters == {"high": "a", "low": "a"}
    assert found.method == BY_SEED and not found.provisional


def test_only_images_that_both_hold_out_in_a_seed_are_compared():
    """Seed 0: both hold out image 1 (0.9 and 0.6); seed 1: image 2 (0.8 and 0.7), 3 (0.8 and 0.9). Means 85 and 70."""
    first = seeded([[0.5, 0.9], [0.5, 0.8, 0.8]], [[0, 1], [1, 2, 3]])
    other = seeded([[0.6, 1.0], [0.7, 0.9]], [[1, 3], [2, 3]])
    (pair,) = rank({"first": first, "other": other}).pairs
    assert pair.difference == pytest.approx(85 - 70)


def test_a_pair_of_other_images_has_the_wider_error_by_hand():
    """Differences 20, 10, 30 as above; test over training images (2 / 8 + 5 / 24) / 2, counted twice.

    error 10 * sqrt(1/3 + 2 * 0.229167) = 8.89757; t = 20 / 8.89757 = 2.24780, p = 1 - t / sqrt(t^2 + 2) = 0.15360.
    """
    high = seeded([[0.8, 0.8], [0.7, 0.7], [0.9, 0.9]], HELD_OUT)
    low = seeded([[0.6, 0.6], [0.6, 0.6], [0.6]], [[0, 1], [1, 2], [2]], n_images=3)
    (pair,) = rank({"high": high, "low": low}).pairs
    assert pair.difference == pytest.approx(20) and pair.p == pytest.approx(0.15360, abs=1e-4)


def test_a_captioner_of_few_images_leaves_the_other_pairs_as_they_are():
    """Its attackers learned from half as many images as theirs, then from nearly as many; then it shares ten images."""
    high = seeded([[0.8, 0.8], [0.7, 0.7], [0.9, 0.9]], HELD_OUT)
    low = seeded([[0.6, 0.6], [0.6, 0.6], [0.6, 0.6]], HELD_OUT)
    few = seeded([[0.5, 0.5], [0.6, 0.6], [0.4]], [[0, 1], [1, 2], [2]], n_images=3)
    fewer = seeded([[0.5], [0.6], [0.4]], [[0], [0], [0]], n_images=1)
    alone = rank({"high": high, "low": low})
    every = {("high", "low"), ("few", "low"), ("high", "few")}
    for third, training, pairs in ((few, 40, {("high", "low")}), (few, 70, every), (fewer, 80, {("high", "low")})):
        found = rank({"high": high, "few": replace(third, refits=replace(third.refits, training=training)), "low": low})
        assert {(pair.first, pair.second) for pair in found.pairs} == pairs
        assert replace(next(pair for pair in found.pairs if (pair.first, pair.second) == ("high", "low")), p=0) == (
            replace(alone.pairs[0], p=0)
        )
        shared = set(found.letters["few"]) & set(found.letters["high"])
        assert bool(shared) == (pairs == every), "who is not compared shares no letter"


@pytest.mark.parametrize(
    ("apart", "letters"),
    [
        ([], ["a", "a", "a", "a"]),
        # From {wxyz}: w-y gives {xyz} {wxz}; w-z gives {xyz} {xz} {wx}, of which {xz} is absorbed; x-z gives
        # {yz} {xy} {wx}.
        (["wy", "wz", "xz"], ["a", "ab", "bc", "c"]),
        # A pair in the middle alone: {wyz} and {wxz}.
        (["xy"], ["ab", "a", "b", "ab"]),
        (["wx", "wy", "wz", "xy", "xz", "yz"], ["a", "b", "c", "d"]),
    ],
)
def test_letters_by_hand(apart, letters):
    found = compact_letters(list("wxyz"), [tuple(pair) for pair in apart])
    assert list(found.values()) == letters


def test_names_share_a_letter_unless_they_are_apart():
    rng = np.random.default_rng(0)
    names = [f"c{number}" for number in range(8)]
    for _ in range(50):
        apart = [pair for pair in combinations(names, 2) if rng.random() < 0.5]
        found = compact_letters(names, apart)
        for pair in combinations(names, 2):
            assert (not set(found[pair[0]]) & set(found[pair[1]])) == (pair in apart)

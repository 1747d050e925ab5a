"""Counts, values, spread, intervals over images and with refits, pairs: by hand and against plain loops."""

import random
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, issparse
from scipy.stats import binomtest

from capbias_core.aggregate import REFITS, Counts, Estimate, rank
from capbias_core.aggregate.counts import EVERY_SEED
from capbias_core.aggregate.estimate import intervals, quotient
from capbias_core.aggregate.ranking import BY_SEED, LEAST_SHARED, compact_letters, holm
from capbias_core.aggregate.resampling import refit_interval, refit_p, resampled_sums
from capbias_core.measures.training import Guesses
from capbias_core.metrics.share import difference, share
from capbias_core.views.sentence import significance_note


def evidence(scores, seed=None, image=None, n_images=None, training=0) -> Guesses:
    """Held-out predictions whose LIC numerator is `scores`: right with that confidence, or wrong where it is 0."""
    scores = np.asarray(scores, float)
    n = len(scores)
    image = np.arange(n) if image is None else np.asarray(image)
    right = np.where(scores > 0, scores, 0.3)
    shares = np.column_stack([1 - right, right])
    seed = np.zeros(n, int) if seed is None else np.asarray(seed)
    images = tuple(f"i{place}" for place in range(n_images or image.max() + 1))
    return Guesses(images, seed, image, np.ones(n, int), shares, training)


def lic_of(held: Guesses, **facts) -> Estimate:
    return Estimate.read(held.counts("m").reading(("m sure", "m captions")), share, 100, **facts)


def difference_of(model: Guesses, human: Guesses) -> Estimate:
    counts = Counts.merge([model.counts("m"), human.counts("h")])
    return Estimate.read(
        counts.reading(("m sure", "m captions", "h sure", "h captions")), difference, 100, training_twice=False
    )


def confidences(n: int, share_right: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < share_right, rng.uniform(0.5, 1, n), 0.0)


def width(found: Estimate) -> float:
    low, high = found.interval()
    return high - low


def test_value_and_spread_over_seeds_by_hand():
    # Seed 4: (0.8 + 0) / 2 = 40; seed 9: (0.6 + 1.0) / 2 = 80. Mean 60, standard deviation (ddof 1) 28.284.
    held = evidence([0.8, 0.0, 0.6, 1.0], seed=[4, 4, 9, 9], image=[0, 1, 1, 2])
    found = lic_of(held)
    assert found.seed_values == pytest.approx([40, 80])
    assert found.value == pytest.approx(60)
    assert found.spread == pytest.approx(28.284271)
    assert found.sums.tolist() == pytest.approx(np.array([[0.8, 1], [0.6, 2], [1.0, 1]]))


def plain_bootstrap(rows_of_image: list[list[tuple[float, float]]], draws: int, seed: int) -> tuple[float, float]:
    """Percentile bootstrap over images as a loop: draw images, pool all their rows, take the quotient."""
    rng = random.Random(seed)
    values = []
    for _ in range(draws):
        drawn = [row for image in rng.choices(rows_of_image, k=len(rows_of_image)) for row in image]
        values.append(100 * sum(row[0] for row in drawn) / sum(row[1] for row in drawn))
    values.sort()
    return values[round(0.025 * draws)], values[round(0.975 * draws) - 1]


def test_the_interval_is_that_of_a_plain_loop():
    scores = confidences(150, 0.6, seed=1)
    image = np.random.default_rng(2).integers(0, 60, 150)
    image[:60] = np.arange(60)
    found = lic_of(evidence(scores, image=image))
    rows = [[(score, 1.0) for score in scores[image == place]] for place in range(60)]
    low, high = plain_bootstrap(rows, draws=4000, seed=3)
    # The ends of 1,000 draws vary by about 0.3 where the interval is this wide.
    assert 10 < high - low < 16
    assert found.interval() == (pytest.approx(low, abs=1), pytest.approx(high, abs=1))


def test_drawing_patterns_is_drawing_images():
    rng = np.random.default_rng(6)
    few = np.column_stack([rng.random(600) < 0.3, rng.random(600) < 0.6]).astype(float)
    unique = np.column_stack([few, np.arange(600)])  # a third column makes every row its own pattern
    fast, slow = resampled_sums(few, 0, 4000), resampled_sums(unique, 0, 4000)[:, :2]
    assert fast.shape == slow.shape == (4000, 2)
    for sums in (fast, slow):
        assert sums.mean(axis=0) == pytest.approx(few.sum(axis=0), abs=1)
        assert np.cov(sums.T) == pytest.approx(600 * np.cov(few.T, ddof=0), rel=0.12, abs=8)


def share_of(numerators, denominators) -> Estimate:
    sums = np.column_stack([numerators, denominators]).astype(float)
    return Estimate(tuple(map(str, range(len(sums)))), sums, np.zeros(0), 100, quotient, span=(0, 100), share=True)


@pytest.mark.parametrize(("wrong", "n"), [(0, 40), (2, 40), (20, 40), (40, 40), (37, 8423)])
def test_a_share_of_captions_has_wilsons_interval(wrong, n):
    """As statsmodels' and scipy's; an image without a denominator is no draw."""
    found = share_of([1] * wrong + [0] * (n - wrong + 10), [1] * n + [0] * 10)
    expected = binomtest(wrong, n).proportion_ci(method="wilson")
    assert found.interval() == pytest.approx((100 * expected.low, 100 * expected.high), abs=1e-9)
    assert found.interval_method == "95% Wilson interval over images"
    assert intervals({"share": found})["share"] == found.interval()


def test_captions_of_one_image_that_agree_are_one_draw():
    """Five captions of each image, all right or all wrong, are worth one; five that differ at random are worth five."""
    rng = np.random.default_rng(0)
    wrong = rng.random(400) < 0.2
    assert share_of(5 * wrong, np.full(400, 5)).interval() == pytest.approx(share_of(wrong, np.ones(400)).interval())
    mixed = rng.binomial(5, 0.2, 2000)
    single = share_of(np.repeat([1, 0], [mixed.sum(), 10_000 - mixed.sum()]), np.ones(10_000))
    assert width(share_of(mixed, np.full(2000, 5))) == pytest.approx(width(single), rel=0.06)


def test_an_interval_without_width_is_none():
    half = share_of(np.ones(40), np.full(40, 2))
    assert half.value == 50 and half.interval() == (None, None), "nothing is known of its spread"
    ten = replace(half, share=False, span=(0, np.inf))
    assert ten.interval() == intervals({"ten": ten})["ten"] == (None, None), "ten words in every caption"
    gap = share_of(np.zeros(50), np.ones(50)).across(np.arange(50) % 2, 2, lambda own: own[..., 1] - own[..., 0])
    assert gap.value == 0 and gap.interval() == (None, None)
    assert share_of(np.zeros(3), np.zeros(3)).interval() == (None, None), "no caption counts"
    columns = {"second": np.array([0.0] + [1] * 9), "first": np.array([1.0] + [0] * 9)}
    found = Estimate.read(Counts.by_image("abcdefghij", np.zeros(10, int), columns), share, 1)
    assert found.value == 9 and found.interval() == (None, None), "in a draw it may not be defined"


def test_a_difference_is_paired_on_images_and_seeds_by_hand():
    model = evidence([0.8, 0.6, 1.0, 0.0], seed=[0, 0, 1, 1], image=[0, 1, 1, 2])
    human = evidence([0.6, 0.0, 0.6, 0.8, 0.8, 0.7, 0.0, 0.0], [0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 1, 2, 1, 2])
    found = difference_of(model, human)
    # Seed 0: 70 - 50; seed 1: 50 - 37.5.
    assert found.seed_values == pytest.approx([20, 12.5])
    assert found.value == pytest.approx(16.25)
    assert found.spread == pytest.approx(np.std([20, 12.5], ddof=1))
    assert found.sums[0] == pytest.approx([0.8, 1, 1.2, 2])
    assert found.sums[1] == pytest.approx([1.6, 2, 1.6, 4])


def test_holm():
    """Holm 1979 by hand: 0.005 x 4, 0.01 x 3, 0.03 x 2, and 0.04 x 1 raised to the one before it."""
    for raw, corrected in (([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]), ([0.5, 0.6], [1.0, 1.0])):
        assert holm(np.array(raw)) == pytest.approx(corrected)


def exactly(right: int, seed: int, n: int = 400) -> Estimate:
    scores = np.where(np.arange(n) < right, 0.8, 0.0)
    return lic_of(evidence(np.random.default_rng(seed).permutation(scores)))


def test_a_captioner_between_two_ties_with_both():
    # Steps of 4 with a standard error of 2.8: z is 1.4 for neighbours (tied), 2.9 for the ends (corrected p 0.01).
    found = rank({"low": exactly(220, 1), "between": exactly(240, 2), "high": exactly(260, 3)})
    apart = {(pair.first, pair.second): pair.p < 0.05 for pair in found.pairs}
    assert apart == {("low", "between"): False, ("low", "high"): True, ("between", "high"): False}
    assert found.letters == {"low": "a", "between": "ab", "high": "b"}


def test_differences_are_paired_on_the_images_that_all_have():
    """And one that is the same on every image has no interval: 90 and 60 on all 40 images, so no draw differs, and p
    is the sign test's, 2 * 0.5^40."""
    scores = confidences(70, 0.6, seed=8)
    a = lic_of(evidence(scores[:50], image=range(50), n_images=70))
    b = lic_of(evidence(np.roll(scores, 3)[20:], image=range(20, 70), n_images=70))
    (pair,) = rank({"a": a, "b": b}).pairs
    assert pair.difference == pytest.approx(100 * (scores[20:50] - np.roll(scores, 3)[20:50]).mean())
    (pair,) = rank({"a": lic_of(evidence([0.9] * 40)), "b": lic_of(evidence([0.6] * 40))}).pairs
    assert pair.difference == pytest.approx(30) and (pair.ci_low, pair.ci_high) == (None, None)
    assert pair.p == pytest.approx(2 * 0.5**40)


def test_captioners_that_share_few_images_are_not_compared():
    """One shared image said that 90 and 60 differ with p = 0: there was one difference, so no draw differed."""
    a = lic_of(evidence([0.9] * 40, image=range(40), n_images=100))
    for shared in (0, 1, LEAST_SHARED - 1, LEAST_SHARED):
        b = lic_of(evidence([0.6] * 40, image=range(40 - shared, 80 - shared), n_images=100))
        found, compared = rank({"a": a, "b": b}), shared == LEAST_SHARED
        assert len(found.pairs) == compared
        assert found.letters == ({"a": "b", "b": "a"} if compared else {"a": "", "b": ""})
        assert compared or f"share fewer than {LEAST_SHARED} images" in significance_note(found)
    assert rank({"a": a}).letters == {"a": ""} and rank({}).letters == {}


def test_few_images_that_differ_tell_nobody_apart():
    """Of 500 images 5 differ, all one way: the sign test says p = 2 * 0.5^5 = 0.06, the normal distribution 0.02."""
    once = np.full(500, 0.6)
    more = np.where(np.arange(500) < 5, 0.9, once)
    (pair,) = rank({"a": lic_of(evidence(more)), "b": lic_of(evidence(once))}).pairs
    assert pair.difference == pytest.approx(0.3) and 0.05 < pair.p < 0.15
    (pair,) = rank({"a": lic_of(evidence(more[4:])), "b": lic_of(evidence(once[4:]))}).pairs
    assert pair.p == 1, "one image"


def test_captioners_that_are_not_compared_with_most_have_no_letter():
    def of(score: float, first: int, last: int):
        images = list(range(first, last))
        scores = score + np.random.default_rng(int(100 * score)).uniform(0, 0.1, len(images))
        return lic_of(evidence(scores, image=images, n_images=120))

    ends = {"low": (0.2, 0, 40), "high": (0.8, 0, 40), "same": (0.2, 0, 40), "other": (0.3, 40, 80)}
    ends |= {"higher": (0.7, 40, 80), "alone": (0.5, 100, 120)}
    found = rank({name: of(*given) for name, given in ends.items()})
    assert found.letters == {"low": "a", "high": "b", "same": "a", "other": "", "higher": "", "alone": ""}
    said = significance_note(found)
    assert "11 pairs not compared: " in said and said.endswith("most captioners: other (40), higher (40), alone (20).")


def test_an_undefined_value_is_never_told_apart():
    def naming(names) -> Estimate:
        columns = {"second": names[:, 1].astype(float), "first": names[:, 0].astype(float)}
        counts = Counts.by_image(map(str, range(len(names))), np.zeros(len(names), int), columns)
        return Estimate.read(counts, share, 1)

    never, mixed = np.array([[False, True]] * 40), np.array([[False, True], [True, False]] * 20)
    found = rank({"never": naming(never), "mixed": naming(mixed)})
    assert found.letters == {"never": "a", "mixed": "a"} and found.pairs[0].p == 1


def test_the_corrected_resampled_variance_by_hand():
    """2, 4 and 9: mean 5, variance (9 + 1 + 16) / 2 = 13. With a tenth of the images held out the test is a ninth of
    the training: standard error sqrt(13 * (1/3 + 1/9)) = 2.40370. t(0.975, 2) = 4.30265 (a table of Student's t).
    t = 5 / 2.40370 = 2.0801 with 2 degrees of freedom: p = 1 - t / sqrt(t^2 + 2) = 0.17301."""
    values, half = np.array([2.0, 4.0, 9.0]), 4.30265 * 2.40370
    assert refit_interval(values, 1 / 9) == (pytest.approx(5 - half, abs=1e-3), pytest.approx(5 + half, abs=1e-3))
    assert refit_p(values, 1 / 9) == pytest.approx(0.17301, abs=1e-4) and refit_p(values - 5, 1 / 9) == 1


def test_a_level_and_a_difference_by_hand():
    """Seeds 0 and 1 hold out 2 images each and train on 8: a level adds 2 * 1/4 to 1/2, a difference 1/4.

    LIC_M by seed 40 and 80: variance 800. LIC_D by seed 30 and 50; the differences 10 and 30 have variance 200.
    t(0.975, 1) = 12.7062.
    """
    model = evidence([0.8, 0.0, 0.6, 1.0], [4, 4, 9, 9], [0, 1, 1, 2], training=8)
    human = evidence([0.6, 0.0, 1.0, 0.0], [4, 4, 9, 9], [0, 1, 1, 2], training=8)
    level = lic_of(model)
    assert level.interval_over == REFITS
    half = 12.7062 * np.sqrt(800 * (1 / 2 + 2 / 4))
    assert level.interval() == (pytest.approx(60 - half, abs=0.01), pytest.approx(60 + half, abs=0.01))
    both = difference_of(model, human)
    half = 12.7062 * np.sqrt(200 * (1 / 2 + 1 / 4))
    assert both.interval() == (pytest.approx(20 - half, abs=0.01), pytest.approx(20 + half, abs=0.01))


def test_an_interval_ends_where_the_range_of_its_metric_does():
    """LIC_M of 40 and 80 by seed is 60 ± 229 (above); seeds of 60 and 61 stay as they are by hand."""
    wide = evidence([0.8, 0.0, 0.6, 1.0], [4, 4, 9, 9], [0, 1, 1, 2], training=8)
    assert lic_of(wide, span=(0, 100)).interval() == (0, 100)
    close = evidence([0.6, 0.6, 0.61, 0.61], [4, 4, 9, 9], [0, 1, 1, 2], training=8)
    half = 12.7062 * np.sqrt(0.5 * (1 / 2 + 2 / 4))
    low, high = lic_of(close, span=(0, 100)).interval()
    assert low == pytest.approx(60.5 - half, abs=1e-3) and high == pytest.approx(60.5 + half, abs=1e-3)
    wider, closer = (seeded(own, [[0, 1, 2], [1, 2, 3]]) for own in ([[0.2] * 3, [1.0] * 3], [[0.6] * 3, [0.61] * 3]))
    first, other = (replace(own, span=(0, 100)) for own in (wider, closer))
    (pair,) = rank({"first": first, "other": other}).pairs
    assert (pair.ci_low, pair.ci_high) == (-100, 100), "a difference of two numbers of 0 to 100"


def test_seeds_that_agree_say_nothing_of_their_spread():
    """0.1 + 0.2 is not 0.3 to a computer: seeds agree but for the rounding of sums."""
    same = evidence([0.1 + 0.2, 0.3, 0.3, 0.3], [4, 4, 9, 9], [0, 1, 1, 2], training=8)
    assert lic_of(same).columns() | {"value": 0} == {
        "value": 0, "spread": pytest.approx(0), "spread_kind": "std", "scale": 100, "seeds": 2, "training": 8,
        "ci_low": None, "ci_high": None, "interval": "",
    }  # fmt: skip
    assert refit_interval(np.ones(3), 1 / 9) == (None, None)
    assert refit_p(np.zeros(3), 1 / 9) == refit_p(np.ones(3), 1 / 9) == 1
    high, low = (seeded([[score] * 3, [score] * 3], [[0, 1, 2], [1, 2, 3]]) for score in (0.9, 0.6))
    (pair,) = rank({"a": high, "b": low}).pairs
    assert pair.ci_low is None and not pair.apart


COPIES = 10  # of each image below: captioners need 30 shared images


def seeded(scores_by_seed: list[list[float]], images: list[list[int]], n_images: int = 4) -> Estimate:
    """LIC_M of attackers that hold out these images, each ten times, trained on 80 others."""
    seed = [number for number, places in enumerate(images) for _ in range(COPIES * len(places))]
    image = [COPIES * place + copy for places in images for place in places for copy in range(COPIES)]
    scores = [score for by_image in scores_by_seed for score in by_image for _ in range(COPIES)]
    return lic_of(evidence(scores, seed, image, n_images * COPIES, training=80))


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
    half = 4.30265 * 7.63763
    assert (pair.ci_low, pair.ci_high) == pytest.approx((20 - half, 20 + half), abs=1e-3)
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


def test_letters_by_hand_and_names_share_a_letter_unless_they_are_apart():
    for apart, letters in (
        ([], ["a", "a", "a", "a"]),
        # From {wxyz}: w-y gives {xyz} {wxz}; w-z gives {xyz} {xz} {wx}, of which {xz} is absorbed; x-z gives
        # {yz} {xy} {wx}.
        (["wy", "wz", "xz"], ["a", "ab", "bc", "c"]),
        # A pair in the middle alone: {wyz} and {wxz}.
        (["xy"], ["ab", "a", "b", "ab"]),
        (["wx", "wy", "wz", "xy", "xz", "yz"], ["a", "b", "c", "d"]),
    ):
        found = compact_letters(list("wxyz"), [tuple(pair) for pair in apart])
        assert list(found.values()) == letters
    rng = np.random.default_rng(0)
    names = [f"c{number}" for number in range(8)]
    for _ in range(50):
        apart = [pair for pair in combinations(names, 2) if rng.random() < 0.5]
        found = compact_letters(names, apart)
        for pair in combinations(names, 2):
            assert (not set(found[pair[0]]) & set(found[pair[1]])) == (pair in apart)


def made(seed: int, seeded: bool = True) -> Counts:
    """Counts of 12 images in random order: of three seeds that each test some, with rows of all seeds, or of none."""
    rng = np.random.default_rng(seed)
    images, label = tuple(f"i{place}" for place in range(12)), rng.integers(0, 3, 12)
    image, seeds = np.arange(12), None
    if seeded:
        pairs = [(own, image) for own in (4, 7, 9) for image in rng.permutation(11)[:5]]
        pairs += [(EVERY_SEED, image) for image in range(6)]
        seeds, image = map(np.array, zip(*pairs, strict=True))
    n = len(image)
    columns = {
        "one": rng.random(n),
        "block": rng.integers(0, 4, (n, 3)).astype(float),
        "sparse": csr_array(rng.random((n, 4)) * (rng.random((n, 4)) < 0.3)),
    }
    return Counts(images, label, columns, image, seeds, 30 if seeded else 0, {"metric": 0.5})


def dense(counts: Counts) -> np.ndarray:
    return counts.table.toarray() if issparse(counts.table) else counts.table


def same(one: Counts, other: Counts) -> bool:
    facts = [(own.images, own.training, own.constants, own.widths, own.table.dtype) for own in (one, other)]
    arrays = [(own.label, own.image, own.seed, dense(own)) for own in (one, other)]
    return facts[0] == facts[1] and all(np.array_equal(*pair) for pair in zip(*arrays, strict=True))


@pytest.mark.parametrize("seed", range(2))
def test_what_is_kept_comes_back_and_groups_of_images_sum_to_the_whole(seed):
    for seeded in (False, True):
        counts = made(seed, seeded)
        assert same(Counts.load(counts.save()), counts)
        assert not same(Counts.load(counts.save()), made(seed + 1, seeded))
    parts = [counts.subset(counts.label == value) for value in range(3)]
    assert sum(len(part.images) for part in parts) == 12 and sum(len(part.image) for part in parts) == 21
    assert sum(dense(part).sum(axis=0) for part in parts) == pytest.approx(dense(counts).sum(axis=0))


@pytest.mark.parametrize("seed", range(5))
def test_sums_by_image_and_by_seed_are_those_of_a_plain_loop(seed):
    counts, table = made(seed), dense(made(seed))
    kept = np.random.default_rng(seed).random((3, 12)) < 0.6
    for chosen in (counts.held_out, kept):
        anywhere = {i for i in range(12) if chosen[:, i].any() or not counts.held_out[:, i].any()}
        for place, own in enumerate((4, 7, 9)):
            rows = [
                row
                for row, (image, when) in enumerate(zip(counts.image, counts.seed, strict=True))
                if (when == own and chosen[place, image]) or (when == EVERY_SEED and image in anywhere)
            ]
            assert counts.by_seed(chosen)[place] == pytest.approx(table[rows].sum(axis=0))
    by_image = [table[counts.image == image].sum(axis=0) for image in range(12)]
    assert counts.sums.toarray() == pytest.approx(np.array(by_image))
    assert counts.seeds == (4, 7, 9) and counts.held_out.sum() == 15
    assert not counts.taking_part.images.count("i11") and len(counts.taking_part.image) == len(counts.image)


def test_captions_are_summed_by_image():
    image_id, codes = pd.Series(["b", "a", "b"]), {"a": 1, "b": 0}
    columns = {"words": np.array([3, 4, 5]), "long": np.array([[True, False], [False, True], [True, True]])}
    for sort, images in ((True, ("a", "b")), (False, ("b", "a"))):
        found = Counts.of_captions(image_id, lambda ids: np.array([codes[own] for own in ids]), columns, sort)
        assert found.images == images and found.label.tolist() == [codes[own] for own in images]
        by_image = dict(zip(images, found.table.tolist(), strict=True))
        assert by_image == {"a": [1, 4, 0, 1], "b": [2, 8, 2, 1]}
        assert found.size() == 3 and [own.tolist() for own in found.totals] == [3, 12, [2, 2]]
        assert Estimate.read(found.reading(("words", "captions")), share, 1).value == 4
    with pytest.raises(ValueError, match="'short' has 2"):
        Counts.of_captions(image_id, lambda ids: np.array([codes[own] for own in ids]), {"short": np.ones(2)})

"""Splits of images: sizes of the papers, balance, and seeds."""

import numpy as np
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.prepare.split import balanced_folds, balanced_split, split_around

# Images of the two values, and the sizes that LIC, section 5, prints (gender) and METRICS gives (race).
GENDER_COUNTS, GENDER_SIZES = (3314, 7466), (5966, 662)
RACE_COUNTS, RACE_SIZES = (1096, 9873), (1972, 220)


def labels(*counts: int) -> np.ndarray:
    """That many images of each value, mixed."""
    codes = np.repeat(np.arange(len(counts)), counts)
    return np.random.default_rng(8).permutation(codes)


def counts(y: np.ndarray, positions: np.ndarray) -> list[int]:
    return np.bincount(y[positions]).tolist()


def test_sizes_are_those_of_the_paper_and_train_and_test_are_balanced_and_share_no_image():
    for images, sizes in ((GENDER_COUNTS, GENDER_SIZES), (RACE_COUNTS, RACE_SIZES)):
        split = balanced_split(labels(*images), 2, seed=0)
        assert (len(split.train), len(split.test)) == sizes
    for images in ((40, 90), (30, 30, 200), (10, 10)):
        y, k = labels(*images), len(images)
        split = balanced_split(y, k, seed=3, test_share=0.2)
        test = round(min(images) * 0.2)
        assert counts(y, split.test) == [test] * k and counts(y, split.train) == [min(images) - test] * k
        assert len(np.union1d(split.train, split.test)) == k * min(images)
    # Chosen images are tested and never trained on, and training is balanced.
    y = np.repeat([0, 1], [30, 20])
    split = split_around(y, 2, 0, np.array([0, 1, 49]))
    assert split.test.tolist() == [0, 1, 49] and not set(split.train) & set(split.test)
    assert counts(y, split.train) == [19, 19]


def test_the_draw_is_uniform_over_images_and_the_same_for_one_seed():
    y = labels(20, 60)
    first, again = (balanced_split(y, 2, 4) for _ in range(2))
    assert np.array_equal(first.test, again.test) and np.array_equal(first.train, again.train)
    held = sum(np.bincount(balanced_split(y, 2, seed, 0.5).test, minlength=80) for seed in range(400))
    # 10 of 20, and 10 of 60, 400 times: binomial, five standard deviations.
    assert np.abs(held[y == 0] - 200).max() < 50 and np.abs(held[y == 1] - 400 / 6).max() < 5 * 7.5


def test_too_few_images_of_a_value_are_refused_with_their_numbers():
    with pytest.raises(CapbiasError, match=r"10 labelled images; there are 9, 40\."):
        balanced_split(labels(9, 40), 2, seed=0)
    with pytest.raises(CapbiasError, match=r"there are 12, 0, 30\."):
        balanced_folds(np.repeat([0, 2], [12, 30]), 3, seed=0, folds=5)


@pytest.mark.parametrize(("images", "folds"), [((43, 97), 10), ((20, 31, 64), 5), ((10, 12), 10)])
def test_every_image_is_held_out_exactly_once(images, folds):
    y, k = labels(*images), len(images)
    splits = balanced_folds(y, k, seed=1, folds=folds)
    assert len(splits) == folds
    assert np.array_equal(np.sort(np.concatenate([split.test for split in splits])), np.arange(len(y)))
    for split in splits:
        assert len(np.intersect1d(split.train, split.test)) == 0
        assert len(set(counts(y, split.train))) == 1 and len(set(split.train)) == len(split.train)
        # All images of the rarest value outside the fold are used.
        assert len(split.train) == k * min(size - np.sum(y[split.test] == v) for v, size in enumerate(images))

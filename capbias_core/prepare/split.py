"""Balanced splits of images: equal numbers of each attribute value, one split per seed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from capbias_core.errors import NotMeasurable
from capbias_core.types import Split

SMALLEST_GROUP = 10
TEST_SHARE = 0.1  # of images (LIC section 5), by default

# Purposes of child seeds: each gets an independent stream from the user's seed.
SPLIT, FOLDS, FIT, BOOTSTRAP = range(4)


def child_seed(seed: int, *purpose: int) -> int:
    """A 32-bit seed for one purpose; different purposes give independent streams."""
    return int(np.random.SeedSequence([seed, *purpose]).generate_state(1)[0])


def random_order(ids: Sequence[str], seed: int) -> np.ndarray:
    """Positions of ids in a random order by seed; ids that two sets share have the same order in both."""
    return _random_order(tuple(ids), seed)


@lru_cache(maxsize=32)  # captioners share images and seeds
def _random_order(ids: tuple[str, ...], seed: int) -> np.ndarray:
    key = seed.to_bytes(4, "little")
    draws = [hashlib.blake2b(item.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest() for item in ids]
    order = np.argsort(np.frombuffer(b"".join(draws), dtype="<u8"), kind="stable")
    order.flags.writeable = False
    return order


def _groups(labels: np.ndarray, n_values: int, order: np.ndarray) -> list[np.ndarray]:
    """For each value the first positions in `order`, as many as the rarest value has."""
    positions = [order[labels[order] == value] for value in range(n_values)]
    size = min(len(group) for group in positions)
    if size < SMALLEST_GROUP:
        counts = ", ".join(str(len(group)) for group in positions)
        raise NotMeasurable(
            f"Each value of the attribute needs {SMALLEST_GROUP} labelled images; there are {counts}.",
            "Map other labels to the values, or load captions of more labelled images.",
        )
    return [group[:size] for group in positions]


def balanced_split(
    labels: np.ndarray, n_values: int, seed: int, test_share: float = TEST_SHARE, ids: Sequence[str] | None = None
) -> Split:
    """Balance by downsampling, then split each value into train and test: positions in `labels`.

    labels: (n_images,) integers in [0, n_values). ids: of the images (default: their positions). With 3,314 and 7,466
    images and a test share of 0.1: 5,966 train, 662 test (LIC section 5).
    """
    ids = list(map(str, range(len(labels)))) if ids is None else ids
    groups = _groups(labels, n_values, random_order(ids, child_seed(seed, SPLIT)))
    n_test = max(1, round(len(groups[0]) * test_share))
    test = np.concatenate([group[:n_test] for group in groups])
    train = np.concatenate([group[n_test:] for group in groups])
    return Split(seed=seed, train=np.sort(train), test=np.sort(test))


def balanced_folds(labels: np.ndarray, n_values: int, seed: int, folds: int) -> list[Split]:
    """Cross-fitting: each image is held out once; the training images of a fold are a balanced draw from the others."""
    _groups(labels, n_values, np.arange(len(labels)))  # refuses groups that are too small
    rng = np.random.default_rng(child_seed(seed, FOLDS))
    fold_of = np.empty(len(labels), dtype=int)
    for value in range(n_values):
        group = rng.permutation(np.flatnonzero(labels == value))
        fold_of[group] = np.arange(len(group)) % folds
    splits = []
    for fold in range(folds):
        outside = [np.flatnonzero((fold_of != fold) & (labels == value)) for value in range(n_values)]
        size = min(len(group) for group in outside)
        train = np.concatenate([rng.permutation(group)[:size] for group in outside])
        splits.append(Split(seed=seed, train=np.sort(train), test=np.flatnonzero(fold_of == fold)))
    return splits


def split_around(labels: np.ndarray, n_values: int, seed: int, chosen: np.ndarray) -> Split:
    """Tests on the chosen positions, trains on a balanced draw from the others."""
    outside = np.setdiff1d(np.arange(len(labels)), chosen)
    order = outside[random_order(list(map(str, outside)), child_seed(seed, SPLIT))]
    train = np.concatenate(_groups(labels, n_values, order))
    return Split(seed=seed, train=np.sort(train), test=np.sort(chosen))


def image_split(
    labels: np.ndarray, n_values: int, seed: int, test_share: float = TEST_SHARE, ids: Sequence[str] | None = None
) -> Split:
    """All images, not balanced, into train and test, in the order of `balanced_split`. With a test share of 0.2, of
    10,780: 8,624 and 2,156 (DBAC section 5)."""
    ids = list(map(str, range(len(labels)))) if ids is None else ids
    order = random_order(ids, child_seed(seed, SPLIT))
    _groups(labels, n_values, order)  # refuses groups that are too small
    n_test = held_out_count(len(order), test_share)
    return Split(seed=seed, train=np.sort(order[n_test:]), test=np.sort(order[:n_test]))


def held_out_count(images: int, test_share: float = TEST_SHARE) -> int:
    """How many images `image_split` tests on."""
    return max(1, round(images * test_share))

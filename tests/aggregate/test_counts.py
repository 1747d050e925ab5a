"""Counts: what is summed, joined, chosen and kept, on random tables."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, issparse

from capbias_core.aggregate import Counts, Estimate
from capbias_core.aggregate.counts import EVERY_SEED
from capbias_core.metrics.share import share


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
    return (
        (one.images, one.training, one.constants, one.widths)
        == (other.images, other.training, other.constants, other.widths)
        and one.label.tolist() == other.label.tolist()
        and one.image.tolist() == other.image.tolist()
        and (one.seed is None) == (other.seed is None)
        and (one.seed is None or one.seed.tolist() == other.seed.tolist())
        and np.array_equal(dense(one), dense(other))
        and one.table.dtype == other.table.dtype
    )


@pytest.mark.parametrize("seed", range(5))
def test_what_is_kept_comes_back_and_groups_of_images_sum_to_the_whole(seed):
    for seeded in (False, True):
        counts = made(seed, seeded)
        assert same(Counts.load(counts.save()), counts)
        assert not same(Counts.load(counts.save()), made(seed + 1, seeded))
    parts = [counts.subset(counts.label == value) for value in range(3)]
    assert sum(len(part.images) for part in parts) == 12 and sum(len(part.image) for part in parts) == 21
    assert sum(dense(part).sum(axis=0) for part in parts) == pytest.approx(dense(counts).sum(axis=0))
    ids = dict(zip(counts.images, counts.sums.toarray(), strict=True))
    for part in parts:
        for image, own in zip(part.images, part.sums.toarray(), strict=True):
            assert own == pytest.approx(ids[image])


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


@pytest.mark.parametrize("seed", range(5))
def test_merged_counts_have_the_columns_of_both(seed):
    one, other = made(seed), made(seed + 10)
    columns = {f"other {name}": column for name, column in other.columns.items()}
    renamed = Counts(one.images, one.label, columns, one.image, one.seed)
    both = Counts.merge([one, renamed])
    assert list(both.columns) == [*one.columns, *renamed.columns]
    for part in (one, renamed):
        names = tuple(part.columns)
        assert both.reading(names).by_seed(part.held_out) == pytest.approx(part.by_seed(part.held_out))
        assert both.reading(names).sums.toarray() == pytest.approx(part.sums.toarray())
    with pytest.raises(ValueError, match="same images"):
        Counts.merge([one, renamed.subset(np.arange(12) < 6)])


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

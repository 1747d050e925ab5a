"""Values whose pairs take their sign from other images than those that they are measured on (cross-fitting).

BA and DBA add up changes of pairs (a value and a word), each with the sign that the pair has on the human side. Chosen
from the same captions that the change is measured on, a sign goes with the noise of that change, which pulls the value
down. Here the images are halved at random, several times: of each half the changes count with the signs of the other.

    value = mean over pairs of sum over images i of s_i * m_i / sum of M - the same of the humans

m_i, M: the captions of an image with the pair, and those with what it is given; s_i: the pair's sign in the halves
without image i, on average. Where all halves agree on the signs, this is the value with the signs of all images.

Where they do not, some pairs count with the wrong sign, or hardly. By how much that can move the value at most widens
the interval: the sum over pairs of how far its sign can move, times its change, times the share of the halves that
disagree with the others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array, hstack

from capbias_core.aggregate.resampling import BOOTSTRAP_SEED
from capbias_core.metrics.cooccurrence import Table

HALVINGS = 10


def cross_fitted(
    human: csr_array, model: csr_array, k: int, sign: Callable[[Table], np.ndarray], given_value: bool
) -> tuple[csr_array, int, float]:
    """(n_images, 4 * W) columns that `signed_change` takes: the model's captions with signs, those of each condition,
    and the same of the human ones; over how many pairs the value is a mean; and how far it may be off, unscaled.

    human, model: (n_images, 1 + K + L + K * L), as a `Table` has them. sign: human counts to (K, L) signs. given_value:
    whether a change is of p(word | value) (W = K), else of p(value | word) (W = L).
    """
    n_images, n_tasks = human.shape[0], (human.shape[1] - 1 - k) // (1 + k)
    conditions = slice(1, 1 + k) if given_value else slice(1 + k, 1 + k + n_tasks)
    width = k if given_value else n_tasks
    of_pair = np.repeat(np.arange(k), n_tasks) if given_value else np.tile(np.arange(n_tasks), k)
    sides = [csr_array(side, dtype=float) for side in (model, human)]
    pairs = [side[:, 1 + k + n_tasks :] for side in sides]
    signed, signs = [csr_array((n_images, width)) for _ in sides], []
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    for _ in range(HALVINGS):
        first = rng.permutation(n_images) < n_images // 2
        for half in (first, ~first):
            pair_signs = sign(Table.of(np.asarray(human[np.flatnonzero(~half)].sum(axis=0), dtype=float), k)).ravel()
            weights = csr_array(
                (pair_signs / HALVINGS, (np.arange(len(pair_signs)), of_pair)), shape=(len(pair_signs), width)
            )
            kept = csr_array((np.ones(half.sum()), (np.flatnonzero(half),) * 2), shape=(n_images, n_images))
            signed = [sums + kept @ (side @ weights) for sums, side in zip(signed, pairs, strict=True)]
            signs.append(pair_signs)
    given = [side[:, conditions] for side in sides]
    columns = csr_array(hstack([signed[0], given[0], signed[1], given[1]]))
    return columns, k * n_tasks, _farthest(np.array(signs), pairs, given, of_pair)


def _farthest(signs: np.ndarray, pairs: list[csr_array], given: list[csr_array], of_pair: np.ndarray) -> float:
    """How far the signs on which halves disagree can move the value. signs: (halves, K * L)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        model, human = (
            side.sum(axis=0) / condition.sum(axis=0)[of_pair] for side, condition in zip(pairs, given, strict=True)
        )
    agreeing = (signs == signs.max(axis=0)).mean(axis=0)
    disagreeing = np.minimum(agreeing, 1 - agreeing)
    return float((np.nan_to_num(np.abs(model - human)) * np.ptp(signs, axis=0) * disagreeing).mean())

"""The linear attacker: logistic regression on the 1- and 2-grams of a masked caption.

Logistic regression with an L2 penalty (C = 0.05) on binary 1- and 2-grams that occur in at least two training
captions. On COCO it orders captioners as the BiLSTM of LIC does (Pearson 0.96), in about 0.1 s a seed; it is a
preview beside the papers' protocol, not in its place. Its logit is a sum over n-grams, so word contributions are
exact; the weight of a 2-gram is shared equally by its two words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from capbias_core.attackers.base import AttackerEntry, Seconds, Setup
from capbias_core.attackers.logistic import fit_labels
from capbias_core.prepare.ngrams import NOTHING, ngram_matrix
from capbias_core.types import Contributions, Progress

# Task words that are learned at once: more take more memory and are no quicker.
TOGETHER = 40


@dataclass(frozen=True)
class NgramCorpus:
    """Captions with their binary n-gram matrix (n, V), and the column of each n-gram."""

    captions: list[str]
    matrix: Any  # a CSR matrix of SciPy, which has no types
    columns: dict[str, int]


@dataclass(frozen=True)
class LinearModel:
    """A fitted linear attacker on its own, without a corpus: n-gram -> weights (C,), and the intercept (C,).

    This is what is stored, and what scores an edited caption at once.
    """

    weights: np.ndarray  # (V, C)
    intercept: np.ndarray  # (C,)

    def logits(self, corpus: NgramCorpus, rows: np.ndarray) -> np.ndarray:
        return corpus.matrix[rows] @ self.weights + self.intercept

    def contributions(self, corpus: NgramCorpus, rows: np.ndarray) -> Contributions:
        words = [word_contributions(corpus.captions[row].split(), corpus.columns, self.weights) for row in rows]
        baseline = np.repeat(self.intercept[None], len(rows), axis=0)
        return Contributions(words=words, baseline=baseline, delta=np.zeros(len(rows)))


def word_contributions(tokens: list[str], columns: dict[str, int], weights: np.ndarray) -> np.ndarray:
    """(T, C) share of each token in the logit of one caption; with the intercept they sum to the logit.

    An n-gram counts once however often it occurs (binary features), so its weight is shared by its occurrences;
    a 2-gram gives half of its share to each of its two words.
    """
    places: dict[int, list[tuple[int, ...]]] = {}
    for start in range(len(tokens)):
        for size in (1, 2):
            column = columns.get(" ".join(tokens[start : start + size])) if start + size <= len(tokens) else None
            if column is not None:
                places.setdefault(column, []).append(tuple(range(start, start + size)))
    shares = np.zeros((len(tokens), weights.shape[1]))
    for column, spots in places.items():
        for spot in spots:
            shares[list(spot)] += weights[column] / (len(spots) * len(spot))
    return shares


class NgramAttacker:
    """See the module's text; parameters as measured on COCO."""

    inverse_penalty = 0.05
    smallest_count = 2

    def corpus(self, captions: Sequence[str]) -> NgramCorpus:
        captions = list(captions)
        # Seeds and folds repeat most captions.
        distinct = {caption: place for place, caption in enumerate(dict.fromkeys(captions))}
        matrix, columns = ngram_matrix(list(distinct), pairs=True)
        return NgramCorpus(captions, matrix[[distinct[own] for own in captions]], columns)

    def fit(self, corpus: NgramCorpus, rows, labels, n_values: int, seed: int, tick: Progress) -> LinearModel:
        from threadpoolctl import threadpool_limits

        train = corpus.matrix[rows]
        counts = np.asarray(train.sum(axis=0)).ravel()
        kept = np.union1d(np.flatnonzero(counts >= self.smallest_count), corpus.columns[NOTHING])
        # The optimiser's vectors are short: more than one BLAS thread costs three times the processor time.
        with threadpool_limits(1, user_api="blas"):
            of_kept, intercept = (self._values if np.ndim(labels) == 1 else self._tasks)(train[:, kept], labels, tick)
        weights = np.zeros((corpus.matrix.shape[1], len(intercept)))
        weights[kept] = of_kept
        tick(1.0, "")
        return LinearModel(weights, intercept)

    def _values(self, features, labels: np.ndarray, _tick: Progress) -> tuple[np.ndarray, np.ndarray]:
        """Weights (V, C) and intercepts (C,) for one label of two or more values."""
        from sklearn.linear_model import LogisticRegression

        if labels.min() == labels.max():
            return np.zeros((features.shape[1], 1)), _alike(labels[:, None])
        model = LogisticRegression(C=self.inverse_penalty, tol=1e-5, max_iter=1000).fit(features, labels)
        return model.coef_.T, model.intercept_.astype(float)

    def _tasks(self, features, labels: np.ndarray, tick: Progress) -> tuple[np.ndarray, np.ndarray]:
        """Weights (V, L) and intercepts (L,) for L task words, some at a time."""
        weights, intercepts = np.zeros((features.shape[1], labels.shape[1])), _alike(labels)
        both = np.flatnonzero(labels.any(axis=0) & ~labels.all(axis=0))
        for start in range(0, len(both), TOGETHER):
            tick(start / len(both), "")
            own = both[start : start + TOGETHER]
            weights[:, own], intercepts[own] = fit_labels(features, labels[:, own], self.inverse_penalty)
        return weights, intercepts


def _alike(labels: np.ndarray) -> np.ndarray:
    """(L,) intercepts of labels (n, L) that are all alike, smoothed: nothing can be learned of them."""
    present = labels.sum(axis=0) + 0.5
    return np.log(present / (len(labels) + 1 - present))


def _linear(setup: Setup) -> NgramAttacker:
    return NgramAttacker()


ENTRIES = (
    AttackerEntry(
        "ngram",
        "linear, 1- and 2-grams (preview)",
        _linear,
        Seconds(0.1, 0.2),
        in_process=True,
        folds=10,
        rescores=True,
        place=1,
        preview=True,
    ),
)

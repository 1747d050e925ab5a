"""The linear attacker: logistic regression on the 1- and 2-grams of a masked caption.

Logistic regression with an L2 penalty (C = 0.05) on binary 1- and 2-grams that occur in at least two training
captions. On COCO it orders captioners as the BiLSTM of LIC does (Pearson 0.96), in about 0.1 s a seed; it is a
preview beside the papers' protocol, not in its place. Its logit is a sum over n-grams, so word contributions are
exact; the weight of a 2-gram is shared equally by its two words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from capbias_core.attackers.base import AttackerEntry, Corpus, Seconds, Setup
from capbias_core.attackers.logistic import TOLERANCE, fit_columns
from capbias_core.threads import one_thread
from capbias_core.types import Contributions, Progress

# Task words, and attackers, that are learned at once: more take more memory and are no quicker.
TOGETHER, MOST_TOGETHER = 40, 50
USUAL_STEPS = 15  # of Newton's method, for the progress


class NgramCorpus(Corpus):
    """Masked captions; the n-grams of each distinct one are counted once."""

    def __init__(self, captions: Sequence[str]):
        super().__init__(captions)
        self.ngrams = self.distinct.ngrams()

    @property
    def columns(self) -> dict[str, int]:
        """The column of each n-gram."""
        return self.ngrams.columns

    @cached_property
    def occurrences(self) -> tuple[np.ndarray, np.ndarray]:
        """(T,) and (T,): how often the caption of each word has it, and the pair that begins with it."""
        caption = np.repeat(np.arange(len(self.ngrams.start) - 1), np.diff(self.ngrams.start))
        width = len(self.ngrams.terms) + 1  # a pair that is none has the column -1
        return _how_often(caption * width + self.ngrams.words), _how_often(caption * width + self.ngrams.pairs)


def _how_often(keys: np.ndarray) -> np.ndarray:
    """(T,) how often each of T keys is among them."""
    code, _ = pd.factorize(keys)
    return np.bincount(code)[code]


@dataclass(frozen=True)
class LinearModel:
    """A fitted linear attacker on its own, without a corpus: n-gram -> weights (C,), and the intercept (C,).

    This is what is stored, and what scores an edited caption at once.
    """

    weights: np.ndarray  # (V, C)
    intercept: np.ndarray  # (C,)

    def logits(self, corpus: NgramCorpus, rows: np.ndarray) -> np.ndarray:
        return corpus.ngrams.matrix[corpus.place[rows]] @ self.weights + self.intercept

    def contributions(self, corpus: NgramCorpus, rows: np.ndarray) -> Contributions:
        """See `word_contributions`."""
        ngrams, place = corpus.ngrams, corpus.place[rows]
        lengths = np.diff(ngrams.start)[place]
        ends = np.cumsum(lengths)
        taken = np.arange(lengths.sum()) + np.repeat(ngrams.start[place] - (ends - lengths), lengths)
        of_word, of_pair = (
            self.weights[column[taken]] / often[taken, None]
            for column, often in zip((ngrams.words, ngrams.pairs), corpus.occurrences, strict=True)
        )
        of_pair[ngrams.pairs[taken] < 0] = 0
        shares = of_word + of_pair / 2
        shares[1:] += of_pair[:-1] / 2
        words = [shares[start:end] for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True)]
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
        return NgramCorpus(captions)

    def fit(self, corpus: NgramCorpus, rows, labels, n_values: int, seed: int, tick: Progress) -> LinearModel:
        return next(self.fit_many(corpus, [rows], [labels], n_values, [seed], tick))

    def fit_many(
        self, corpus: NgramCorpus, rows: Sequence, labels: Sequence, n_values: int, seeds: Sequence[int], tick: Progress
    ) -> Iterator[LinearModel]:
        """Attackers that follow each other and train on nearly the same captions train together."""
        cases = [_Case(corpus.place[own], known) for own, known in zip(rows, labels, strict=True)]
        done = 0
        for group in _groups(cases, corpus.ngrams.matrix.shape[0]):
            step = partial(_step, tick, done / len(cases), len(group) / len(cases), count(1))
            with one_thread():
                found = self._together(corpus.ngrams.matrix, group, n_values, step)
            done += len(group)
            tick(done / len(cases), "")
            yield from found

    def _together(self, matrix, cases: list[_Case], n_values: int, tick: Callable[[], None]) -> list[LinearModel]:
        """The attackers of cases that have most of their captions in common."""
        there = np.zeros(matrix.shape[0], dtype=bool)
        for case in cases:
            there[case.place] = True
        rows = np.flatnonzero(there)
        features = matrix[rows]
        total = np.column_stack([case.counts(rows) for case in cases])
        used = features.T @ total >= self.smallest_count
        kept = np.flatnonzero(used.any(axis=1))
        features, used = features[:, kept], used[kept]
        if cases[0].labels.ndim > 1:
            (case,) = cases
            found = [self._tasks(features, case.sums(rows), total, tick)]
        elif n_values > 2:
            found = [self._values(features, own, case, rows) for own, case in zip(used.T, cases, strict=True)]
        else:
            positive = np.column_stack([case.sums(rows) for case in cases])
            weights, intercepts = fit_columns(features, positive, total, self.inverse_penalty, used, True, tick)
            found = list(zip(weights.T[:, :, None], intercepts[:, None], strict=True))
        return [_spread(matrix.shape[1], kept, *own) for own in found]

    def _values(self, features, used: np.ndarray, case: _Case, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights (V, K) and intercepts (K,) for one label of three or more values."""
        from sklearn.linear_model import LogisticRegression

        weights = np.zeros((features.shape[1], len(np.unique(case.labels))))
        model = LogisticRegression(C=self.inverse_penalty, solver="newton-cg", tol=TOLERANCE, max_iter=1000)
        model.fit(features[np.searchsorted(rows, case.place)][:, used], case.labels)
        weights[used] = model.coef_.T
        return weights, model.intercept_.astype(float)

    def _tasks(self, features, positive: np.ndarray, total: np.ndarray, tick) -> tuple[np.ndarray, np.ndarray]:
        """Weights (V, L) and intercepts (L,) for L task words, some at a time."""
        often, size = positive.sum(axis=0), total.sum()
        # Nothing can be learned of a word that is never or always there; its share is smoothed.
        weights, intercepts = np.zeros((features.shape[1], len(often))), np.log((often + 0.5) / (size + 0.5 - often))
        both = np.flatnonzero((often > 0) & (often < size))
        for start in range(0, len(both), TOGETHER):
            own = both[start : start + TOGETHER]
            weights[:, own], intercepts[own] = fit_columns(
                features, positive[:, own], total, self.inverse_penalty, tick=tick
            )
        return weights, intercepts


@dataclass(frozen=True)
class _Case:
    """An attacker to train: the place of each caption among the different ones, and its label or task words."""

    place: np.ndarray
    labels: np.ndarray

    def counts(self, rows: np.ndarray) -> np.ndarray:
        """(len(rows),) how many of its captions are each of these."""
        return np.bincount(np.searchsorted(rows, self.place), minlength=len(rows)).astype(float)

    def sums(self, rows: np.ndarray) -> np.ndarray:
        """(len(rows),) or (len(rows), L) sums of its labels by caption."""
        n = len(self.place)
        of_row = csr_array((np.ones(n), (np.searchsorted(rows, self.place), np.arange(n))), shape=(len(rows), n))
        return of_row @ self.labels.astype(float)


def _groups(cases: list[_Case], n: int) -> Iterator[list[_Case]]:
    """MOST_TOGETHER cases in a row at most that share more than half of their captions with the first. n: captions."""
    start = 0
    while start < len(cases):
        known = np.zeros(n, dtype=bool)
        known[cases[start].place] = True
        end = start + 1
        while (
            end < min(len(cases), start + MOST_TOGETHER)
            and cases[start].labels.ndim == 1
            and known[cases[end].place].mean() > 0.5
        ):
            end += 1
        yield cases[start:end]
        start = end


def _step(tick: Progress, before: float, share: float, steps: Iterator[int]) -> None:
    """Report a step of a group that follows on what is done before, and is a share of all."""
    tick(before + share * min(next(steps) / USUAL_STEPS, 0.9), "")


def _spread(width: int, kept: np.ndarray, of_kept: np.ndarray, intercept: np.ndarray) -> LinearModel:
    weights = np.zeros((width, len(intercept)))
    weights[kept] = of_kept
    return LinearModel(weights, intercept)


def _linear(setup: Setup) -> NgramAttacker:
    return NgramAttacker()


ENTRIES = (
    AttackerEntry(
        "ngram",
        "linear, 1- and 2-grams (preview)",
        _linear,
        Seconds(0.002, 0.024),
        in_process=True,
        folds=10,
        rescores=True,
        place=1,
        attribution="exact word sums",
        preview=True,
        seeds=30,
    ),
)

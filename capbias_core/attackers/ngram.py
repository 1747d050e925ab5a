"""The linear attacker: logistic regression on the 1- and 2-grams of a masked caption.

Logistic regression with an L2 penalty (C = 0.05) on binary 1- and 2-grams that occur in at least two training
captions. On COCO it orders captioners as the BiLSTM of LIC does (Pearson 0.96), in about 0.1 s per seed. It is a
preview, not the papers' protocol. Its logit is a sum over n-grams, so word contributions are exact; the two words of a
2-gram share its weight equally.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count

import numpy as np
import pandas as pd

from capbias_core.attackers.base import AttackerEntry, Corpus, Seconds, Training
from capbias_core.attackers.logistic import TOLERANCE, fit_columns
from capbias_core.prepare.tasks import rows_by_image
from capbias_core.processes import one_thread
from capbias_core.types import Contributions, Progress

# Task words, and attackers, that are learned at once: more take more memory and are no quicker.
TOGETHER, MOST_TOGETHER = 40, 50
USUAL_STEPS = 15  # of Newton's method, for the progress


class NgramCorpus(Corpus):
    """Masked captions; the n-grams of each distinct one are counted once."""

    def __init__(self, captions: Sequence[str]):
        super().__init__(captions)
        self.ngrams = self.distinct.ngrams()

    @cached_property
    def occurrences(self) -> tuple[np.ndarray, np.ndarray]:
        """For each of all T tokens, how often its caption has it; and the same for the pair that begins with it."""
        width = len(self.ngrams.terms) + 1  # the last token of a caption begins no pair: column -1
        keys = (
            self.distinct.caption.astype(np.int64) * width + column for column in (self.ngrams.words, self.ngrams.pairs)
        )
        words, pairs = (np.bincount(code)[code] for code, _ in map(pd.factorize, keys))
        return words, pairs


@dataclass(frozen=True)
class LinearModel:
    """A fitted linear attacker without its corpus, as it is stored."""

    weights: np.ndarray  # (V, C), a row for each n-gram
    intercept: np.ndarray  # (C,)

    def logits(self, corpus: NgramCorpus, rows: np.ndarray) -> np.ndarray:
        return corpus.ngrams.matrix[corpus.copy_of[rows]] @ self.weights + self.intercept

    def contributions(self, corpus: NgramCorpus, rows: np.ndarray) -> Contributions:
        """What each token adds to the logit: occurrences of an n-gram share its weight, as do the words of a pair."""
        ngrams, captions = corpus.ngrams, corpus.copy_of[rows]
        lengths = np.diff(ngrams.start)[captions]
        ends = np.cumsum(lengths)
        taken = np.arange(lengths.sum()) + np.repeat(ngrams.start[captions] - (ends - lengths), lengths)
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


class NgramAttacker:
    """Logistic regression on 1- and 2-grams; the parameters were measured on COCO."""

    inverse_penalty = 0.05
    smallest_count = 2

    def corpus(self, captions: Sequence[str]) -> NgramCorpus:
        return NgramCorpus(captions)

    def fit_many(
        self, corpus: NgramCorpus, trainings: Sequence[Training], n_values: int, tick: Progress
    ) -> Iterator[LinearModel]:
        """Neighbours in the list train together if more than half of their captions are the same. A seed that comes
        again begins the other side of a comparison, which trains apart: equal captions of both sides then have equal
        guesses to the last digit."""
        matrix, chosen, done = corpus.ngrams.matrix, [corpus.copy_of[training.rows] for training in trainings], 0
        while done < len(chosen):
            known = np.zeros(matrix.shape[0], dtype=bool)
            known[chosen[done]] = True
            end, most, seeds = done + 1, min(len(chosen), done + MOST_TOGETHER), {trainings[done].seed}
            while trainings[done].labels.ndim == 1 and end < most and known[chosen[end]].mean() > 0.5:
                if trainings[end].seed in seeds:
                    break
                seeds.add(trainings[end].seed)
                end += 1

            steps = count(1)

            def step(steps=steps, done=done, end=end) -> None:
                tick((done + (end - done) * min(next(steps) / USUAL_STEPS, 0.9)) / len(chosen), "")

            labels = [training.labels for training in trainings[done:end]]
            with one_thread():
                models = self._together(matrix, chosen[done:end], labels, n_values, step)
            done = end
            tick(done / len(chosen), "")
            yield from models

    def _together(self, matrix, chosen: list, labels: Sequence, n_values: int, tick: Callable) -> list[LinearModel]:
        """Attackers that have most captions in common. chosen: for each, its captions in the matrix."""
        rows = np.unique(np.concatenate(chosen))
        chosen = [np.searchsorted(rows, each) for each in chosen]
        features = matrix[rows]
        total = np.column_stack([np.bincount(each, minlength=len(rows)).astype(float) for each in chosen])
        used = features.T @ total >= self.smallest_count
        kept = np.flatnonzero(used.any(axis=1))
        features, used = features[:, kept], used[kept]
        if labels[0].ndim > 1:  # L task words, some at a time
            positive, size = _sums(chosen[0], labels[0], len(rows)), total.sum()
            often = positive.sum(axis=0)
            # A word that no caption has, or all, gets its smoothed share: nothing can be learned.
            weights = np.zeros((len(kept), len(often)))
            intercepts = np.log((often + 0.5) / (size + 0.5 - often))
            both = np.flatnonzero((often > 0) & (often < size))
            for start in range(0, len(both), TOGETHER):
                part = both[start : start + TOGETHER]
                weights[:, part], intercepts[part] = fit_columns(
                    features, positive[:, part], total, self.inverse_penalty, tick=tick
                )
            fits = [(weights, intercepts)]
        elif n_values > 2:
            from sklearn.linear_model import LogisticRegression

            fits = []
            for terms, each, answers in zip(used.T, chosen, labels, strict=True):
                model = LogisticRegression(C=self.inverse_penalty, solver="newton-cg", tol=TOLERANCE, max_iter=1000)
                model.fit(features[each][:, terms], answers)
                weights = np.zeros((len(kept), len(model.classes_)))
                weights[terms] = model.coef_.T
                fits.append((weights, model.intercept_.astype(float)))
        else:
            positive = np.column_stack([_sums(*case, len(rows)) for case in zip(chosen, labels, strict=True)])
            weights, intercepts = fit_columns(features, positive, total, self.inverse_penalty, used, True, tick)
            fits = list(zip(weights.T[:, :, None], intercepts[:, None], strict=True))
        models = []
        for of_kept, intercept in fits:
            weights = np.zeros((matrix.shape[1], len(intercept)))
            weights[kept] = of_kept
            models.append(LinearModel(weights, intercept))
        return models


def _sums(caption: np.ndarray, labels: np.ndarray, captions: int) -> np.ndarray:
    """(captions,) or (captions, L) sums of labels. caption: (n,) the caption of each label."""
    return rows_by_image(caption, captions) @ labels.astype(float)


ENTRIES = (
    AttackerEntry(
        "ngram",
        "linear, 1- and 2-grams (preview)",
        lambda setup: NgramAttacker(),
        Seconds(0.002, 0.024),
        in_process=True,
        folds=10,
        rescores=True,
        attribution="what each word adds to the logit, exact",
        preview=True,
        seeds=30,
    ),
)

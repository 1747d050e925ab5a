"""Logistic regressions of many labels on the same features, all at once.

DBAC asks for dozens of task words of the same captions. One product of the features with a column for each label costs
little more than with one column, and the same goes for every step of the optimiser.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# As scikit-learn's LogisticRegression stops: by the largest entry of the gradient of the mean loss.
TOLERANCE = 1e-5
STEPS_KEPT = 10
MOST_STEPS = 1000
# A step must lower the loss by this share of what its slope promises; else it is halved.
LEAST_GAIN, SHORTEST = 1e-4, 1e-10


def fit_labels(features: Any, labels: np.ndarray, inverse_penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights (V, L) and intercepts (L,) of L logistic regressions with an L2 penalty, intercepts free of it.

    features: (n, V) sparse. labels: (n, L) booleans, each label both true and false of some row. Minimises the same as
    scikit-learn's LogisticRegression(C=inverse_penalty), by L-BFGS with a history and a step of its own for each label
    (Nocedal and Wright, Numerical Optimization, 2006, algorithm 7.4).
    """
    problem = _Problem(features, labels.astype(float), 1 / (inverse_penalty * len(labels)))
    point = np.zeros((features.shape[1] + 1, labels.shape[1]))
    found, left = np.empty_like(point), np.arange(labels.shape[1])
    loss, gradient = problem.at(point, left)
    history: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # steps, turns of the gradient, their products
    for _ in range(MOST_STEPS):
        over = np.abs(gradient).max(axis=0) <= TOLERANCE
        if over.any():
            found[:, left[over]] = point[:, over]
            go_on = ~over
            left, loss = left[go_on], loss[go_on]
            point, gradient = point[:, go_on], gradient[:, go_on]
            history = [(step[:, go_on], turn[:, go_on], product[go_on]) for step, turn, product in history]
        if not len(left):
            break
        next_point, next_loss, next_gradient = _step(problem, left, point, loss, gradient, _downhill(gradient, history))
        step, turn = next_point - point, next_gradient - gradient
        history = [*history, (step, turn, _dot(step, turn))][-STEPS_KEPT:]
        point, loss, gradient = next_point, next_loss, next_gradient
    found[:, left] = point
    return found[:-1], found[-1]


class _Problem:
    """Mean loss and penalty of each label, and their gradient; the last row of a point has the intercepts."""

    def __init__(self, features, labels: np.ndarray, penalty: float):
        self.features, self.by_term, self.labels, self.penalty = features, features.T.tocsr(), labels, penalty

    def at(self, point: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(l,) and (V + 1, l) at a point (V + 1, l) of l of the labels."""
        labels, weights = self.labels[:, which], point[:-1]
        logits = self.features @ weights
        logits += point[-1]
        small = np.exp(-np.abs(logits))  # for the loss and the probability both
        loss = (np.maximum(logits, 0) + np.log1p(small) - labels * logits).mean(axis=0)
        residuals = (np.where(logits >= 0, 1, small) / (1 + small) - labels) / len(labels)
        gradient = np.empty_like(point)
        np.multiply(weights, self.penalty, out=gradient[:-1])
        gradient[:-1] += self.by_term @ residuals
        gradient[-1] = residuals.sum(axis=0)
        return loss + self.penalty / 2 * _dot(weights, weights), gradient


def _downhill(gradient: np.ndarray, history: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> np.ndarray:
    """The direction of the next step: minus the gradient times the inverse curvature that the last steps saw."""
    way, shares = -gradient, []
    for step, turn, product in reversed(history):
        shares.append(_dot(step, way) / product)
        way -= shares[-1] * turn
    if not history:
        return way / np.sqrt(_dot(way, way))
    _, turn, product = history[-1]
    way *= product / _dot(turn, turn)
    for (step, turn, product), share in zip(history, reversed(shares), strict=True):
        way += (share - _dot(turn, way) / product) * step
    return way


def _step(problem: _Problem, which: np.ndarray, point, loss, gradient, way) -> tuple[np.ndarray, ...]:
    """The next point, loss and gradient: a whole step, halved for the labels whose loss it does not lower enough."""
    slope, length = _dot(gradient, way), np.ones(len(which))
    next_point = point + way
    next_loss, next_gradient = problem.at(next_point, which)
    while True:
        short = (next_loss > loss + LEAST_GAIN * length * slope) & (length > SHORTEST)
        if not short.any():
            next_gradient[:, length <= SHORTEST] = 0  # as near as numbers go: over
            return next_point, next_loss, next_gradient
        length[short] /= 2
        next_point[:, short] = point[:, short] + length[short] * way[:, short]
        next_loss[short], next_gradient[:, short] = problem.at(next_point[:, short], which[short])


def _dot(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(l,) products of the columns of two (V, l)."""
    return np.einsum("vl,vl->l", one, other)

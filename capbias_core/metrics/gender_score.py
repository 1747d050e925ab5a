"""The Gender Score and what Sabir and Padró (Findings of EMNLP 2023) measure beside it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.errors import CapbiasError
from capbias_core.metrics.arguments import numbers, together
from capbias_core.metrics.share import share


def gender_score(probability: ArrayLike, similarity: ArrayLike, confidence: ArrayLike) -> np.ndarray:
    """Gender Score (Sabir and Padró, Findings of EMNLP 2023, Eq. 3), after Belief Revision (Blok et al., AAAI 2003).

        GS    = P(g) ^ alpha
        alpha = ((1 - sim) / (1 + sim)) ^ (1 - P(c)),   and GS = P(g) if sim <= 0

    P(g): mean token probability of the caption under a causal language model; sim: cosine of the caption and the object
    under a sentence encoder; P(c): a detector's confidence in the object. Range [0, 1]. A score alone has no neutral
    point: compare those of the same caption with `man` and with `woman`. The arguments broadcast.

    >>> gender_score([0.25, 0.25, 0.25], [0.6, -0.1, 0.6], [0.5, 0.5, 1.0]).tolist()
    [0.5, 0.25, 0.25]
    """
    probability, similarity, confidence = together(
        probability=numbers("probability", probability, 0, 1),
        similarity=numbers("similarity", similarity, -1, 1),
        confidence=numbers("confidence", confidence, 0, 1),
    )
    related = np.clip(similarity, 0.0, 1.0)  # at 0 alpha is 1: the score is the probability
    alpha = ((1 - related) / (1 + related)) ** (1 - confidence)
    return probability**alpha


def object_distance(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Gender Object Distance (Sabir and Padró, Findings of EMNLP 2023, section 3).

        distance = (a . b) / (|a| |b|)

    The paper calls the cosine a distance, but it measures closeness. a: the vector of a gendered caption (sentence
    level) or of a gender word (word level); b: that of an object. Range [-1, 1]. One value alone has no neutral point:
    compare those of the attribute's values. (..., d) vectors to (...) cosines; nan for a vector of zeros.

    >>> object_distance([[3, 4], [0, 2]], [[4, 3], [1, 0]]).tolist()
    [0.96, 0.0]
    """
    a, b = numbers("a", a), numbers("b", b)
    if not (a.ndim and b.ndim) or a.shape[-1] != b.shape[-1]:
        raise CapbiasError(f"a and b must be vectors of one length, but have the shapes {a.shape} and {b.shape}.")
    together(a=a, b=b)
    return share((a * b).sum(axis=-1), np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))


def bias_ratio(scores: ArrayLike) -> np.ndarray:
    """Bias ratio to each value (Zhao et al., EMNLP 2017; Sabir and Padró, Findings of EMNLP 2023, Eq. 1).

        ratio_a = s_a / sum_b s_b

    s_a: the captions that name value a, or its score. Range [0, 1]; the neutral point is 1 / K for K values. Images
    need not show each value equally often, so compare a ratio of counts with that of the human captions. (..., K)
    scores or counts to (..., K) shares; nan if a score is negative or all are 0.

    >>> bias_ratio([[1, 3], [0, 0]]).tolist()
    [[0.25, 0.75], [nan, nan]]
    """
    scores = numbers("scores", scores)
    if not scores.ndim:
        raise CapbiasError("scores must have an axis of values, but it is one number.")
    shares = share(scores, scores.sum(axis=-1, keepdims=True))
    return np.where((scores < 0).any(axis=-1, keepdims=True), np.nan, shares)


def neutral_ratio(score: ArrayLike, neutral: ArrayLike) -> np.ndarray:
    """Ratio to the neutral word (Sabir and Padró, Findings of EMNLP 2023, Eq. 2).

        ratio_a = s_a / s_neutral

    s: the score of the value a, and of the neutral word (`person`), over the same captions and objects. Range [0, inf);
    the neutral point is 1. nan if a score is negative or the second is 0.

    >>> neutral_ratio([0.1, 0.3], [0.4, -0.2]).tolist()
    [0.25, nan]
    """
    score, neutral = together(score=numbers("score", score), neutral=numbers("neutral", neutral))
    return np.where((score < 0) | (neutral <= 0), np.nan, share(score, neutral))


def estimation(scores: ArrayLike) -> np.ndarray:
    """Gender estimation (Sabir and Padró, Findings of EMNLP 2023, Tables 5 and 6).

        count_a = captions whose variant with the value a scores highest

    Variants have each value's words in place of a caption's gendered ones. Range [0, n]; equal counts are the neutral
    point. The estimate is what text and objects suggest to these models, never who is on the image. (n, K) scores of
    the variants to (K,) counts of captions; a tie counts for no value.

    >>> estimation([[0.2, 0.1], [0.3, 0.4], [0.5, 0.5]]).tolist()
    [1, 1]
    """
    return chosen(numbers("scores", scores, shape=("n", "K"))).sum(axis=0)


def chosen(scores: np.ndarray) -> np.ndarray:
    """(n, K) scores of the variants to (n, K) booleans: the value whose variant scores highest, none if two do."""
    best = scores == scores.max(axis=1, keepdims=True)
    return best & (best.sum(axis=1, keepdims=True) == 1)

"""Objects that captions name and images show: recall, and CHAIR (Rohrbach et al., EMNLP 2018).

    CHAIR_i       = mentions of objects that the image does not show / mentions of objects
    CHAIR_s       = captions that mention such an object / captions
    object recall = objects of the images that the caption of the image names / objects of the images

A mention is each time that a caption names an object; an object of an image counts once. Range [0, 1], shown x100.
Lower is better for both CHAIR, higher for recall; no value means "no bias". What an image shows is what somebody
annotated: an object that was overlooked counts as hallucinated.

>>> mentions = [[2, 1, 0], [0, 0, 0]]  # two captions, three objects
>>> shown = [[1, 0, 1], [1, 0, 0]]
>>> round(chair_i(mentions, shown), 3), chair_s(mentions, shown), round(object_recall(mentions, shown), 3)
(0.333, 0.5, 0.333)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from capbias_core.metrics.arguments import alike, booleans, counts
from capbias_core.metrics.evidence import Ratio


def chair_i(mentions: ArrayLike, shown: ArrayLike) -> float:
    """mentions: (n, L), how often each caption names each object. shown: (n, L) booleans: its image shows it."""
    return _value(hallucinated_mentions(*_sparse(mentions, shown)))


def chair_s(mentions: ArrayLike, shown: ArrayLike) -> float:
    """mentions, shown: as in `chair_i`."""
    return _value(hallucinating_captions(*_sparse(mentions, shown)))


def object_recall(mentions: ArrayLike, shown: ArrayLike) -> float:
    """mentions, shown: as in `chair_i`."""
    return _value(recalled_objects(*_sparse(mentions, shown)))


def hallucinated_mentions(mentions: csr_array, shown: csr_array) -> Ratio:
    """Of each caption, mentions of objects that its image does not show, over mentions."""
    every = _by_caption(mentions)
    return Ratio(every - _by_caption(mentions.multiply(shown)), every)


def hallucinating_captions(mentions: csr_array, shown: csr_array) -> Ratio:
    """Whether each caption mentions such an object, over 1."""
    wrong = hallucinated_mentions(mentions, shown).numerator > 0
    return Ratio(wrong.astype(float), np.ones(len(wrong)))


def recalled_objects(mentions: csr_array, shown: csr_array) -> Ratio:
    """Of each caption, objects of its image that it names, over objects of its image."""
    return Ratio(_by_caption((mentions > 0).multiply(shown)), _by_caption(shown))


def _by_caption(counts: csr_array) -> np.ndarray:
    return np.asarray(counts.sum(axis=1), dtype=float).ravel()


def _sparse(mentions: ArrayLike, shown: ArrayLike) -> list[csr_array]:
    often, there = counts("mentions", mentions, ("n", "L")), booleans("shown", shown, "L")
    alike(("mentions", often), ("shown", there))
    return [csr_array(own.astype(int)) for own in (often, there)]


def _value(found: Ratio) -> float:
    """nan for no denominator."""
    whole = found.denominator.sum()
    return float(found.numerator.sum() / whole) if whole else float("nan")

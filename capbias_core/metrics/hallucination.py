"""Objects that captions name and images show: recall, and CHAIR (Rohrbach et al., EMNLP 2018).

A mention is each time that a caption names an object; an object of an image counts once. What an image shows is what
somebody annotated: an object that was overlooked counts as hallucinated.

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
from capbias_core.metrics.share import share


def chair_i(mentions: ArrayLike, shown: ArrayLike) -> float:
    """CHAIR_i (Rohrbach et al., EMNLP 2018).

        CHAIR_i = mentions of objects that the image does not show / mentions of objects

    Range [0, 1], shown x100; lower is better.

    mentions: (n, L), how often each caption names each object. shown: (n, L) booleans: its image shows it.
    """
    found = _counted(mentions, shown)
    return float(share(found["hallucinated"].sum(), found["mentions"].sum()))


def chair_s(mentions: ArrayLike, shown: ArrayLike) -> float:
    """CHAIR_s (Rohrbach et al., EMNLP 2018).

        CHAIR_s = captions that mention an object that the image does not show / captions

    Range [0, 1], shown x100; lower is better. mentions, shown: as in `chair_i`.
    """
    return float(_counted(mentions, shown)["hallucinating"].mean())


def object_recall(mentions: ArrayLike, shown: ArrayLike) -> float:
    """Object recall (Hirota et al., ACL 2025).

        object recall = objects of the images that the caption of the image names / objects of the images

    Range [0, 1], shown x100; higher is better. mentions, shown: as in `chair_i`.
    """
    found = _counted(mentions, shown)
    return float(share(found["recalled"].sum(), found["shown"].sum()))


def object_counts(mentions: csr_array, shown: csr_array) -> dict[str, np.ndarray]:
    """(n, L) mentions of objects and what the images show to counts of each caption, (n,): mentions, hallucinated ones,
    whether there is one (hallucinating), objects shown, and those of them that it names (recalled)."""
    every = _by_caption(mentions)
    wrong = every - _by_caption(mentions.multiply(shown))
    recalled = _by_caption((mentions > 0).multiply(shown))
    return {
        "mentions": every,
        "hallucinated": wrong,
        "hallucinating": (wrong > 0).astype(float),
        "shown": _by_caption(shown),
        "recalled": recalled,
    }


def _by_caption(counts: csr_array) -> np.ndarray:
    return np.asarray(counts.sum(axis=1), dtype=float).ravel()


def _counted(mentions: ArrayLike, shown: ArrayLike) -> dict[str, np.ndarray]:
    often, there = counts("mentions", mentions, ("n", "L")), booleans("shown", shown, "L")
    alike(("mentions", often), ("shown", there))
    return object_counts(csr_array(often.astype(int)), csr_array(there.astype(int)))

"""What vocabulary alignment does to human captions (the paper on DBAC, section 4.2, Eq. 9, appendix A and Table 7; with
constant alignment LIC's, Hirota et al., CVPR 2022; METEOR: Denkowski and Lavie, WMT 2014).

    contextual_share = words substituted by a word / (words substituted by a word + words that became <unk>)
    unknown_share    = words that became <unk> / all words
    METEOR_aligned   = mean over captions of METEOR(original caption, caption after alignment)

Words are counted as often as they occur, special tokens such as the mask among all words. Range [0, 1], shown x100. The
share of contextual substitutions (Figure 1) grows with delta: near 0 captions lose words, near 100 words become
unrelated ones, so higher is better only beside METEOR_aligned. Of unknown_share, lower is better.

>>> evidence = Substitutions(("1",), np.array([0, 0]), np.array([[4, 1, 0], [6, 1, 2]]), np.array([0.9, 0.5]))
>>> parts = contextual_share(evidence)  # two of four words outside the vocabulary
>>> float(parts.numerator.sum() / parts.denominator.sum())
0.5
>>> parts = unknown_share(evidence)  # two of ten words
>>> float(parts.numerator.sum() / parts.denominator.sum())
0.2
>>> float(similarity(evidence).numerator.mean())
0.7
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capbias_core.metrics.base import Ratio


@dataclass(frozen=True)
class Substitutions:
    """What alignment did to each caption. image: (n,) positions in `images`. counts: (n, 3) words, words substituted by
    a word, words that became <unk>. meteor: (n,) likeness to the original in [0, 1], nan where it was not computed."""

    images: tuple[str, ...]
    image: np.ndarray
    counts: np.ndarray
    meteor: np.ndarray


def contextual_share(evidence: Substitutions) -> Ratio:
    """Numerator: words substituted by a word. Denominator: words outside the captioner's vocabulary."""
    return Ratio(evidence.counts[:, 1].astype(float), evidence.counts[:, 1:].sum(axis=1).astype(float))


def unknown_share(evidence: Substitutions) -> Ratio:
    """Numerator: words that became <unk>. Denominator: all words."""
    return Ratio(evidence.counts[:, 2].astype(float), evidence.counts[:, 0].astype(float))


def similarity(evidence: Substitutions) -> Ratio:
    """Numerator: METEOR between each caption before and after. Denominator: 1 a caption."""
    return Ratio(evidence.meteor, np.ones(len(evidence.meteor)))

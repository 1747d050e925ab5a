"""What vocabulary alignment does to human captions (the paper on DBAC, section 4.2, Eq. 9, appendix A and Table 7; with
constant alignment LIC's, Hirota et al., CVPR 2022; METEOR: Denkowski and Lavie, WMT 2014).

    contextual_share = words substituted by a word / (words substituted by a word + words that became <unk>)
    unknown_share    = words that became <unk> / all words
    METEOR_aligned   = mean over captions of METEOR(original caption, caption after alignment)

Words are counted as often as they occur, special tokens such as the mask among all words. Range [0, 1], shown x100. The
share of contextual substitutions (Figure 1) grows with delta: near 0 captions lose words, near 100 words become
unrelated ones, so higher is better only beside METEOR_aligned. Of unknown_share, lower is better.

>>> contextual_share(substituted=[1, 1], unknown=[0, 2])  # two of four words outside the vocabulary
0.5
>>> unknown_share(unknown=[0, 2], words=[4, 6])  # two of ten words
0.2
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from capbias_core.errors import CapbiasError
from capbias_core.metrics.arguments import alike, counts
from capbias_core.metrics.share import share


def contextual_share(substituted: ArrayLike, unknown: ArrayLike) -> float:
    """Words of each caption that were substituted by a word, and that became <unk>. nan if there are none of either."""
    became, lost = counts("substituted", substituted), counts("unknown", unknown)
    alike(("substituted", became), ("unknown", lost))
    return float(share(became.sum(), became.sum() + lost.sum()))


def unknown_share(unknown: ArrayLike, words: ArrayLike) -> float:
    """Words of each caption that became <unk>, and all of its words. nan if there are none."""
    lost, every = counts("unknown", unknown), counts("words", words)
    alike(("unknown", lost), ("words", every))
    if (lost > every).any():
        raise CapbiasError("unknown must not exceed words, but does for some captions.")
    return float(share(lost.sum(), every.sum()))

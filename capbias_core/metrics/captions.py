"""What captions say: the values that they name, objects, different words, and words that alignment replaced."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from capbias_core.errors import CapbiasError
from capbias_core.metrics.arguments import alike, booleans, codes, counts, numbers
from capbias_core.metrics.arguments import captions as texts
from capbias_core.metrics.share import share
from capbias_core.prepare.tokens import Tokens


def ratio(names: ArrayLike) -> float:
    """Ratio (Burns et al., ECCV 2018; Hirota et al., CVPR 2022, Table 1), for attributes of two values.

        ratio = captions that name only the second value / captions that name only the first

    Range [0, inf); the neutral point is the ratio of the labels (COCO has 2.25 men for a woman). names: (n, 2)
    booleans, which values each caption names. nan if no caption names only the first.

    >>> ratio([[False, True], [False, True], [True, False], [True, True]])
    2.0
    """
    named = booleans("names", names, "2")
    if named.shape[1] != 2:
        raise CapbiasError(
            f"ratio compares two values, but names has {named.shape[1]}.", "Use error, or compare values in pairs."
        )
    first, second = named_alone(named).sum(axis=0)
    return float(ratio_of(second, first))


def ratio_of(second: ArrayLike, first: ArrayLike) -> np.ndarray:
    """Captions that name only the second value and only the first, (...), to `ratio`."""
    return np.where(np.asarray(first) > 0, share(second, first), np.nan)


def error(names: ArrayLike, labels: ArrayLike) -> float:
    """Error, attribute misclassification (Burns et al., ECCV 2018; Hirota et al., CVPR 2022, section 3.1).

        error = captions whose only named value is a wrong one / all captions

    Range [0, 1], shown x100. Lower is better. A caption that names no value, or several, is not an error. names: (n, K)
    booleans, which values each caption names. labels: (n,) codes of values.

    >>> error([[False, True], [True, False], [False, False], [True, True]], [0, 0, 0, 0])
    0.25
    """
    named = booleans("names", names)
    return float(wrong_names(named, codes(labels, named)).mean())


def naming_share(names: ArrayLike) -> float:
    """Share of captions that name a value, a proxy for AnonymousBench's human score (Abdelrahman et al., AAAI 2024).

        share = captions that name a value of the attribute / captions

    AnonymousBench asks people whether a caption of a photograph without a recognisable gender lets them guess one. A
    caption that only hints counts as naming none here. Range [0, 1], shown x100; neutral point 0. Lower is better.
    names: (n, K) booleans, which values each caption names.

    >>> naming_share([[True, False], [False, False], [True, True], [False, False]])
    0.5
    """
    return float(booleans("names", names).any(axis=1).mean())


def naming_ratio(model: ArrayLike, human: ArrayLike) -> np.ndarray:
    """Naming ratio: captions that name a value, for each human one (Sabir and Padró, Findings of EMNLP 2023, Table 3).

        naming_ratio_a = sum_i m_ia / sum_i h_ia

    m_ia, h_ia: the share of the model's and of the human captions of the image i that name the value a and no other.
    Range [0, inf); the neutral point is 1. The paper calls it leakage. (...) counts of both sides to their quotient;
    nan or inf if no human caption names the value.

    >>> naming_ratio([792, 408], [930, 291]).round(2).tolist()
    [0.85, 1.4]
    """
    return share(*alike(model=numbers("model", model, 0), human=numbers("human", human, 0)))


def named_alone(names: np.ndarray) -> np.ndarray:
    """(n, K) booleans: the caption names this value and no other."""
    return names & (names.sum(axis=1, keepdims=True) == 1)


def wrong_names(names: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) booleans: the caption's only named value is not the label."""
    only = named_alone(names)
    return only.any(axis=1) & ~only[np.arange(len(only)), labels]


# objects: a mention is each time that a caption names one; an object of an image counts once


def chair_i(mentions: ArrayLike, shown: ArrayLike) -> float:
    """CHAIR_i (Rohrbach et al., EMNLP 2018).

        CHAIR_i = mentions of objects that the image does not show / mentions of objects

    Range [0, 1], shown x100; lower is better. An object that nobody annotated counts as hallucinated.

    mentions: (n, L), how often each caption names each object. shown: (n, L) booleans: its image shows it.

    >>> round(chair_i([[2, 1, 0], [0, 0, 0]], [[1, 0, 1], [1, 0, 0]]), 3)  # two captions, three objects
    0.333
    """
    sums = _object_counts(mentions, shown)
    return float(share(sums["hallucinated"].sum(), sums["mentions"].sum()))


def chair_s(mentions: ArrayLike, shown: ArrayLike) -> float:
    """CHAIR_s (Rohrbach et al., EMNLP 2018).

        CHAIR_s = captions that mention an object that the image does not show / captions

    Range [0, 1], shown x100; lower is better. mentions, shown: as in `chair_i`.

    >>> chair_s([[2, 1, 0], [0, 0, 0]], [[1, 0, 1], [1, 0, 0]])
    0.5
    """
    return float(_object_counts(mentions, shown)["hallucinating"].mean())


def object_recall(mentions: ArrayLike, shown: ArrayLike) -> float:
    """Object recall (Hirota et al., ACL 2025).

        object recall = objects of the images that the caption of the image names / objects of the images

    Range [0, 1], shown x100; higher is better. mentions, shown: as in `chair_i`.

    >>> round(object_recall([[2, 1, 0], [0, 0, 0]], [[1, 0, 1], [1, 0, 0]]), 3)
    0.333
    """
    sums = _object_counts(mentions, shown)
    return float(share(sums["recalled"].sum(), sums["shown"].sum()))


def object_counts(mentions: csr_array, shown: csr_array) -> dict[str, np.ndarray]:
    """(n, L) mentions of objects and what the images show to counts of each caption, (n,): mentions, hallucinated ones,
    whether there is one (hallucinating), objects shown, and those of them that it names (recalled)."""
    named, right, on_image, recalled = (
        np.asarray(matrix.sum(axis=1), dtype=float).ravel()
        for matrix in (mentions, mentions.multiply(shown), shown, (mentions > 0).multiply(shown))
    )
    wrong = named - right
    hallucinating = (wrong > 0).astype(float)
    return dict(mentions=named, hallucinated=wrong, hallucinating=hallucinating, shown=on_image, recalled=recalled)


def _object_counts(mentions: ArrayLike, shown: ArrayLike) -> dict[str, np.ndarray]:
    named, on_image = alike(mentions=counts("mentions", mentions, ("n", "L")), shown=booleans("shown", shown, "L"))
    return object_counts(csr_array(named.astype(int)), csr_array(on_image.astype(int)))


# different words


def vocabulary(captions: Iterable[str]) -> int:
    """Vocabulary size of a caption set (Hirota et al., CVPR 2022, Figure 3).

        vocabulary = number of different words among all captions of the set

    Words are lower-case tokens without punctuation. Range [0, inf); higher is better in the sense of richer captions.
    It grows with the number of captions, so only sets of the same images are comparable.

    >>> vocabulary(["a dog runs", "A cat."])
    4
    """
    return len(Tokens.of(texts("captions", captions)).words)


# vocabulary alignment


def contextual_share(substituted: ArrayLike, unknown: ArrayLike) -> float:
    """Contextual share of substitutions (the paper on DBAC, appendix A; constant alignment: Hirota et al., CVPR 2022).

        contextual_share = words substituted by a word / (words substituted by a word + words that became <unk>)

    Words are counted as often as they occur. Range [0, 1], shown x100. It grows with delta (Figure 1): near 100 words
    become unrelated ones, so higher is better only beside METEOR of the captions before and after.

    substituted, unknown: words of each caption. nan if there are none of either.

    >>> contextual_share(substituted=[1, 1], unknown=[0, 2])  # two of four words outside the vocabulary
    0.5
    """
    became, lost = alike(substituted=counts("substituted", substituted), unknown=counts("unknown", unknown))
    return float(share(became.sum(), became.sum() + lost.sum()))


def unknown_share(unknown: ArrayLike, words: ArrayLike) -> float:
    """Words that became <unk> (the paper on DBAC, Eq. 9; constant alignment: Hirota et al., CVPR 2022).

        unknown_share = words that became <unk> / all words, special tokens such as the mask among them

    Range [0, 1], shown x100; lower is better. unknown, words: of each caption. nan if there are no words.

    >>> unknown_share(unknown=[0, 2], words=[4, 6])  # two of ten words
    0.2
    """
    lost, total = alike(unknown=counts("unknown", unknown), words=counts("words", words))
    if (lost > total).any():
        raise CapbiasError("unknown must not exceed words, but does for some captions.")
    return float(share(lost.sum(), total.sum()))

"""Caption quality as COCO's evaluation computes it: BLEU-4, ROUGE-L, METEOR and CIDEr (LIC, CVPR 2022, Table 1). A good
caption here is one that resembles what people wrote, with whatever bias that has."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from capbias_core.errors import need
from capbias_core.metrics.arguments import referenced
from capbias_core.prepare.java import java

PACKAGE = "pycocoevalcap"
N = 4
# pycocoevalcap's: no logarithm of 0, no division by 0.
TINY, SMALL = 1e-15, 1e-9
BLOCK = 500
# METEOR 1.5 for English: weight of recall, of fragmentation and its power, of content words, of the kinds of match.
ALPHA, GAMMA, BETA, DELTA = 0.85, 0.6, 0.2, 0.75
WEIGHTS = np.array([1.0, 0.6, 0.8, 0.6])
WORDS, CHUNKS, MATCHED = slice(0, 2), 20, slice(21, 23)

References = Sequence[Sequence[str]]
Report = Callable[[float], None] | None  # called with the share done now and then; may raise to stop


def bleu4(references: References, candidates: Sequence[str]) -> float:
    """BLEU-4 (Papineni et al., ACL 2002) of a set.

        BLEU-4 = min(1, exp(1 - r / c)) * (p_1 * p_2 * p_3 * p_4)^(1/4)

    p_n: clipped share of the candidates' n-grams that a reference has; c and r: summed lengths of the candidates and of
    the nearest references. Counts are summed over captions before a quotient is taken. Range [0, 1], shown x100; higher
    is better. references: for each caption one or more. candidates: (n,). Both as `quality_tokens` gives them.

    >>> round(bleu4([["a man rides a horse"]], ["a man rides a cow"]), 3)  # 4/5, 3/4, 2/3 and 1/2
    0.669
    """
    return float(bleu_of(bleu_counts(*referenced(references, candidates)).sum(axis=0)))


def cider(references: References, candidates: Sequence[str]) -> float:
    """CIDEr-D (Vedantam et al., CVPR 2015), a mean over captions.

        CIDEr = 10 * mean over n = 1..4 and references of min(C, R) . R / (|C| |R|) * exp(-d^2 / 72)

    d: difference of lengths; C, R: tf-idf of the n-grams of the candidate and of a reference; the smaller of both
    counts. N-grams weigh by how rare they are among the references of all images given, so it depends on which. Range
    [0, 10], shown x100; higher is better. references, candidates: as in `bleu4`.

    >>> round(cider([["a dog runs now"], ["two cats sleep here"]], ["a dog runs now", "a dog"]), 3)  # 10 and 0
    5.0
    """
    return float(cider_scores(*referenced(references, candidates)).mean())


def meteor(references: References, candidates: Sequence[str]) -> float:
    """METEOR (Denkowski and Lavie, ACL workshop WMT 2014) of a set in English, matched by its authors' Java program.

        METEOR = P * R / (0.85 * P + 0.15 * R) * (1 - 0.6 * (chunks / matched words)^0.2)

    P, R: weighted words that match (exactly, by stem, as synonym, as paraphrase) over the words of the candidate and of
    its best reference; chunks: runs of matched words. Counts are summed over captions before a quotient is taken. Range
    [0, 1], shown x100; higher is better. references, candidates: as in `bleu4`. Raises CapbiasError without Java, or
    where its program fails.
    """
    return float(meteor_of(meteor_counts(*referenced(references, candidates)).sum(axis=0)))


def rouge_l(references: References, candidates: Sequence[str]) -> float:
    """ROUGE-L (Lin, ACL 2004), a mean over captions.

        ROUGE-L = (1 + b^2) * P * R / (R + b^2 * P), b = 1.2

    P, R: longest common subsequence over the candidate's and a reference's length, the best reference for each. Range
    [0, 1], shown x100; higher is better. references, candidates: as in `bleu4`.

    >>> round(rouge_l([["a dog runs", "the dog"]], ["a dog"]), 3)  # P 1, R 2/3
    0.772
    """
    return float(rouge_scores(*referenced(references, candidates)).mean())


def _reported(items: Iterable, n: int, report: Report) -> Iterator[tuple[int, Any]]:
    for index, item in enumerate(items):
        if report and index % BLOCK == 0:
            report(index / n)
        yield index, item


def bleu_counts(references: References, candidates: Sequence[str], report: Report = None) -> np.ndarray:
    """Counts of each caption, (n, 9): matched n-grams (1 to 4), n-grams (1 to 4), length of the nearest reference."""
    need("BLEU-4", PACKAGE)
    from pycocoevalcap.bleu.bleu_scorer import cook_refs, cook_test

    rows = np.zeros((len(candidates), 2 * N + 1))
    for row, (texts, candidate) in _reported(zip(references, candidates, strict=True), len(candidates), report):
        cooked = cook_test(candidate, cook_refs(texts, n=N), "closest", n=N)
        rows[row] = [*cooked["correct"], *cooked["guess"], cooked["reflen"]]
    return rows


def bleu_of(sums: np.ndarray) -> np.ndarray:
    """Summed counts (..., 9) of `bleu_counts` to BLEU-4 (...); nan for no caption at all."""
    correct, guess, reference = sums[..., :N], sums[..., N : 2 * N], sums[..., 2 * N]
    precision = np.prod((correct + TINY) / (guess + SMALL), axis=-1) ** (1 / N)
    ratio = (guess[..., 0] + TINY) / (reference + SMALL)
    value = precision * np.exp(np.minimum(0, 1 - 1 / ratio))
    return np.where(reference > 0, value, np.nan)


def rouge_scores(references: References, candidates: Sequence[str], report: Report = None) -> np.ndarray:
    """ROUGE-L of each caption, (n,) in [0, 1]."""
    need("ROUGE-L", PACKAGE)
    from pycocoevalcap.rouge.rouge import Rouge

    scorer, values = Rouge(), np.zeros(len(candidates))
    for row, (texts, candidate) in _reported(zip(references, candidates, strict=True), len(candidates), report):
        values[row] = scorer.calc_score([candidate], texts)
    return values


def cider_scores(references: References, candidates: Sequence[str], report: Report = None) -> np.ndarray:
    """CIDEr of each caption, (n,) in [0, 10]; each caption's references count as one document."""
    need("CIDEr", PACKAGE)
    from pycocoevalcap.cider.cider_scorer import CiderScorer

    class Watched(list):
        """A list that reports how far it has been read: the scorer goes through its captions once."""

        def __iter__(self):
            return (item for _, item in _reported(super().__iter__(), len(self), report))

    if not len(candidates):
        return np.zeros(0)
    scorer = CiderScorer(n=N)
    for texts, candidate in zip(references, candidates, strict=True):
        scorer.cook_append(candidate, texts)
    scorer.ctest = Watched(scorer.ctest)
    return scorer.compute_score()[1]


def meteor_counts(references: References, candidates: Sequence[str], report: Report = None) -> np.ndarray:
    """What METEOR counts of each caption and its best reference, (n, 23): words of both and function words of both; for
    each of four kinds of match content words of both and function words of both; chunks, 0 if they are the same words
    in the same order; matched words of both. Raises CapbiasError if there is no Java. Its start takes 8 seconds."""
    need("METEOR", PACKAGE)
    from pycocoevalcap.meteor import meteor as package

    jar = Path(inspect.getfile(package)).with_name(package.METEOR_JAR)
    asked = [
        " ||| ".join(["SCORE", *(" ".join(text.replace("|||", " ").split()) for text in (*texts, candidate))])
        for texts, candidate in zip(references, candidates, strict=True)
    ]
    lines = java(["-Xmx2G", "-jar", str(jar), "-", "-", "-stdio", "-l", "en", "-norm"], asked, report)
    counts = np.array([line.split() for line in lines], dtype=float).reshape(len(lines), 23)
    unbroken = (counts[:, CHUNKS] == 1) & (counts[:, MATCHED] == counts[:, WORDS]).all(axis=1)
    counts[unbroken, CHUNKS] = 0  # all words of both match, in one run
    return counts


def meteor_of(sums: np.ndarray) -> np.ndarray:
    """Counts (..., 23) of `meteor_counts`, of a caption or summed, to METEOR (...); nan for no caption at all."""
    words, function = sums[..., WORDS], sums[..., 2:4]  # (..., 2): the candidate's, the reference's
    matches = sums[..., 4:20].reshape(*sums.shape[:-1], 4, 2, 2)  # (..., kind, content or function, whose)
    kinds = DELTA * matches[..., 0, :] + (1 - DELTA) * matches[..., 1, :]
    length = DELTA * (words - function) + (1 - DELTA) * function
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = np.moveaxis((WEIGHTS[:, None] * kinds).sum(axis=-2) / length, -1, 0)
        mean = 1 / ((1 - ALPHA) / precision + ALPHA / recall)
        broken = sums[..., CHUNKS] / sums[..., MATCHED].mean(axis=-1)
        value = np.nan_to_num(mean * (1 - GAMMA * broken**BETA))
    return np.where(words.any(axis=-1), value, np.nan)

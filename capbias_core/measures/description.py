"""How much captions say and in which tone: length, vocabulary, modifiers and valence, by group."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from capbias_core.aggregate import quotient
from capbias_core.measures.base import Job, Measure, Outcome, no_neutral
from capbias_core.measures.by_group import LOTUS, Grouped, GroupedMetric, GroupSums
from capbias_core.metrics.evidence import Ratio
from capbias_core.metrics.vocabulary import shares_of_ten
from capbias_core.prepare.tasks import MODIFIER, NOUN, lemmas
from capbias_core.prepare.valence import valences

_WITHOUT_LIMIT = (0, float("inf"))

GROUPED = Grouped(
    (
        GroupedMetric(
            "length",
            "length, words per caption",
            1,
            no_neutral,
            "none",
            _WITHOUT_LIMIT,
            LOTUS,
            "Words of a caption, punctuation left out.",
        ),
        GroupedMetric(
            "vocabulary_10",
            "vocabulary of ten, different words in ten captions",
            1,
            no_neutral,
            "higher",
            _WITHOUT_LIMIT,
            "Hurlbert, Ecology 1971",
            "Different words in ten captions, on average over all draws of ten. Unlike the vocabulary of the whole "
            "set it does not grow with the number of captions, so groups of different sizes can be compared.",
            of_sums=lambda sums: quotient(sums[..., :2]),
            within=lambda sums: quotient(sums[..., 2:]),
        ),
        GroupedMetric(
            "modifiers",
            "modifiers, adjectives and adverbs per 100 nouns",
            100,
            no_neutral,
            "higher",
            _WITHOUT_LIMIT,
            LOTUS,
            "Adjectives and adverbs for every 100 nouns: how closely captions describe what they name. By the part of "
            "speech of each word alone (HanTa), not by a parse.",
        ),
        GroupedMetric(
            "valence",
            "valence, ratings of adjectives and adverbs per 100 words",
            100,
            no_neutral,
            "none",
            (-400, 400),
            "Hutto and Gilbert, ICWSM 2014",
            "How positive (up to 4) or negative (down to -4) people found the adjectives and adverbs in 100 words of "
            "captions, added up; 0 for those that VADER's lexicon does not rate. Its other words do not count: "
            "`playing` and the `fire` of a hydrant are rated too.",
            digits=2,
        ),
    )
)


def run(job: Job) -> Outcome:
    """Words, different words, modifiers and their ratings, of the captions of labelled images."""
    encoded = job.tokens(job.frame)
    tags = [tag for _, tag in lemmas(encoded.vocabulary)]
    modifiers = np.array([tag.startswith(MODIFIER) for tag in tags])
    rating = modifiers * np.array([valences().get(word, 0.0) for word in encoded.vocabulary])

    def of_words(numbers: ArrayLike) -> np.ndarray:
        """Numbers of the words of the vocabulary, summed over the words of each caption: (n,)."""
        own = np.asarray(numbers, dtype=float)[encoded.codes]
        return np.bincount(encoded.caption, weights=own, minlength=encoded.n)

    lengths = of_words(np.ones(len(tags)))
    found = GroupSums.of(
        job.frame,
        job.codes,
        {
            "length": Ratio(lengths, np.ones(encoded.n)),
            "vocabulary_10": _vocabulary(encoded.words(), job.codes(job.frame["image_id"])),
            "modifiers": Ratio(of_words(modifiers), of_words([tag.startswith(NOUN) for tag in tags])),
            "valence": Ratio(of_words(rating), lengths),
        },
    )
    method = f"captions of {len(found.images):,} labelled images"
    notes = [f"Descriptions rest on {found.sizes_text(job.attribute.values)}."]
    return GROUPED.outcome(job, found, lambda name: method, notes)


def _vocabulary(words: csr_array, label: np.ndarray) -> np.ndarray:
    """(n, 4): for the vocabulary of all captions its shares and 1, and for that of the caption's own group the same."""
    own = np.zeros(len(label))
    for value in np.unique(label):
        own[label == value] = shares_of_ten(words[label == value])
    ones = np.ones(len(label))
    return np.column_stack([shares_of_ten(words), ones, own, ones])


MEASURE = Measure(
    name="description",
    title="length, vocabulary, modifiers and valence",
    place=8,
    metrics=GROUPED.every,
    groups=(GROUPED.group("description", "length, vocabulary, modifiers and valence by group"),),
    version=2,
    run=run,
    estimates=GROUPED.estimates,
)

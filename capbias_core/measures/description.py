"""How much captions say and in which tone: length, vocabulary, modifiers and valence, by group."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.aggregate import Counts
from capbias_core.measures.base import LOTUS, Job, Measure, Metric, Outcome, group_of, no_neutral, with_gaps
from capbias_core.metrics.share import share
from capbias_core.metrics.vocabulary import shares_of_ten
from capbias_core.prepare.tasks import MODIFIER, NOUN, lemmas
from capbias_core.prepare.valence import valences

_WITHOUT_LIMIT = (0, float("inf"))

METRICS = with_gaps(
    Metric(
        "length",
        "length, words per caption",
        1,
        no_neutral,
        "none",
        _WITHOUT_LIMIT,
        LOTUS,
        "Words of a caption, punctuation left out.",
        reads=("words", "captions"),
    ),
    Metric(
        "vocabulary_10",
        "vocabulary of ten, different words in ten captions",
        1,
        no_neutral,
        "higher",
        _WITHOUT_LIMIT,
        "Hurlbert, Ecology 1971",
        "Different words in ten captions, on average over all draws of ten. Unlike the vocabulary of the whole "
        "set it does not grow with the number of captions, so groups of different sizes can be compared.",
        reads=("variety", "captions", "variety in group"),
        of=lambda variety, captions, in_group: share(variety, captions),
        within=lambda variety, captions, in_group: share(in_group, captions),
    ),
    Metric(
        "modifiers",
        "modifiers, adjectives and adverbs per 100 nouns",
        100,
        no_neutral,
        "higher",
        _WITHOUT_LIMIT,
        LOTUS,
        "Adjectives and adverbs for every 100 nouns: how closely captions describe what they name. By the part of "
        "speech of each word alone (HanTa), not by a parse.",
        reads=("modifiers", "nouns"),
    ),
    Metric(
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
        reads=("valence", "words"),
    ),
)


def run(job: Job) -> Outcome:
    """Words, different words, modifiers and their ratings, of the captions of labelled images."""
    encoded = job.tokens(job.frame)
    tags = [tag for _, tag in lemmas(encoded.words)]
    modifiers = np.array([tag.startswith(MODIFIER) for tag in tags])
    rating = modifiers * np.array([valences().get(word, 0.0) for word in encoded.words])

    def of_words(numbers: ArrayLike) -> np.ndarray:
        """Numbers of the words of the vocabulary, summed over the words of each caption: (n,)."""
        own = np.asarray(numbers, dtype=float)[encoded.codes]
        return np.bincount(encoded.caption, weights=own, minlength=len(encoded))

    words, label, in_group = encoded.matrix(), job.codes(job.frame["image_id"]), np.zeros(len(encoded))
    for value in np.unique(label):
        in_group[label == value] = shares_of_ten(words[label == value])
    found = {
        "words": of_words(np.ones(len(tags))),
        "variety": shares_of_ten(words),
        "variety in group": in_group,
        "modifiers": of_words(modifiers),
        "nouns": of_words([tag.startswith(NOUN) for tag in tags]),
        "valence": of_words(rating),
    }
    counts = Counts.of_captions(job.frame["image_id"], job.codes, found)
    method = f"captions of {len(counts.images):,} labelled images"
    return job.outcome(METRICS, counts, method, [f"Descriptions rest on {job.sizes(counts)}."])


MEASURE = Measure(
    name="description",
    title="length, vocabulary, modifiers and valence",
    place=8,
    metrics=METRICS,
    groups=(group_of("description", "length, vocabulary, modifiers and valence by group", METRICS),),
    version=3,
    run=run,
)

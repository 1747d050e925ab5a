"""How much captions say: length, vocabulary and modifiers, by group."""

from __future__ import annotations

import numpy as np

from capbias_core.measures.base import Job, Measure, Outcome, no_neutral
from capbias_core.measures.by_group import BOOTSTRAP, LOTUS, Grouped, GroupedMetric, GroupSums
from capbias_core.measures.cost import per_image
from capbias_core.metrics.evidence import Ratio
from capbias_core.metrics.vocabulary import different_in_ten, word_counts
from capbias_core.prepare.tasks import MODIFIER, NOUN, Encoded, encode, lemmas

_WITHOUT_LIMIT = (0, float("inf"))

GROUPED = Grouped(
    (
        GroupedMetric(
            "length",
            "length, words per caption",
            1,
            no_neutral,
            "higher",
            _WITHOUT_LIMIT,
            LOTUS,
            "Words of a caption, punctuation left out. A longer caption is not a better one.",
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
            of_sums=different_in_ten,
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
    )
)


def run(job: Job) -> Outcome:
    """Words, different words, nouns and modifiers of the captions of labelled images."""
    encoded = encode(job.frame["caption"])
    lengths = np.bincount(encoded.caption, minlength=encoded.n).astype(float)
    tags = [tag for _, tag in lemmas(encoded.vocabulary)]
    found = GroupSums.of(
        job.frame,
        job.codes,
        {
            "length": Ratio(lengths, np.ones(encoded.n)),
            "vocabulary_10": word_counts(job.frame["caption"]),
            "modifiers": Ratio(_having(encoded, tags, MODIFIER), _having(encoded, tags, NOUN)),
        },
    )
    method = f"captions of {len(found.images):,} labelled images; {BOOTSTRAP}"
    notes = [f"Descriptions rest on {found.sizes_text(job.attribute.values)}."]
    return GROUPED.outcome(job, found, lambda name: method, notes)


def _having(encoded: Encoded, tags: list[str], kinds: tuple[str, ...]) -> np.ndarray:
    """(n,): how many words of each caption are of these parts of speech. tags: of the words of the vocabulary."""
    own = np.array([tag.startswith(kinds) for tag in tags], dtype=float)
    return np.bincount(encoded.caption, weights=own[encoded.codes], minlength=encoded.n)


MEASURE = Measure(
    name="description",
    title="length, vocabulary and modifiers",
    place=8,
    metrics=GROUPED.every,
    groups=(GROUPED.group("description", "length, vocabulary and modifiers by group"),),
    cost=per_image(3.0),
    run=run,
    estimates=GROUPED.estimates,
)

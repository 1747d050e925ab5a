"""Nouns and verbs of the human captions that a caption has too, by group."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from capbias_core.measures.base import Job, Measure, Needs, Outcome, no_neutral, of_images
from capbias_core.measures.by_group import LOTUS, Grouped, GroupedMetric, GroupSums
from capbias_core.metrics.evidence import Ratio
from capbias_core.prepare.tasks import NOUN, VERB, Encoded, encode, lemmas


def _recall(name: str, kind: str) -> GroupedMetric:
    return GroupedMetric(
        name,
        f"{kind} recall, {kind}s of the human captions that are named",
        100,
        no_neutral,
        "higher",
        (0, 100),
        LOTUS,
        f"{kind.capitalize()}s of the human captions that the caption has too, in any form, one that several of them "
        "have counting as often. Words that name the attribute do not count; their errors have metrics of their own.",
    )


KINDS = {"noun_recall": NOUN, "verb_recall": VERB}
GROUPED = Grouped((_recall("noun_recall", "noun"), _recall("verb_recall", "verb")))


def run(job: Job) -> Outcome:
    """Lemmas of each caption against nouns and verbs of the human captions of its image."""
    human = job.references()
    frame = of_images(job.frame, human["image_id"])
    human = of_images(human, frame["image_id"])
    found = GroupSums.of(frame, job.codes, covered(frame, human, job.attribute.masked_words))
    method = f"{len(found.images):,} images with references; parts of speech of single words (HanTa)"
    notes = [
        f"Nouns and verbs rest on the {len(found.images):,} labelled images with references "
        f"({found.sizes_text(job.attribute.values)})."
    ]
    return GROUPED.outcome(job, found, lambda name: method, notes)


def covered(frame: pd.DataFrame, human: pd.DataFrame, left_out: frozenset[str] = frozenset()) -> dict[str, Ratio]:
    """Words of each kind that the human captions of its image have and a caption has too, over those that they have.

    frame, human: image_id and caption. left_out: words that do not count.
    """
    encoded = encode([*frame["caption"], *human["caption"]])
    known = lemmas(encoded.vocabulary)
    names, lemma = np.unique([own for own, _ in known], return_inverse=True)
    counts = np.array([word not in left_out for word in encoded.vocabulary]) & (names[lemma] != "")
    n = len(frame)
    image, images = pd.factorize(pd.concat([frame["image_id"], human["image_id"]]))
    said = _with_lemmas(encoded, counts, lemma, len(names))[:n]
    found = {}
    for name, kind in KINDS.items():
        own = counts & np.array([tag.startswith(kind) for _, tag in known])
        by_caption = _with_lemmas(encoded, own, lemma, len(names))[n:]
        of_image = csr_array((np.ones(len(human)), (image[n:], np.arange(len(human)))), (len(images), len(human)))
        people = (of_image @ by_caption)[image[:n]]
        found[name] = Ratio(said.multiply(people).sum(axis=1), people.sum(axis=1))
    return found


def _with_lemmas(encoded: Encoded, kept: np.ndarray, lemma: np.ndarray, n_lemmas: int) -> csr_array:
    """(n, n_lemmas) booleans: the caption has a word of the lemma that is kept. kept, lemma: of the vocabulary."""
    place = np.flatnonzero(kept)
    of_word = csr_array((np.ones(len(place)), (place, lemma[place])), (len(kept), n_lemmas))
    return (encoded.words() @ of_word > 0).astype(float)


MEASURE = Measure(
    name="reference_words",
    title="nouns and verbs of the human captions",
    place=7,
    metrics=GROUPED.every,
    groups=(GROUPED.group("reference_words", "nouns and verbs of human captions by group"),),
    needs=Needs(references="required"),
    version=2,
    seconds=8.0,
    run=run,
    estimates=GROUPED.estimates,
)

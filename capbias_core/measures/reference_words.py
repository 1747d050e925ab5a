"""Nouns and verbs of the human captions that a caption has too, by group."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from capbias_core.aggregate import Counts
from capbias_core.measures.base import (
    HIGHER_SHARE,
    LOTUS,
    Job,
    Measure,
    Metric,
    Needs,
    Outcome,
    group_of,
    of_images,
    with_gaps,
)
from capbias_core.prepare.tasks import NOUN, VERB, lemmas, rows_by_image
from capbias_core.prepare.tokens import Tokens


def _recall(name: str, kind: str) -> Metric:
    return Metric(
        name,
        f"{kind} recall, {kind}s of the human captions that are named",
        *HIGHER_SHARE,
        LOTUS,
        f"{kind.capitalize()}s of the human captions that the caption has too, in any form, one that several of them "
        "have counting as often. Words that name the attribute do not count; their errors have metrics of their own.",
        reads=(f"{kind}s in both", f"{kind}s"),
    )


KINDS = {"nouns": NOUN, "verbs": VERB}
METRICS = with_gaps(_recall("noun_recall", "noun"), _recall("verb_recall", "verb"))


def run(job: Job) -> Outcome:
    """Lemmas of each caption against nouns and verbs of the human captions of its image."""
    human = job.references()
    frame = of_images(job.frame, human["image_id"])
    human = of_images(human, frame["image_id"])
    counts = Counts.of_captions(frame["image_id"], job.codes, covered(frame, human, job.attribute.masked_words))
    method = f"{len(counts.images):,} images with references; parts of speech of single words (HanTa)"
    notes = [
        f"Nouns and verbs rest on the {len(counts.images):,} labelled images with references ({job.sizes(counts)})."
    ]
    return job.outcome(METRICS, counts, method, notes)


def covered(frame: pd.DataFrame, human: pd.DataFrame, left_out: frozenset[str] = frozenset()) -> dict[str, np.ndarray]:
    """Words of each kind that the human captions of a caption's image have, and those that it has too: (n,) each.

    frame, human: image_id and caption. left_out: words that do not count.
    """
    encoded = Tokens.of([*frame["caption"], *human["caption"]])
    known = lemmas(encoded.words)
    names, lemma = np.unique([own for own, _ in known], return_inverse=True)
    counts = np.array([word not in left_out for word in encoded.words]) & (names[lemma] != "")
    n = len(frame)
    image, images = pd.factorize(pd.concat([frame["image_id"], human["image_id"]]))
    said = _with_lemmas(encoded, counts, lemma, len(names))[:n]
    found = {}
    for name, kind in KINDS.items():
        own = counts & np.array([tag.startswith(kind) for _, tag in known])
        by_caption = _with_lemmas(encoded, own, lemma, len(names))[n:]
        of_image = rows_by_image(image[n:], len(images))
        people = (of_image @ by_caption)[image[:n]]
        found |= {f"{name} in both": said.multiply(people).sum(axis=1), name: people.sum(axis=1)}
    return found


def _with_lemmas(encoded: Tokens, kept: np.ndarray, lemma: np.ndarray, n_lemmas: int) -> csr_array:
    """(n, n_lemmas) booleans: the caption has a word of the lemma that is kept. kept, lemma: of the vocabulary."""
    place = np.flatnonzero(kept)
    of_word = csr_array((np.ones(len(place)), (place, lemma[place])), (len(kept), n_lemmas))
    return (encoded.matrix() @ of_word > 0).astype(float)


MEASURE = Measure(
    name="reference_words",
    title="nouns and verbs of the human captions",
    place=7,
    metrics=METRICS,
    groups=(group_of("reference_words", "nouns and verbs of human captions by group", METRICS),),
    needs=Needs(references="required"),
    version=3,
    seconds=8.0,
    run=run,
)

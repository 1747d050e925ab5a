"""What captions say, by group: length, vocabulary, valence, refusals, words that people used, and objects."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from capbias_core.aggregate import (
    HIGHER_SHARE,
    LOTUS,
    LOWER_SHARE,
    RICHNESS,
    WITHOUT_LIMIT,
    Counts,
    Metric,
    Needs,
    no_neutral,
    with_gaps,
)
from capbias_core.data import Data, of_images
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Group, Measure, Outcome, group_of, sizes
from capbias_core.measures.caption_side import annotated, categories_of
from capbias_core.metrics.captions import object_counts, shares_of_ten
from capbias_core.metrics.share import share
from capbias_core.prepare.refusals import refusals
from capbias_core.prepare.tasks import (
    MODIFIER,
    NOUN,
    VERB,
    lemmas,
    object_mentions,
    object_names,
    phrases,
    rows_by_image,
)
from capbias_core.prepare.tokens import Tokens
from capbias_core.resources import VALENCE_FILE
from capbias_core.types import Progress, Result

SHOWN = 60  # characters of a refusal in a note
KINDS = {"nouns": NOUN, "verbs": VERB}

DESCRIPTION = with_gaps(
    Metric(
        "length",
        "length, words per caption",
        1,
        no_neutral,
        "none",
        WITHOUT_LIMIT,
        LOTUS,
        "Words of a caption, punctuation left out.",
        reads=("words", "captions"),
    ),
    Metric(
        "vocabulary_10",
        "vocabulary of ten, different words in ten captions",
        *RICHNESS,
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
        WITHOUT_LIMIT,
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
VOCABULARY = Metric(
    "vocabulary",
    "vocabulary, different words",
    *RICHNESS,
    "Hirota et al., CVPR 2022, Figure 3",
    "Different words among the captions of the labelled images. It grows with the number of captions.",
    side="model",
)
REFUSED = with_gaps(
    Metric(
        "refused",
        "refusals, by group",
        *LOWER_SHARE,
        "capbias 2026, docs/metrics.md",
        "Captions that refuse to describe the image, such as “I'm sorry, but I can't help with identifying people”,"
        " of all captions. A caption that describes the image after such a sentence is none. A gap says that the "
        "model refuses one group more often than another.",
        reads=("refused", "captions"),
    ),
    source="capbias 2026, docs/metrics.md",
)
RECALL = with_gaps(
    *(
        Metric(
            f"{kind}_recall",
            f"{kind} recall, {kind}s of the human captions that are named",
            *HIGHER_SHARE,
            LOTUS,
            f"{kind.capitalize()}s of the human captions that the caption has too, in any form, one that several of "
            "them have counting as often. Words that name the attribute do not count.",
            reads=(f"{kind}s in both", f"{kind}s"),
        )
        for kind in ("noun", "verb")
    )
)

_CHAIR = "Rohrbach et al., EMNLP 2018"
_PEOPLE = "`person` does not count: every labelled image shows one."

# Phrases that begin like the name of an object and name none: a baseball player is no ball. Found by reading captions.
_BALL_GAMES = ("baseball", "basketball", "football", "softball", "volleyball")
_OF_GAMES = ("player", "game", "match", "team", "field", "court", "stadium", "diamond", "practice", "uniform", "jersey")
_OF_GAMES += ("cap", "hat", "pitcher", "catcher", "batter")
_OF_SKIS = ("slope", "lift", "pole", "jacket", "suit", "boot", "gear", "resort", "trail", "hill")
_OTHERS = ("train station", "train track", "bus stop", "bus station", "orange juice", "pizza box", "pizza cutter")
NO_OBJECTS = (
    *(f"{game} {word}" for game in _BALL_GAMES for word in _OF_GAMES),
    # To play baseball is a game, and gloves that somebody wears are clothes.
    *(
        f"{word} {game}"
        for game in _BALL_GAMES
        for word in ("game of", "games of", "play", "plays", "played", "playing")
    ),
    *(f"{word} gloves" for word in ("wearing", "in", "boxing", "ski", "winter", "rubber", "oven", "hat and")),
    *(f"ski {word}" for word in _OF_SKIS),
    *_OTHERS,
)

OBJECTS = with_gaps(
    Metric(
        "object_recall",
        "object recall, objects of the image that are named",
        *HIGHER_SHARE,
        LOTUS,
        f"Objects of the images that the caption names, of COCO's 80 with their synonyms. {_PEOPLE}",
        reads=("recalled", "shown"),
    ),
    Metric(
        "chair_i",
        "CHAIR_i, hallucinated mentions of objects",
        *LOWER_SHARE,
        _CHAIR,
        f"Mentions of objects that the image does not show, of all mentions of objects. {_PEOPLE} Papers that "
        "count it, or other synonyms, print other values. An object that nobody annotated counts as hallucinated.",
        reads=("hallucinated", "mentions"),
    ),
    Metric(
        "chair_s",
        "CHAIR_s, captions with a hallucinated object",
        *LOWER_SHARE,
        _CHAIR,
        "Captions that mention an object that the image does not show, of all captions. Long captions mention more "
        "objects and so have more.",
        reads=("hallucinating", "captions"),
    ),
)


def description(data: Data, options: Any, progress: Progress) -> Outcome:
    """Words, different words, modifiers and their ratings, of the captions of labelled images."""
    tokens = data.tokens(data.frame)
    tags = [tag for _, tag in lemmas(tokens.words)]
    modifiers = np.array([tag.startswith(MODIFIER) for tag in tags])

    def of_words(numbers: ArrayLike) -> np.ndarray:
        """(n,) sums over the words of each caption. numbers: one for each word of the vocabulary."""
        return np.bincount(tokens.caption, np.asarray(numbers, dtype=float)[tokens.codes], len(tokens))

    words, label, in_group = tokens.matrix(), data.codes(data.frame["image_id"]), np.zeros(len(tokens))
    for value in np.unique(label):
        in_group[label == value] = shares_of_ten(words[label == value])
    columns = {
        "words": of_words(np.ones(len(tags))),
        "variety": shares_of_ten(words),
        "variety in group": in_group,
        "modifiers": of_words(modifiers),
        "nouns": of_words([tag.startswith(NOUN) for tag in tags]),
        "valence": of_words(modifiers * np.array([valences().get(word, 0.0) for word in tokens.words])),
    }
    counts = Counts.of_captions(data.frame["image_id"], data.codes, columns)
    method = f"captions of {len(counts.images):,} labelled images"
    return Outcome(counts, {"method": method}, [f"Descriptions: {sizes(counts, data.attribute)}."])


@cache
def valences() -> dict[str, float]:
    """Lower-case word -> how people rated it, -4 (negative) to 4 (positive): VADER's lexicon (Hutto and Gilbert, ICWSM
    2014), without its rules.

    >>> valences()["beautiful"], "chair" in valences()
    (2.9, False)
    """
    lines = VALENCE_FILE.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {word: float(rating) for word, rating in rows}


def vocabulary(data: Data, options: Any, progress: Progress) -> Outcome:
    """Words of the captions of labelled images. The count of a whole set is no function of sums over images: it has no
    estimate, so captioners are not ranked by it."""
    result = Result(
        attribute=data.attribute.name,
        model=data.captioner,
        metric=VOCABULARY.name,
        value=float(len(data.tokens(data.frame).words)),
        scale=VOCABULARY.scale,
        n=len(data.frame),
        method="different words of the captions of labelled images; a count, without an interval",
    )
    return Outcome(results=[result])


def refused(data: Data, options: Any, progress: Progress) -> Outcome:
    """Which captions of labelled images are refusals."""
    captions = data.frame["caption"].to_numpy(dtype=object)
    refusing = refusals(captions)
    counts = Counts.of_captions(data.frame["image_id"], data.codes, {"refused": refusing})
    notes = []
    if refusing.any():
        example = " ".join(captions[refusing.argmax()].split())[:SHOWN]
        notes = [f"{refusing.sum():,} of {len(refusing):,} captions are refusals, such as “{example}”."]
    return Outcome(counts, {"method": "refusals by their wording"}, notes)


def reference_words(data: Data, options: Any, progress: Progress) -> Outcome:
    """Lemmas of each caption against nouns and verbs of the human captions of its image."""
    human = data.human
    frame = of_images(data.frame, human["image_id"])
    human = of_images(human, frame["image_id"])
    tokens, image_ids = (data.tokens(frame), data.human_tokens(human)), (frame["image_id"], human["image_id"])
    columns = shared_words(*tokens, *image_ids, data.attribute.masked_words)
    counts = Counts.of_captions(frame["image_id"], data.codes, columns)
    images = f"{len(counts.images):,}"
    method = f"{images} images with references; parts of speech of single words (HanTa)"
    notes = [
        f"Nouns and verbs are counted on the {images} labelled images with references ({sizes(counts, data.attribute)})."
    ]
    return Outcome(counts, {"method": method}, notes)


def shared_words(
    tokens: Tokens, human_tokens: Tokens, image_id: pd.Series, human_image_id: pd.Series, left_out: Collection[str] = ()
) -> dict[str, np.ndarray]:
    """Nouns and verbs that the human captions of a caption's image have, and those that it has too: (n,) each.
    image_id, human_image_id: of each caption. left_out: words that do not count."""
    n, both = len(tokens), Tokens.join([tokens, human_tokens])
    known, words = lemmas(both.words), both.matrix()
    names, lemma = np.unique([base for base, _ in known], return_inverse=True)
    counts = np.array([word not in left_out for word in both.words]) & (names[lemma] != "")

    def with_lemmas(kept: np.ndarray) -> csr_array:
        """(n, lemmas) 0 or 1: the caption has a word of the lemma that counts. kept: (V,) booleans."""
        word = np.flatnonzero(kept)
        of_word = csr_array((np.ones(len(word)), (word, lemma[word])), (len(kept), len(names)))
        return (words @ of_word > 0).astype(float)

    columns = {}
    image, images = pd.factorize(pd.concat([image_id, human_image_id]))
    named, of_image = with_lemmas(counts)[:n], rows_by_image(image[n:], len(images))
    for name, kind in KINDS.items():
        by_caption = with_lemmas(counts & np.array([tag.startswith(kind) for _, tag in known]))[n:]
        people = (of_image @ by_caption)[image[:n]]
        columns |= {f"{name} in both": named.multiply(people).sum(axis=1), name: people.sum(axis=1)}
    return columns


def objects_named(data: Data, options: Any, progress: Progress) -> Outcome:
    """Objects that each caption names against those of its image, on the images whose objects are known."""
    objects = data.objects
    if objects is None:
        raise CapbiasError("The objects of the images are not loaded.", "Load them, such as cat|dog for an image.")
    frame = data.frame[annotated(list(data.frame["image_id"]), objects)]
    if frame.empty:
        raise CapbiasError(
            f"None of the {len(objects):,} images with objects has a caption of {data.captioner}.",
            "Check the image IDs of both files.",
        )
    shown, unknown = categories_of(list(frame["image_id"]), objects, object_names())
    columns = object_counts(mentions_of(data.tokens(frame)), shown)
    counts = Counts.of_captions(frame["image_id"], data.codes, columns)
    method = f"{len(counts.images):,} images with known objects; COCO's objects without person"
    notes = [
        f"Objects are counted on {len(counts.images):,} labelled images with known objects ({sizes(counts, data.attribute)})."
    ]
    if unknown:
        notes.append(f"Objects that COCO does not have were left out: {', '.join(unknown)}.")
    return Outcome(counts, {"method": method}, notes)


def mentions_of(tokens: Tokens) -> csr_array:
    """(n, 79): how often each caption names each of COCO's objects but person, in the order of `object_names`.

    >>> names = list(object_names())
    >>> from capbias_core.prepare.tokens import Tokens
    >>> caption = "A baseball player with a bat, a ball and a laptop computer. A red bat. A game of football."
    >>> mentions = mentions_of(Tokens.of([caption])).toarray()[0]
    >>> {names[code]: int(n) for code, n in enumerate(mentions) if n}
    {'sports ball': 1, 'baseball bat': 2, 'laptop': 1}
    """
    known = object_names()
    return object_mentions(tokens, known | phrases(NO_OBJECTS))[:, : len(known)]


MEASURES = (
    Measure(
        name="hallucination",
        title="object recall and hallucinated objects",
        position=7,
        metrics=OBJECTS,
        groups=(group_of("chair", "object recall and hallucination by group", OBJECTS),),
        needs=Needs(objects="required"),
        version=5,
        count=objects_named,
    ),
    Measure(
        name="refusals",
        title="refusals",
        position=2,
        metrics=REFUSED,
        groups=(group_of("refused", "refusals by group", REFUSED, default=True),),
        version=3,
        count=refused,
    ),
    Measure(
        name="reference_words",
        title="nouns and verbs of the human captions",
        position=7,
        metrics=RECALL,
        groups=(group_of("reference_words", "nouns and verbs of human captions by group", RECALL),),
        needs=Needs(references="required"),
        version=4,
        seconds=8.0,
        count=reference_words,
    ),
    Measure(
        name="description",
        title="length, vocabulary, modifiers and valence",
        position=8,
        metrics=DESCRIPTION,
        groups=(group_of("description", "length, vocabulary, modifiers and valence by group", DESCRIPTION),),
        version=4,
        count=description,
    ),
    Measure(
        name="vocabulary",
        title="vocabulary size",
        position=8,
        metrics=(VOCABULARY,),
        groups=(Group("vocabulary", "vocabulary size", ("vocabulary",)),),
        count=vocabulary,
    ),
)

"""Objects that captions name: recall of those on the image, and hallucinated ones (CHAIR), by group."""

from __future__ import annotations

from scipy.sparse import csr_array

from capbias_core.aggregate import Counts
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import (
    HIGHER_SHARE,
    LOTUS,
    LOWER_SHARE,
    Job,
    Measure,
    Metric,
    Needs,
    Outcome,
    group_of,
    with_gaps,
)
from capbias_core.measures.caption_side import annotated, categories_of
from capbias_core.metrics.captions import object_counts
from capbias_core.prepare.tasks import object_mentions, object_names, phrases
from capbias_core.prepare.tokens import Tokens

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

METRICS = with_gaps(
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


def count(job: Job) -> Outcome:
    """Objects that each caption names against those of its image, on the images whose objects are known."""
    objects = job.objects()
    if objects is None:
        raise CapbiasError("The objects of the images are not loaded.", "Load them, such as cat|dog for an image.")
    frame = job.frame[annotated(list(job.frame["image_id"]), objects)]
    if frame.empty:
        raise CapbiasError(
            f"None of the {len(objects):,} images with objects has a caption of {job.spec.model}.",
            "Check the image IDs of both files.",
        )
    shown, unknown = categories_of(list(frame["image_id"]), objects, object_names())
    found = object_counts(mentions_of(job.tokens(frame)), shown)
    counts = Counts.of_captions(frame["image_id"], job.codes, found)
    method = f"{len(counts.images):,} images with known objects; COCO's objects without person"
    notes = [f"Objects rest on the {len(counts.images):,} labelled images with known objects ({job.sizes(counts)})."]
    if unknown:
        notes.append(f"Objects of images that are none of COCO's were left out: {', '.join(unknown)}.")
    return Outcome(counts, {"method": method}, notes)


def mentions_of(tokens: Tokens) -> csr_array:
    """(n, 79): how often each caption names each of COCO's objects but person, in the order of `object_names`.

    >>> names = list(object_names())
    >>> from capbias_core.prepare.tokens import Tokens
    >>> caption = "A baseball player with a bat, a ball and a laptop computer. A red bat. A game of football."
    >>> found = mentions_of(Tokens.of([caption])).toarray()[0]
    >>> {names[place]: int(n) for place, n in enumerate(found) if n}
    {'sports ball': 1, 'baseball bat': 2, 'laptop': 1}
    """
    known = object_names()
    return object_mentions(tokens, known | phrases(NO_OBJECTS))[:, : len(known)]


MEASURE = Measure(
    name="hallucination",
    title="object recall and hallucinated objects",
    place=7,
    metrics=METRICS,
    groups=(group_of("chair", "object recall and hallucination by group", METRICS),),
    needs=Needs(objects="required"),
    version=4,
    count=count,
)

"""CHAIR: objects that captions mention and images do not show, by group."""

from __future__ import annotations

from typing import Any

import pandas as pd
from scipy.sparse import csr_array

from capbias_core.aggregate import HIGHER_SHARE, LOTUS, LOWER_SHARE, Counts, Metric, Needs, with_gaps
from capbias_core.data import Data
from capbias_core.errors import CapbiasError
from capbias_core.load.tables import objects_in
from capbias_core.measures.base import Measure, Outcome, group_of, sizes
from capbias_core.measures.caption_side import annotated
from capbias_core.metrics.captions import object_counts
from capbias_core.prepare.tasks import object_mentions, object_names, phrases
from capbias_core.prepare.text import tokenize
from capbias_core.prepare.tokens import Tokens, cell_counts
from capbias_core.types import Progress

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


def objects_named(data: Data, options: Any, progress: Progress) -> Outcome:
    """Objects that each caption names against those of its image, on the images whose objects are known."""
    objects = data.objects
    assert objects is not None
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
        f"Objects are counted on {len(counts.images):,} labelled images with known objects "
        f"({sizes(counts, data.attribute)})."
    ]
    if unknown:
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        notes.append(f"Objects that COCO does not have were left out: {', '.join(unknown[:5])}{more}.")
    return Outcome(counts, {"method": method}, notes)


def categories_of(
    images: list[str], objects: pd.Series, names: dict[str, tuple[tuple[str, ...], ...]]
) -> tuple[csr_array, list[str]]:
    """Which of some categories each of n images shows, (n, L) booleans, and names of objects that are none of them.
    images: ids, all of them in objects. names: category -> the phrases that name it, as `object_names` gives them."""
    column_of = {phrase: column for column, phrases in enumerate(names.values()) for phrase in phrases}
    found = objects_in(objects.loc[images].set_axis(range(len(images))))
    known = {text: column_of.get(tuple(tokenize(text))) for text in found["object"].unique()}
    cells = found.assign(column=found["object"].map(known)).dropna(subset="column")[["image_id", "column"]]
    rows, columns = cells.drop_duplicates().to_numpy(dtype=int).T
    unknown = sorted(text for text, column in known.items() if column is None and text != "person")
    return cell_counts(rows, columns, len(images), len(names)), unknown


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


MEASURE = Measure(
    name="hallucination",
    title="object recall and hallucinated objects",
    position=7,
    metrics=OBJECTS,
    groups=(group_of("chair", "object recall and hallucination by group", OBJECTS),),
    needs=Needs(objects="required"),
    version=5,
    count=objects_named,
)

"""What a captioner's words for a value depend on in the photograph: attribution scores and the pointing game.

The captioner reads the photograph and the caption, word by word (nothing is generated), and each word that names a
value of the attribute gets a map. Captions do not name every attribute, such as race: there each word for a person gets
a map, of the value that the image is labelled with. The maps are kept with the run, small, for pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from capbias_core.aggregate import HIGHER_SHARE, LOWER_SHARE, Counts, Metric, Needs, by_name, no_neutral
from capbias_core.aggregate.counts import to_npz
from capbias_core.attributes import get_attribute
from capbias_core.data import Data, images_in, of_images
from capbias_core.errors import CapbiasError, MissingExtra
from capbias_core.load.photographs import read_photograph
from capbias_core.measures.base import Group, Measure, Outcome
from capbias_core.measures.options import OnDevice, PeopleMarked, Photographed, option
from capbias_core.metrics.attribution import attribution_even, attribution_pixels, attribution_score, pointing_game
from capbias_core.prepare.split import random_order
from capbias_core.prepare.text import tokens_with_spans
from capbias_core.types import Attribute, Progress
from capbias_core.vision.grad_cam import GRAD_CAM, HIRES_CAM, MAPS, upsampled, word_maps
from capbias_core.vision.presets import PRESETS
from capbias_core.workspace.models import captioner_option
from capbias_core.workspace.photographs import ORIGINALS, People, writer_of
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.store import frame_bytes

ORDER = 0  # seed of the order in which images are taken, if not all of them are
WINDOW = ("left", "top", "right", "bottom")

# Words for a person besides those for a woman or a man.
PERSON_WORDS = ("person", "people", "child", "children")

# Why captions have no map.
SILENT, WITHOUT_PERSON = "name no value", "name no person"
MISSING = "have no photograph"
NOBODY = "have a photograph on which nobody is marked"
BROKEN = "have a photograph or an outline that cannot be used"
NOTHING = "have a map that is 0 everywhere"


_MAPS = "Selvaraju et al., ICCV 2017"
_TABLE = "Nair et al., arXiv:2503.07878 (DBAC), Table 4"
Better = Literal["lower", "higher", "neutral"]
Facts = tuple[float, Callable[[int], float], Better, tuple[float, float]]  # scale, neutral value, better end, range


def _metric(name: str, title: str, facts: Facts, source: str, explanation: str) -> Metric:
    return Metric(name, title, *facts, source, explanation, reads=(name, "captions"), interval="free")


METRICS = by_name(
    _metric(
        "attribution_score",
        "attribution score, the map outside people",
        LOWER_SHARE,
        f"{_TABLE}; {_MAPS}",
        "Share of the map at the captioner's word for a value (what it depends on) that lies outside people. High: it "
        "depends on the scene. Compare with attribution_even, the score of an even map. If captions do not name the "
        "attribute (race), maps are of words for a person, by the label of the image.",
    ),
    _metric(
        "attribution_pixels",
        "attribution score by pixels",
        LOWER_SHARE,
        f"{_TABLE}; {_MAPS}, section 4.1",
        "Of the pixels where the map has 15% of its maximum or more, the share outside people: the other reading of "
        "the paper's definition.",
    ),
    _metric(
        "attribution_even",
        "attribution score of an even map",
        (100, no_neutral, "neutral", (0, 100)),
        f"{_TABLE}; {_MAPS}",
        "Share of these photographs outside people: what a map that says nothing would score.",
    ),
    _metric(
        "pointing_game",
        "pointing game, the maximum on a person",
        HIGHER_SHARE,
        "Zhang et al., ECCV 2016",
        "Share of the maps whose maximum lies on a person. A map that says nothing would score 100 minus "
        "attribution_even.",
    ),
)
NAMES = tuple(METRICS)
# Name -> (H, W) map and where people are to the score of that map.
SCORES = {
    "attribution_score": attribution_score,
    "attribution_pixels": attribution_pixels,
    "attribution_even": attribution_even,
    "pointing_game": pointing_game,
}


@dataclass(frozen=True)
class AttributionOptions(OnDevice, Photographed, PeopleMarked):
    """Choices of maps. captioner: None for the one that wrote each set."""

    captioner: ModelReference | str | None = option(
        None,
        f"the captioner that reads captions: one of {', '.join(PRESETS)}, a folder, or a name in the local cache of "
        "Hugging Face (default: the one that wrote the set, if `images caption` made it)",
        flag="--captioner",
        metavar="NAME_OR_FOLDER",
    )
    map: str = option(
        HIRES_CAM,
        f"how maps are made: {HIRES_CAM} (each cell by its gradient), or {GRAD_CAM}, which the DBAC paper names, "
        "and which misleads if an image encoder is a transformer",
        flag="--attribution-map",
        choices=tuple(MAPS),
    )
    max_images: int | None = option(
        None,
        "read at most this many images, the same for every set (default: all; an image takes a second or two)",
        flag="--max-images",
        at_least=1,
        metavar="N",
    )


def count(data: Data, options: Any, progress: Progress) -> Outcome:
    """Maps at the words that name a value, and how much of each lies outside people."""
    attribute = data.attribute
    photographs, people = (
        data.sources.photographs(options.photographs),
        People(data.sources.frame(options.people["item"])),
    )
    captions, left_out = captions_to_read(data, options, photographs, people.rows)
    captioner: Any = None
    rows, maps = [], []
    if len(captions):
        from capbias_core.vision.captioners import Captioner

        progress(0.0, "loading the captioner")
        captioner = Captioner(data.sources.model(options.captioner).path, options.device)
    for done, caption in enumerate(captions.to_dict("records")):
        progress(done / len(captions), f"maps of caption {done:,} of {len(captions):,}")
        try:
            pixels = read_photograph(photographs[caption["image_id"]])
            person = people.mask(caption["image_id"], *pixels.shape[:2])
        except MissingExtra:
            raise
        except CapbiasError:
            left_out[BROKEN] += 1
            continue
        words = [word for word, _, _ in caption["named"]]
        heats = word_maps(captioner, pixels, caption["caption"], words, options.map)
        left_out[NOTHING] += not heats.any()
        left, top, right, bottom = map(round, captioner.seen(*pixels.shape[:2]))
        window = left, top, right, bottom
        height, width = person.shape
        for (position, word, value), heat in zip(caption["named"], heats, strict=True):
            over = upsampled(heat, height, width, window)
            rows.append(
                {name: caption[name] for name in ("image_id", "caption_index", "kept_at")}
                | {"place": position, "word": word, "value": value}
                | dict(zip(("rows", "columns", "height", "width"), (*heat.shape, height, width), strict=True))
                | dict(zip(WINDOW, window, strict=True))
                | {name: score(over, person) for name, score in SCORES.items()}
            )
        maps += list(heats)
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)
    if captioner is None or not any(heat.any() for heat in maps):
        raise CapbiasError(
            f"No caption of {data.captioner} has a map: {reasons}.",
            "Check that captions, photographs, and outlines or boxes have the same image IDs.",
        )
    table = pd.DataFrame(rows)
    used = table[table[NAMES[0]].notna()]
    even = METRICS["attribution_even"].scale * used["attribution_even"].mean()
    notes = [
        f"{len(used):,} maps at words of {used['image_id'].nunique():,} images. An even map would have an attribution "
        f"score of {even:.1f}, and hit in the pointing game {100 - even:.1f}% of the time."
    ]
    if reasons:
        notes.append(f"Captions left out: {reasons}.")
    if most := options.max_images:
        notes.append(f"At most {most:,} images with such captions, in a random order that is the same for every set.")
    notes.append(f"The captioner worked {captioner.numbers}.")
    writer, marks, shown = options.captioner, options.people, options.photographs["name"]
    words = "words that name a value" if attribute.names_values else "words for a person, by the image's label"
    method = (
        f"{MAPS[options.map][1]} of {writer['name']} {writer['digest'][:8]} at {words}; people by "
        f"{marks['kind']} ({marks['name']}); photographs {shown}"
    )
    columns = {"method": method, "encoder": writer["name"], "photographs": "" if shown == ORIGINALS else shown}
    # Of all maps, and of those at words for each value, the direction. An image counts as often as it has maps.
    groups = {"": used} | {value: used[used["value"] == code] for code, value in enumerate(attribute.values)}
    counts = {
        direction: Counts.of_captions(rows["image_id"], data.codes, {name: rows[name] for name in NAMES}, sort=False)
        for direction, rows in groups.items()
        if len(rows)
    }
    values = np.concatenate([heat.ravel() for heat in maps]).astype(np.float16)
    arrays = {"table": frame_bytes(table), "maps": to_npz(None, values=values)}  # values one after the other
    return Outcome(counts, columns, notes, arrays=arrays)


def captions_to_read(
    data: Data, options: Any, photographs: Container[str], marked: Container[str]
) -> tuple[pd.DataFrame, Counter]:
    """The captions that name a value (or, if captions do not name the attribute, a person), with `named`: its words as
    (index among the caption's words, word, value).

    Their spaces are made single. photographs, marked: images that have a photograph, and people marked on it. Also how
    many captions were left out for which reason. Of many images the first in an order that is random, and the same for
    every set.
    """
    frame = data.frame.assign(
        kept_at=data.frame.index, caption=[" ".join(text.split()) for text in data.frame["caption"]]
    )
    labels = data.codes(frame["image_id"].tolist()).tolist()
    pairs = zip(frame["caption"], labels, strict=True)
    frame["named"] = [named_words(caption, data.attribute, label) for caption, label in pairs]
    ways = {
        SILENT if data.attribute.names_values else WITHOUT_PERSON: frame["named"].map(bool),
        MISSING: frame["image_id"].map(lambda image: image in photographs),
        NOBODY: frame["image_id"].map(lambda image: image in marked),
    }
    kept, left_out = np.ones(len(frame), dtype=bool), Counter()
    for reason, fine in ways.items():
        left_out[reason] = int((kept & ~fine).sum())
        kept &= fine.to_numpy(dtype=bool)
    frame, most = frame[kept], options.max_images
    images = sorted(images_in(frame))
    if most and len(images) > most:
        frame = of_images(frame, [images[number] for number in random_order(images, ORDER)[:most]])
    return frame.sort_values(["image_id", "caption_index"]), left_out


def named_words(caption: str, attribute: Attribute, label: int) -> list[tuple[int, str, int]]:
    """The words of a caption that name a value: their index among its words (split at spaces), the word, the value.

    Of an attribute that captions do not name: the words for a person, with the label of the image as the value.

    >>> named_words("a man's dog", Attribute("gender", "Gender", ("Female", "Male"), {"Male": ("man",)}), 0)
    [(1, 'man', 1)]
    >>> named_words("a man's dog", Attribute("race", "Race", ("Dark", "Light")), 0)
    [(1, 'man', 0)]
    """
    values = {word: code for code, words in enumerate(attribute.value_words) for word in words}
    if not attribute.names_values:
        values = dict.fromkeys([*get_attribute("gender").masked_words, *PERSON_WORDS], label)
    named = [
        (caption.count(" ", 0, start), token, values[token])
        for token, start, _ in tokens_with_spans(caption)
        if token in values
    ]
    return list(dict.fromkeys(named))


MEASURE = Measure(
    name="attribution",
    title="what words depend on in photographs",
    position=17,
    metrics=tuple(METRICS.values()),
    groups=(Group("attribution", "attribution score and pointing game", NAMES),),
    options=AttributionOptions,
    needs=Needs(photographs=True, people=True),
    version=2,
    seconds=30_000.0,
    count=count,
    # The captioner that is named, by its content, else the one that wrote each set.
    freeze=lambda options, data: options.with_(
        captioner=captioner_option(data.sources, options.captioner) if options.captioner else options.captioner
    ),
    for_set=lambda options, captions: options.with_(captioner=options.captioner or writer_of(captions, "captioner")),
    in_process=False,
    packages=("torch", "transformers", "PIL"),
)

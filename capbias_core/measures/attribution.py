"""What a captioner's words for a value rest on in the photograph: attribution scores and the pointing game.

The captioner reads the photograph and the caption, word by word (nothing is generated), and each word that names a
value of the attribute gets a map. Captions do not name every attribute, such as race: there each word for a person gets
a map, of the value that the image is labelled with. The maps are kept with the run, small, for pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from capbias_core.aggregate import Estimate, estimate
from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError, MissingExtra
from capbias_core.load.photographs import read_photograph
from capbias_core.measures.base import Group, Job, Measure, Metric, Needs, Outcome, by_name, no_neutral, npz, of_images
from capbias_core.measures.options import OnDevice, PeopleMarked, Photographed, option
from capbias_core.metrics.attribution_score import attribution_even, attribution_pixels, attribution_score
from capbias_core.metrics.evidence import Ratio
from capbias_core.metrics.pointing_game import pointing_game
from capbias_core.prepare.split import random_order
from capbias_core.prepare.text import tokens_with_spans
from capbias_core.types import Attribute, Result
from capbias_core.vision.grad_cam import GRAD_CAM, HIRES_CAM, MAPS, Window, seen_by, upsampled, word_maps
from capbias_core.vision.presets import PRESETS
from capbias_core.workspace.models import captioner_option, model_path
from capbias_core.workspace.person_regions import People
from capbias_core.workspace.photographs import ORIGINALS, writer_of
from capbias_core.workspace.spec import ModelReference, frozen
from capbias_core.workspace.store import Item, RunRow, Workspace, bytes_frame, frame_bytes, images_in

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
_TABLE = "the DBAC paper, Table 4"

METRICS = by_name(
    Metric(
        "attribution_score",
        "attribution score, the map outside people",
        100,
        no_neutral,
        "lower",
        (0, 100),
        f"{_TABLE}; {_MAPS}",
        "Share of the map at the captioner's word for a value (what it rests on) that lies outside people. High: it "
        "rests on the scene. Compare with attribution_even, the score of an even map. If captions do not name the "
        "attribute (race), maps are of words for a person, by the label of the image.",
    ),
    Metric(
        "attribution_pixels",
        "attribution score by pixels",
        100,
        no_neutral,
        "lower",
        (0, 100),
        f"{_TABLE}; {_MAPS}, section 4.1",
        "Of the pixels where the map has 15% of its maximum or more, the share outside people: the other reading of "
        "the paper's definition.",
    ),
    Metric(
        "attribution_even",
        "attribution score of an even map",
        100,
        no_neutral,
        "neutral",
        (0, 100),
        f"{_TABLE}; {_MAPS}",
        "Share of these photographs outside people: what a map that says nothing would score.",
    ),
    Metric(
        "pointing_game",
        "pointing game, the maximum on a person",
        100,
        no_neutral,
        "higher",
        (0, 100),
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
        "Hugging Face (if not said: the one that wrote the set, if `images caption` made it)",
        flag="--captioner",
        suggested=tuple(PRESETS),
        metavar="NAME_OR_FOLDER",
        advanced=False,
    )
    map: str = option(
        HIRES_CAM,
        f"how maps are made: {HIRES_CAM} (each place by its own gradient), or {GRAD_CAM}, which the DBAC paper names, "
        "and which misleads if an image encoder is a transformer",
        flag="--attribution-map",
        choices=tuple(MAPS),
    )
    max_images: int | None = option(
        None,
        "read at most this many images, the same for every set (if not said: all; an image takes a second or two)",
        flag="--max-images",
        at_least=1,
        metavar="N",
    )


@dataclass(frozen=True)
class MapImages:
    """Which image each map belongs to, as `estimate` reads it. images: their ids. image: (n,) places in them."""

    images: tuple[str, ...]
    image: np.ndarray


def freeze(
    workspace: Workspace, collection: str, options: AttributionOptions, attribute: Attribute
) -> AttributionOptions:
    """The captioner, if one is named, by its content."""
    return options.with_(captioner=captioner_option(workspace, options.captioner)) if options.captioner else options


def for_set(workspace: Workspace, options: AttributionOptions, item: Item) -> AttributionOptions:
    """The captioner that wrote a set, if none is named."""
    return options if options.captioner else options.with_(captioner=writer_of(item, "--captioner"))


def run(job: Job) -> Outcome:
    """Maps at the words that name a value, and how much of each lies outside people."""
    photographs, people = job.photographs(), People(job.workspace, job.options.people)
    captions, left_out = captions_to_read(job, photographs, people.rows)
    captioner = _captioner(job) if len(captions) else None
    rows, maps = [], []
    for done, caption in enumerate(captions.to_dict("records")):
        job.progress(done / len(captions), f"maps of caption {done:,} of {len(captions):,}")
        found, reason = _of_caption(caption, photographs, people, captioner, job.options.map)
        left_out[reason] += bool(reason)
        rows += [row for row, _ in found]
        maps += [heat for _, heat in found]
    if captioner is None or not any(heat.any() for heat in maps):
        raise _no_map(job, left_out)
    table = pd.DataFrame(rows)
    notes = (*_notes(job, table, left_out), f"The captioner worked {captioner.numbers}.")
    return Outcome(_results(job, table), maps_arrays(table, maps), notes)


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again from its maps' scores, by metric and direction."""
    return estimates_of(bytes_frame(workspace.array(run.run_id, "table")), run.spec.attribute["values"])


def captions_to_read(job: Job, photographs: Container[str], marked: Container[str]) -> tuple[pd.DataFrame, Counter]:
    """The captions that name a value (or, if captions do not name the attribute, a person), with `named`: its words as
    (place among the caption's words, word, value).

    Their spaces are made single. photographs, marked: images that have a photograph, and people marked on it. Also how
    many captions were left out for which reason. Of many images the first in an order that is random, and the same for
    every set.
    """
    frame = job.frame.assign(kept_at=job.frame.index, caption=[" ".join(own.split()) for own in job.frame["caption"]])
    labels = job.codes(frame["image_id"].tolist()).tolist()
    pairs = zip(frame["caption"], labels, strict=True)
    frame["named"] = [named_words(caption, job.attribute, label) for caption, label in pairs]
    ways = {
        SILENT if job.attribute.names_values else WITHOUT_PERSON: frame["named"].map(bool),
        MISSING: frame["image_id"].map(lambda image: image in photographs),
        NOBODY: frame["image_id"].map(lambda image: image in marked),
    }
    kept, left_out = np.ones(len(frame), dtype=bool), Counter()
    for reason, fine in ways.items():
        left_out[reason] = int((kept & ~fine).sum())
        kept &= fine.to_numpy(dtype=bool)
    return _first_images(frame[kept], job.options.max_images), left_out


def _first_images(frame: pd.DataFrame, most: int | None) -> pd.DataFrame:
    images = sorted(images_in(frame))
    if most and len(images) > most:
        frame = of_images(frame, [images[place] for place in random_order(images, ORDER)[:most]])
    return frame.sort_values(["image_id", "caption_index"])


def named_words(caption: str, attribute: Attribute, label: int) -> list[tuple[int, str, int]]:
    """The words of a caption that name a value: their place among its words (split at spaces), the word, the value.

    Of an attribute that captions do not name: the words for a person, with the label of the image as the value.

    >>> named_words("a man's dog", Attribute("gender", "Gender", ("Female", "Male"), {"Male": ("man",)}), 0)
    [(1, 'man', 1)]
    >>> named_words("a man's dog", Attribute("race", "Race", ("Dark", "Light")), 0)
    [(1, 'man', 0)]
    """
    values = {word: place for place, words in enumerate(attribute.value_words) for word in words}
    if not attribute.names_values:
        values = dict.fromkeys([*get_attribute("gender").masked_words, *PERSON_WORDS], label)
    found = [
        (caption.count(" ", 0, start), token, values[token])
        for token, start, _ in tokens_with_spans(caption)
        if token in values
    ]
    return list(dict.fromkeys(found))


def _captioner(job: Job):
    from capbias_core.vision.captioners import load_captioner

    job.progress(0.0, "loading the captioner")
    return load_captioner(model_path(job.workspace, job.options.captioner), job.options.device)


def _of_caption(caption: dict, photographs: dict, people: People, captioner, kind: str) -> tuple[list[tuple], str]:
    """A row and a map (h, w) for each named word of a caption, or why there is none. kind: a name in MAPS."""
    image = caption["image_id"]
    try:
        pixels = read_photograph(photographs[image])
        person = people.mask(image, *pixels.shape[:2])
    except MissingExtra:
        raise
    except CapbiasError:
        return [], BROKEN
    maps = word_maps(captioner, pixels, caption["caption"], [place for place, _, _ in caption["named"]], kind)
    window = seen_by(captioner, *pixels.shape[:2])
    pairs = zip(caption["named"], maps, strict=True)
    return [(_row(caption, named, heat, person, window), heat) for named, heat in pairs], "" if maps.any() else NOTHING


def _row(caption: dict, named: tuple[int, str, int], heat: np.ndarray, person: np.ndarray, window: Window) -> dict:
    """What is kept of one map: the caption and the word, its size, what it covers, and its scores."""
    height, width = person.shape
    over = upsampled(heat, height, width, window)
    return {
        **{name: caption[name] for name in ("image_id", "caption_index", "kept_at")},
        **dict(zip(("place", "word", "value"), named, strict=True)),
        **dict(zip(("rows", "columns", "height", "width"), (*heat.shape, height, width), strict=True)),
        **dict(zip(WINDOW, window, strict=True)),
        **{name: score(over, person) for name, score in SCORES.items()},
    }


def maps_arrays(table: pd.DataFrame, maps: list[np.ndarray]) -> dict[str, bytes]:
    """What a run leaves of its maps: their table, and their values one after the other in half precision."""
    values = np.concatenate([heat.ravel() for heat in maps]).astype(np.float16)
    return {"table": frame_bytes(table), "maps": npz(values=values)}


def estimates_of(table: pd.DataFrame, values: Sequence[str]) -> dict[tuple[str, str], Estimate]:
    """The estimate of each metric over all maps, and over those at words for each value (the direction) that has some.

    An image counts as often as it has maps, and is drawn as one.
    """
    table = table[table[NAMES[0]].notna()]
    groups = {"": table} | {value: table[table["value"] == place] for place, value in enumerate(values)}
    return {
        (name, direction): _estimate(group, name) for direction, group in groups.items() if len(group) for name in NAMES
    }


def _estimate(table: pd.DataFrame, name: str) -> Estimate:
    image, images = pd.factorize(table["image_id"])
    ratio = Ratio(table[name].to_numpy(), np.ones(len(table)))
    return estimate(ratio, MapImages(tuple(images), image), METRICS[name].scale)


def _results(job: Job, table: pd.DataFrame) -> list[Result]:
    counts = table.loc[table[NAMES[0]].notna(), "value"].value_counts()
    n = {"": int(counts.sum())} | {value: int(counts.get(place, 0)) for place, value in enumerate(job.attribute.values)}
    photographs = job.options.photographs["name"]
    columns = {"encoder": job.options.captioner["name"], "photographs": "" if photographs == ORIGINALS else photographs}
    method = _method(job.options, job.attribute)
    return [
        job.result(METRICS[name], own, n[direction], method, direction, _interval(own), **columns)
        for (name, direction), own in estimates_of(table, job.attribute.values).items()
    ]


def _interval(found: Estimate) -> tuple[float | None, float | None]:
    """The interval over images; none from a single one, whose draws are all alike."""
    return found.interval() if len(found.images) > 1 else (None, None)


def _method(options: AttributionOptions, attribute: Attribute) -> str:
    captioner, people, kind = frozen(options.captioner), frozen(options.people), MAPS[options.map][1]
    words = "words that name a value" if attribute.names_values else "words for a person, by the image's label"
    return (
        f"{kind} of {captioner['name']} {captioner['digest'][:8]} at {words}; people by "
        f"{people['kind']} ({people['name']}); photographs {frozen(options.photographs)['name']}; 95% image "
        "bootstrap, 1000 draws"
    )


def _no_map(job: Job, left_out: Counter) -> CapbiasError:
    return CapbiasError(
        f"No caption of {job.spec.model} has a map: {_reasons(left_out)}.",
        "Check that captions, photographs, and outlines or boxes have the same image IDs.",
    )


def _reasons(left_out: Counter) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)


def _notes(job: Job, table: pd.DataFrame, left_out: Counter) -> tuple[str, ...]:
    used = table[table[NAMES[0]].notna()]
    even = METRICS["attribution_even"].scale * used["attribution_even"].mean()
    notes = [
        f"{len(used):,} maps at words of {used['image_id'].nunique():,} images. An even map would have an attribution "
        f"score of {even:.1f}, and hit in the pointing game {100 - even:.1f}% of the time."
    ]
    if reasons := _reasons(left_out):
        notes.append(f"Captions left out: {reasons}.")
    if most := job.options.max_images:
        notes.append(f"At most {most:,} images with such captions, in a random order that is the same for every set.")
    return tuple(notes)


MEASURE = Measure(
    name="attribution",
    title="what words rest on in photographs",
    place=17,
    metrics=tuple(METRICS.values()),
    groups=(Group("attribution", "attribution score and pointing game", NAMES),),
    options=AttributionOptions,
    needs=Needs(photographs=True, people=True),
    seconds=30_000.0,
    run=run,
    estimates=estimates,
    freeze=freeze,
    for_set=for_set,
    in_process=False,
    packages=("torch", "transformers", "PIL"),
)

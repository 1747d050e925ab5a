"""Runs that make items from photographs: captions, boxes of what is seen, and photographs of which a part is hidden.

A photograph that cannot be read is left out, counted and named. An item is stored at the end, whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.aggregate import Needs
from capbias_core.data import Data, images_in
from capbias_core.errors import CapbiasError, MissingExtra
from capbias_core.kinds import BOXES, PHOTOGRAPHS, suggested_name
from capbias_core.load.photographs import read_photograph
from capbias_core.load.sheet import listed
from capbias_core.measures.base import MadeItem, Measure, Outcome
from capbias_core.measures.caption_side import CaptionSide, least_captions
from capbias_core.measures.options import ArtifactOptions, OnDevice, PeopleMarked, option
from capbias_core.metrics.cooccurrence import Table
from capbias_core.prepare.tasks import object_names, pair_counts
from capbias_core.types import CONDITIONS, Attribute, Progress, counted
from capbias_core.vision.masking import HALF, OF_OBJECTS, OF_OUTLINES, MaskRule
from capbias_core.vision.presets import BATCH, BEAMS, LENGTH, PRESETS
from capbias_core.workspace.conditions import ORIGINAL, condition_details
from capbias_core.workspace.labels import attribute_of, labels_of, table_with, tables_with
from capbias_core.workspace.masked_photographs import masked_folder
from capbias_core.workspace.models import captioner_option
from capbias_core.workspace.objects import CONFIDENCE, about_boxes, boxes_of, weights_option
from capbias_core.workspace.photographs import MADE_BY
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.store import Item, Workspace

MASKED = ("part", "segment", "box", "object", "both")
FEW_NAMED = 5  # photographs left out, or reasons, that a note names; the log has them all
DIGITS = 6  # of departures


def left_out_notes(reasons: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """A note on photographs that were left out, the commonest reason first, and lines for the log. reasons: by name."""
    if not reasons:
        return [], []
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason.rstrip("."), []).append(name)
    by_size = sorted(names.items(), key=lambda pair: -len(pair[1]))
    shown = [f"{listed(each, FEW_NAMED)}: {reason}" for reason, each in by_size[:FEW_NAMED]]
    more = [f"and {len(by_size) - FEW_NAMED:,} more reasons"] if len(by_size) > FEW_NAMED else []
    log = [f"left out: {name}: {reason}" for name, reason in reasons.items()]
    return [f"{counted(len(reasons), 'photograph')} left out: {'; '.join([*shown, *more])}."], log


@dataclass(frozen=True)
class CaptionOptions(ArtifactOptions, OnDevice):
    """Choices of a captioner. condition: what is masked on the photographs."""

    captioner: ModelReference | str | None = option(
        None,
        f"the captioner: one of {', '.join(PRESETS)}; or the folder or name of any captioner of transformers",
        flag="--captioner",
        metavar="NAME_OR_FOLDER",
    )
    condition: str = option(ORIGINAL, "what is masked on the photographs", choices=CONDITIONS)
    beams: int = option(BEAMS, "searched at once; 1 is greedy", flag="--beams", at_least=1, metavar="N")
    length: int = option(LENGTH, "tokens at most", flag="--length", at_least=1, metavar="N")
    batch: int = option(
        BATCH, "photographs at once, half as many if memory is short", flag="--batch", at_least=1, metavar="N"
    )


def caption(data: Data, options: Any, progress: Progress) -> Outcome:
    """Caption the photographs and keep the set. Raises CapbiasError if none can be read or captioned."""
    from capbias_core.vision.captioners import Captioner

    files = data.sources.photographs(options.photographs)
    progress(0.0, "loading the captioner")
    captioner = Captioner(data.sources.model(options.captioner).path, options.device)
    captions, left_out, batch = {}, {}, {}
    for number, (image, file) in enumerate(files.items(), 1):
        try:
            batch[image] = read_photograph(file)
        except MissingExtra:
            raise
        except CapbiasError as error:
            left_out[file.name] = error.message
        if batch and (len(batch) == options.batch or number == len(files)):
            texts = captioner.captions(list(batch.values()), options.beams, options.length, len(batch))
            captions |= {name: text for name, text in zip(batch, texts, strict=True) if text}
            silent = [name for name, text in zip(batch, texts, strict=True) if not text]
            left_out |= dict.fromkeys((files[name].name for name in silent), "the captioner wrote nothing")
            progress(number / len(files), f"captioned {len(captions):,} of {len(files):,}")
            batch = {}
    notes, log = left_out_notes(left_out)
    if not captions:
        raise CapbiasError(
            f"None of {counted(len(files), 'photograph')} got a caption. {notes[0]}",
            "Check the folder of photographs, and the captioner on one of them.",
        )
    frame = pd.DataFrame({"image_id": list(captions), "caption_index": 0, "caption": list(captions.values())})
    writer = options.captioner["name"]
    made_by = {"captioner": options.captioner, "photographs": options.photographs}
    details = {"trained_on_references": None, MADE_BY: made_by}
    details |= condition_details(options.name, suggested_name(writer), options.condition)
    progress(1.0, "keeping the captions")
    item = MadeItem(frame, f"{writer} on {options.photographs['name']}", details)
    made = (
        f"{len(captions):,} captions by {writer} {options.captioner['digest'][:8]}, beams: {options.beams}, tokens at "
        f"most: {options.length}."
    )
    return Outcome(notes=[made, *notes], item=item, log=log)


CAPTION = Measure(
    name="caption",
    title="captions of photographs",
    position=22,
    options=CaptionOptions,
    needs=Needs(captions=False, labels=False, photographs=True),
    seconds=40_000.0,
    count=caption,
    freeze=lambda options, data: options.with_(captioner=captioner_option(data.sources, options.captioner)),
    makes="captions",
    in_process=False,
)


@dataclass(frozen=True)
class DetectOptions(ArtifactOptions):
    """Choices of a detector."""

    weights: ModelReference | str | None = option(
        None, "the detector: a file (.pt, .onnx, .tflite), such as yolov8n.pt", flag="--weights", metavar="FILE"
    )
    confidence: float = option(
        CONFIDENCE,
        "leave out boxes that the detector is less sure of",
        flag="--confidence",
        above=0,
        at_most=1,
        metavar="SHARE",
    )


def detect(data: Data, options: Any, progress: Progress) -> Outcome:
    """Detect, and keep the boxes of all photographs. Raises CapbiasError if none can be read."""
    weights, files = data.sources.model(options.weights), data.sources.photographs(options.photographs)
    boxes = boxes_of(files, weights, options.confidence, progress)
    if not boxes.read:
        raise next(iter(boxes.refused.values()))
    source, details = about_boxes(boxes, options.weights, options.confidence)
    details |= {"photographs": options.photographs["name"]}
    people = boxes.frame.loc[boxes.frame["object"] == "person", "image_id"].nunique()
    notes = [f"{len(boxes.frame):,} boxes on {len(boxes.read):,} photographs, {people:,} of them with people."]
    more, log = left_out_notes({image: error.message for image, error in boxes.refused.items()})
    return Outcome(notes=[*notes, *more], item=MadeItem(boxes.frame, source, details), log=log)


DETECT = Measure(
    name="detect",
    title="people and objects on photographs",
    position=20,
    options=DetectOptions,
    needs=Needs(captions=False, labels=False, photographs=True),
    seconds=3_000.0,
    count=detect,
    freeze=lambda options, data: options.with_(weights=weights_option(data.sources, options.weights)),
    makes=BOXES,
    in_process=False,
)


@dataclass(frozen=True)
class MaskOptions(ArtifactOptions, PeopleMarked):
    """Choices of masked photographs. departures: of objects that may be hidden, by name; see `departures`."""

    condition: str = option(
        "",
        "what is hidden: part (the upper half, or fraction, of the person's outline), segment (the outline), box (the "
        "box around it), object (the one that goes most with a value of the attribute), both (person and object)",
        flag="--condition",
        choices=MASKED,
        metavar="CONDITION",
    )
    fraction: float = option(
        HALF, "for part: how much of the outline, from the top", flag="--fraction", above=0, at_most=1, metavar="SHARE"
    )
    departures: dict[str, float] | None = option(None, "the objects that may be hidden, and how far each departs")

    @property
    def rule(self) -> MaskRule:
        return MaskRule(self.condition, self.fraction, self.departures or {})

    def effective(self) -> MaskOptions:
        """Without choices that this condition does not read."""
        names = ("fraction", "departures")
        unread = set(names) - self.rule.used().keys()
        return self.with_(**{name: getattr(MaskOptions, name) for name in unread})


def freeze_mask(options: MaskOptions, data: Data) -> MaskOptions:
    """Outlines or boxes by their content. Raises CapbiasError for what does not go together."""
    if options.condition in OF_OBJECTS and not options.departures:
        raise CapbiasError(
            f"The condition {options.condition} does not say which objects to mask.",
            "Name human captions and an attribute, from which they follow, or the objects.",
            "references",
            "attribute",
            "object",
        )
    people = data.sources.choose_people(options.people)
    if people["kind"] == BOXES and options.condition in OF_OUTLINES:
        raise CapbiasError(
            f"The condition {options.condition} needs outlines of people, but {people['name']} has boxes.",
            "Load a COCO instances file with import --kind segments, or choose the condition box, object or both.",
        )
    return options.with_(people=people)


def mask(data: Data, options: Any, progress: Progress) -> Outcome:
    """Mask the photographs and keep the folder. Raises CapbiasError if none can be masked."""
    used = options.rule.used()
    masked = masked_folder(
        data.sources.folder / "pictures",
        data.sources.frame,
        data.sources.photographs(options.photographs),
        options.photographs["digest"],
        options.rule,
        options.people["item"],
        progress,
    )
    used.pop("departures", None)
    details = {
        "folder": str(masked.folder),
        "of": options.photographs["name"],
        "people": options.people["name"],
        "left_out": len(masked.left_out),
        **used,
    }
    source = f"{options.photographs['name']}, masked by {options.people['name']}"
    frame = masked.kept[["image_id", "file", "hidden"]]
    # Under the digest of what is in the folder: its list of files is the same under other conditions.
    item = MadeItem(frame, source, details, masked.folder.name)
    unmasked = masked.bare if options.condition == "object" else ()
    changed = masked.kept[~masked.kept["image_id"].isin(unmasked)]
    notes = [
        f"{counted(len(changed), 'photograph')} masked ({options.condition}) by "
        f"{options.people['name']}; on average {changed['hidden'].mean():.1%} of a photograph is hidden."
    ]
    if unmasked:
        notes.append(f"{len(unmasked):,} more, kept unmasked: they show none of the correlated objects.")
    elif masked.bare:
        notes.append(f"{len(masked.bare):,} of them show none of the correlated objects; only the person is hidden.")
    more, log = left_out_notes(masked.left_out)
    return Outcome(notes=[*notes, *more], item=item, log=log)


MASK = Measure(
    name="mask",
    title="masked photographs",
    position=21,
    options=MaskOptions,
    needs=Needs(captions=False, labels=False, photographs=True, people=True),
    seconds=600.0,
    count=mask,
    freeze=freeze_mask,
    makes=PHOTOGRAPHS,
)


# departures: which objects go with one value of an attribute, by human captions


def departures(human: pd.DataFrame, attribute: Attribute, labels: pd.Series | None = None) -> dict[str, float]:
    """Object -> departure, largest first; of the objects that enough captions name.

        departure(t) = max over a of |P(a | t) - P(a)|

    P(a | t): of the captions that name the object t and one value, the share that names a (BA's b); P(a): that share of
    all captions that name one value. LIC masks "the object that exhibits the highest correlation with gender according
    to the BA metric": here, of the objects that a photograph shows, the one of the largest departure.

    human: image_id and caption. Enough is what BA asks of a word (100 of COCO's 53,900 captions, in proportion less of
    fewer). labels: value by image id, which counts instead of the value that a caption names if the attribute has
    no words (race). Raises CapbiasError where no object is named often enough.
    """
    if not attribute.names_values:
        human = human[human["image_id"].isin(labels.index if labels is not None else ())]
    side = CaptionSide(human, sorted(images_in(human)), attribute, labels)
    if attribute.names_values:
        values, kept = side.values, side.only_one
    else:
        values, kept = side.labelled, np.ones(len(side.image), dtype=bool)
    sums = pair_counts(side.image[kept], len(side.images), values[kept], side.objects[kept]).sum(axis=0)
    counts, least = Table.of(np.asarray(sums, dtype=float).ravel(), side.k), least_captions(side)
    often = np.flatnonzero(counts.pair.sum(axis=0) >= least)
    if not len(often):
        raise CapbiasError(
            f"No object is named {least} times beside one value of {attribute.name} in the human captions.",
            "Load more human captions, or name the objects.",
            "object",
        )
    pairs = counts.pair[:, often]
    departs = np.abs(pairs / pairs.sum(axis=0) - (counts.value / counts.value.sum())[:, None]).max(axis=0)
    names = list(object_names())
    by_object = {names[column]: round(float(far), DIGITS) for column, far in zip(often, departs, strict=True)}
    return dict(sorted(by_object.items(), key=lambda pair: (-pair[1], pair[0])))


def departures_in(
    workspace: Workspace, collection: str, attribute: str, references: str = "", table: Item | None = None
) -> dict[str, float]:
    """The departures by the human captions of a collection, for an attribute of one of its tables of labels.

    references: their name, '' for the only ones. table: the labels (default: `table_with`). Raises CapbiasError where
    there are none, or several.
    """
    tables = [table] if table else tables_with(workspace.items("labels", collection), attribute)
    human = [item.name for item in workspace.items("references", collection)]
    name = references or (human[0] if len(human) == 1 else "")
    if not name or not tables:
        lacking = f"{len(human)} sets of human captions" if not name else f"no labels for {attribute}"
        raise CapbiasError(
            f"The collection {collection!r} has {lacking}.",
            "Name one set of human captions, load them or labels with import, or name the objects to mask.",
        )
    chosen, where = attribute_of(table_with(tables, attribute), attribute)
    human_captions = workspace.frame(workspace.item("references", name, collection).hash)
    return departures(human_captions, chosen, labels_of(workspace, chosen, where))


MEASURES = (DETECT, MASK, CAPTION)
